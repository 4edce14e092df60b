"""Exceptions: names, values, cell lines in tracebacks, no frames of the runner, limited length."""

import pytest
from host import error, filter_events, kinds, result, status, text


def run_failing(host, code, **fields):
    events = host.run(code, **fields)
    assert status(events) == "error"
    assert events[-1]["t"] == "done"
    failure = error(events)
    assert failure is not None
    assert isinstance(failure["evalue"], str)
    assert all(isinstance(line, str) and "\n" not in line for line in failure["traceback"])
    assert not any("cellwright_runner" in line for line in failure["traceback"])
    return failure


def test_traceback_of_a_simple_error(host):
    failure = run_failing(host, "x = 1\nx / 0")
    assert failure["ename"] == "ZeroDivisionError" and failure["evalue"] == "division by zero"
    lines = failure["traceback"]
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == "  Cell In[1], line 2, in <module>"
    assert lines[2] == "    x / 0"
    assert lines[-1] == "ZeroDivisionError: division by zero"


def test_lines_of_other_cells_and_files(host, tmp_path):
    (tmp_path / "lib.py").write_text("def call(f):\n    return f()\n")
    host.run("def bad():\n    # comment\n    raise KeyError('k')")
    lines = run_failing(host, "import lib\nlib.call(bad)")["traceback"]
    joined = "\n".join(lines)
    assert "Cell In[2], line 2" in joined and "    lib.call(bad)" in joined
    assert 'lib.py", line 2, in call' in joined and "    return f()" in joined
    assert "Cell In[1], line 3, in bad" in joined and "raise KeyError('k')" in joined


def test_chained_exceptions_are_shown(host):
    joined = "\n".join(
        run_failing(
            host, "try:\n    1/0\nexcept Exception as e:\n    raise ValueError('x') from e"
        )["traceback"]
    )
    assert "ZeroDivisionError" in joined and "direct cause" in joined and "ValueError: x" in joined
    joined = "\n".join(
        run_failing(host, "try:\n    1/0\nexcept Exception:\n    {}['a']")["traceback"]
    )
    assert "During handling" in joined


def test_notes_and_groups(host, version):
    if version < (3, 11):
        pytest.skip("exception notes and groups exist from Python 3.11 on")
    failure = run_failing(host, "e = ValueError('a')\ne.add_note('a note')\nraise e")
    assert "a note" in failure["traceback"]
    failure = run_failing(
        host, "raise ExceptionGroup('many', [ValueError('one'), KeyError('two')])"
    )
    joined = "\n".join(failure["traceback"])
    assert (
        failure["ename"] == "ExceptionGroup" and "ValueError: one" in joined and "'two'" in joined
    )


@pytest.mark.parametrize(
    "code, line",
    [
        ("x = = 1", 1),
        ("a = 1\nb = 2\nc = = 3\nd = 4", 3),
        ("\n\nif True:\n  x = 1\n y = 2", 5),
        ("%pwd\n!true\nx = = 1", 3),
        ("!echo a \\\n  b\nx = = 1", 3),
        ("\n\n%pwd\nx = = 1", 4),
    ],
)
def test_syntax_errors_have_the_right_line(host, code, line):
    failure = run_failing(host, code)
    assert failure["ename"] in ("SyntaxError", "IndentationError")
    assert failure["traceback"][0] == "  Cell In[1], line %d" % line
    assert failure["traceback"][-1].startswith(failure["ename"])


def test_syntax_error_has_a_caret(host):
    lines = run_failing(host, "foo bar")["traceback"]
    assert any("^" in line for line in lines) and "    foo bar" in lines


def test_indentation_error(host):
    failure = run_failing(host, "def f():\nreturn 1")
    assert failure["ename"] == "IndentationError" and "line 2" in failure["traceback"][0]


def test_runtime_line_numbers_survive_magics(host):
    lines = run_failing(host, "\n%time pass\n!true \\\n  && true\n1/0")["traceback"]
    assert "  Cell In[1], line 5, in <module>" in lines


