"""get_ipython(); IPython where it is installed; the stand-in where it is not."""

import os
import subprocess

import pytest
from host import Host, data, error, filter_events, kinds, result, status, text


@pytest.fixture
def bare(python, tmp_path):
    """A runner that cannot import IPython, even if it is installed."""
    host = Host(python, cwd=str(tmp_path))
    host.run(
        "import sys\n"
        "real = [f for f in sys.meta_path if getattr(f, '__name__', '') == 'PathFinder'][0]\n"
        "class Hiding:\n    @staticmethod\n    def find_spec(name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'IPython': return None\n"
        "        return real.find_spec(name, path, target)\n"
        "sys.meta_path[sys.meta_path.index(real)] = Hiding",
        history=False,
        silent=True,
    )
    yield host
    host.close()


def test_shell_object(host):
    code = (
        "ip = get_ipython()\nip.user_ns is globals(), ip.user_module.__name__, ip.execution_count,"
        " type(ip).__name__, hasattr(ip, 'kernel'), 'IPKernelApp' in ip.config"
    )
    assert result(host.run(code)) == "(True, '__main__', 1, 'ZMQInteractiveShell', True, True)"
    assert result(host.run("ip.run_line_magic('pwd', '') == ip.magic('pwd')")) == "True"
    assert text(host.run("ip.system('echo hi')")) == "hi\n"
    assert result(host.run("ip.getoutput('echo hi')")) == "['hi']"
    host.run("ip.push({'pushed': 1})")
    assert result(host.run("pushed, ip.ev('pushed + 1')")) == "(1, 2)"
    host.run("ip.ex('made = 3')")
    assert result(host.run("made")) == "3"
    for line in (
        "ip.enable_gui('qt')",
        "ip.set_custom_exc((), None)",
        "ip.input_transformers_cleanup",
        "ip.config.InlineBackend.x = 1",
        "ip.ast_transformers",
        "ip.instance() is ip",
    ):
        assert status(host.run(line)) == "ok"


def test_run_cell(host):
    events = host.run("r = get_ipython().run_cell('y = 5\\ny')\nr.success, r.result")
    assert kinds(events) == ["started", "result", "result", "done"]
    events = host.run(
        "r = get_ipython().run_cell('1/0')\nr.success, type(r.error_in_exec).__name__"
    )
    assert result(events) == "(False, 'ZeroDivisionError')"
    assert "ZeroDivisionError" in text(events, "stderr")


def test_events(host):
    host.run(
        "log = []\nip = get_ipython()\n"
        "ip.events.register('pre_execute', lambda: log.append('pre_execute'))\n"
        "def pre(info): log.append(info.raw_cell)\nip.events.register('pre_run_cell', pre)\n"
        "def post(result): log.append(result.result)\nip.events.register('post_run_cell', post)\n"
        "log.clear()"
    )
    host.run("log.clear()\n42")
    assert result(host.run("log")) == "[42, 'pre_execute', 'log']"
    host.run("def bad(): 1/0\nip.events.register('post_execute', bad)")
    events = host.run("1")
    assert status(events) == "ok" and "ZeroDivisionError" in text(events, "stderr")
    host.run(
        "ip.events.unregister('post_execute', bad)\nip.events.unregister('post_run_cell', post)"
    )
    assert text(host.run("1"), "stderr") == ""


def test_formatters(host):
    host.run(
        "class A: pass\nf = get_ipython().display_formatter.formatters\n"
        "f['text/html'].for_type(A, lambda a: '<i>A</i>')\n"
        "f['text/plain'].for_type(int, lambda n, p, cycle: p.text('int %d' % n))\n"
        "f['text/markdown'].for_type_by_name('__main__', 'A', lambda a: '*A*')"
    )
    got = data(filter_events(host.run("A()"), "result")[0])
    assert got["text/html"] == "<i>A</i>" and got["text/markdown"] == "*A*"
    assert result(host.run("5")) == "int 5"
    events = host.run("get_ipython().display_formatter.format(A())[0]['text/html']")
    assert result(events) == "'<i>A</i>'"
    events = host.run("get_ipython().display_pub.publish({'text/plain': 'x'})")
    assert data(filter_events(events, "display")[0]) == {"text/plain": "x"}


