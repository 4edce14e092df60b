"""Magics, shell lines, unknown magics, and magics passed to IPython."""

import os
import time

import pytest
from host import data, error, filter_events, kinds, result, status, text


def test_cd_pwd(host, tmp_path):
    (tmp_path / "a b").mkdir()
    assert text(host.run("%cd a b")) == str(tmp_path / "a b") + "\n"
    assert result(host.run("import os; os.path.basename(os.getcwd())")) == "'a b'"
    assert text(host.run("%cd -")) == str(tmp_path) + "\n"
    assert text(host.run("%cd -q 'a b'")) == ""
    assert result(host.run("p = %pwd\np.endswith('a b')")) == "True"
    assert text(host.run("%cd ~")) == os.path.expanduser("~") + "\n"
    # As in IPython, the error is only printed.
    output = text(host.run("%cd /no/such")).splitlines()
    assert "/no/such" in output[0] and output[1] == os.path.expanduser("~")


def test_env(host):
    assert text(host.run("%env FOO=bar baz")) == "env: FOO=bar baz\n"
    assert result(host.run("%env FOO")) == "'bar baz'"
    assert text(host.run("%set_env FOO 2")) == "env: FOO=2\n"
    assert text(host.run("!echo $FOO")) == "2\n"
    host.run("v = 'from python'")
    host.run("%env BAR={v}")
    assert result(host.run("%env BAR")) == "'from python'"
    assert result(host.run("e = %env\ne['FOO']")) == "'2'"
    assert error(host.run("%env NOSUCH_"))["ename"] == "UsageError"


def test_shell(host):
    # As in a terminal and in notebooks, stdout and stderr are merged in order.
    assert text(host.run("!echo out; echo err >&2; echo out")) == "out\nerr\nout\n"
    captured = "import io, contextlib\nwith contextlib.redirect_stdout(io.StringIO()) as s:\n    !echo out; echo err >&2\ns.getvalue()"
    assert result(host.run(captured)) == "'out\\nerr\\n'"
    assert result(host.run("!exit 3\n_exit_code")) == "3"
    events = host.run("print('a')\n!echo b\nprint('c')")
    assert text(events) == "a\nb\nc\n"
    assert text(host.run("!cat; echo end")) == "end\n"  # stdin is empty, nothing waits


def test_shell_values(host):
    host.run("x = !printf 'a 1\\nb 2\\n'")
    assert result(host.run("x, x.n, x.s, x.l == x, x.fields(0), x.grep('b')")) == (
        "(['a 1', 'b 2'], 'a 1\\nb 2', 'a 1 b 2', True, ['a', 'b'], ['b 2'])"
    )
    assert result(host.run("y = !printf '\\377\\376'\ny")) == "['��']"
    assert result(host.run("!!echo z")) == "['z']"
    assert result(host.run("z = !echo err >&2\nz")) == "['err']"
    assert result(host.run("w = !exit 5\n_exit_code")) == "5"


@pytest.mark.parametrize(
    "line, output",
    [
        ("!echo {x} $x", "5 5"),
        ("!echo {x + 1} {x:03d} {x!r}", "6 005 5"),
        ("!echo {d['k']} {d.get('k')}", "v v"),
        ("!echo $$x", "$x"),
        ("!echo $HOME_UNKNOWN {x}", "{x}"),
        ("!echo {nosuch} {x}", "{nosuch} {x}"),
        ("!echo '{x}' '$x'", "5 $x"),
        ("!echo {{x}}", "{x}"),
        ("!echo a | awk '{print $1}'", "a"),
    ],
)
def test_expansion(host, line, output):
    host.run("x = 5\nd = {'k': 'v'}")
    got = text(host.run(line)).strip()
    if line == "!echo $$x":
        assert got == os.environ.get("x", "")  # the shell's own $x
    else:
        assert got == output


def test_expansion_of_locals(host):
    assert text(host.run("def f(y):\n    !echo {y} $y\nf(7)")) == "7 7\n"


