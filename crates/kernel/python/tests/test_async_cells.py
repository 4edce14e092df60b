"""Top-level await and the session's event loop."""

from host import error, result, status, text


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
    events = host.run("import asyncio\nawait asyncio.sleep(0)\nexit(4)")
    assert status(events) == "exit" and events[-1]["exit_code"] == 4
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
