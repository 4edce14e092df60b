"""Text: order, attribution, unusual bytes, replaced and closed streams, children, threads, forks."""

import time

import pytest
from host import filter_events, kinds, result, status, text


def texts_in_order(events):
    return [(e["t"], e["text"]) for e in events if e["t"] in ("stdout", "stderr")]


def test_print(host):
    events = host.run("print('a')\nprint('b')")
    assert texts_in_order(events) == [("stdout", "a\nb\n")]


def test_order_of_two_streams(host):
    events = host.run("import sys\nprint('a'); print('b', file=sys.stderr); print('c')")
    assert texts_in_order(events) == [("stdout", "a\n"), ("stderr", "b\n"), ("stdout", "c\n")]


def test_order_in_a_tight_loop(host):
    events = host.run(
        "import sys\nfor i in range(2000):\n    print('o', i)\n    print('e', i, file=sys.stderr)"
    )
    expected = []
    for i in range(2000):
        expected += [("stdout", "o %d\n" % i), ("stderr", "e %d\n" % i)]
    assert texts_in_order(events) == expected


def test_order_of_text_and_frames_in_a_tight_loop(host):
    events = host.run(
        "import sys\nfor i in range(500):\n    print(i)\n    display(i)\n"
        "    print(-i, file=sys.stderr, flush=True)\n    display(-i)"
    )
    expected = ["started"] + ["stdout", "display", "stderr", "display"] * 500 + ["done"]
    assert kinds(events) == expected


def test_order_without_newlines(host):
    events = host.run(
        "import sys\nsys.stdout.write('a'); sys.stderr.write('b'); sys.stdout.write('c'); display(1)\n"
        "sys.stdout.write('d');"
    )
    assert kinds(events) == ["started", "stdout", "stderr", "stdout", "display", "stdout", "done"]


def test_child_text_in_order(host):
    events = host.run(
        "import os, subprocess, sys\nprint('a')\nos.system('echo b')\nprint('c')\n"
        "r = subprocess.run(['echo', 'd'])\nprint('e')\n"
        "os.system('echo f >&2')\nprint('g')\ndisplay(1)\nos.system('echo h; echo i >&2');"
    )
    assert [(e["t"], e.get("text")) for e in events[1:-3]] == [
        ("stdout", "a\nb\nc\nd\ne\n"),
        ("stderr", "f\n"),
        ("stdout", "g\n"),
        ("display", None),
    ]
    assert sorted((e["t"], e.get("text")) for e in events[-3:-1]) == [
        ("stderr", "i\n"),
        ("stdout", "h\n"),
    ]


def test_order_of_children_and_prints_on_both_streams(host):
    events = host.run(
        "import os, sys\nfor i in range(40):\n    print('p', i)\n    os.system('echo c %d >&2' % i)\n"
        "    print('q', i, file=sys.stderr)\n    os.system('echo d %d' % i)"
    )
    expected = []
    for i in range(40):
        before = "d %d\n" % (i - 1) if i else ""
        expected.append(("stdout", before + "p %d\n" % i))
        expected.append(("stderr", "c %d\nq %d\n" % (i, i)))
    expected.append(("stdout", "d 39\n"))
    assert texts_in_order(events) == expected


def test_posix_spawn_and_fork_flush_first(host):
    events = host.run(
        "import os\nprint('a')\npid = os.posix_spawn('/bin/echo', ['echo', 'b'], os.environ)\n"
        "os.waitpid(pid, 0)\nprint('c')\npid = os.fork()\n"
        "if not pid:\n    os.write(1, b'd\\n')\n    os._exit(0)\nos.waitpid(pid, 0)\nprint('e')"
    )
    assert text(events) == "a\nb\nc\nd\ne\n"


def test_raw_writes_to_the_descriptors(host):
    events = host.run("import os\nos.write(1, b'one')\nos.write(2, b'two');")
    assert text(events) == "one" and text(events, "stderr") == "two"


def test_closed_descriptors_do_not_stop_output(host):
    events = host.run("import os\nos.close(1); os.close(2)\nprint('still here')")
    assert text(events) == "still here\n"
    assert text(host.run("print('and here')")) == "and here\n"


def test_redirected_descriptor(host, tmp_path):
    events = host.run(
        "import os\nfd = os.open('out.txt', os.O_CREAT | os.O_WRONLY)\nos.dup2(fd, 1)\n"
        "os.system('echo into the file')\nprint('to the host')"
    )
    assert text(events) == "to the host\n"
    assert (tmp_path / "out.txt").read_text() == "into the file\n"