def test_time(host):
    events = host.run("%time 1 + 1")
    assert result(events) == "2" and "Wall time:" in text(events)
    assert kinds(events) == ["started", "stdout", "result", "done"]
    assert result(host.run("%time 3;")) is None
    host.run("%time y = 4")
    assert result(host.run("y")) == "4"
    assert result(host.run("%%time\nz = 5\nz")) == "5"
    assert result(host.run("z")) == "5"
    events = host.run("%time 1/0")
    assert status(events) == "error" and "Wall time" in text(events)
    assert result(host.run("r = %time 8\nr")) == "8"


def test_timeit(host):
    assert "per loop" in text(host.run("%timeit -n 10 -r 2 sum(range(5))"))
    assert "2 runs, 10 loops each" in text(host.run("%timeit -n10 -r2 pass"))
    events = host.run("r = %timeit -q -o -n 5 -r 3 pass\nr.loops, r.repeat, len(r.timings)")
    assert result(events) == "(5, 3, 3)" and text(events) == ""
    assert "per loop" in text(host.run("%%timeit -n 2 -r 1 x = 5\nx + 1\nx + 2"))
    assert error(host.run("%timeit -n 1 -r 1 1 +"))["ename"] == "SyntaxError"
    assert error(host.run("%timeit -n 1 -r 1 nosuch"))["ename"] == "NameError"


def test_who_and_whos(host):
    assert "empty" in text(host.run("%who"))
    host.run("a = 1\nb = 'text'\nimport os\n_hidden = 2")
    assert text(host.run("%who")).split() == ["a", "b", "os"]
    assert text(host.run("%who int")).split() == ["a"]
    assert result(host.run("%who_ls")) == "['a', 'b', 'os']"
    table = text(host.run("%whos"))
    assert "Variable" in table and "'text'" in table and "module" in table


def test_reset_keeps_the_prelude(host):
    host.run("def helper(): return 'help'\nTOKEN = 1", silent=True, history=False)
    host.run("x = 1\nhelper = None\ndel TOKEN")
    host.run("2")
    assert status(host.run("%reset -f")) == "ok"
    assert error(host.run("x"))["ename"] == "NameError"
    assert result(host.run("helper(), TOKEN")) == "('help', 1)"
    assert result(host.run("display, get_ipython, In, Out is not None;\n__name__")) == "'__main__'"
    assert result(host.run("_2 if '_2' in globals() else 'gone'")) == "'gone'"


def test_run(host, tmp_path):
    (tmp_path / "script.py").write_text(
        "import sys\nprint(__name__, sys.argv[1:], __file__)\nmade = 1\ndef f(): return made\n"
        "if 'fail' in sys.argv: 1/0\nif 'exit' in sys.argv: sys.exit(2)\n"
    )
    events = host.run("%run script.py a 'b c'")
    assert text(events) == "__main__ ['a', 'b c'] script.py\n"
    assert result(host.run("made, f()")) == "(1, 1)"
    failure = error(host.run("%run script fail"))
    assert failure["ename"] == "ZeroDivisionError"
    assert any("script.py" in line for line in failure["traceback"])
    assert error(host.run("%run script exit"))["ename"] == "ScriptExit"
    (tmp_path / "shared.py").write_text("there += 1\n")
    assert result(host.run("there = 1\n%run -i shared.py\nthere")) == "2"
    assert result(host.run("import sys; sys.argv")) == "['']"
    assert "not found" in error(host.run("%run nosuch.py"))["evalue"]
    (tmp_path / "nb.ipynb").write_text(
        '{"cells": [{"cell_type": "code", "source": ["q = 1\\n", "%pwd\\n", "q += 1"]}]}'
    )
    assert result(host.run("%run nb.ipynb\nq")) == "2"


