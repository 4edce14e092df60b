"""The prelude: files, commands, status events, hidden names, user modules, descriptions."""

import time

import pytest
from host import Host, data, error, filter_events, result, status, text
from test_interrupt import run_and_interrupt

NAMES = {"read", "write", "env", "run", "output", "log", "phase", "tool", "ToolError"}
MIME = "application/x-cellwright-status"


def status_events(events):
    """Return the status events of a cell."""
    return [data(event)[MIME] for event in filter_events(events, "display") if MIME in data(event)]


def test_prelude_names_exist_and_are_hidden(host):
    assert (
        result(host.run("display is not None and all(map(callable, (read, write, run)))")) == "True"
    )
    host.run("x = 1")
    assert [entry["name"] for entry in host.request("variables")] == ["x"]
    assert text(host.run("%who")).split() == ["x"]


def test_reset_restores_the_prelude(host):
    host.run("read = None\ndel write\nx = 1")
    assert [entry["name"] for entry in host.request("variables")] == ["read", "x"]
    host.run("%reset -f")
    assert (
        result(host.run("callable(read) and callable(write), 'x' in globals()")) == "(True, False)"
    )


def test_environment_variable_turns_the_prelude_off(python):
    host = Host(python, env={"CELLWRIGHT_PRELUDE": "0"})
    try:
        assert result(host.run("sorted(set(globals()) & %r)" % NAMES)) == "[]"
        assert host.request("helpers") == []
    finally:
        host.close()


def test_prelude_loads_no_large_modules(host):
    heavy = {"urllib", "urllib.request", "http.client", "json", "subprocess", "inspect", "socket"}
    mine = "[n for n in sys.modules if n.startswith('cellwright_runner.')]"
    loaded = eval(result(host.run("import sys\n" + mine)))
    runner_modules = {name.rpartition(".")[2] for name in loaded}
    assert "prelude" in runner_modules
    assert not runner_modules & {"bridge", "prelude_files", "prelude_run", "helpers", "modules"}
    loaded_names = set(eval(result(host.run("list(sys.modules)"))))
    without = Host(host.python, env={"CELLWRIGHT_PRELUDE": "0"})
    try:
        loaded_without = set(eval(result(without.run("import sys\nlist(sys.modules)"))))
    finally:
        without.close()
    assert (loaded_names & heavy) == (loaded_without & heavy)


@pytest.mark.parametrize(
    "call, expected",
    [
        ("read('a.txt')", "one\ntwo\r\nthree\rfour\nfive"),
        ("read('a.txt', 2)", "two\r\nthree\rfour\nfive"),
        ("read('a.txt', offset=2, limit=2)", "two\r\nthree\rfour\n"),
        ("read('a.txt', 4, 9)", "five"),
        ("read('a.txt', 5)", ""),
        ("read('a.txt', 1, 0)", ""),
        ("read(__import__('pathlib').Path('a.txt'), 1, 1)", "one\n"),
        ("read(b'a.txt', 1, 1)", "one\n"),
    ],
)
def test_read_returns_lines(host, tmp_path, call, expected):
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\r\nthree\rfour\nfive")
    events = host.run(call)
    assert eval(result(events)) == expected
    assert status_events(events) == [{"op": "read", "path": "a.txt", "chars": len(expected)}]


