"""Running cells: results, history names, namespace, request context, exit."""

import os

import pytest
from host import data, error, filter_events, kinds, result, status, text


def test_hello(host, python):
    hello = host.hello
    assert hello["protocol"] == 1
    assert hello["implementation"] == "cpython"
    assert len(hello["nonce"]) == 32
    assert hello["pid"] == host.process.pid
    assert os.path.exists(hello["executable"])


def test_frames_of_a_small_cell(host):
    events = host.run("1+1")
    assert kinds(events) == ["started", "result", "done"]
    assert events[0]["count"] == 1
    assert events[1]["data"] == [["text/plain", "text", "2"]]
    assert events[2]["status"] == "ok"


@pytest.mark.parametrize(
    "code, shown",
    [
        ("1", "1"),
        ("1;", None),
        ("1; # comment", None),
        ("1 # comment;", "1"),
        ("1 # a; b", "1"),
        ("'a;'", "'a;'"),
        ("';' # ;", "';'"),
        ("x = 1", None),
        ("x = 1\nx", "1"),
        ("x = 1; x", "1"),
        ("x = 1; x;", None),
        ("(1\n);", None),
        ("(1\n) # ;", "1"),
        ("None", None),
        ("1\n2", "2"),
        ("if True:\n    5", None),
        ("'''a\nb;'''", "'a\\nb;'"),
        ("'ä'; ", None),
        ("'äöü;' ; # ö", None),
        ("", None),
        ("# only a comment", None),
        ("\n\n", None),
        ("x = 5\n\n\nx  \n\n", "5"),
        ("def f():\n    return 7\nf()", "7"),
        ("(yes := 3)", "3"),
        ("lambda: 1;", None),
    ],
)
def test_last_expression(host, code, shown):
    events = host.run(code)
    assert status(events) == "ok", error(events)
    assert result(events) == shown


def test_history_names(host):
    host.run("1+1")
    host.run("'two'")
    host.run("3.0")
    host.run("x = 4")
    assert result(host.run("_, __, ___")) == "(3.0, 'two', 2)"
    assert result(host.run("_1, _2, Out[2], In[1]")) == "(2, 'two', 'two', '1+1')"
    assert result(host.run("_i, _ii, _i1")) == ("('_1, _2, Out[2], In[1]', '_, __, ___', '1+1')")
    host.run("None")
    assert result(host.run("8 in Out, len(In)")) == "(False, 10)"


def test_underscore_assigned_by_the_user_is_kept(host):
    host.run("_ = 'mine'")
    host.run("5")
    assert result(host.run("_")) == "'mine'"
    assert result(host.run("_2")) == "5"


def test_out_is_not_stored_in_itself(host):
    host.run("1")
    host.run("Out")
    assert result(host.run("sorted(Out)")) == "[1]"


def test_count_and_history_flag(host):
    assert host.run("1")[-1]["count"] == 1
    events = host.run("2", history=False)
    assert events[-1]["count"] == 2
    assert result(events) == "2"
    assert host.run("3")[-1]["count"] == 2
    assert result(host.run("sorted(Out)")) == "[1, 2]"


def test_silent_cell_sends_no_result(host):
    events = host.run("x = 5\nx", silent=True)
    assert kinds(events) == ["started", "done"]
    assert result(host.run("x")) == "5"


def test_cells_run_in_the_real_main_module(host):
    host.run("def f(x): return x + 1\nclass A: pass")
    assert result(host.run("__name__, '__file__' in globals()")) == "('__main__', False)"
    assert result(host.run("import sys; sys.modules['__main__'].f is f")) == "True"
    assert result(host.run("import pickle; pickle.loads(pickle.dumps(f))(1)")) == "2"
    assert result(host.run("type(pickle.loads(pickle.dumps(A()))) is A")) == "True"
    assert result(host.run("sys.argv")) == "['']"


def test_multiprocessing_fork(host):
    code = (
        "import multiprocessing as mp\n"
        "def square(x): return x * x\n"
        "ctx = mp.get_context('fork')\n"
        "with ctx.Pool(2) as pool:\n    r = pool.map(square, range(4))\nr"
    )
    events = host.run(code)
    assert result(events) == "[0, 1, 4, 9]"


def test_runner_names_are_not_visible(host):
    events = host.run("sorted(n for n in globals() if not n.startswith('__'))")
    shown = eval(result(events))
    prelude = "ToolError env log output phase read run tool write".split()
    assert [name for name in shown if name not in prelude] == "In Out _ _i _i1 _ii _iii".split()


