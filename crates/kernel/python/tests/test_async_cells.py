"""Top-level await and the session's event loop."""

import threading

from host import Host, error, filter_events, result, status, text


def test_top_level_await_returns_the_value(host):
    assert result(host.run("import asyncio\nawait asyncio.sleep(0.01, 'x')")) == "'x'"
    assert status(host.run("y = await asyncio.sleep(0, 5)")) == "ok"
    assert result(host.run("y")) == "5"


def test_async_for_and_with(host):
    code = (
        "class C:\n    async def __aenter__(self): return 1\n    async def __aexit__(self, *a): print('out')\n"
        "async def gen():\n    for i in range(3): yield i\n"
        "got = []\nasync with C() as c:\n    async for i in gen():\n        got.append(i + c)\n"
        "[x async for x in gen()], got"
    )
    events = host.run(code)
    assert result(events) == "([0, 1, 2], [1, 2, 3])" and text(events) == "out\n"


def test_asyncio_run_in_a_sync_cell(host):
    assert result(host.run("import asyncio\nasyncio.run(asyncio.sleep(0, 3))")) == "3"
    assert result(host.run("await asyncio.sleep(0, 4)")) == "4"
    assert result(host.run("asyncio.run(asyncio.sleep(0, 5))")) == "5"
    assert result(host.run("await asyncio.sleep(0, 6)")) == "6"


def test_tasks_survive_the_end_of_a_cell(host):
    host.run(
        "import asyncio\nasync def f():\n    await asyncio.sleep(0.05); return 'done'\n"
        "await asyncio.sleep(0)\nt = asyncio.create_task(f())"
    )
    assert result(host.run("await t")) == "'done'"


def test_sync_last_expression_runs_in_the_loop(host):
    code = "import asyncio\nawait asyncio.sleep(0)\nasyncio.get_running_loop() is not None"
    assert result(host.run(code)) == "True"


def test_error_in_await_has_cell_lines(host):
    failure = error(host.run("async def f():\n    1/0\nawait f()"))
    assert failure["ename"] == "ZeroDivisionError"
    assert failure["traceback"][1:3] == ["  Cell In[1], line 3, in <module>", "    await f()"]
    assert not any("asyncio" in line or "cellwright" in line for line in failure["traceback"])


def test_cancelled_error_raised_by_the_cell_is_an_error(host):
    failure = error(
        host.run("import asyncio\nraise asyncio.CancelledError\nawait asyncio.sleep(0)")
    )
    assert failure["ename"] == "CancelledError"
    assert result(host.run("await asyncio.sleep(0, 1)")) == "1"


def test_exit_in_await(host):
    events = host.run("import asyncio, sys\nawait asyncio.sleep(0)\nsys.exit(4)")
    assert status(events) == "error" and error(events)["evalue"] == "4"
    assert result(host.run("await asyncio.sleep(0, 1)")) == "1"


def test_closed_loop_is_replaced(host):
    host.run("import asyncio\nawait asyncio.sleep(0)\nloop = asyncio.get_running_loop()")
    host.run("loop.close()")
    assert result(host.run("await asyncio.sleep(0, 2)")) == "2"


def test_run_until_complete_in_a_sync_cell(host):
    host.run("import asyncio\nawait asyncio.sleep(0)")
    assert (
        result(host.run("asyncio.get_event_loop().run_until_complete(asyncio.sleep(0, 9))")) == "9"
    )


def test_coroutine_never_awaited_is_not_an_error(host):
    assert status(host.run("async def f(): pass\nf();")) == "ok"


def test_await_inside_a_magic(host):
    assert result(host.run("import asyncio\n%time await asyncio.sleep(0, 3)")) == "3"
    assert result(host.run("%%time\nawait asyncio.sleep(0, 4)")) == "4"


# Calls the signal handler with a frame of the given module while the cell's task runs.
SIGNAL_IN_MODULE = """
import asyncio, sys
reached = []
frame = eval("sys._getframe()", {"sys": sys, "__name__": %r})
sys.modules["cellwright_runner.interrupt"].on_sigint(2, frame)
reached.append("after the signal")
await asyncio.sleep(30)
"""


def test_interrupt_in_asyncio_code_cancels_the_task(host):
    # An exception raised inside asyncio's own code could remove a task from the loop's queue.
    events = host.run(SIGNAL_IN_MODULE % "asyncio.base_events", timeout=10)
    assert status(events) == "interrupted"
    assert error(events)["ename"] == "KeyboardInterrupt"
    assert result(host.run("reached")) == "['after the signal']"
    assert result(host.run("await asyncio.sleep(0, 1)")) == "1"


def test_interrupt_in_cell_code_raises_immediately(host):
    events = host.run(SIGNAL_IN_MODULE % "__main__", timeout=10)
    assert status(events) == "interrupted"
    assert result(host.run("reached")) == "[]"