@pytest.mark.parametrize(
    "call, name, fragment",
    [
        ("read('missing.txt')", "FileNotFoundError", "missing.txt"),
        ("read('.')", "IsADirectoryError", ""),
        ("read('b.bin')", "UnicodeDecodeError", ""),
        ("read('a.txt', 0)", "ValueError", "counts from 1"),
        ("read('a.txt', '2')", "ValueError", "counts from 1"),
        ("read('a.txt', 1, -1)", "ValueError", "number of lines"),
        ("read('https://example.org')", "ValueError", "artifact://N"),
        ("write('a.txt', 3)", "TypeError", "str or bytes"),
        ("write('a.ipynb', 'print(1)')", "ValueError", "# %% [code]"),
        ("write('artifact://1', 'x')", "ValueError", "cannot be written"),
        ("output('x')", "ValueError", "output(3)"),
        ("output(1, query='a', limit=3)", "ValueError", "cannot be combined"),
        ("env(value='x')", "TypeError", "key"),
        ("run('exit 3', check=True)", "CalledProcessError", "3"),
        ("run('sleep 30', timeout=0.2)", "TimeoutExpired", "0.2"),
        ("run(['no-such-program-here'])", "FileNotFoundError", "no-such-program-here"),
        ("tool.eval('1')", "AttributeError", "available: read, write"),
        ("tool['kernels']", "KeyError", "available: read, write"),
    ],
)
def test_mistakes_raise_the_usual_exceptions(host, tmp_path, call, name, fragment):
    (tmp_path / "b.bin").write_bytes(b"\xff\xfe\x00")
    found = error(host.run(call))
    assert found["ename"] == name
    assert fragment in found["evalue"]
    # The traceback has no frames of the runner.
    assert "cellwright_runner" not in "\n".join(found["traceback"])
    assert not (tmp_path / "a.ipynb").exists()


def test_write_creates_directories_and_keeps_line_ends(host, tmp_path):
    events = host.run("write('new/directory/a.txt', 'ä\\r\\nb\\n')")
    assert result(events) == "'new/directory/a.txt'"
    assert (tmp_path / "new/directory/a.txt").read_bytes() == "ä\r\nb\n".encode()
    assert status_events(events) == [{"op": "write", "path": "new/directory/a.txt", "chars": 5}]
    host.run("write('b.bin', b'\\x00\\xff')")
    assert (tmp_path / "b.bin").read_bytes() == b"\x00\xff"


def test_a_notebook_can_be_written_as_json(host, tmp_path):
    assert status(host.run("write('a.ipynb', '{\"cells\": []}')")) == "ok"
    assert (tmp_path / "a.ipynb").read_text() == '{"cells": []}'


def test_env_looks_up_sets_and_lists(host):
    assert result(host.run("env('NOT_SET'), env('MINE', 4), env('MINE'), env()['MINE']")) == (
        "(None, '4', '4', '4')"
    )
    assert result(host.run("import os; os.environ['MINE']")) == "'4'"


def test_run_returns_output_and_exit_code(host):
    host.run("r = run('echo out; echo err >&2; exit 3')")
    assert result(host.run("r.stdout, r.stderr, r.returncode, bool(r)")) == (
        "('out\\n', 'err\\n', 3, False)"
    )
    assert result(host.run("r")) == "out\nerr\n[exit code 3]"
    assert result(host.run("bool(run(['true'])), str(run('echo a'))")) == "(True, 'a\\n')"
    assert result(host.run("run(['sh', '-c', 'pwd'], cwd='/').stdout")) == "'/\\n'"
    events = host.run("run(['echo', 'a b'])")
    assert status_events(events) == [{"op": "run", "cmd": "echo a b", "returncode": 0}]


def process_exits(host, pid):
    """Return whether a process exits within five seconds."""
    for _ in range(50):
        if result(host.run("import os; os.path.exists('/proc/%d')" % pid)) == "False":
            return True
        time.sleep(0.1)
    return False


def test_interrupt_ends_a_command_and_its_children(host, tmp_path):
    code = 'run(\'trap "" INT; sh -c "echo \\\\$\\\\$ > pid; sleep 60; sleep 60"\')'
    events, seconds = run_and_interrupt(host, code, after=0.6, timeout=8)
    assert status(events) == "interrupted"
    assert seconds < 5
    assert process_exits(host, int((tmp_path / "pid").read_text()))


def test_commands_can_handle_an_interrupt(host, tmp_path):
    code = "run('trap \"echo seen > seen; exit 1\" INT; while :; do sleep 0.1; done')"
    events, _ = run_and_interrupt(host, code, after=0.6)
    assert status(events) == "interrupted"
    assert (tmp_path / "seen").read_text() == "seen\n"


