"""Exceptions: names, values, lines of cells in tracebacks, none of our frames, bounded and robust."""

import pytest
from host import error, kinds, of, result, status, text


def failing(host, code, **more):
    events = host.run(code, **more)
    assert status(events) == "error"
    assert events[-1]["t"] == "done"
    made = error(events)
    assert made is not None
    assert isinstance(made["evalue"], str)
    assert all(isinstance(line, str) and "\n" not in line for line in made["traceback"])
    assert not any("cellwright_runner" in line for line in made["traceback"])
    return made


def test_simple(host):
    made = failing(host, "x = 1\nx / 0")
    assert made["ename"] == "ZeroDivisionError" and made["evalue"] == "division by zero"
    lines = made["traceback"]
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == "  Cell In[1], line 2, in <module>"
    assert lines[2] == "    x / 0"
    assert lines[-1] == "ZeroDivisionError: division by zero"


def test_lines_of_other_cells_and_files(host, tmp_path):
    (tmp_path / "lib.py").write_text("def call(f):\n    return f()\n")
    host.run("def bad():\n    # comment\n    raise KeyError('k')")
    lines = failing(host, "import lib\nlib.call(bad)")["traceback"]
    joined = "\n".join(lines)
    assert "Cell In[2], line 2" in joined and "    lib.call(bad)" in joined
    assert 'lib.py", line 2, in call' in joined and "    return f()" in joined
    assert "Cell In[1], line 3, in bad" in joined and "raise KeyError('k')" in joined


def test_chained(host):
    joined = "\n".join(
        failing(host, "try:\n    1/0\nexcept Exception as e:\n    raise ValueError('x') from e")[
            "traceback"
        ]
    )
    assert "ZeroDivisionError" in joined and "direct cause" in joined and "ValueError: x" in joined
    joined = "\n".join(failing(host, "try:\n    1/0\nexcept Exception:\n    {}['a']")["traceback"])
    assert "During handling" in joined


def test_notes_and_groups(host, version):
    if version < (3, 11):
        pytest.skip("3.11")
    made = failing(host, "e = ValueError('a')\ne.add_note('a note')\nraise e")
    assert "a note" in made["traceback"]
    made = failing(host, "raise ExceptionGroup('many', [ValueError('one'), KeyError('two')])")
    joined = "\n".join(made["traceback"])
    assert made["ename"] == "ExceptionGroup" and "ValueError: one" in joined and "'two'" in joined


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
    made = failing(host, code)
    assert made["ename"] in ("SyntaxError", "IndentationError")
    assert made["traceback"][0] == "  Cell In[1], line %d" % line
    assert made["traceback"][-1].startswith(made["ename"])


def test_syntax_error_has_a_caret(host):
    lines = failing(host, "foo bar")["traceback"]
    assert any("^" in line for line in lines) and "    foo bar" in lines


def test_indentation_error(host):
    made = failing(host, "def f():\nreturn 1")
    assert made["ename"] == "IndentationError" and "line 2" in made["traceback"][0]


def test_runtime_line_numbers_survive_magics(host):
    lines = failing(host, "\n%time pass\n!true \\\n  && true\n1/0")["traceback"]
    assert "  Cell In[1], line 5, in <module>" in lines


def test_line_numbers_below_a_cell_magic(host):
    lines = failing(host, "%%time\nx = 1\n1/0")["traceback"]
    assert "  Cell In[1], line 3, in <module>" in lines
    assert "    1/0" in lines


def test_recursion_is_bounded(host):
    made = failing(host, "def f(n):\n    return f(n + 1)\nf(0)")
    assert made["ename"] == "RecursionError"
    assert len(made["traceback"]) < 60
    assert "repeated" in "\n".join(made["traceback"])
    made = failing(host, "def a(n): return b(n)\ndef b(n): return a(n)\na(0)")
    assert len(made["traceback"]) <= 410
    assert result(host.run("1")) == "1"


def test_str_of_the_exception_fails(host):
    made = failing(host, "class E(Exception):\n    def __str__(self): 1/0\nraise E")
    assert made["ename"] == "E" and "failed" in made["evalue"]


def test_odd_values(host):
    assert failing(host, "raise ValueError")["evalue"] == ""
    assert failing(host, "raise ValueError(b'x', 3)")["evalue"] == "(b'x', 3)"
    assert failing(host, "raise ValueError('ä\\ud800')")["evalue"] == "ä\ufffd"
    assert failing(host, "class E(BaseException): pass\nraise E('base')")["ename"] == "E"
    assert failing(host, "raise KeyboardInterrupt")["ename"] == "KeyboardInterrupt"
    assert failing(host, "raise GeneratorExit")["ename"] == "GeneratorExit"


def test_multi_line_message(host):
    made = failing(host, "raise ValueError('a\\nb')")
    assert made["evalue"] == "a\nb" and made["traceback"][-2:] == ["ValueError: a", "b"]


def test_repr_that_fails_is_an_error_of_the_cell(host):
    made = failing(host, "class A:\n    def __repr__(self): raise ValueError('no repr')\nA()")
    assert made["ename"] == "ValueError"
    assert "in __repr__" in "\n".join(made["traceback"])
    assert result(host.run("5")) == "5"


def test_failed_child_says_why(host):
    made = failing(
        host,
        "import subprocess\nsubprocess.run('echo out; echo why >&2; exit 3', shell=True, check=True,"
        " capture_output=True)",
    )
    assert made["ename"] == "CalledProcessError"
    assert "why" in made["traceback"] and "out" in made["traceback"]


def test_text_before_the_error_comes_before_it(host):
    events = host.run("print('a')\nimport sys\nprint('b', file=sys.stderr)\n1/0")
    assert kinds(events) == ["started", "stdout", "stderr", "error", "done"]


def test_sources_for_inspect_and_warnings(host):
    host.run("def f(x):\n    return x + 1")
    assert result(host.run("import inspect; inspect.getsource(f)")) == (
        "'def f(x):\\n    return x + 1\\n'"
    )
    host.run("import linecache; linecache.clearcache()")
    host.run("linecache.checkcache()")
    assert "    1/0" in failing(host, "def g():\n    1/0\ng()")["traceback"]


def test_error_frame_even_when_traceback_is_broken(host):
    host.run("import traceback\ntraceback.TracebackException = None")
    assert failing(host, "1/0")["ename"] == "ZeroDivisionError"
    assert result(host.run("1")) == "1"


def test_huge_message_is_whole(host):
    assert len(failing(host, "raise ValueError('x' * 1_000_000)")["evalue"]) == 1_000_000


def test_exception_with_fake_name_and_frames(host):
    host.run("import types\nE = type('E', (Exception,), {'__module__': None})")
    assert failing(host, "raise E('x')")["ename"] == "E"


def test_nothing_on_stderr(host):
    assert text(host.run("1/0"), "stderr") == ""
    assert of(host.run("1/0"), "result") == []