def test_second_interrupt_in_asyncio_code_raises_immediately(host):
    signal = 'sys.modules["cellwright_runner.interrupt"].on_sigint(2, frame)\n'
    code = SIGNAL_IN_MODULE % "asyncio.base_events"
    assert code.count(signal) == 1
    events = host.run(code.replace(signal, signal + "reached.append(1)\n" + signal), timeout=10)
    assert status(events) == "interrupted"
    assert result(host.run("reached")) == "[1]"


# Tasks that outlive their cell, and cells without await


def test_create_task_in_a_cell_without_await(host):
    host.run("import asyncio\nasync def f(): return 7\nt = asyncio.create_task(f())")
    assert result(host.run("await t")) == "7"
    host.run("from asyncio import create_task, ensure_future\nu = create_task(f(), name='n')")
    assert result(host.run("u.done(), u.get_name()")) == "(True, 'n')"
    assert result(host.run("v = ensure_future(f())\nawait v")) == "7"
    # asyncio.run still works, because no loop runs in a cell without await.
    assert result(host.run("asyncio.run(f())")) == "7"
    assert result(host.run("w = asyncio.create_task(f())\n1")) == "1"
    assert result(host.run("await w")) == "7"


def test_create_task_in_a_thread_needs_a_loop(host):
    code = (
        "import asyncio, threading\nasync def f(): pass\ncaught = []\n"
        "def g():\n    c = f()\n    try: asyncio.create_task(c)\n"
        "    except RuntimeError as e: caught.append(str(e)); c.close()\n"
        "t = threading.Thread(target=g); t.start(); t.join()\ncaught"
    )
    assert result(host.run(code)) == "['no running event loop']"


def test_tasks_run_between_cells(host):
    host.run(
        "import asyncio\nasync def f():\n    await asyncio.sleep(0.05)\n    print('late')\n"
        "    display('shown late')\nt = asyncio.create_task(f())"
    )
    late = host.wait_for(lambda event: event["t"] == "display")
    assert late["id"] == 1
    assert [(e["cell"], e["text"]) for e in filter_events(host.events, "stdout")] == [(1, "late\n")]
    host.events = []
    assert result(host.run("t.done()")) == "True"


def test_ready_tasks_advance_before_the_next_cell(host):
    # As in ipykernel, also if the next request has arrived already.
    host.send(
        op="execute",
        id="a",
        code="import asyncio\nasync def f():\n    for i in range(3): await asyncio.sleep(0)\n"
        "t = asyncio.create_task(f())",
    )
    host.send(op="execute", id="b", code="t.done()")
    assert result(host.wait_done("b")) == "True"


def test_server_answers_between_cells(host):
    import socket

    code = (
        "import asyncio\nasync def serve(reader, writer):\n"
        "    writer.write((await reader.readline()).upper()); writer.close()\n"
        "server = await asyncio.start_server(serve, '127.0.0.1', 0)\n"
        "server.sockets[0].getsockname()[1]"
    )
    port = int(result(host.run(code)))
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        client.sendall(b"hello\n")
        assert client.makefile().readline() == "HELLO\n"
    assert status(host.run("server.close()")) == "ok"


def test_interrupt_ends_a_task_that_blocks_between_cells(host):
    host.run(
        "import asyncio, time\nasync def f():\n    await asyncio.sleep(0.01)\n"
        "    print('blocked', flush=True)\n    while True: time.sleep(0.01)\n"
        "t = asyncio.create_task(f())"
    )
    host.wait_for(lambda event: event["t"] == "stdout" and "blocked" in event["text"])
    host.send(op="execute", id="next", code="'runs'")
    repeat = threading.Event()

    def interrupt():
        while not repeat.wait(0.05):
            if any(event["t"] == "started" for event in host.events):
                return
            host.interrupt()

    sender = threading.Thread(target=interrupt)
    sender.start()
    try:
        host.wait_for(lambda event: event["t"] == "started" and event["id"] == "next")
    finally:
        repeat.set()
        sender.join()
    events = host.wait_done("next")
    assert "KeyboardInterrupt" in text(events, "stderr")


def test_errors_of_tasks_do_not_end_the_kernel(host):
    host.run(
        "import asyncio, sys\nasync def f(): raise SystemExit(3)\n"
        "async def g(): 1/0\nt, u = asyncio.create_task(f()), asyncio.create_task(g())"
    )
    assert result(host.run("type(u.exception()).__name__")) == "'ZeroDivisionError'"


def test_pending_tasks_end_silently(python, tmp_path):
    host = Host(python, cwd=str(tmp_path))
    host.run("import asyncio\nt = asyncio.create_task(asyncio.sleep(60))")
    host.send(op="exit")
    try:
        host.wait_for(lambda event: False, 20)
    except Exception as ended:
        assert type(ended).__name__ == "RunnerExited" and "destroyed" not in str(ended)
    host.close()
    assert host.process.returncode == 0