def test_real_ipython(host, needs):
    needs("IPython")
    events = host.run(
        "from IPython.display import display, HTML, Image, Markdown, clear_output, update_display\n"
        "import IPython\nh = display(HTML('<b>'), display_id='x')\nupdate_display(Markdown('*'), display_id='x')\n"
        "IPython.get_ipython() is get_ipython()",
        timeout=60,
    )
    assert result(events) == "True"
    assert [d["display_id"] for d in filter_events(events, "display")] == ["x", "x"]
    assert data(filter_events(events, "display")[0])["text/html"] == "<b>"


def test_unknown_magics_are_passed_to_ipython(host, needs):
    needs("IPython")
    host.run(
        "import sys, signal\nbefore = (sys.displayhook, sys.excepthook, sys.stdout, sys.stderr,"
        " signal.getsignal(2), __builtins__.input, display, sorted(globals()))"
    )
    assert "function calls" in text(host.run("%prun sum(range(10))", timeout=60))
    assert result(host.run("%precision 3")) == "'%.3f'"
    after = (
        "(sys.displayhook, sys.excepthook, sys.stdout, sys.stderr, signal.getsignal(2),"
        " __builtins__.input, display) == before[:7]"
    )
    assert result(host.run(after)) == "True"
    assert (
        result(
            host.run(
                "set(globals()) - set(before[7]) - {'before'} == "
                "{n for n in globals() if n.startswith('_i') or n[1:].isdigit()"
                " and n[:1] == '_'} - set(before[7])"
            )
        )
        == "True"
    )
    assert error(host.run("%nosuch_magic"))["ename"] == "UsageError"
    assert text(host.run("print('still printed')")) == "still printed\n"
    failure = error(host.run("1/0"))
    assert failure["traceback"][1].startswith("  Cell In[")


def test_extension_through_ipython(host, needs, tmp_path):
    needs("IPython")
    (tmp_path / "my_ext.py").write_text(
        "from IPython.core.magic import Magics, magics_class, line_magic, cell_magic\n"
        "@magics_class\nclass M(Magics):\n    @line_magic\n    def hello(self, line): return 'hello ' + line\n"
        "    @cell_magic\n    def count(self, line, cell): return len(cell)\n"
        "def load_ipython_extension(ip):\n    ip.register_magics(M)\n"
    )
    assert status(host.run("%load_ext my_ext", timeout=60)) == "ok"
    assert result(host.run("%hello you")) == "'hello you'"
    assert result(host.run("%%count\nabc")) == "4"


def test_stand_in(bare):
    events = bare.run(
        "import IPython\nfrom IPython.display import display, HTML, Markdown, Image, SVG, JSON, Latex, Math\n"
        "from IPython.display import Javascript, Pretty, Code, IFrame, DisplayHandle, clear_output\n"
        "from IPython.display import update_display, publish_display_data, Audio\n"
        "display(HTML('<b>'), Markdown('*m*'), SVG('<svg/>'), JSON({'a': 1}), Math('x'), Code('x = 1'))\n"
        "IPython.get_ipython() is get_ipython(), IPython.version_info[0] >= 8"
    )
    assert status(events) == "ok", error(events)
    assert result(events) == "(True, True)"
    got = [data(d) for d in filter_events(events, "display")]
    assert got[0]["text/html"] == "<b>" and got[1]["text/markdown"] == "*m*"
    assert got[2]["image/svg+xml"] == "<svg/>" and got[3]["application/json"] == {"a": 1}
    assert got[4]["text/latex"] == "$\\displaystyle x$" and "x = 1" in got[5]["text/markdown"]
    events = bare.run("Image(b'\\x89PNG\\r\\n\\x1a\\n', width=10)")
    image = filter_events(events, "result")[0]
    assert data(image)["image/png"].startswith(b"\x89PNG") and image["metadata"]["image/png"] == {
        "width": 10
    }
    assert error(bare.run("import IPython.nosuch"))["ename"] == "ModuleNotFoundError"