def test_load_and_writefile(host, tmp_path):
    assert text(host.run("%%writefile out.txt\nline 1\n  line 2\n")) == "Writing out.txt\n"
    assert (tmp_path / "out.txt").read_text() == "line 1\n  line 2\n"
    assert text(host.run("%%writefile -a out.txt\nmore")) == "Appending to out.txt\n"
    assert (tmp_path / "out.txt").read_text() == "line 1\n  line 2\nmore\n"
    assert text(host.run("%%writefile out.txt\nnew")) == "Overwriting out.txt\n"
    (tmp_path / "x.py").write_text("a = 1\nb = 2\n")
    assert text(host.run("%load x.py")) == "a = 1\nb = 2\n"
    assert text(host.run("%cat x.py")) == "a = 1\nb = 2\n"
    assert "x.py" in text(host.run("%ls"))


def test_capture(host):
    events = host.run(
        "%%capture c\nimport sys\nprint('a')\nprint('b', file=sys.stderr)\n!echo shell\ndisplay(1)\n2"
    )
    assert kinds(events) == ["started", "done"]
    assert result(host.run("c.stdout, c.stderr, len(c.outputs)")) == "('a\\nshell\\n', 'b\\n', 2)"
    events = host.run("c.show()")
    assert text(events) == "a\nshell\n" and len(filter_events(events, "display")) == 2
    assert kinds(host.run("%%capture\nprint(1)")) == ["started", "done"]
    events = host.run("%%capture d --no-stdout\nprint('through')")
    assert text(events) == "through\n"
    events = host.run("%%capture e\nprint('x')\n1/0")
    assert status(events) == "error" and "line 3" in "\n".join(error(events)["traceback"])
    assert result(host.run("e.stdout")) == "'x\\n'"
    assert text(host.run("print('free')")) == "free\n"


def test_bash(host):
    events = host.run("%%bash\necho one\necho two >&2\nread x; echo three")
    assert text(events) == "one\nthree\n" and text(events, "stderr") == "two\n"
    events = host.run("%%bash\necho before\nexit 4")
    assert text(events) == "before\n"
    assert error(events)["ename"] == "CalledProcessError" and "4" in error(events)["evalue"]
    assert status(host.run("%%bash --no-raise-error\nfalse")) == "ok"
    assert result(host.run("%%bash --out o --err e\necho hi\necho no >&2")) is None
    assert result(host.run("o, e")) == "('hi\\n', 'no\\n')"
    assert text(host.run("%%bash\nprintf '\\xff\\n'")) == "\udcff\n"
    assert text(host.run("%%sh\necho $0 >/dev/null; echo sh")) == "sh\n"


def test_script(host, python):
    assert text(host.run("%%script cat\nhello")) == "hello\n"
    assert text(host.run("%%python\nprint(1 + 1)")) == "2\n"
    assert error(host.run("%%script nosuchprogram\nx"))["ename"] == "UsageError"


@pytest.mark.parametrize(
    "magic, mime",
    [
        ("html", "text/html"),
        ("HTML", "text/html"),
        ("markdown", "text/markdown"),
        ("latex", "text/latex"),
        ("svg", "image/svg+xml"),
        ("javascript", "application/javascript"),
        ("js", "application/javascript"),
    ],
)
def test_rich_cells(host, magic, mime):
    events = host.run("%%" + magic + "\n<x>\n")
    shown = data(filter_events(events, "display")[0])
    assert shown.pop(mime) == "<x>\n"
    assert shown.pop("text/plain").startswith("<IPython.core.display.") and not shown


def test_unknown(host):
    failure = error(host.run("%nosuch"))
    assert (failure["ename"], failure["evalue"]) == (
        "UsageError",
        "Line magic function `%nosuch` not found.",
    )
    assert failure["traceback"] == ["UsageError: Line magic function `%nosuch` not found."]
    assert error(host.run("%%nosuch\nx"))["evalue"] == "Cell magic `%%nosuch` not found."
    assert "did you mean" in error(host.run("%bash"))["evalue"]
    assert "did you mean" in error(host.run("%%pwd\nx"))["evalue"]
    assert error(host.run("%debug"))["ename"] == "UsageError"


