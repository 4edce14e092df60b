"""complete, inspect, is_complete, variables."""

import pytest
from host import result, text

NOISY = (
    "class Noisy:\n    attribute = 1\n    @property\n    def prop(self): print('RUN'); return 1\n"
    "    def __getattr__(self, n): print('RUN'); raise AttributeError(n)\n"
    "    def __len__(self): print('RUN'); return 3\n    def __repr__(self): print('RUN'); return 'x'\n"
    "    def __dir__(self): print('RUN'); return ['made_up']\n    def method(self, a, b=1):\n"
    "        '''Does it.'''\n    def __bool__(self): print('RUN'); return True\n"
    "    def __eq__(self, o): print('RUN'); return True\n    __hash__ = None\nn = Noisy()\nn.own = 5"
)


def complete(host, code, cursor=None):
    value = host.request("complete", code=code, cursor=len(code) if cursor is None else cursor)
    assert set(value) == {"matches", "start", "end"}
    return value


def test_names(host):
    host.run("some_name = 1\nsome_other = 2\n_private = 3")
    value = complete(host, "x = some_")
    assert value == {"matches": ["some_name", "some_other"], "start": 4, "end": 9}
    assert "_private" not in complete(host, "")["matches"]
    assert complete(host, "_priv")["matches"] == ["_private"]
    assert "import" in complete(host, "imp")["matches"]
    assert "isinstance" in complete(host, "isin")["matches"]
    assert complete(host, "ä = 1; some_n")["start"] == 7


def test_cursor_in_the_middle(host):
    host.run("alpha = 1")
    assert complete(host, "alp + 1", 3) == {"matches": ["alpha"], "start": 0, "end": 3}
    assert complete(host, "x\nalp\ny", 5)["matches"] == ["alpha"]
    assert complete(host, "alp", 99)["matches"] == ["alpha"]


def test_attributes(host):
    host.run(
        "import os, sys\nclass A:\n    def meth(self): pass\n    attr = 1\na = A()\na.own = A()"
    )
    assert "path" in complete(host, "os.pa")["matches"]
    assert complete(host, "a.")["matches"] == ["attr", "meth", "own"]
    assert complete(host, "a.own.me")["matches"] == ["meth"]
    assert "upper" in complete(host, "'abc'.x; str.up")["matches"]
    assert "__class__" in complete(host, "a.__cl")["matches"]
    assert complete(host, "nosuch.x")["matches"] == []
    assert "append" in complete(host, "l = [1]; sys.path.app")["matches"]


def test_user_code_does_not_run(host):
    host.run(NOISY)
    value = complete(host, "n.")
    assert {"attribute", "method", "own", "prop"} <= set(value["matches"])
    complete(host, "n.prop.")
    complete(host, "n.nosuch.")
    complete(host, "n[")
    host.request("inspect", code="n", cursor=1, detail=1)
    host.request("inspect", code="n.prop", cursor=6, detail=1)
    entry = [e for e in host.request("variables", limit=10) if e["name"] == "n"][0]
    assert (entry["type"], entry["preview"], entry["length"]) == ("Noisy", None, None)
    assert text(host.run("1")) == ""


def test_keys(host):
    host.run("d = {'alpha': 1, 'beta': 2, 3: 4, \"it's\": 5}")
    assert complete(host, "d['al")["matches"] == ["'alpha'"]
    assert complete(host, 'd["')["matches"] == ['"alpha"', '"beta"', '"it\'s"']
    assert "3" in complete(host, "d[")["matches"]


def test_imports(host, tmp_path):
    (tmp_path / "my_module.py").write_text("some_function = 1\nprint('IMPORTED')\n")
    assert complete(host, "import my_mo")["matches"] == ["my_module"]
    assert complete(host, "from my_module import some")["matches"] == ["some_function"]
    assert complete(host, "import os.pa")["matches"] == ["os.path"]
    assert "json" in complete(host, "import js")["matches"]
    assert complete(host, "from os import getcw")["matches"] == ["getcwd", "getcwdb"]
    assert "decoder" in complete(host, "from json import deco")["matches"]
    assert text(host.run("1")) == ""


def test_magics_files_parameters(host, tmp_path):
    assert {"%time", "%timeit", "%%time"} <= set(complete(host, "%ti")["matches"])
    assert "%%bash" in complete(host, "%%ba")["matches"]
    (tmp_path / "data.csv").write_text("")
    (tmp_path / "directory").mkdir()
    assert complete(host, "open('da")["matches"] == ["data.csv"]
    assert complete(host, "open('di")["matches"] == ["directory/"]
    host.run("def fun(alpha, beta=1): pass")
    assert "alpha=" in complete(host, "fun(al")["matches"]