def test_stand_in_display_objects(bare, tmp_path):
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("")
    bare.run("from IPython.display import *\nfrom IPython.lib.display import VimeoVideo as V")
    assert result(bare.run("FileLinks('files')")) == "files/\n  a.txt"
    events = bare.run("FileLinks('files'), V('12')\ndisplay(FileLinks('files'), V('12'))")
    shown = [data(d)["text/html"] for d in filter_events(events, "display")]
    assert 'href="files/a.txt"' in shown[0] and "player.vimeo.com/video/12" in shown[1]
    events = bare.run("display_html('<b>', raw=True)\ndisplay_markdown(Markdown('*'))")
    assert [data(d) for d in filter_events(events, "display")] == [
        {"text/html": "<b>"},
        {"text/plain": "<IPython.core.display.Markdown object>", "text/markdown": "*"},
    ]
    code = "display(Javascript('run()', lib='https://x/y.js', css='https://x/y.css'))"
    script = data(filter_events(bare.run(code), "display")[0])["application/javascript"]
    assert script.index("y.css") < script.index("y.js") < script.index("run()")
    assert 'src="a.mp4"' in result(bare.run("Video('a.mp4')._repr_html_()"))
    (tmp_path / "x.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    image = data(filter_events(bare.run("Image('x.png', embed=False)"), "result")[0])
    assert image["text/html"] == '<img src="x.png"/>' and "image/png" not in image
    failure = error(bare.run("HTML(5)"))
    assert (failure["ename"], failure["evalue"]) == ("TypeError", "HTML expects text, not 5")


def test_stand_in_modules(bare):
    code = "from IPython.utils.capture import capture_output\nwith capture_output() as c:\n"
    assert result(bare.run(code + "    print('x')\n    display(1)\nc.stdout, len(c.outputs)")) == (
        "('x\\n', 1)"
    )
    code = "from IPython.lib.pretty import pretty, pprint\npprint([1])\npretty({'a': 1})"
    events = bare.run(code)
    assert (text(events), result(events)) == ("[1]\n", "\"{'a': 1}\"")
    bare.run("from IPython.core.interactiveshell import InteractiveShell")
    bare.run("InteractiveShell.ast_node_interactivity = 'all'")
    assert len(filter_events(bare.run("1\n2"), "result")) == 2


def test_stand_in_magics(bare):
    assert error(bare.run("%prun 1"))["evalue"] == "Line magic function `%prun` not found."
    assert error(bare.run("%%cython\nx"))["evalue"] == "Cell magic `%%cython` not found."
    bare.run(
        "from IPython.core.magic import register_cell_magic\n"
        "@register_cell_magic\ndef shout(line, cell): return cell.upper()"
    )
    assert result(bare.run("%%shout\nabc")) == "'ABC\\n'"
    bare.run(
        "from IPython.core.magic import Magics, magics_class, line_magic\n"
        "@magics_class\nclass M(Magics):\n    @line_magic\n    def hey(self, line): return line\n"
        "get_ipython().register_magics(M)"
    )
    assert result(bare.run("%hey you")) == "'you'"


def test_stand_in_with_pandas_and_matplotlib(bare, needs):
    needs("pandas", "matplotlib")
    events = bare.run("import IPython, pandas as pd\npd.DataFrame({'a': [1]})", timeout=60)
    assert "text/html" in data(filter_events(events, "result")[0])
    events = bare.run("import matplotlib.pyplot as plt\nplt.plot([1, 2]);", timeout=60)
    assert status(events) == "ok" and len(filter_events(events, "display")) == 1


def test_user_files_do_not_shadow_runner_imports(python, tmp_path):
    # From 3.13 on `python -c` itself imports linecache from the working directory, before boot.py runs.
    command = [python, "-c", "import sys; print(sys.version_info < (3, 13))"]
    older = subprocess.run(command, capture_output=True, text=True).stdout == "True\n"
    names = ["linecache"] if older else []
    for name in names + [
        "json",
        "select",
        "token",
        "tokenize",
        "traceback",
        "inspect",
        "re",
        "ast",
        "subprocess",
        "asyncio",
        "types",
        "random",
        "cellwright_runner",
        "display",
    ]:
        (tmp_path / (name + ".py")).write_text("mine = %r\n" % name)
    host = Host(python, cwd=str(tmp_path))
    try:
        assert result(host.run("import json, token\njson.mine, token.mine")) == (
            "('json', 'token')"
        )
        # In some Pythons `select` is built in and cannot be shadowed.
        assert result(
            host.run("import select, sys\n'select' in sys.builtin_module_names or select.mine")
        ) in ("'select'", "True")
        assert error(host.run("1/0"))["traceback"][-1] == "ZeroDivisionError: division by zero"
        assert text(host.run("!echo hi")) == "hi\n"
        assert result(host.run("%time 3")) == "3"
        assert host.request("complete", code="jso", cursor=3)["matches"] == ["json"]
        assert host.request("inspect", code="len", cursor=3, detail=0)["found"]
        assert result(host.run("json.mine")) == "'json'"
        assert os.path.exists(tmp_path / "json.py")
    finally:
        host.close()