def test_magics_in_strings_are_unchanged(host):
    code = "s = '''\n%pwd\n!ls\nx?\n'''\nt = 7 \\\n % 4\nu = (7\n% 4)\ns, t, u"
    assert result(host.run(code)) == "('\\n%pwd\\n!ls\\nx?\\n', 3, 3)"


def test_matplotlib_magic(host, needs):
    for line in ("%gui qt",):
        assert kinds(host.run(line)) == ["started", "done"]
    assert error(host.run("import sys\nsys.modules['matplotlib'] = None\n%matplotlib inline"))
    needs("matplotlib")
    host.run("del sys.modules['matplotlib']")
    for line in ("%matplotlib inline", "%matplotlib", "%matplotlib agg"):
        assert kinds(host.run(line)) == ["started", "done"]
    # As in Jupyter, where ipympl is the backend `widget`.
    failure = error(host.run("%matplotlib widget", timeout=60))
    assert failure["ename"] == "RuntimeError" and "'widget' is not a recognised" in failure["evalue"]
    assert result(host.run("import matplotlib\nmatplotlib.backends.backend")) == "'inline'"


def test_lsmagic_history_help(host):
    assert "%timeit" in result(host.run("%lsmagic"))
    assert "1: " in text(host.run("%history -n"))
    assert "Docstring" in text(host.run("%timeit?"))
    assert "%lsmagic" in text(host.run("?"))


def test_autoreload(host, tmp_path):
    module = tmp_path / "mod.py"
    module.write_text("def f(): return 1\nclass A:\n    def m(self): return 1\n    old = 1\n")
    host.run("%load_ext autoreload\n%autoreload 2\nimport mod\nfrom mod import f, A\na = A()")
    assert result(host.run("f(), a.m()")) == "(1, 1)"
    time.sleep(0.02)
    module.write_text("def f(): return 22\nclass A:\n    def m(self): return 22\n    new = 1\n#\n")
    assert (
        result(host.run("mod.f(), f(), a.m(), hasattr(A, 'old'), A.new"))
        == "(22, 22, 22, False, 1)"
    )
    module.write_text("def f(: broken\n")
    events = host.run("f()")
    assert result(events) == "22" and "autoreload of mod failed" in text(events, "stderr")
    module.write_text("def f(): return 333\n")
    assert result(host.run("f()")) == "333"
    host.run("%autoreload 0")
    module.write_text("def f(): return 4\n")
    assert result(host.run("f()")) == "333"
    assert "already loaded" in text(host.run("%load_ext autoreload"))
    assert error(host.run("%autoreload 9"))["ename"] == "UsageError"


def test_pip(host, needs):
    needs("pip")
    assert "pip" in text(host.run("%pip --version", timeout=60))
    events = host.run("%pip nosuchcommand", timeout=60)
    # As in IPython, pip prints the error and the cell continues.
    assert status(events) == "ok" and "ERROR: unknown command" in text(events)
    assert result(host.run("_exit_code")) == "1"


def test_pip_without_pip(host, tmp_path):
    (tmp_path / "bin").mkdir()
    uv = tmp_path / "bin" / "uv"
    host.run("import importlib.util, sys\nimportlib.util.find_spec = lambda *a, **k: None")
    failure = error(host.run("%pip install x", env={"PATH": str(tmp_path / "bin")}))
    assert failure["ename"] == "UsageError" and "ensurepip" in failure["evalue"]
    uv.write_text("#!/bin/sh\necho uv $@\n")
    uv.chmod(0o755)
    output = text(host.run("%pip install -q x"))
    assert output.startswith("uv pip install --python /") and " -q x\n" in output


def test_conda_hint(host):
    failure = error(host.run("%conda install x"))
    assert failure["ename"] == "UsageError" and "%pip" in failure["evalue"]


def test_quick_escapes(host):
    host.run("def f(*a): return a")
    assert result(host.run(",f a b")) == "('a', 'b')"
    assert result(host.run(";f a b")) == "('a b',)"
    assert result(host.run("/f 1 2")) == "(1, 2)"


