"""Magics about the session itself: history, files, macros, logs, aliases, stored variables, automagic."""

import pickle

import pytest
from host import Host, error, result, status, text


@pytest.fixture
def three(host):
    """A session with three cells."""
    for code in ("a = 1", "b = !echo two\nb", "print(a)"):
        host.run(code)
    return host


def test_history_to_a_file(three, tmp_path):
    assert text(three.run("%history -f h.py 1-3")) == ""
    assert (tmp_path / "h.py").read_text() == "a = 1\nb = !echo two\nb\nprint(a)\n"
    assert text(three.run("%history -nf h.py 1")) == "Overwriting file.\n"
    assert (tmp_path / "h.py").read_text() == "   1: a = 1\n"
    three.run("%hist -pof h.py 1-2")
    assert (tmp_path / "h.py").read_text() == ">>> a = 1\n>>> b = !echo two\n... b\n...\n['two']\n"
    assert text(three.run("%history -t 2")).startswith("b = get_ipython().getoutput('echo two')")
    assert text(three.run("%history -g print")).startswith("   3: print(a)\n")
    assert text(three.run("%history -u 1 1-2")) == "a = 1\nb = !echo two\nb\n"
    assert text(three.run("%history -l 1")) == "%history -u 1 1-2\n"
    assert error(three.run("%history -z"))["ename"] == "UsageError"
    assert error(three.run("%history -f"))["ename"] == "UsageError"


def test_save(three, tmp_path):
    output = text(three.run("%save s 1-2"))
    assert output.startswith("The following commands were written to file `s.py`:\na = 1\n")
    expected = "# coding: utf-8\na = 1\nb = get_ipython().getoutput('echo two')\nb\n"
    assert (tmp_path / "s.py").read_text() == expected
    assert "exists" in error(three.run("%save s 1"))["evalue"]
    three.run("%save -f -r s.py 2")
    assert (tmp_path / "s.py").read_text() == "# coding: utf-8\nb = !echo two\nb\n"
    three.run("%save -a s.py 3")
    assert (tmp_path / "s.py").read_text().endswith("b\nprint(a)\n")
    assert error(three.run("%save t 99"))["ename"] == "UsageError"
    assert not (tmp_path / "t.py").exists()


def test_macro(three):
    assert "Macro `m` created" in text(three.run("%macro m 1 3"))
    three.run("a = 5")
    assert text(three.run("m")) == "1\n"
    assert result(three.run("m.value")) == "'a = 1\\nprint(a)\\n'"
    assert result(three.run("%macro")) == "['m']"
    assert error(three.run("%macro m"))["ename"] == "UsageError"


def test_rerun(three):
    output = text(three.run("%rerun 3"))
    assert output == "=== Executing: ===\nprint(a)\n=== Output: ===\n1\n"
    assert "=== Output: ===\n1\n" in text(three.run("%rerun -g print"))
    assert error(three.run("%rerun 99"))["ename"] == "UsageError"
    three.run("1/0")
    assert status(three.run("%rerun -l 1")) == "error"


def test_recall_and_load(three, tmp_path):
    assert text(three.run("%recall 1")) == "a = 1\n"
    assert text(three.run("%load 1-1")) == "a = 1\n"
    (tmp_path / "x.py").write_text("import os\n\ndef f():\n    return 1\n\nclass C:\n    pass\n")
    assert text(three.run("%load -s f x.py")) == "def f():\n    return 1\n"
    assert text(three.run("%load -r 3-4 x")) == "def f():\n    return 1\n"
    assert text(three.run("code = 'from a name'\n%load code")) == "from a name\n"
    failure = error(three.run("%load nosuch.py"))
    assert failure["ename"] == "ValueError" and "was not found in history" in failure["evalue"]
    assert error(three.run("%run nosuch.py"))["ename"] == "Exception"


def test_log(host, tmp_path):
    host.run("a = 1")
    output = text(host.run("%logstart -o log.py over"))
    assert "Activating auto-logging" in output and "Filename       : log.py" in output
    host.run("a + 1")
    host.run("%logoff")
    host.run("hidden = 1")
    host.run("%logon")
    host.run("b = !echo x")
    assert error(host.run("%logstart"))["ename"] == "UsageError"
    host.run("%logstop")
    host.run("not_logged = 1")
    log = (tmp_path / "log.py").read_text()
    assert log.startswith("# IPython log file\n\na = 1\n")
    assert "a + 1\n#[Out]# 2\n" in log and "getoutput('echo x')" in log
    assert "hidden" not in log and "not_logged" not in log
    host.run("%logstart -q -r log.py")
    assert (tmp_path / "log.py~").read_text() == log


