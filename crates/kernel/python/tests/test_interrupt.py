"""SIGINT at various points of a cell, and the state that survives it."""

import time

import pytest
from host import error, filter_events, result, status, text


def run_and_interrupt(host, code, after=0.3, timeout=5, started="go"):
    host.last_id += 1
    number = host.last_id
    host.send(op="execute", id=number, code="print(%r, flush=True)\n%s" % (started, code))
    host.wait_for(lambda e: e["t"] == "stdout" and started in e["text"])
    time.sleep(after)
    begin = time.monotonic()
    host.interrupt()
    events = host.wait_done(number, timeout)
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
    events, seconds = run_and_interrupt(host, code)
    assert status(events) == "interrupted", events[-3:]
    assert error(events)["ename"] == "KeyboardInterrupt"
    assert error(events)["traceback"][-1].startswith("KeyboardInterrupt")
    assert not any("cellwright_runner" in line for line in error(events)["traceback"])
    assert seconds < 1.5
    assert result(host.run("kept")) == "5"
    assert result(host.run("await asyncio.sleep(0.01)\nkept")) == "5"


def test_interrupt_names_the_line(host):
    events, _ = run_and_interrupt(host, "import time\ndef f():\n    time.sleep(30)\nf()")
    assert "  Cell In[1], line 4, in f" in error(events)["traceback"]
    events, _ = run_and_interrupt(
        host, "import asyncio\nasync def g():\n    await asyncio.sleep(30)\nawait g()"
    )
    assert "  Cell In[2], line 4, in g" in error(events)["traceback"]


def test_idle_interrupt_is_ignored(host):
    for _ in range(3):
        host.interrupt()
        time.sleep(0.02)
    assert result(host.run("1")) == "1"


def test_children_are_interrupted_too(host):
    events, _ = run_and_interrupt(
        host, "import subprocess\np = subprocess.Popen(['sleep', '30'])\np.wait()"
    )
    assert status(events) == "interrupted"
    # (Python may lose the exit status if the interrupt arrives right after waitpid.)
    assert result(host.run("p.wait(2) in (-2, 0)")) == "True"


def test_swallowed_interrupt(host):
    events, _ = run_and_interrupt(
        host, "import time\ntry:\n    time.sleep(30)\nexcept BaseException:\n    print('swallowed')"
    )
    assert status(events) == "ok" and "swallowed" in text(events)


def test_keyboard_interrupt_raised_by_the_cell_is_an_error(host):
    assert status(host.run("raise KeyboardInterrupt('mine')")) == "error"


def test_sigint_handler_is_restored_before_each_cell(host):
    host.run("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)")
    events, _ = run_and_interrupt(host, "import time; time.sleep(30)")
    assert status(events) == "interrupted"


def test_background_tasks_survive_an_interrupt(host):
    host.run(
        "import asyncio\nticks = []\nasync def tick():\n    while True:\n        ticks.append(1)\n"
        "        await asyncio.sleep(0.01)\nt = asyncio.ensure_future(tick())\nawait asyncio.sleep(0.05)"
    )
    events, _ = run_and_interrupt(host, "await asyncio.sleep(30)")
    assert status(events) == "interrupted"
    host.run("n = len(ticks)\nawait asyncio.sleep(0.1)")
    assert result(host.run("len(ticks) > n, t.done()")) == "(True, False)"


def test_interrupts_never_corrupt_frames(host):
    """Many interrupts during many frames and much text: the host must be able to read every frame."""
    host.run("kept = 1")
    code = (
        "import sys\nwhile True:\n    try:\n        while True:\n"
        "            display('d' * 3000); print('p' * 3000); print('e' * 300, file=sys.stderr)\n"
        "    except KeyboardInterrupt:\n        n = globals().get('n', 0) + 1\n        if n >= 25: break"
    )
    host.send(op="execute", id=500, code=code)
    end = time.monotonic() + 20
    while time.monotonic() < end and not filter_events(host.events, "done"):
        host.interrupt()
        pause = time.monotonic() + 0.02
        while time.monotonic() < pause and not filter_events(host.events, "done"):
            host.read_ready(0.005)
    assert filter_events(host.events, "done")
    host.events = []
    assert result(host.run("kept")) == "1"


def test_interrupt_during_an_input_request(host):
    host.send(op="execute", id=1, code="input('?')", stdin="ask")
    host.wait_for(lambda e: e["t"] == "input")
    host.interrupt()
    events = host.wait_done(1)
    assert status(events) == "interrupted"
    host.send(op="answer", id=1, text="too late")
    assert result(host.run("1")) == "1"


def test_interrupt_in_repr(host):
    host.run(
        "import time\nclass A:\n    def __repr__(self):\n        print('repr'); time.sleep(30)"
    )
    events, _ = run_and_interrupt(host, "A()", started="go")
    assert status(events) == "interrupted"


def test_interrupts_during_many_small_cells(host):
    for i in range(60):
        host.last_id += 1
        host.send(op="execute", id=host.last_id, code="x = %d\nx" % i)
        host.interrupt()
        events = host.wait_done(host.last_id)
        assert status(events) in ("ok", "interrupted")
    assert result(host.run("'alive'")) == "'alive'"


def test_signal_at_the_start_of_a_write_loses_no_text(host):
    """The text layer empties its buffer before it calls the pipe writer. A signal at the first
    instruction of that call raises after the write, not before it."""
    events = host.run(
        "from types import SimpleNamespace\n"
        "from cellwright_runner import interrupt, streams\n"
        "code = streams.PipeWriter.write.__code__\n"
        "entry = SimpleNamespace(f_code=code, f_locals={})\n"
        "raised = []\n"
        "try:\n"
        "    interrupt.on_sigint(2, entry)\n"
        "    print('x' * 20000, flush=True)\n"
        "except KeyboardInterrupt:\n"
        "    raised.append('after the write')\n"
        "done = SimpleNamespace(f_code=code, f_locals={'deferred': True})\n"
        "try:\n"
        "    interrupt.on_sigint(2, done)\n"
        "except KeyboardInterrupt:\n"
        "    raised.append('at once')\n"
        "raised"
    )
    assert text(events).count("x") == 20000
    assert result(events) == "['after the write', 'at once']"