def test_help(host):
    host.run("def foo(a, b=2):\n    '''Adds things.'''\n    return a + b")
    output = text(host.run("foo?"))
    assert "foo(a, b=2)" in output and "Adds things." in output
    assert "return a + b" in text(host.run("foo??"))
    assert "len(obj, /)" in text(host.run("?len"))
    assert text(host.run("nosuch?")) == "Object `nosuch` not found.\n"
    assert text(host.run("fo*?")) == "foo\nformat\n"
    assert "os.path\n" in text(host.run("import os\nos.pa*?"))


def test_registered_magics(host):
    host.run(
        "def shout(line): return line.upper()\nget_ipython().register_magic_function(shout)\n"
        "def both(line, cell=None): return line, cell\n"
        "get_ipython().register_magic_function(both, 'line_cell', 'two')"
    )
    assert result(host.run("%shout hello")) == "'HELLO'"
    assert result(host.run("%two a")) == "('a', None)"
    assert result(host.run("%%two a\nb")) == "('a', 'b\\n')"
    host.run(
        "from IPython.core.magic import register_line_magic\n"
        "@register_line_magic\ndef quiet(line): return line + '!'"
    )
    assert result(host.run("%quiet x")) == "'x!'"


def test_magic_inside_functions_and_blocks(host):
    assert text(
        host.run("for i in range(2):\n    !echo {i}\n    if i:\n        %time pass")
    ).startswith("0\n1\nCPU")
    assert result(host.run("def f():\n    x = !echo in\n    return x\nf()")) == "['in']"


def test_help_is_redirected_to_a_pager(host):
    """Jupyter shows help in a pager and does not store it in the notebook."""
    host.run("import os")
    events = host.run("print('a')\nos.getcwd?\nprint('b')")
    redirected = ["redirect_begin", "stdout", "redirect_end"]
    assert kinds(events) == ["started", "stdout", *redirected, "stdout", "done"]
    assert "Docstring" in events[3]["text"] and events[5]["text"] == "b\n"


def test_output_widget_redirects_its_output(host, needs):
    needs("ipywidgets")
    host.run("import ipywidgets")
    code = """
out = ipywidgets.Output()
print('before')
with out:
    print('inside')
    with out:
        print('deeper')
    print('inside again')
    1 / 0
print('after')
"""
    events = host.run(code)
    assert status(events) == "ok"
    texts = [event.get("text", "") for event in events]
    begin, end = kinds(events).index("redirect_begin"), kinds(events).index("redirect_end")
    assert "".join(texts[:begin]) == "before\n"
    inside = "".join(texts[begin + 1 : end])
    assert "inside\ndeeper\ninside again\n" in inside and "ZeroDivisionError" in inside
    assert "".join(texts[end + 1 :]) == "after\n"
    # A redirect that is left open ends with its cell.
    host.run("out.__enter__()")
    assert kinds(host.run("print('x')")) == ["started", "stdout", "done"]


def test_history_manager(host):
    host.run("a = 1")
    host.run("%pwd")
    assert result(host.run("h = get_ipython().history_manager\nh.hist_file, h.enabled")) == (
        "(':memory:', True)"
    )
    assert result(host.run("h.input_hist_raw[1:3]")) == "['a = 1', '%pwd']"
    assert result(host.run("list(h.get_range(0, 1, 2))")) == "[(0, 1, 'a = 1')]"
    assert result(host.run("h.get_tail(1)")) == "[(0, 5, 'list(h.get_range(0, 1, 2))')]"


def test_precision(host):
    assert result(host.run("%precision 2")) == "'%.2f'"
    assert result(host.run("3.14159")) == "3.14"
    assert result(host.run("[1.5, {'a': 2.25}], 3")) == "([1.50, {'a': 2.25}], 3)"
    assert result(host.run("%precision %.1e\n1234.5")) == "1.2e+03"
    assert error(host.run("%precision x"))["ename"] == "UsageError"
    host.run("%precision")
    assert result(host.run("3.14159")) == "3.14159"
