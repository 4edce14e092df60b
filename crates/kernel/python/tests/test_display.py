"""Bundles: repr methods, mimebundles, display ids, updates, clear_output, unusual objects, strict
JSON."""

import base64

import pytest
from host import data, error, filter_events, kinds, result, status, text

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def run_displays(host, code):
    events = host.run(code)
    assert status(events) == "ok", error(events)
    return [data(e) for e in filter_events(events, "display")]


def test_display_returns_none_and_keeps_order(host):
    events = host.run("print(1)\nx = display('a', 2)\nprint(x)")
    assert kinds(events) == ["started", "stdout", "display", "display", "stdout", "done"]
    assert text(events) == "1\nNone\n"


@pytest.mark.parametrize(
    "name, mime, value",
    [
        ("html", "text/html", "<b>x</b>"),
        ("markdown", "text/markdown", "**x**"),
        ("svg", "image/svg+xml", "<svg></svg>"),
        ("latex", "text/latex", "$x$"),
        ("javascript", "application/javascript", "1"),
        ("json", "application/json", {"a": [1, None]}),
    ],
)
def test_repr_methods(host, name, mime, value):
    code = "class A:\n    def _repr_%s_(self): return %r\n    def __repr__(self): return 'A!'\nA()"
    events = host.run(code % (name, value))
    bundle = data(filter_events(events, "result")[0])
    assert bundle == {"text/plain": "A!", mime: value}


def test_bytes_are_sent_as_payloads(host):
    code = "PNG = %r\nclass A:\n    def _repr_png_(self): return PNG\n    def _repr_pdf_(self): return b'%%PDF'"
    host.run(code % PNG)
    event = filter_events(host.run("A()"), "result")[0]
    assert [item[:2] for item in event["data"][1:]] == [
        ["image/png", "bin"],
        ["application/pdf", "bin"],
    ]
    assert data(event)["image/png"] == PNG and data(event)["application/pdf"] == b"%PDF"
    assert event["bin"] == [len(PNG), 4]


def test_long_text_is_sent_as_a_payload(host):
    for code, expected in [
        ("'é\\n\\\"' * 400_000", 'é\n"' * 400_000),
        ("'a\\ud800' * 1_000_000", "a\ufffd" * 1_000_000),
        ("['é\\n'] * 1_000_000", "é\n" * 1_000_000),
        ("'short'", "short"),
    ]:
        event = filter_events(host.run("display({'text/html': %s}, raw=True)" % code), "display")[0]
        kind = "text" if expected == "short" else "utf8"
        assert [item[:2] for item in event["data"]] == [["text/html", kind]]
        assert data(event) == {"text/html": expected}


def test_base64_text_of_images_is_decoded(host):
    encoded = base64.encodebytes(PNG).decode()
    bundle = run_displays(
        host, "display({'image/png': %r, 'image/svg+xml': 'PHN2Zz4='}, raw=True)" % encoded
    )[0]
    assert bundle == {"image/png": PNG, "image/svg+xml": "PHN2Zz4="}
    assert run_displays(host, "display({'image/png': 'not base64!'}, raw=True)") == [
        {"image/png": "not base64!"}
    ]


def test_metadata(host):
    event = filter_events(
        host.run("class A:\n    def _repr_html_(self): return 'x', {'isolated': True}\nA()"),
        "result",
    )[0]
    assert event["metadata"] == {"text/html": {"isolated": True}}
    event = filter_events(
        host.run("display(A(), metadata={'text/html': {'more': 1}, 'z': 2})"), "display"
    )[0]
    assert event["metadata"] == {"text/html": {"isolated": True, "more": 1}, "z": 2}


def test_mimebundle(host):
    host.run(
        "class A:\n    def _repr_mimebundle_(self, include=None, exclude=None):\n"
        "        return {'text/x': 'x', 'text/html': 'h', 'text/none': None}, {'text/x': {'k': 1}}\n"
        "    def _repr_markdown_(self): return 'm'\n    def _repr_html_(self): return 'unused'"
    )
    event = filter_events(host.run("A()"), "result")[0]
    assert [item[0] for item in event["data"]] == [
        "text/x",
        "text/html",
        "text/plain",
        "text/markdown",
    ]
    assert data(event)["text/html"] == "h"
    assert event["metadata"] == {"text/x": {"k": 1}}
    bundle = run_displays(
        host, "display(A(), include=['text/x'])\ndisplay(A(), exclude=['text/x', 'text/plain'])"
    )
    assert bundle == [{"text/x": "x"}, {"text/html": "h", "text/markdown": "m"}]


def test_mime_order_is_kept(host):
    event = filter_events(
        host.run("display({'b/b': '1', 'a/a': '2', 'text/plain': '3'}, raw=True)"), "display"
    )[0]
    assert [item[0] for item in event["data"]] == ["b/b", "a/a", "text/plain"]


def test_failing_repr_method_is_reported(host):
    events = host.run(
        "class A:\n    def _repr_html_(self): 1/0\n    def _repr_markdown_(self): return 'm'\n"
        "    def _repr_latex_(self): raise NotImplementedError\n    def _repr_svg_(self): return None\n"
        "    def __repr__(self): return 'A'\nA()"
    )
    assert status(events) == "ok"
    assert data(filter_events(events, "result")[0]) == {"text/plain": "A", "text/markdown": "m"}
    assert "ZeroDivisionError" in text(events, "stderr") and "_repr_html_" in text(events, "stderr")