def test_alias(host):
    host.run("%alias hi echo hello")
    assert text(host.run("%hi you")) == "hello you\n"
    assert text(host.run("hi you")) == "hello you\n"
    host.run("%alias two echo second %s first %s")
    assert text(host.run("%two a b c")) == "second a first b c\n"
    assert error(host.run("%two a"))["evalue"] == "Alias <two> requires 2 arguments, 1 given."
    host.run("%alias all echo [%l]")
    assert text(host.run("%all a b")) == "[a b]\n"
    assert result(host.run("%alias")).startswith("[('all', 'echo [%l]'),\n ('hi', ")
    host.run("%unalias hi")
    assert error(host.run("%hi"))["ename"] == "UsageError"
    for line in ("%alias cd x", "%alias timeit x", "%alias one", "%unalias nosuch"):
        assert error(host.run(line))["ename"] == "UsageError"


def test_store(python, tmp_path):
    env = {"IPYTHONDIR": str(tmp_path / "ipython")}
    first = Host(python, cwd=str(tmp_path), env=env)
    first.run("x = {'a': 1}\ny = 'text'")
    assert text(first.run("%store x y")) == "Stored 'x' (dict)\nStored 'y' (str)\n"
    assert "-> {'a': 1}" in text(first.run("%store"))
    assert error(first.run("%store nosuch"))["ename"] == "UsageError"
    assert "Writing 'y' (str)" in text(first.run("%store y >y.txt"))
    first.close()
    assert (tmp_path / "y.txt").read_text() == "text\n"
    # IPython reads the same files.
    stored = tmp_path / "ipython" / "profile_default" / "db" / "autorestore" / "x"
    assert pickle.loads(stored.read_bytes()) == {"a": 1}
    second = Host(python, cwd=str(tmp_path), env=env)
    assert error(second.run("x"))["ename"] == "NameError"
    assert result(second.run("%store -r\nx, y")) == "({'a': 1}, 'text')"
    second.run("%store -d x")
    assert text(second.run("%store -r x")) == "no stored variable or alias x\n"
    second.run("%store -z")
    assert text(second.run("%store")) == "Stored variables and their in-db values:\n"
    second.close()


def test_stored_variables_of_ipython(python, needs, tmp_path):
    needs("IPython")
    import subprocess

    env = {"IPYTHONDIR": str(tmp_path / "ipython")}
    code = "z = [1, 2]\nget_ipython().run_line_magic('store', 'z')"
    command = [python, "-m", "IPython", "-c", code]
    import os

    subprocess.run(command, env=dict(os.environ, **env), check=True, capture_output=True)
    host = Host(python, cwd=str(tmp_path), env=env)
    assert result(host.run("%store -r z\nz")) == "[1, 2]"
    host.close()


def test_traceback_again(host):
    assert text(host.run("%tb"), "stderr") == "No traceback available to show.\n"
    host.run("def f(): 1/0\nf()")
    events = host.run("%tb")
    assert status(events) == "ok" and "ZeroDivisionError: division by zero" in text(events, "stderr")
    assert "line 1, in f" in text(events, "stderr")


def test_xmode(host):
    assert text(host.run("%xmode Minimal")) == "Exception reporting mode: Minimal\n"
    assert error(host.run("1/0"))["traceback"] == ["ZeroDivisionError: division by zero"]
    host.run("%xmode Plain")
    assert len(error(host.run("1/0"))["traceback"]) > 2
    assert error(host.run("%xmode nosuch"))["ename"] == "UsageError"


# Automagic


def test_automagic(host, tmp_path):
    (tmp_path / "sub").mkdir()
    assert result(host.run("pwd")) == repr(str(tmp_path))
    assert text(host.run("cd sub")) == str(tmp_path / "sub") + "\n"
    assert text(host.run("cd ..\n")) == str(tmp_path) + "\n"
    assert "sub" in text(host.run("ls -l"))
    assert "per loop" in text(host.run("timeit -n 1 -r 1 pass"))
    assert host.run("In[1]") and result(host.run("In[1]")).startswith('"get_ipython().run_line_magic')


def test_pip_without_percent(host, needs):
    needs("pip")
    assert "pip " in text(host.run("pip --version", timeout=60))


def test_names_and_statements_are_no_automagic(host):
    assert error(host.run("pwd\nx = 1"))["ename"] == "NameError"  # as in IPython: one line only
    host.run("cd = 5")
    assert result(host.run("cd - 1")) == "4"
    assert error(host.run("cd sub"))["ename"] == "SyntaxError"
    assert status(host.run("ls = 3")) == "ok"
    assert result(host.run("ls")) == "3"
    assert status(host.run("del ls")) == "ok"
    assert error(host.run("nosuchname"))["ename"] == "NameError"
    assert error(host.run("rm.nosuch"))["ename"] == "NameError"
    assert result(host.run("'IPython' in __import__('sys').modules")) == "False"


def test_automagic_off(host):
    assert "OFF" in text(host.run("%automagic off"))
    assert error(host.run("pwd"))["ename"] == "NameError"
    assert "ON" in text(host.run("%automagic"))
    assert status(host.run("pwd")) == "ok"
    assert error(host.run("%autocall 1"))["ename"] == "UsageError"
    assert text(host.run("%autocall 0")) == "Automatic calling is: OFF\n"