def test_a_timeout_ends_the_whole_group(host, tmp_path):
    host.run(
        "try: run('sleep 60 & echo $! > pid; wait', timeout=0.5)\nexcept Exception as e: print(e)"
    )
    assert process_exits(host, int((tmp_path / "pid").read_text()))


def test_log_and_phase_send_events_without_output(host):
    events = host.run("phase('Loading')\nlog('half way')\nlog(2)")
    assert status_events(events) == [
        {"op": "phase", "title": "Loading"},
        {"op": "log", "message": "half way"},
        {"op": "log", "message": "2"},
    ]
    assert text(events) == "" and result(events) is None


def test_status_events_bypass_capture(host):
    events = host.run("%%capture got\nlog('x')\ndisplay(1)")
    assert status_events(events) == [{"op": "log", "message": "x"}]
    assert result(host.run("len(got.outputs)")) == "1"


def test_helpers_are_described(host):
    listed = {entry["name"]: entry for entry in host.request("helpers")}
    assert {"display", "read", "run", "tool.read", "tool.notebook"} <= set(listed)
    assert (
        listed["read"]["signature"]
        == "(path: str, offset: int = 1, limit: int | None = None) -> str"
    )
    for entry in listed.values():
        assert entry["module"] is None
        first = entry["doc"].split("\n")[0]
        assert first and first[0].isupper(), entry
    assert "lines count from 1" in listed["read"]["doc"].lower()


MODULE_SOURCE = '''"""A user module."""
import math
_hidden = 1

def area(r: float, *, exact: bool = True) -> "float | None":
    """The area of a circle."""
    return math.pi * r * r

def _private(): pass

where = __file__
'''


def run_module(host, path, code, **more):
    path.write_text(code)
    return host.run(code, module=str(path), silent=True, history=False, **more)


def test_a_module_runs_in_the_namespace_and_counts_as_prelude(host, tmp_path):
    path = tmp_path / "mine.py"
    assert status(run_module(host, path, MODULE_SOURCE)) == "ok"
    assert result(
        host.run("round(area(1), 2), where == %r, '__file__' in globals()" % str(path))
    ) == ("(3.14, True, False)")
    assert host.request("variables") == []
    assert result(host.run("[code for code in In if code[:1] == chr(34)]")) == "[]"
    host.run("%reset -f")
    assert result(host.run("area(0)")) == "0.0"
    mine = [entry for entry in host.request("helpers") if entry["module"]]
    assert mine == [
        {
            "name": "area",
            "signature": "(r: float, *, exact: bool = True) -> float | None",
            "doc": "The area of a circle.",
            "module": str(path),
        }
    ]


def test_a_later_module_may_replace_a_name(host, tmp_path):
    run_module(host, tmp_path / "a.py", "def f(): return 1\n")
    run_module(host, tmp_path / "b.py", "def f(): return 2\n")
    host.run("%reset -f")
    assert result(host.run("f()")) == "2"
    assert [e["module"] for e in host.request("helpers") if e["module"]] == [str(tmp_path / "b.py")]


@pytest.mark.parametrize(
    "code, name, line",
    [
        ("x = 1\n\nraise ValueError('bad')\n", "ValueError", 3),
        ("x = 1\ndef f(:\n", "SyntaxError", 2),
    ],
)
def test_failing_module_reports_file_and_line(host, tmp_path, code, name, line):
    path = tmp_path / "mine.py"
    found = error(run_module(host, path, code))
    assert found["ename"] == name
    assert 'File "%s", line %d' % (path, line) in "\n".join(found["traceback"])
    assert result(host.run("1 + 1")) == "2"


def test_an_error_in_a_modules_function_shows_its_source(host, tmp_path):
    path = tmp_path / "mine.py"
    run_module(host, path, "def f(x):\n    return 1 / x\n")
    lines = "\n".join(error(host.run("f(0)"))["traceback"])
    assert 'File "%s", line 2, in f' % path in lines
    assert "return 1 / x" in lines


def test_magics_in_a_module_are_syntax_errors(host, tmp_path):
    assert error(run_module(host, tmp_path / "mine.py", "%pwd\n"))["ename"] == "SyntaxError"
