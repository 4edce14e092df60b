"""Top-level await and the session's event loop."""

from host import error, result, status, text


def test_await(host):
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


def test_tasks_live_from_cell_to_cell(host):
    host.run(
        "import asyncio\nasync def f():\n    await asyncio.sleep(0.05); return 'done'\n"
        "await asyncio.sleep(0)\nt = asyncio.create_task(f())"
    )
    assert result(host.run("await t")) == "'done'"


def test_sync_last_expression_runs_in_the_loop(host):
    code = "import asyncio\nawait asyncio.sleep(0)\nasyncio.get_running_loop() is not None"
    assert result(host.run(code)) == "True"


def test_error_in_await(host):
    made = error(host.run("async def f():\n    1/0\nawait f()"))
    assert made["ename"] == "ZeroDivisionError"
    assert made["traceback"][1:3] == ["  Cell In[1], line 3, in <module>", "    await f()"]
    assert not any("asyncio" in line or "cellwright" in line for line in made["traceback"])


def test_cancelled_by_the_cell_itself(host):
    made = error(host.run("import asyncio\nraise asyncio.CancelledError\nawait asyncio.sleep(0)"))
    assert made["ename"] == "CancelledError"
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


def test_never_awaited_is_only_a_warning(host):
    assert status(host.run("async def f(): pass\nf();")) == "ok"


def test_await_inside_a_magic(host):
    assert result(host.run("import asyncio\n%time await asyncio.sleep(0, 3)")) == "3"
    assert result(host.run("%%time\nawait asyncio.sleep(0, 4)")) == "4"
