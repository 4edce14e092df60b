"""What libraries find out about their environment: the runner answers as a Jupyter kernel does."""

import pytest
from host import data, error, filter_events, result, status, text


def test_class_of_the_shell(host):
    code = "type(get_ipython()).__module__, type(get_ipython()).__name__, __IPYTHON__"
    assert result(host.run(code)) == "('ipykernel.zmqshell', 'ZMQInteractiveShell', True)"
    # tqdm and others take the modules of ipykernel as the sign of a page that shows widgets.
    code = "import sys\n[m for m in sys.modules if m.startswith('ipykernel')]"
    assert result(host.run(code)) == "[]"


def test_kernel_object(host):
    host.run("k = get_ipython().kernel")
    assert result(host.run("k.shell is get_ipython(), k.get_parent()")) == "(True, {})"
    host.run(
        "def send(kind, **content): k.session.send(k.iopub_socket, kind, content, parent=get_ipython()."
        "parent_header)"
    )
    events = host.run(
        "send('display_data', data={'text/plain': 'a'}, transient={'display_id': 'x'})\n"
        "send('update_display_data', data={'text/plain': 'b'}, transient={'display_id': 'x'})\n"
        "k.send_response(None, 'stream', {'name': 'stdout', 'text': 'out'})"
    )
    shown = filter_events(events, "display")
    assert [(data(d)["text/plain"], d["display_id"], d["update"]) for d in shown] == [
        ("a", "x", False),
        ("b", "x", True),
    ]
    assert text(events) == "out"
    failure = error(host.run("send('input_request')"))
    assert failure["ename"] == "NotImplementedError" and "input_request" in failure["evalue"]


def test_options_of_the_shell(host):
    assert result(host.run("ip = get_ipython()\nip.has_trait('ast_node_interactivity')")) == "True"
    assert result(host.run("ip.has_trait('nosuch')")) == "False"
    assert result(host.run("ip.config['IPKernelApp']['connection_file']")) == "''"
    assert result(host.run("ip.all_ns_refs[0] is globals()")) == "True"


def test_pandas_display_limits(host, needs):
    needs("pandas")
    code = "import pandas as pd\npd.get_option('display.max_columns')"
    assert result(host.run(code, timeout=60)) == "20"
    html = data(
        filter_events(host.run("pd.DataFrame([range(40)] * 100)", timeout=60), "result")[0]
    )["text/html"]
    assert "100 rows × 40 columns" in html


def test_plotly_renderer(host, needs):
    needs("plotly", "IPython")
    code = "import IPython, plotly.io\nplotly.io.renderers.default"
    assert result(host.run(code, timeout=60)) == "'plotly_mimetype'"


def test_polars_takes_it_for_a_notebook(host, needs):
    needs("polars", "IPython")
    code = "from polars._utils.various import _in_notebook\n_in_notebook()"
    assert result(host.run(code, timeout=60)) == "True"


@pytest.mark.parametrize("name", ["tqdm.autonotebook", "tqdm.auto"])
def test_older_tqdm_draws_text_bars(host, name):
    # tqdm before 4.68 asks for the section, and would draw a widget without a page.
    host.run("module = {'__name__': %r, 'get_ipython': get_ipython}" % name)
    ask = "eval(\"(lambda: 'IPKernelApp' in get_ipython().config)()\", module)"
    assert result(host.run(ask)) == "False"
    assert result(host.run("'IPKernelApp' in get_ipython().config")) == "True"


def test_tqdm_auto_is_text(host, needs):
    needs("tqdm")
    events = host.run("from tqdm.auto import tqdm\nfor i in tqdm(range(3)): pass", timeout=60)
    assert "3/3" in text(events, "stderr") and status(events) == "ok"


def test_line_profiler_shows_lines_of_cells(host, tmp_path):
    (tmp_path / "line_profiler").mkdir()
    (tmp_path / "line_profiler" / "__init__.py").write_text("")
    (tmp_path / "line_profiler" / "line_profiler.py").write_text(
        "def is_ipython_kernel_cell(name): return name.startswith('<ipython-input-')\n"
        "def shows(function): return is_ipython_kernel_cell(function.__code__.co_filename)\n"
    )
    host.run("from line_profiler.line_profiler import shows")
    assert result(host.run("def f(): pass\nshows(f), shows(shows)")) == "(True, False)"