def test_future_import_lasts(host):
    host.run("from __future__ import annotations")
    assert result(host.run("def f(x: nosuch): pass\nf.__annotations__")) == "{'x': 'nosuch'}"


def test_cwd_env_path(host, tmp_path):
    directory = tmp_path / "sub"
    directory.mkdir()
    (directory / "here.py").write_text("x = 'cwd'")
    extra = tmp_path / "extra"
    extra.mkdir()
    (extra / "there.py").write_text("x = 'path'")
    events = host.run(
        "import os, here, there\n[os.getcwd() == %r, os.environ['K'], here.x, there.x]"
        % str(directory),
        cwd=str(directory),
        env={"K": "V", "PATH": os.environ["PATH"]},
        path=[str(extra)],
    )
    assert result(events) == "[True, 'V', 'cwd', 'path']"
    events = host.run(
        "import sys; 'K' in os.environ, sys.path[0] == %r, sys.path[1]" % str(extra),
        env={"K": None},
    )
    assert result(events) == "(False, True, '')"
    host.run("1", path=[str(extra)])
    assert result(host.run("sys.path.count(%r)" % str(extra))) == "1"


def test_missing_cwd_is_an_error(host):
    events = host.run("1", cwd="/no/such/directory")
    assert status(events) == "error"
    assert error(events)["ename"] == "FileNotFoundError"
    assert result(host.run("2")) == "2"


@pytest.mark.parametrize(
    "code, evalue, last",
    [
        ("raise SystemExit", "", "SystemExit"),
        ("import sys; sys.exit(0)", "0", "SystemExit: 0"),
        ("import sys; sys.exit('bye')", "bye", "SystemExit: bye"),
    ],
)
def test_exit_is_an_exception(host, code, evalue, last):
    host.run("kept = 1")
    events = host.run(code)
    assert status(events) == "error" and text(events, "stderr") == ""
    raised = error(events)
    assert (raised["ename"], raised["evalue"]) == ("SystemExit", evalue)
    note = "An exception has occurred, use %tb to see the full traceback.\n"
    assert raised["traceback"] == [note, last + "\n"]
    assert result(host.run("kept")) == "1"


def test_exit_with_code_0_ends_a_file_successfully(host, tmp_path):
    for code, expected in [("sys.exit()", "ok"), ("sys.exit(0)", "ok"), ("sys.exit(2)", "error")]:
        events = host.run("import sys\n%s\nprint('no')" % code, file=str(tmp_path / "s.py"))
        assert (status(events), text(events)) == (expected, "")


@pytest.mark.parametrize("code", ["exit()", "quit()", "exit(1)", "exit", "quit", "get_ipython().ask_exit()"])
def test_exit_and_quit_do_not_end_a_cell(host, code):
    # As in ipykernel under nbclient: the rest of the cell and the later cells run.
    host.run("kept = 1")
    assert status(host.run(code)) == "ok"
    if code.endswith(")"):
        assert text(host.run(code + "\nprint('rest')")) == "rest\n"
    assert result(host.run("kept")) == "1"


def test_exit_ends_a_script(host, tmp_path):
    events = host.run("print('a')\nexit(3)\nprint('b')", file=str(tmp_path / "s.py"))
    assert (status(events), error(events)["evalue"], text(events)) == ("error", "3", "a\n")
    (tmp_path / "t.py").write_text("print('a')\nquit()\nprint('b')\n")
    assert text(host.run("%run t.py\nprint('after')")) == "a\nafter\n"


def test_exit_in_a_thread_ends_only_the_thread(host):
    code = "import threading, sys\nt = threading.Thread(target=sys.exit, args=(3,)); t.start(); t.join()\n4"
    events = host.run(code)
    assert status(events) == "ok"
    assert result(events) == "4"


def test_os_exit_flushes_printed_text(python, tmp_path):
    from host import Host, RunnerExited

    host = Host(python, cwd=str(tmp_path))
    with pytest.raises(RunnerExited):
        host.run("print('final text', end='')\nimport os; os._exit(7)")
    assert host.process.wait() == 7
    assert text(host.events) == "final text"
    host.close()


def test_sys_modules_cleared(host):
    host.run("import sys; sys.modules.clear()")
    assert error(host.run("1/0"))["ename"] == "ZeroDivisionError"
    assert result(host.run("2")) == "2"


def test_low_recursion_limit(host):
    host.run("import sys; sys.setrecursionlimit(120)")
    assert result(host.run("[1, 2]")) == "[1, 2]"
    assert error(host.run("def f(): f()\nf()"))["ename"] == "RecursionError"
    assert result(host.run("3")) == "3"