def test_a_child_makes_the_pipe_nonblocking(host):
    events = host.run(
        "import os\nos.set_blocking(1, False)\nos.set_blocking(2, False)\n"
        "for i in range(20000):\n    print('x' * 100)\n"
        "import sys\nprint('e' * 200000, file=sys.stderr)\ndisplay(1)"
    )
    assert len(text(events)) == 20000 * 101
    assert len(text(events, "stderr")) == 200001
    assert status(events) == "ok"


def test_unusual_characters(host):
    events = host.run(
        "import sys\nprint('ä€😀')\nprint(b'\\xff\\xfe'.decode('utf-8', 'surrogateescape'))\n"
        "print('\\ud800')\nsys.stdout.buffer.write(b'\\x00\\x01')\nprint()"
    )
    # \udcff and \udcfe are the raw bytes ff and fe in the pipe.
    assert text(events) == "ä€😀\n\udcff\udcfe\n\\ud800\n\0\1\n"


def test_stream_objects(host):
    events = host.run(
        "import sys, io\n"
        "[(s.isatty(), s.fileno(), s.encoding, s.writable(), s.readable(), s.closed, s.name,"
        " isinstance(s, io.TextIOBase), isinstance(s.buffer, io.BufferedIOBase))"
        " for s in (sys.stdout, sys.stderr)]"
    )
    assert result(events).replace("\n", "") == (
        "[(False, 1, 'utf-8', True, False, False, '<stdout>', True, True),"
        " (False, 2, 'utf-8', True, False, False, '<stderr>', True, True)]"
    )
    assert status(host.run("sys.stdout.reconfigure(line_buffering=True, encoding='utf-8')")) == "ok"
    assert text(host.run("print('x')")) == "x\n"
    assert error_name(host.run("sys.stdout.write(5)")) == "TypeError"
    assert error_name(host.run("sys.stdout.read()")) == "UnsupportedOperation"


def error_name(events):
    return filter_events(events, "error")[0]["ename"]


def test_closed_and_detached_streams(host):
    events = host.run("import sys\nsys.stdout.close()\nprint('a')")
    assert text(events) == "a\n"
    host.run("sys.stderr.close()\nsys.stdout.detach()\nNone")
    events = host.run("print('b'); print('c', file=sys.stderr)\n5")
    assert (text(events), text(events, "stderr"), result(events)) == ("b\n", "c\n", "5")


def test_replaced_stream_is_used_until_it_is_closed(host):
    host.run("import sys, io\nmine = io.StringIO()\nsys.stdout = mine\nprint('hidden')")
    assert text(host.run("print('hidden too')")) == ""
    host.run("mine.close()")
    assert text(host.run("print('back')")) == "back\n"
    host.run("sys.stdout = None")
    assert text(host.run("print('back again')")) == "back again\n"


def test_redirect_stdout(host):
    events = host.run(
        "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as f:\n"
        "    print('x')\n    !echo y\nf.getvalue()"
    )
    assert result(events) == "'x\\ny\\n'" and text(events) == ""


def test_first_line_is_sent_immediately(host):
    host.send(op="execute", id=1, code="import time\nprint('one')\nprint('two')\ntime.sleep(1.5)")
    start = time.monotonic()
    host.wait_for(lambda e: e["t"] == "stdout", 2)
    host.wait_for(lambda e: e["t"] == "stdout" and "one" in e["text"], 2)
    assert time.monotonic() - start < 0.5
    events = host.collect_events(0.3)
    assert text(events) == "one\ntwo\n"
    host.wait_done(1)


def test_partial_line_is_sent_soon(host):
    host.send(op="execute", id=1, code="import time\nprint('working', end='')\ntime.sleep(1.5)")
    host.wait_for(lambda e: e["t"] == "stdout", 0.8)
    host.wait_done(1)


def test_idle_runner_never_wakes_up(host):
    host.run("print('x')")
    time.sleep(0.2)

    def switches():
        with open("/proc/%d/status" % host.process.pid) as file:
            lines = dict(line.split(":", 1) for line in file)
        total = int(lines["voluntary_ctxt_switches"])
        import os

        for task in os.listdir("/proc/%d/task" % host.process.pid):
            with open("/proc/%d/task/%s/status" % (host.process.pid, task)) as file:
                lines = dict(line.split(":", 1) for line in file)
            total += int(lines["voluntary_ctxt_switches"])
        return total

    before = switches()
    time.sleep(0.5)
    assert switches() - before <= 2