# Values of the wrong type


def test_repr_method_with_a_value_of_the_wrong_type(host):
    events = host.run(
        "class A:\n    def _repr_html_(self): return 5\n    def _repr_json_(self): return 'x'\n"
        "    def _repr_markdown_(self): return '*m*'\n    def __repr__(self): return 'A'\nA()"
    )
    assert data(filter_events(events, "result")[0]) == {"text/plain": "A", "text/markdown": "*m*"}
    warning = text(events, "stderr")
    assert "FormatterWarning: text/html formatter returned invalid type <class 'int'>" in warning
    assert "application/json formatter returned invalid type <class 'str'>" in warning


def test_mime_bundle_with_a_value_of_the_wrong_type(host):
    events = host.run(
        "class A:\n    def _repr_mimebundle_(self, **k):\n"
        "        return {'text/html': 5, 'text/plain': 'p', 'application/json': 3,\n"
        "            'text/markdown': ['a', 'b'], 'image/png': b'x', 'application/x+json': 4}\nA()"
    )
    assert data(filter_events(events, "result")[0]) == {
        "text/plain": "p",
        "application/json": 3,
        "text/markdown": "ab",
        "image/png": b"x",
        "application/x+json": 4,
    }
    assert "text/html formatter" in text(events, "stderr")


# ast_node_interactivity


@pytest.mark.parametrize(
    "setting",
    [
        "get_ipython().ast_node_interactivity = 'all'",
        "%config InteractiveShell.ast_node_interactivity = 'all'",
        "%config ZMQInteractiveShell.ast_node_interactivity = 'all'",
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "InteractiveShell.ast_node_interactivity = 'all'",
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "InteractiveShell.instance().ast_node_interactivity = 'all'",
    ],
)
def test_all_values_are_shown(host, setting):
    assert status(host.run(setting, timeout=60)) == "ok"
    events = host.run("1\nx = 2\nx\nfor i in range(2): i\nNone")
    shown = [data(e)["text/plain"] for e in filter_events(events, "result")]
    assert shown == ["1", "2", "0", "1"]
    assert filter_events(host.run("1\n2;"), "result") == []
    assert [data(e)["text/plain"] for e in filter_events(host.run("5"), "result")] == ["5"]


@pytest.mark.parametrize(
    "mode, expected",
    [
        ("last", ["0", "1"]),
        ("last_expr", []),
        ("none", []),
        ("last_expr_or_assign", []),
    ],
)
def test_other_modes(host, mode, expected):
    host.run("%%config InteractiveShell.ast_node_interactivity = %r" % mode)
    events = host.run("7\nfor i in range(2): i")
    assert [data(e)["text/plain"] for e in filter_events(events, "result")] == expected
    assert result(host.run("y = 3")) == ("3" if mode == "last_expr_or_assign" else None)
    assert result(host.run("y\n4")) == (None if mode == "none" else "4")
    assert result(host.run("%config InteractiveShell.ast_node_interactivity\n")) in (
        repr(mode),
        None,
    )


def test_all_values_with_await(host):
    host.run("get_ipython().ast_node_interactivity = 'all'\nimport asyncio")
    events = host.run("await asyncio.sleep(0, 1)\n2\nawait asyncio.sleep(0, 3)")
    assert [data(e)["text/plain"] for e in filter_events(events, "result")] == ["1", "2", "3"]


def test_unknown_mode(host):
    failure = error(host.run("%config InteractiveShell.ast_node_interactivity = 'some'"))
    assert failure["ename"] == "UsageError"
    host.run("get_ipython().ast_node_interactivity = 'some'")
    assert error(host.run("1"))["ename"] == "ValueError"
    host.run("get_ipython().ast_node_interactivity = 'all'")