def test_builtins_hidden_by_the_user(host):
    host.run("print = display = len = repr = str = None")
    assert result(host.run("[1]")) == "[1]"
    assert error(host.run("1/0"))["ename"] == "ZeroDivisionError"


def test_displayhook_of_the_user(host):
    host.run("import sys\nkept = []\nold = sys.displayhook\nsys.displayhook = kept.append")
    assert kinds(host.run("5")) == ["started", "done"]
    events = host.run("sys.displayhook = old\nkept")
    assert result(events) == "[5]"


def test_direct_displayhook_call_sends_immediately(host):
    events = host.run("import sys\nsys.displayhook(1)\nprint('x')")
    assert kinds(events) == ["started", "result", "stdout", "done"]


def test_unknown_op_and_bad_requests(host):
    host.send(op="nonsense", id=99)
    reply = host.wait_for(lambda e: e["t"] == "reply")
    assert reply["ok"] is False and "nonsense" in reply["error"]
    host.events = []
    host.channel.sendall(b"{not json\n")
    reply = host.wait_for(lambda e: e["t"] == "reply")
    assert reply["ok"] is False
    host.events = []
    host.channel.sendall(b"[1]\n")
    assert host.wait_for(lambda e: e["t"] == "reply")["ok"] is False
    host.events = []
    assert result(host.run("1")) == "1"


def test_late_answer_is_ignored(host):
    host.send(op="answer", id=5, text="x")
    assert result(host.run("1")) == "1"


def test_exit_op_runs_atexit_and_joins_threads(host):
    host.run(
        "import atexit, threading, time\natexit.register(print, 'atexit')\n"
        "def late():\n    time.sleep(0.2); print('thread done')\n"
        "threading.Thread(target=late).start()"
    )
    host.send(op="exit")
    from host import RunnerExited

    with pytest.raises(RunnerExited):
        host.wait_for(lambda e: False, 5)
    assert text(host.events) == "thread done\natexit\n"
    assert host.process.wait() == 0


def test_end_of_channel_is_exit(host):
    host.run("import atexit; atexit.register(open, 'mark', 'w')")
    host.channel.close()
    assert host.process.wait(5) == 0


def test_events_of_a_cell_all_carry_its_id(host):
    events = host.run("display(1)\nprint(1)\n2", id=77)
    assert {e.get("id", 77) for e in events} == {77}


def test_title_names_the_cell(host):
    lines = error(host.run("1/0", title="analysis.ipynb cell 4"))["traceback"]
    assert "  analysis.ipynb cell 4, line 1, in <module>" in lines


def test_mimes_and_metadata_are_strict(host):
    event = filter_events(
        host.run("display({'application/json': {'a': float('nan')}}, raw=True)"), "display"
    )[0]
    assert data(event) == {"application/json": {"a": None}}


def test_warnings_are_shown_again_in_each_cell(host):
    code = "import warnings\nwarnings.warn('careful')"
    first, second = host.run(code), host.run(code)
    assert "careful" in text(first, "stderr") and "careful" in text(second, "stderr")
    events = host.run("for i in range(3):\n    warnings.warn('once')")
    assert text(events, "stderr").count("UserWarning: once") == 1


def test_deprecation_warnings_of_cells_are_shown(host):
    events = host.run("import warnings\nwarnings.warn('old', DeprecationWarning)")
    assert "DeprecationWarning: old" in text(events, "stderr")
    assert "Cell In[1]:2" in text(events, "stderr")


def test_channel_fd_is_not_a_low_number(host):
    events = host.run(
        "import os\n[fd for fd in range(3, 40) if os.path.exists('/proc/self/fd/%d' % fd)]"
    )
    # The runner's descriptors all have high numbers.
    assert result(events) == "[]"


def test_few_file_descriptors(python, tmp_path):
    import resource
    import subprocess

    from host import BOOT, RUNNER_DIRECTORY

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))

    import socket

    host_end, runner_end = socket.socketpair()
    fd = runner_end.fileno()
    if fd >= 16:
        pytest.skip("the test process has no free descriptor below 16")
    process = subprocess.Popen(
        [python, "-c", BOOT, RUNNER_DIRECTORY, str(fd)],
        pass_fds=[fd],
        preexec_fn=limit,
        stdin=subprocess.DEVNULL,
    )
    runner_end.close()
    host_end.settimeout(5)
    assert b"hello" in host_end.recv(4096)
    host_end.close()
    process.wait(5)