def test_inspect(host):
    host.run("def foo(a, b=2):\n    '''Adds things.'''\n    return a + b\nx = [1, 2]")
    value = host.request("inspect", code="foo(1", cursor=5, detail=0)
    assert value["found"] and value["signature"] == "foo(a, b=2)"
    assert value["docstring"] == "Adds things." and value["type"] == "function"
    assert "Adds things." in value["data"]["text/plain"] and value["source"] is None
    value = host.request("inspect", code="foo", cursor=1, detail=1)
    assert value["source"].startswith("def foo(a, b=2):")
    assert host.request("inspect", code="nosuch", cursor=3, detail=0)["found"] is False
    assert host.request("inspect", code="", cursor=0, detail=0)["found"] is False
    value = host.request("inspect", code="x", cursor=1, detail=0)
    assert value["type"] == "list" and "[1, 2]" in value["data"]["text/plain"]
    value = host.request("inspect", code="import os\nos.path.join", cursor=22, detail=0)
    assert value["found"] is False  # os is not imported yet
    host.run("import os")
    value = host.request("inspect", code="os.path.join", cursor=12, detail=0)
    assert value["signature"].replace(" /,", "") == "join(a, *p)"  # from 3.15 on with a slash
    host.run("class K:\n    '''A class.'''\n    def m(self): return 1")
    assert "class K" in host.request("inspect", code="K", cursor=1, detail=1)["source"]


@pytest.mark.parametrize(
    "code, status",
    [
        ("x = 1", "complete"),
        ("", "complete"),
        ("x = (", "incomplete"),
        ("x = '''abc", "incomplete"),
        ("if x:", "incomplete"),
        ("if x:\n    y", "incomplete"),
        ("if x:\n    y\n", "complete"),
        ("def f():\n    return 1\n\n", "complete"),
        ("x = = 1", "invalid"),
        ("x = 1 \\", "incomplete"),
        ("%time x", "complete"),
        ("!ls", "complete"),
        ("%%bash\nls", "incomplete"),
        ("%%bash\nls\n", "complete"),
        ("for i in x: print(i)", "incomplete"),
        ("try:\n    x", "incomplete"),
        ("x = )", "invalid"),
        ("await f()", "complete"),
        ("a?", "complete"),
        ("'abc", "invalid"),
        ("@dec", "incomplete"),
        ("x = 1\x00", "invalid"),
    ],
)
def test_is_complete(host, code, status):
    value = host.request("is_complete", code=code)
    assert value["status"] == status


def test_is_complete_indent(host):
    assert host.request("is_complete", code="if x:")["indent"] == "    "
    assert host.request("is_complete", code="if x:\n  if y:")["indent"] == "      "
    assert host.request("is_complete", code="x = 1")["indent"] == ""


def test_variables(host):
    host.run("def prelude(): pass", silent=True, history=False)
    host.run(
        "import os\na = 1\nb = 'text'\nc = [1, 2, {'k': (1,)}]\nd = {'k': 'v'}\n_hidden = 1\n"
        "def f(x, y): pass\nclass K: pass\nk = K()\ne = 2 ** 100000\ng = 'x' * 10000"
    )
    listed = {e["name"]: e for e in host.request("variables", limit=200)}
    assert list(listed) == ["K", "a", "b", "c", "d", "e", "f", "g", "k"]
    assert set(listed["a"]) == {
        "name", "type", "module", "shape", "length", "size_bytes", "preview",
    }  # fmt: skip
    assert listed["a"]["preview"] == "1" and listed["a"]["type"] == "int"
    assert listed["c"]["length"] == 3 and listed["c"]["preview"] == "[1, 2, {'k': (1,)}]"
    assert listed["e"]["preview"] == "<int of 100001 bits>"
    assert len(listed["g"]["preview"]) <= 160
    assert listed["f"]["preview"] == "f(x, y)"
    assert listed["k"]["module"] == "__main__" and listed["k"]["preview"] is None
    assert len(host.request("variables", limit=2)) == 2


def test_variables_of_libraries(host, needs):
    needs("numpy", "pandas", "polars")
    host.run(
        "import numpy as np, pandas as pd, polars as pl\na = np.zeros((3, 4))\nd = pd.DataFrame({'x': [1, 2]})\n"
        "p = pl.DataFrame({'y': [1]})\ns = d['x']\nn = np.float64(1.5)",
        timeout=60,
    )
    listed = {e["name"]: e for e in host.request("variables", limit=200)}
    assert listed["a"]["shape"] == [3, 4] and listed["a"]["size_bytes"] == 96
    assert listed["d"]["shape"] == [2, 1] and "x" in listed["d"]["preview"]
    assert listed["p"]["shape"] == [1, 1] and listed["s"]["length"] == 2
    assert listed["n"]["preview"] == "1.5"
    assert result(host.run("1")) == "1"