def test_transformers_of_the_user(host):
    host.run(
        "import ast\nclass Twice(ast.NodeTransformer):\n"
        "    def visit_Constant(self, node):\n"
        "        return ast.copy_location(ast.Constant(node.value * 2), node)\n"
        "get_ipython().ast_transformers.append(Twice())"
    )
    events = host.run("21")
    assert [data(e)["text/plain"] for e in filter_events(events, "result")] == ["42"]
    host.run("get_ipython().ast_transformers.clear()")
    host.run(
        "get_ipython().input_transformers_cleanup.append(\n"
        "    lambda lines: [line.replace('zzz', '7') for line in lines])"
    )
    assert result(host.run("zzz + 1")) == "8"


# Classes of magics, events, errors


@pytest.mark.parametrize("register", ["get_ipython().register_magics(M)", "get_ipython().register_magics(M(get_ipython()))"])
def test_magics_class_in_a_cell(host, register):
    events = host.run(
        "from IPython.core.magic import Magics, magics_class, line_magic, cell_magic\n"
        "@magics_class\nclass M(Magics):\n    @line_magic\n    def m(self, line): return line, "
        "self.shell is get_ipython()\n    @cell_magic\n    def c(self, line, cell): return cell\n"
        + register,
        timeout=60,
    )
    assert status(events) == "ok", error(events)
    assert result(host.run("%m a b")) == "('a b', True)"
    assert result(host.run("%%c\nx")) == "'x\\n'"


def test_magic_with_local_scope(host):
    host.run(
        "from IPython.core.magic import register_line_magic, needs_local_scope\n"
        "@register_line_magic\n@needs_local_scope\ndef names(line, local_ns=None):\n"
        "    return sorted(n for n in local_ns if n in ('k', 'top'))\ntop = 1",
        timeout=60,
    )
    assert result(host.run("def f(k):\n    return get_ipython().run_line_magic('names', '')\nf(1)")) == "['k']"
    assert result(host.run("%names")) == "['top']"


def test_run_cell_triggers_events(host):
    host.run(
        "log = []\nip = get_ipython()\nip.events.register('pre_run_cell', lambda info: log.append(info.raw_cell))\n"
        "ip.events.register('post_run_cell', lambda r: log.append(r.result))"
    )
    host.run("log.clear()\nip.run_cell('6 * 7')")
    assert result(host.run("log[:2]")) == "['6 * 7', 42]"


def test_custom_exceptions(host):
    host.run(
        "def handler(shell, kind, value, tb, tb_offset=None):\n    print('handled', value)\n"
        "    return ['one line']\nget_ipython().set_custom_exc((ZeroDivisionError,), handler)"
    )
    events = host.run("1/0")
    assert text(events) == "handled division by zero\n"
    assert error(events)["traceback"] == ["one line"] and status(events) == "error"
    assert error(host.run("[][0]"))["traceback"][-1] == "IndexError: list index out of range"


def test_syntax_errors_name_the_file_as_ipykernel_does(host, needs):
    needs("ipykernel")
    from ipykernel.compiler import get_file_name

    for code in ("x = = 3", "(", "a b", "é = = 'ü'", "x = 1\ny = $"):
        name = get_file_name(code).rpartition("/")[2]
        assert "(%s, line " % name in error(host.run(code))["evalue"]


def test_formatter_that_a_library_replaces(host):
    host.run(
        "class Loud:\n    def __call__(self, value): return 'value: %r' % (value,)\n"
        "get_ipython().display_formatter.formatters['text/plain'] = Loud()"
    )
    assert result(host.run("[1, 2]")) == "value: [1, 2]"
    assert result(host.run("5")) == "value: 5"


def test_options_of_plain_text(host):
    host.run("f = get_ipython().display_formatter.formatters['text/plain']")
    assert result(host.run("f.pprint, f.max_width, f.max_seq_length")) == "(True, 79, 1000)"
    host.run("f.max_seq_length = 2")
    assert result(host.run("[1, 2, 3]")) == "[1, 2, ...]"
    host.run("f.max_seq_length = 0")
    assert "..." not in result(host.run("list(range(3000))"))
    host.run("f.pprint = False")
    assert "\n" not in result(host.run("list(range(100))"))