def test_thread_text_belongs_to_its_cell(host):
    first = host.run(
        "import threading, time, sys\ngo = threading.Event()\n"
        "def work():\n    go.wait()\n    for i in range(5):\n"
        "        print('t', i)\n        print('u', i, file=sys.stderr)\n        time.sleep(0.01)\n"
        "t = threading.Thread(target=work); t.start()"
    )
    assert text(first) == ""
    events = host.run(
        "go.set()\nfor i in range(5):\n    print('m', i)\n    time.sleep(0.01)\nt.join()"
    )
    mine = "".join(e["text"] for e in filter_events(events, "stdout") if e["cell"] == 2)
    theirs = "".join(e["text"] for e in filter_events(events, "stdout") if e["cell"] == 1)
    assert mine == "".join("m %d\n" % i for i in range(5))
    assert theirs == "".join("t %d\n" % i for i in range(5))
    errors = [e for e in filter_events(events, "stderr")]
    assert {e["cell"] for e in errors} == {1}
    assert "".join(e["text"] for e in errors) == "".join("u %d\n" % i for i in range(5))


def test_thread_text_belongs_to_its_cell_when_the_flusher_starts_late(host):
    # Python counts a thread once it runs, which takes longer on a busy machine.
    host.run(
        "import sys, threading\nstreams = sys.modules['cellwright_runner.streams']\n"
        "waiting, begin = [], streams.start_new_thread\n"
        "streams.start_new_thread = lambda *thread: waiting.append(thread)\n"
        "print('early', flush=True)\nassert waiting, 'no flusher was started'\n"
        "go = threading.Event()\n"
        "t = threading.Thread(target=lambda: (go.wait(), print('late', flush=True)))\nt.start()"
    )
    events = host.run("go.set(); t.join()")
    assert [(e["cell"], e["text"]) for e in filter_events(events, "stdout")] == [(1, "late\n")]
    host.run("streams.start_new_thread = begin\nbegin(*waiting[0])")
    assert text(host.run("print('after')")) == "after\n"


def test_thread_text_belongs_to_its_cell_when_the_cell_changes_during_the_write(host):
    # The thread requests the lock during its own cell and acquires it during the next one.
    host.run(
        "import sys, threading\n"
        "runner_output = sys.modules['cellwright_runner.streams'].OUTPUT\n"
        "requested, go, real = threading.Event(), threading.Event(), runner_output.lock\n"
        "class DelayedLock:\n"
        "    def __enter__(self):\n"
        "        if threading.current_thread() is t and not requested.is_set():\n"
        "            requested.set(); go.wait()\n"
        "        return real.__enter__()\n"
        "    def __exit__(self, *error): return real.__exit__(*error)\n"
        "t = threading.Thread(target=print, args=('late',))\n"
        "runner_output.lock = DelayedLock(); t.start(); requested.wait();"
    )
    events = host.run("go.set(); t.join(); runner_output.lock = real")
    assert [(e["cell"], e["text"]) for e in filter_events(events, "stdout")] == [(1, "late\n")]


def test_thread_display_belongs_to_its_cell(host):
    host.run(
        "import threading\ngo = threading.Event()\n"
        "t = threading.Thread(target=lambda: (go.wait(), display('late')))\nt.start()"
    )
    events = host.run("go.set(); t.join()")
    assert [e["id"] for e in filter_events(events, "display")] == [1]


def test_thread_of_a_thread_belongs_to_the_cell_of_the_first(host):
    host.run(
        "import threading\ngo = threading.Event()\n"
        "def outer():\n    go.wait()\n    t = threading.Thread(target=print, args=('inner',))\n"
        "    t.start(); t.join()\no = threading.Thread(target=outer); o.start()"
    )
    events = host.run("go.set(); o.join()")
    assert [(e["cell"], e["text"]) for e in filter_events(events, "stdout")] == [(1, "inner\n")]


def test_late_thread_text_belongs_to_its_cell(host):
    host.run(
        "import threading, time\ndef late():\n    time.sleep(0.2); print('late')\n"
        "threading.Thread(target=late).start()"
    )
    events = host.collect_events(0.6)
    assert [(e["cell"], e["text"]) for e in events] == [(1, "late\n")]