def test_line_numbers_below_a_cell_magic(host):
    lines = run_failing(host, "%%time\nx = 1\n1/0")["traceback"]
    assert "  Cell In[1], line 3, in <module>" in lines
    assert "    1/0" in lines


def test_recursion_is_bounded(host):
    failure = run_failing(host, "def f(n):\n    return f(n + 1)\nf(0)")
    assert failure["ename"] == "RecursionError"
    assert len(failure["traceback"]) < 60
    assert "repeated" in "\n".join(failure["traceback"])
    failure = run_failing(host, "def a(n): return b(n)\ndef b(n): return a(n)\na(0)")
    assert len(failure["traceback"]) <= 410
    assert result(host.run("1")) == "1"


def test_failing_str_of_an_exception(host):
    failure = run_failing(host, "class E(Exception):\n    def __str__(self): 1/0\nraise E")
    assert failure["ename"] == "E" and "failed" in failure["evalue"]


def test_unusual_exception_values(host):
    assert run_failing(host, "raise ValueError")["evalue"] == ""
    assert run_failing(host, "raise ValueError(b'x', 3)")["evalue"] == "(b'x', 3)"
    assert run_failing(host, "raise ValueError('ä\\ud800')")["evalue"] == "ä\ufffd"
    assert run_failing(host, "class E(BaseException): pass\nraise E('base')")["ename"] == "E"
    assert run_failing(host, "raise KeyboardInterrupt")["ename"] == "KeyboardInterrupt"
    assert run_failing(host, "raise GeneratorExit")["ename"] == "GeneratorExit"


def test_multi_line_message(host):
    failure = run_failing(host, "raise ValueError('a\\nb')")
    assert failure["evalue"] == "a\nb" and failure["traceback"][-2:] == ["ValueError: a", "b"]


def test_failing_repr_of_the_result_is_an_error(host):
    failure = run_failing(
        host, "class A:\n    def __repr__(self): raise ValueError('no repr')\nA()"
    )
    assert failure["ename"] == "ValueError"
    assert "in __repr__" in "\n".join(failure["traceback"])
    assert result(host.run("5")) == "5"


def test_output_of_a_failed_child_is_in_the_traceback(host):
    failure = run_failing(
        host,
        "import subprocess\nsubprocess.run('echo out; echo why >&2; exit 3', shell=True, check=True,"
        " capture_output=True)",
    )
    assert failure["ename"] == "CalledProcessError"
    assert "why" in failure["traceback"] and "out" in failure["traceback"]


def test_text_precedes_the_error_frame(host):
    events = host.run("print('a')\nimport sys\nprint('b', file=sys.stderr)\n1/0")
    assert kinds(events) == ["started", "stdout", "stderr", "error", "done"]


def test_cell_sources_are_available_to_inspect(host):
    host.run("def f(x):\n    return x + 1")
    assert result(host.run("import inspect; inspect.getsource(f)")) == (
        "'def f(x):\\n    return x + 1\\n'"
    )
    host.run("import linecache; linecache.clearcache()")
    host.run("linecache.checkcache()")
    assert "    1/0" in run_failing(host, "def g():\n    1/0\ng()")["traceback"]


def test_error_frame_without_the_traceback_module(host):
    host.run("import traceback\ntraceback.TracebackException = None")
    assert run_failing(host, "1/0")["ename"] == "ZeroDivisionError"
    assert result(host.run("1")) == "1"


def test_long_message_is_complete(host):
    assert len(run_failing(host, "raise ValueError('x' * 1_000_000)")["evalue"]) == 1_000_000


def test_exception_with_fake_name_and_frames(host):
    host.run("import types\nE = type('E', (Exception,), {'__module__': None})")
    assert run_failing(host, "raise E('x')")["ename"] == "E"


def test_errors_write_nothing_to_stderr(host):
    assert text(host.run("1/0"), "stderr") == ""
    assert filter_events(host.run("1/0"), "result") == []