def test_objects_with_every_attribute_are_plain_text(host):
    events = host.run("from unittest.mock import MagicMock, Mock\nMock()")
    assert list(data(filter_events(events, "result")[0])) == ["text/plain"]
    events = host.run(
        "class Any:\n    def __getattr__(self, n): return lambda *a, **k: 'fooled'\n"
        "    def __repr__(self): return 'Any'\nAny()"
    )
    assert data(filter_events(events, "result")[0]) == {"text/plain": "Any"}
    events = host.run(
        "class Bad:\n    def __getattr__(self, n): raise RuntimeError(n)\n"
        "    def __repr__(self): return 'Bad'\nBad()"
    )
    assert data(filter_events(events, "result")[0]) == {"text/plain": "Bad"}


def test_class_objects_are_plain_text(host):
    assert data(
        filter_events(host.run("class A:\n    def _repr_html_(self): return 'x'\nA"), "result")[0]
    ) == {"text/plain": "__main__.A"}


def test_ipython_display_method(host):
    events = host.run("class A:\n    def _ipython_display_(self): print('myself')\nA()")
    assert kinds(events) == ["started", "stdout", "done"]
    assert result(host.run("Out[1] is not None")) == "True"


def test_display_ids(host):
    events = host.run("h = display('one', display_id='x')\nh.update('two')\nh.display_id")
    displays = filter_events(events, "display")
    assert [(d["display_id"], d["update"]) for d in displays] == [("x", False), ("x", True)]
    assert result(events) == "'x'"
    events = host.run("h = display('one', display_id=True)\nh")
    assert filter_events(events, "display")[0]["display_id"]
    events = host.run(
        "from IPython.display import update_display\nupdate_display(3, display_id='x')"
    )
    assert filter_events(events, "display")[0]["update"] is True
    assert error(host.run("display(1, update=True)"))["ename"] == "TypeError"


def test_clear_output(host):
    events = host.run(
        "from IPython.display import clear_output\nprint(1)\nclear_output(wait=True)\nprint(2)\n"
        "clear_output()\ndisplay(3, clear=True)"
    )
    assert kinds(events) == [
        "started",
        "stdout",
        "clear",
        "stdout",
        "clear",
        "clear",
        "display",
        "done",
    ]
    assert [e["wait"] for e in filter_events(events, "clear")] == [True, False, True]


def test_display_of_plain_containers_is_text(host):
    assert run_displays(host, "display({'a': 1}, [1])") == [
        {"text/plain": "{'a': 1}"},
        {"text/plain": "[1]"},
    ]


@pytest.mark.parametrize(
    "value, expected",
    [
        ("float('nan')", None),
        ("[float('inf'), -float('inf'), 1.5]", [None, None, 1.5]),
        ("{1: 'a', None: 'b', True: 'c', 2.5: 'd'}", {"1": "c", "null": "b", "2.5": "d"}),
        ("(1, {2})", [1, [2]]),
        ("b'abc'", "YWJj"),
        ("'\\ud800x'", "\ufffdx"),
        ("object", "<class 'object'>"),
        ("10**30", 10**30),
    ],
)
def test_json_values(host, value, expected):
    bundle = run_displays(host, "display({'application/json': [%s]}, raw=True)" % value)
    assert bundle == [{"application/json": [expected]}]


def test_recursive_json_is_cut(host):
    bundle = run_displays(host, "x = []\nx.append(x)\ndisplay({'application/json': x}, raw=True)")
    assert len(bundle) == 1
    assert result(host.run("1")) == "1"


def test_big_values(host):
    events = host.run("'x' * 20_000_000")
    assert len(result(events)) == 20_000_002
    event = filter_events(
        host.run("display({'image/png': bytes(30_000_000)}, raw=True)"), "display"
    )[0]
    assert len(data(event)["image/png"]) == 30_000_000


def test_raw_needs_a_dict(host):
    assert error(host.run("display(1, raw=True)"))["ename"] == "TypeError"


def test_pandas(host, needs):
    needs("pandas")
    events = host.run("import pandas as pd\npd.DataFrame({'a': [1, 2]})", timeout=60)
    bundle = data(filter_events(events, "result")[0])
    assert "<table" in bundle["text/html"] and "a" in bundle["text/plain"]
    assert list(bundle) == ["text/plain", "text/html"]


def test_polars_pillow_altair_plotly(host, needs):
    needs("polars", "PIL", "altair", "plotly")
    bundle = data(
        filter_events(
            host.run("import polars as pl\npl.DataFrame({'a': [1]})", timeout=60), "result"
        )[0]
    )
    assert "<table" in bundle["text/html"]
    bundle = data(
        filter_events(
            host.run("from PIL import Image\nImage.new('RGB', (4, 4))", timeout=60), "result"
        )[0]
    )
    assert bundle["image/png"].startswith(b"\x89PNG")
    events = host.run(
        "import altair as alt\nalt.Chart({'values': [{'a': 1}]}).mark_point()", timeout=60
    )
    assert status(events) == "ok", error(events)
    assert any(
        "vegalite" in m or m == "text/html" for m in data(filter_events(events, "result")[0])
    )
    events = host.run("import plotly.graph_objects as go\ngo.Figure()", timeout=60)
    assert status(events) in ("ok", "error")


def test_rich_and_tqdm(host, needs):
    needs("rich", "tqdm")
    events = host.run("from rich import print as p\np('[bold]hi[/bold]')", timeout=60)
    assert status(events) == "ok", error(events)
    joined = text(events) + "".join(str(data(e)) for e in filter_events(events, "display"))
    assert "hi" in joined
    events = host.run("from tqdm.auto import tqdm\nfor i in tqdm(range(3)): pass", timeout=60)
    assert status(events) == "ok" and "3/3" in text(events, "stderr")