def test_late_child_text_belongs_to_its_cell(host):
    host.run(
        "import subprocess\np = subprocess.Popen('sleep 0.2; echo late; echo err >&2', shell=True)"
    )
    events = host.collect_events(0.6)
    assert sorted((e["t"], e["cell"], e["text"]) for e in events) == [
        ("stderr", 1, "err\n"),
        ("stdout", 1, "late\n"),
    ]


def test_thread_exception_is_written_to_stderr(host):
    events = host.run(
        "import threading\ndef bad(): 1/0\nt = threading.Thread(target=bad); t.start(); t.join()"
    )
    assert status(events) == "ok"
    assert "ZeroDivisionError" in text(events, "stderr")


def test_unraisable_exceptions_are_written_to_stderr(host):
    events = host.run("class A:\n    def __del__(self): 1/0\na = A()\ndel a\n3")
    assert result(events) == "3"
    assert "ZeroDivisionError" in text(events, "stderr")


def test_forked_child_exits_at_the_end_of_the_cell(host):
    events = host.run(
        "import os\nprint('before')\npid = os.fork()\nprint('parent' if pid else 'child')\n"
        "if pid: os.waitpid(pid, 0)\n'end'"
    )
    assert sorted(text(events).split()) == ["'end'", "before", "child", "parent"]
    assert len(filter_events(events, "done")) == 1
    assert result(host.run("7")) == "7"


def test_failing_forked_child_writes_to_stderr(host):
    events = host.run(
        "import os\npid = os.fork()\nif not pid:\n    raise ValueError('in the child')\n"
        "os.waitpid(pid, 0)[1]"
    )
    assert result(events) == "256"
    assert "ValueError: in the child" in text(events, "stderr")


def test_display_in_a_forked_child_prints(host):
    events = host.run(
        "import os\npid = os.fork()\nif not pid:\n    display([1])\n    os._exit(0)\n"
        "r = os.waitpid(pid, 0)"
    )
    assert text(events) == "[1]\n" and filter_events(events, "display") == []


def test_flusher_causes_no_fork_warning(host):
    code = (
        "import os, sys\nprint('a'); print('b')\npid = os.fork()\nif not pid:\n    print('child')\n"
        "    os.execvp('echo', ['echo', 'exec'])\nr = os.waitpid(pid, 0)\nprint('c')"
    )
    for _ in range(20):
        events = host.run(code)
        assert text(events) == "a\nb\nchild\nexec\nc\n"
        assert text(events, "stderr") == ""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing_prints(host, method):
    # A spawned child cannot import functions of cells; print is importable.
    events = host.run(
        "import multiprocessing as mp\np = mp.get_context(%r).Process(target=print, args=('child',))\n"
        "p.start(); p.join()\np.exitcode" % method
    )
    assert text(events) == "child\n" and result(events) == "0"


def test_libc_buffers_are_flushed(host):
    events = host.run("import ctypes\nlibc = ctypes.CDLL(None)\nlibc.printf(b'from C\\n');")
    assert text(events) == "from C\n"
    assert events[-1]["t"] == "done"


def test_big_text(host):
    events = host.run("print('x' * 20_000_000)")
    assert len(text(events)) == 20_000_001


def test_incomplete_nonce_is_text(host):
    events = host.run(
        "import os\nos.write(1, bytes.fromhex(%r)[:15] + b'x\\n');" % host.hello["nonce"]
    )
    assert text(events).endswith("x\n")


def test_print_from_many_threads_loses_nothing(host):
    events = host.run(
        "import threading\ndef work(n):\n    for i in range(500): print('line %d %d' % (n, i))\n"
        "ts = [threading.Thread(target=work, args=(n,)) for n in range(8)]\n"
        "for t in ts: t.start()\nfor t in ts: t.join()"
    )
    assert text(events).count("line ") == 4000
    assert text(events).count("\n") == 4000


def test_handlers_that_keep_the_stream(host):
    host.run("import logging, sys\nlogging.basicConfig(stream=sys.stdout, format='%(message)s')")
    host.run("log = logging.getLogger()")
    time.sleep(0.1)
    assert text(host.run("log.warning('one')")) == "one\n"
    assert text(host.run("w = sys.stdout.write\nfor i in range(3): w('x\\n');")) == "x\nx\nx\n"


def test_logging_default_goes_to_stderr(host):
    assert text(host.run("import logging; logging.warning('careful')"), "stderr") == (
        "WARNING:root:careful\n"
    )
