"""SIGINT in all places; what a cell does with it; what stays alive."""

import time

import pytest
from host import error, of, result, status, text


def interrupted(host, code, after=0.3, timeout=5, started="go"):
    host.number += 1
    number = host.number
    host.send(op="execute", id=number, code="print(%r, flush=True)\n%s" % (started, code))
    host.wait_for(lambda e: e["t"] == "stdout" and started in e["text"])
    time.sleep(after)
    begin = time.monotonic()
    host.interrupt()
    events = host.finish(number, timeout)
    return events, time.monotonic() - begin


@pytest.mark.parametrize(
    "code",
    [
        "import time; time.sleep(30)",
        "while True: pass",
        "import subprocess; subprocess.run(['sleep', '30'])",
        "!sleep 30",
        "import os; os.system('sleep 30')",
        "import os\nwhile True: os.system('sleep 30')",
        "x = !sleep 30",
        "import threading; threading.Event().wait(30)",
        "import os; os.read(os.pipe()[0], 1)",
        "while True: print('x' * 100)",
        "import sys\nwhile True: print('x'); print('y', file=sys.stderr); display(1)",
        "import asyncio; await asyncio.sleep(30)",
        "import asyncio\nwhile True: await asyncio.sleep(0)",
        "import asyncio, time\nasync def f(): time.sleep(30)\nawait f()",
        "import asyncio; asyncio.run(asyncio.sleep(30))",
        "import asyncio\nasync def f():\n    await asyncio.gather(*[asyncio.sleep(30) for _ in range(9)])\n"
        "await f()",
    ],
)
def test_interrupt(host, code):
    host.run("kept = 5\nimport asyncio")
    events, seconds = interrupted(host, code)
    assert status(events) == "interrupted", events[-3:]
    assert error(events)["ename"] == "KeyboardInterrupt"
    assert error(events)["traceback"][-1].startswith("KeyboardInterrupt")
    assert not any("cellwright_runner" in line for line in error(events)["traceback"])
    assert seconds < 1.5
    assert result(host.run("kept")) == "5"
    assert result(host.run("await asyncio.sleep(0.01)\nkept")) == "5"


def test_interrupt_names_the_line(host):
    events, _ = interrupted(host, "import time\ndef f():\n    time.sleep(30)\nf()")
    assert "  Cell In[1], line 4, in f" in error(events)["traceback"]
    events, _ = interrupted(
        host, "import asyncio\nasync def g():\n    await asyncio.sleep(30)\nawait g()"
    )
    assert "  Cell In[2], line 4, in g" in error(events)["traceback"]


def test_idle_interrupt_is_ignored(host):
    for _ in range(3):
        host.interrupt()
        time.sleep(0.02)
    assert result(host.run("1")) == "1"


def test_children_are_interrupted_too(host):
    events, _ = interrupted(
        host, "import subprocess\np = subprocess.Popen(['sleep', '30'])\np.wait()"
    )
    assert status(events) == "interrupted"
    # (Python may lose the exit status when the interrupt hits between waitpid and its note of it.)
    assert result(host.run("p.wait(2) in (-2, 0)")) == "True"


def test_swallowed_interrupt(host):
    events, _ = interrupted(
        host, "import time\ntry:\n    time.sleep(30)\nexcept BaseException:\n    print('swallowed')"
    )
    assert status(events) == "ok" and "swallowed" in text(events)


def test_raised_by_the_cell_itself_is_an_error(host):
    assert status(host.run("raise KeyboardInterrupt('mine')")) == "error"


def test_handler_changed_by_a_cell_comes_back(host):
    host.run("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)")
    events, _ = interrupted(host, "import time; time.sleep(30)")
    assert status(events) == "interrupted"


def test_background_tasks_survive_an_interrupt(host):
    host.run(
        "import asyncio\nticks = []\nasync def tick():\n    while True:\n        ticks.append(1)\n"
        "        await asyncio.sleep(0.01)\nt = asyncio.ensure_future(tick())\nawait asyncio.sleep(0.05)"
    )
    events, _ = interrupted(host, "await asyncio.sleep(30)")
    assert status(events) == "interrupted"
    host.run("n = len(ticks)\nawait asyncio.sleep(0.1)")
    assert result(host.run("len(ticks) > n, t.done()")) == "(True, False)"


def test_frames_are_never_torn(host):
    """Many interrupts into a storm of frames and text: the host must be able to read every frame."""
    host.run("kept = 1")
    code = (
        "import sys\nwhile True:\n    try:\n        while True:\n"
        "            display('d' * 3000); print('p' * 3000); print('e' * 300, file=sys.stderr)\n"
        "    except KeyboardInterrupt:\n        n = globals().get('n', 0) + 1\n        if n >= 25: break"
    )
    host.send(op="execute", id=500, code=code)
    end = time.monotonic() + 20
    while time.monotonic() < end and not of(host.events, "done"):
        host.interrupt()
        pause = time.monotonic() + 0.02
        while time.monotonic() < pause and not of(host.events, "done"):
            host.pump(0.005)
    assert of(host.events, "done")
    host.events = []
    assert result(host.run("kept")) == "1"


def test_interrupt_while_asked(host):
    host.send(op="execute", id=1, code="input('?')", stdin="ask")
    host.wait_for(lambda e: e["t"] == "input")
    host.interrupt()
    events = host.finish(1)
    assert status(events) == "interrupted"
    host.send(op="answer", id=1, text="too late")
    assert result(host.run("1")) == "1"


def test_interrupt_in_repr(host):
    host.run(
        "import time\nclass A:\n    def __repr__(self):\n        print('repr'); time.sleep(30)"
    )
    events, _ = interrupted(host, "A()", started="go")
    assert status(events) == "interrupted"


def test_interrupt_in_the_storm_of_small_cells(host):
    for i in range(60):
        host.number += 1
        host.send(op="execute", id=host.number, code="x = %d\nx" % i)
        host.interrupt()
        events = host.finish(host.number)
        assert status(events) in ("ok", "interrupted")
    assert result(host.run("'alive'")) == "'alive'"