def test_automagic_of_ipython(host, needs):
    needs("IPython")
    assert "function calls" in text(host.run("prun sum(range(10))", timeout=60))


# Options of other magics


def test_time_and_timeit_see_local_names(host):
    assert text(host.run("def f(k):\n    %time print(2 * k)\nf('hi')")).startswith("hihi\n")
    code = "def g(k):\n    %timeit -n 1 -r 1 seen.append(k)\nseen = []\ng(7)\nseen"
    assert result(host.run(code)) == "[7]"
    assert result(host.run("def h(k):\n    x = %time k + 1\n    return x\nh(1)")) == "2"


def test_timeit_options(host):
    host.run("%timeit -q -n 2 -r 1 -v saved pass")
    assert result(host.run("saved.loops")) == "2"
    assert "μs" in result(host.run("from cellwright_runner.magics.timing import _format_duration as f\nf(2e-6)"))


def test_env_with_blanks(host):
    assert error(host.run("%env var A=B"))["evalue"].startswith("refusing to set env var")
    assert error(host.run("%set_env var"))["evalue"] == "usage is 'set_env var=val'"
    assert text(host.run("%set_env var = val")) == "env: var=val\n"
    host.run("%env SOME_TOKEN=x")
    assert result(host.run("e = %env\ne['SOME_TOKEN'], e['var']")) == "('<hidden>', 'val')"


def test_writefile_with_quotes(host, tmp_path):
    host.run("%%writefile a'b'.txt\nx")
    assert (tmp_path / "a'b'.txt").read_text() == "x\n"
    host.run("%%writefile 'c d.txt'\ny")
    assert (tmp_path / "c d.txt").read_text() == "y\n"


def test_reset_parts(host):
    host.run("1")
    assert text(host.run("%reset -f out")) == "Flushing output cache (1 entries)\n"
    assert text(host.run("%reset -f in")) == "Flushing input history\n"
    assert error(host.run("%reset -f nosuch"))["ename"] == "UsageError"


def test_bash_names_are_stable(host):
    events = host.run("%%bash\necho a\nnosuch_command\necho $0 $#")
    assert text(events) == "a\nbash 0\n"
    assert text(events, "stderr") == "bash: line 2: nosuch_command: command not found\n"
    assert text(host.run("%%bash x y\necho $1 $2")) == "x y\n"
    long = "%%bash\n" + "# comment\n" * 20000 + "echo end"
    assert text(host.run(long)) == "end\n"


def test_run_options(host, tmp_path):
    (tmp_path / "mod.py").write_text("import sys\nprint(__name__, sys.argv[1:])\nmade = 1\n")
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("")
    assert text(host.run("%run -m mod -- a -x")) == "__main__ ['a', '-x']\n"
    assert text(host.run("%run -m mod -x 1")) == "__main__ ['-x', '1']\n"
    assert result(host.run("made")) == "1"
    assert text(host.run("%run mod.py *.csv '*.none'")) == "__main__ ['a.csv', 'b.csv', '*.none']\n"
    assert text(host.run("%run -G mod.py *.csv")) == "__main__ ['*.csv']\n"
    assert text(host.run("%run -i -n mod.py")) == "mod []\n"
    assert result(host.run("__name__")) == "'__main__'"
    assert error(host.run("%run -m nosuch_module"))["ename"] == "ImportError"


# Autoreload


def edit(path, source):
    """Write a file with a new time stamp."""
    import os

    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(source)
    stamp = max(path.stat().st_mtime_ns, before + 1_000_000)
    os.utime(path, ns=(stamp, stamp))


CLASS = "class A:\n    def m(self): return %d\nclass B(A): pass\n"


def test_objects_of_a_reloaded_class(host, tmp_path):
    module = tmp_path / "mod.py"
    edit(module, CLASS % 1)
    host.run("%load_ext autoreload\n%autoreload 2\nimport mod\nfrom mod import A\na, b = A(), mod.B()")
    edit(module, CLASS % 22)
    code = "a.m(), b.m(), isinstance(a, mod.A), isinstance(b, mod.B), isinstance(b, mod.A)"
    assert result(host.run(code)) == "(22, 22, True, True, True)"


@pytest.mark.parametrize("line", ["%autoreload", "%autoreload now"])
def test_first_reload_on_request(host, tmp_path, line):
    module = tmp_path / "mod.py"
    edit(module, "value = 1\n")
    host.run("%load_ext autoreload\nimport mod")
    edit(module, "value = 22\n")
    assert result(host.run("mod.value")) == "1"
    assert result(host.run(line + "\nmod.value")) == "22"


def test_reload_adds_new_names(host, tmp_path):
    module = tmp_path / "mod.py"
    edit(module, "def f(): return 1\n")
    host.run("%load_ext autoreload\n%autoreload 3\nfrom mod import *")
    edit(module, "def f(): return 2\ndef added(): return 3\n")
    assert result(host.run("f(), added()")) == "(2, 3)"
