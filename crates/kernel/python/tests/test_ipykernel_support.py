"""ipykernel_support in an IPython kernel: the prelude, the context and queries as in the runner."""

import os
import shutil

import pytest
from host import RUNNER_DIRECTORY, error
from kernels import expression, request
from test_prelude import MIME, NAMES
from test_requests import NOISY

pytest.importorskip("jupyter_client")


@pytest.fixture
def bare(start_kernel):
    """A kernel in which nothing is installed."""
    return start_kernel()


@pytest.fixture
def kernel(bare):
    """A kernel with ipykernel_support installed."""
    assert bare.call("install").error is None
    return bare


def variable_names(kernel):
    return [entry["name"] for entry in kernel.query("variables", limit=100)]


def status_events(reply):
    return reply.displayed(MIME)


# Installation


def test_install_adds_only_the_prelude_names(bare):
    snapshot = (
        "[sorted(globals()), __import__('sys').path, len(In), len(Out), _ih, sorted(_oh), "
        "__import__('os').getcwd(), sorted(__import__('os').environ), __import__('sys').argv, "
        "sorted(dir(__import__('builtins'))), __import__('sys').meta_path.__len__()]"
    )
    before = bare.evaluate(snapshot)
    entered = bare.call("install")
    assert entered.error is None
    assert [kind for kind, _ in entered.events if kind != "status"] == []
    after = bare.evaluate(snapshot)
    assert set(after[0]) - set(before[0]) == NAMES
    assert after[1] == [""] + [entry for entry in before[1] if entry]
    assert after[2:] == before[2:]
    assert bare.run("%who").text == "Interactive namespace is empty.\n"
    assert bare.run("%who_ls").result == "[]"
    assert bare.run("%history").text == "%who\n%who_ls\n%history\n"
    assert bare.run("len(In)").content["execution_count"] == 4


def test_second_install_changes_nothing(kernel):
    kernel.run("x = 1\nlog = 'mine'")
    assert kernel.call("install").error is None
    assert kernel.run("log").result == "'mine'"
    assert variable_names(kernel) == ["log", "x"]
    kernel.run("%reset -f")
    assert kernel.run("callable(log)").result == "True"


def test_prelude_can_be_turned_off(start_kernel):
    for env, options in ((None, {"prelude": False}), ({"CELLWRIGHT_PRELUDE": "0"}, {})):
        kernel = start_kernel(env)
        assert kernel.call("install", **options).error is None
        assert kernel.evaluate("sorted(set(globals()) & %r)" % NAMES) == []
        kernel.run("x = 1\n%reset -f\ny = 2")
        assert kernel.evaluate("sorted(set(globals()) & %r)" % NAMES) == []
        assert kernel.query("helpers") == []
        assert variable_names(kernel) == ["y"]


def test_existing_names_stay(bare):
    bare.run("log = 'mine'\nrun = 5")
    assert bare.call("install").error is None
    assert bare.run("log, run, callable(read)").result == "('mine', 5, True)"
    assert variable_names(bare) == ["log", "run"]


def test_display_is_from_ipython(kernel):
    assert kernel.run("display.__module__.partition('.')[0]").result == "'IPython'"
    assert kernel.run("display({'a/b': 1}, raw=True)").displayed("a/b") == [1]


def test_reset_restores_the_prelude(kernel):
    kernel.call("run_module", "/x/mine.py", "def twice(x): return 2 * x")
    for how in ("%reset -f", "%reset -s -f"):
        kernel.run("x = 1\nread = None")
        kernel.run(how)
        assert kernel.run("callable(write) and twice(4)").result == "8"
        assert kernel.run("'x' in globals()").result == "False"
        assert kernel.run("%who").text == "Interactive namespace is empty.\n"
        assert variable_names(kernel) == []
    assert status_events(kernel.run("log(1)")) == [{"op": "log", "message": "1"}]


def test_user_files_do_not_shadow_runner_imports(bare, tmp_path):
    for name in ("json", "inspect", "http", "selectors", "cellwright_runner", "re"):
        (tmp_path / (name + ".py")).write_text("raise SystemExit('imported')\n")
    assert bare.call("install").error is None
    bare.run("exec = eval = print = type = None\nx = 1")
    assert variable_names(bare) == ["eval", "exec", "print", "type", "x"]
    assert len(bare.query("helpers")) > 10
    assert bare.call("apply_context", {"env": {"A": "1"}}).error is None
    assert bare.is_context_applied()
    assert "no bridge to Cellwright" in bare.run("tool.read('x.ipynb')").error
    assert bare.run("str(run(['echo', 'hi']))").result == "'hi\\n'"


def test_failed_install_leaves_the_kernel_usable(bare, tmp_path):
    before = bare.evaluate("[sorted(globals()), __import__('sys').path]")
    assert bare.call("install", directory=str(tmp_path / "nowhere")).error is not None
    (tmp_path / "cellwright_runner").mkdir()
    (tmp_path / "cellwright_runner" / "__init__.py").write_text("")
    assert "ipykernel_support" in bare.call("install", directory=str(tmp_path)).error
    assert bare.evaluate("[sorted(globals()), __import__('sys').path]") == before
    own_modules = "[n for n in __import__('sys').modules if n.startswith('cellwright')]"
    assert bare.evaluate(own_modules) == []
    assert bare.run("6 * 7").result == "42"
    assert bare.call("install").error is None
    assert bare.run("callable(read)").result == "True"


def test_install_replaces_another_version(kernel, tmp_path):
    kernel.run("x = 1")
    shutil.copytree(
        os.path.join(RUNNER_DIRECTORY, "cellwright_runner"),
        str(tmp_path / "new" / "cellwright_runner"),
    )
    directory = str(tmp_path / "new")
    assert kernel.call("install", directory=directory).error is None
    paths = kernel.evaluate(
        "[m.__file__ for n, m in __import__('sys').modules.items() if n.startswith('cellwright_runner')]"
    )
    assert paths and all(path.startswith(directory) for path in paths)
    assert kernel.run("read.__code__.co_filename").result.startswith("'" + directory)
    assert kernel.run("%who").text.split() == ["x"]
    assert status_events(kernel.run("log(2)")) == [{"op": "log", "message": "2"}]
    assert kernel.call("install", prelude=False).error is None
    assert kernel.evaluate("sorted(set(globals()) & %r)" % NAMES) == []


def test_removed_package_is_installed_again(kernel):
    """As after a restart of the kernel by another client."""
    kernel.run(
        "import sys\nfor name in list(sys.modules):\n"
        "    if name.startswith('cellwright_runner'):\n        del sys.modules[name]"
    )
    assert kernel.call("apply_context", {"env": {"A": "1"}}).error is None
    assert kernel.is_context_applied()
    assert variable_names(kernel) == ["name"]


# Status


def test_status_events_keep_their_order(kernel, tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    reply = kernel.run("print('a')\nlog('é\\ud800')\nprint('b')\nphase(1)\nread('a.txt')")
    kinds = [kind for kind, _ in reply.events if kind not in ("status", "execute_input")]
    assert kinds == [
        "stream",
        "display_data",
        "stream",
        "display_data",
        "display_data",
        "execute_result",
    ]
    assert status_events(reply) == [
        {"op": "log", "message": "é\ufffd"},
        {"op": "phase", "title": "1"},
        {"op": "read", "path": "a.txt", "chars": 4},
    ]


def test_status_of_threads_children_and_captured_cells(kernel):
    code = (
        "import threading\nt = threading.Thread(target=log, args=('thread',))\nt.start(); t.join()"
    )
    assert status_events(kernel.run(code)) == [{"op": "log", "message": "thread"}]
    reply = kernel.run("%%capture kept\nlog('captured')\nprint('text')\ndisplay(1)")
    assert status_events(reply) == [{"op": "log", "message": "captured"}]
    assert kernel.run("len(kept.outputs), kept.stdout").result == "(1, 'text\\n')"
    code = (
        "import os, sys\npid = os.fork()\nif not pid:\n    class Publisher:\n"
        "        def publish(self, *data): os._exit(7)\n"
        "    sys.modules['cellwright_runner.ipykernel_support'].INSTALLED.publisher = Publisher()\n"
        "    log('child')\n    os._exit(0)\nos.waitpid(pid, 0)[1]"
    )
    reply = kernel.run(code)
    assert status_events(reply) == [] and reply.result == "0"
    code = "import sys\nold = sys.stdout\nsys.stdout = None\ntry: log('no stream')\nfinally: sys.stdout = old"
    assert kernel.run(code).error is None


def test_status_from_a_subshell(kernel):
    client = kernel.client
    client.kernel_info()
    while True:
        message = client.get_shell_msg(timeout=30)
        if message["msg_type"] == "kernel_info_reply":
            break
    if "kernel subshells" not in message["content"].get("supported_features", ()):
        pytest.skip("this version of ipykernel has no subshells")
    client.control_channel.send(client.session.msg("create_subshell_request", {}))
    subshell = client.get_control_msg(timeout=30)["content"]["subshell_id"]
    content = {
        "code": "log('below')\nimport threading\nhere = threading.current_thread().name",
        "silent": False,
        "store_history": True,
        "user_expressions": {},
        "allow_stdin": False,
        "stop_on_error": True,
    }
    message = client.session.msg("execute_request", content)
    message["header"]["subshell_id"] = subshell
    client.shell_channel.send(message)
    found = []
    while True:
        message_received = client.get_iopub_msg(timeout=30)
        if message_received["parent_header"].get("msg_id") != message["header"]["msg_id"]:
            continue
        if message_received["msg_type"] == "display_data":
            found.append(message_received["content"]["data"][MIME])
        if message_received["content"].get("execution_state") == "idle":
            break
    assert found == [{"op": "log", "message": "below"}]
    assert client.get_shell_msg(timeout=30)["content"]["status"] == "ok"
    assert variable_names(kernel) == ["here"]
    assert kernel.evaluate("here") != "MainThread"


# Request context


def test_context_is_applied_and_stays(kernel, tmp_path):
    directory = tmp_path / 'it\'s "odd"\\'
    directory.mkdir()
    (directory / "beside.py").write_text("name = __file__\n")
    wanted = {
        "env": {"UNUSUAL": "a'\n\"é", "PATH": os.environ["PATH"], "HOME": None},
        "path": [str(directory)],
    }
    assert kernel.call("apply_context", dict(wanted, cwd=str(directory))).error is None
    reply = kernel.run(
        "import os, sys, beside\nos.getcwd(), os.environ['UNUSUAL'], os.getenv('HOME'), sys.path[:2]"
    )
    assert eval(reply.result) == (str(directory), "a'\n\"é", None, [str(directory), ""])
    assert kernel.is_context_applied()
    # A cell may change the working directory; all other parts of the context must stay.
    kernel.run("os.chdir('/')")
    assert kernel.is_context_applied()
    for change in ("os.environ.clear()", "os.environ['HOME'] = '/'", "sys.path.insert(0, '/')"):
        kernel.run(change)
        assert not kernel.is_context_applied(), change
        assert kernel.call("apply_context", wanted).error is None
        assert kernel.is_context_applied(), change
    assert kernel.run("os.getcwd()").result == "'/'"
    missing = str(tmp_path / "missing")
    assert kernel.call("apply_context", {"cwd": missing}).error.startswith("FileNotFoundError")


def test_uninstall_reverts_all_changes(bare, tmp_path):
    snapshot = "[sorted(globals()), __import__('sys').path, dict(__import__('os').environ)]"
    bare.run("x = 1")
    before = bare.evaluate(snapshot)
    assert bare.call("install", owned=False).error is None
    bare.call("apply_context", {"env": {"UNUSUAL": "1", "HOME": None}, "path": [str(tmp_path)]})
    bare.call("run_module", "/x/mine.py", "def twice(x): return 2 * x")
    assert bare.evaluate(snapshot) != before
    assert bare.call("uninstall", owned=False).error is None
    assert bare.evaluate(snapshot) == before
    bare.run("%reset -f")
    assert bare.evaluate("sorted(set(globals()) & %r)" % NAMES) == []
    assert bare.call("install", owned=False).error is None
    assert status_events(bare.run("log('back')")) == [{"op": "log", "message": "back"}]


def test_script_has_its_file_name(kernel, tmp_path):
    directory = tmp_path / "scripts"
    directory.mkdir()
    (directory / "neighbour.py").write_text("x = 5\n")
    file = str(directory / "script.py")
    kernel.call("apply_context", {"file": file})
    reply = kernel.run("import neighbour, sys\n__file__, sys.argv, sys.path[0], neighbour.x")
    assert eval(reply.result) == (file, [file], str(directory), 5)
    assert variable_names(kernel) == []


def test_names_of_silent_cells_are_hidden(kernel):
    kernel.run("mine = 1")
    kernel.call("apply_context", {"silent": True})
    kernel.run("hidden = 2\nmine = 3", silent=True)
    kernel.call("keep_silent_names")
    assert variable_names(kernel) == ["mine"]
    assert kernel.run("%who_ls").result == "['mine']"
    kernel.run("%reset -f")
    assert kernel.run("hidden").result == "2"


# Modules


def test_modules_run_as_in_the_runner(kernel, host, tmp_path):
    good = "import os\nFACTOR = 2\n_private = 1\ndef twice(x):\n    '''Two.'''\n    return FACTOR * x\nwhere = __file__"
    bad = "def fail(x):\n    return 1 / x\n\ntry:\n    fail(0)\nexcept ZeroDivisionError as e:\n    raise ValueError('é') from e"
    for name, code in (("good", good), ("bad", bad), ("magic", "%time 1"), ("broken", "x = (\n")):
        path = str(tmp_path / (name + ".py"))
        (tmp_path / (name + ".py")).write_text(code)
        events = host.run(code, module=path, silent=True, history=False)
        reply = kernel.call("run_module", path, code)
        runner_error = error(events)
        if runner_error is None:
            assert reply.error is None
            continue
        assert reply.error == "%s: %s" % (runner_error["ename"], runner_error["evalue"])
        assert reply.content["traceback"] == runner_error["traceback"]
        shown = [content for kind, content in reply.events if kind == "error"]
        assert [content["traceback"] for content in shown] == [runner_error["traceback"]]
        assert path in "\n".join(runner_error["traceback"]) and "ipykernel_support" not in str(
            reply.content["traceback"]
        )
    assert variable_names(kernel) == [] and kernel.run("%who_ls").result == "[]"
    assert kernel.run("twice(21)").result == "42"
    assert kernel.run("where").result == repr(str(tmp_path / "good.py"))
    assert kernel.run("'__file__' in globals(), len(In)").result == "(False, 5)"
    assert kernel.query("helpers") == host.request("helpers")
    kernel.run("twice = 5")
    host.run("twice = 5")
    assert kernel.query("helpers") == host.request("helpers")
    assert variable_names(kernel) == ["twice"]


def test_a_module_may_exit(kernel):
    assert kernel.call("run_module", "/x/a.py", "raise SystemExit(3)").error == "SystemExit: 3"
    assert kernel.run("1").result == "1"


# Queries


VARIABLE_CELLS = (
    "import os, sys as system\na = 1\nb = 'text \\ud800 \\u2028 é \"q\"'\nc = [1, 2, {'k': (1,)}]\nd = {'k': 'v'}\n_hidden = 1",
    "def f(x, y=1, *z): pass\nclass K: pass\nk = K()\ne = 2 ** 100000\ng = 'x' * 10000",
    "h = {1, 2}\ni = frozenset((3,))\nj = range(5)\nl = b'bytes\\xff'\nm = bytearray(b'xyz')\nn = None\no = (1,)",
    "p = float('nan')\nq = 1 + 2j\nr = True\ns = []\ns.append(s)\nt = print\nu = type\nread = 'mine'\nopen = 5",
)


def test_variables_equal_those_of_the_runner(kernel, host):
    for code in VARIABLE_CELLS:
        host.run(code)
        assert kernel.run(code).error is None
    for limit in (200, 3):
        expected = host.request("variables", limit=limit)
        assert len(expected) == min(limit, 24), [entry["name"] for entry in expected]
        assert kernel.query("variables", limit=limit) == expected


def test_library_variables_equal_those_of_the_runner(kernel, host, needs):
    needs("numpy", "pandas")
    code = (
        "import numpy as np, pandas as pd\na = np.zeros((3, 4))\nb = np.arange(3)\n"
        "d = pd.DataFrame({'x': [1, 2]})\ns = d['x']\nn = np.float64(1.5)"
    )
    host.run(code, timeout=60)
    assert kernel.run(code).error is None
    assert kernel.query("variables") == host.request("variables")


def test_user_code_does_not_run(kernel):
    kernel.run(NOISY)
    reply = kernel.run(request("ensure_installed"), True)
    assert reply.text == ""
    listed = kernel.query("variables", limit=10)
    assert [entry["type"] for entry in listed] == ["type", "Noisy"]
    assert listed[1]["preview"] is None


def test_helpers_equal_those_of_the_runner(kernel, host):
    assert kernel.query("helpers") == host.request("helpers")
    kernel.run("log = None")
    assert len(kernel.query("helpers")) == len(host.request("helpers"))


HISTORY_CELLS = (
    "x = 20",
    "x + 1",
    "x + 1;",
    "%who_ls",
    "1 / 0",
    "'é\\n' * 2",
    "x = (",
    "[1,\n 2]",
    "None",
)


def test_history_equals_that_of_ipython(bare, host):
    """Compares the runner's history with that of an IPython kernel without installation."""
    for code in HISTORY_CELLS:
        host.run(code)
        bare.run(code)
    host.run("'silent'", silent=True, history=False)
    bare.run("'silent'", silent=True)
    reply = bare.client.history(
        raw=True, output=True, hist_access_type="range", session=0, start=1, stop=100, reply=True
    )
    expected = [
        {"count": count, "code": code, "output": output}
        for _, count, (code, output) in reply["content"]["history"]
    ]
    entries = host.request("history", last=100)
    assert [entry["code"] for entry in entries] == list(HISTORY_CELLS)
    assert entries == expected
    assert host.request("history", last=2) == entries[-2:]
    assert host.request("history", last=0) == []


def test_history_after_reset_and_of_long_values(host):
    host.run("'x' * 1_000_000")
    kept = host.request("history", last=1)[0]["output"]
    assert kept.startswith("'xxx") and kept.endswith("…") and len(kept) < 20_000
    host.run("%reset out")
    assert [entry["output"] for entry in host.request("history", last=9)] == [None, None]
    host.run("%reset -f")
    host.run("5")
    assert [(e["code"], e["output"]) for e in host.request("history", last=9)] == [("5", "5")]


def test_queries_do_not_call_a_formatter_that_displays(kernel):
    # `rich.pretty.install()` replaces the formatter of text/plain by one that displays each value.
    kernel.run(
        "from IPython.core.formatters import BaseFormatter\n"
        "class Loud(BaseFormatter):\n    def __call__(self, value):\n"
        "        display({'text/plain': 'loud'}, raw=True)\n        return ''\n"
        "get_ipython().display_formatter.formatters['text/plain'] = Loud()"
    )
    for call in ("context_applied", "query"):
        arguments = ("helpers", {}) if call == "query" else ()
        reply = kernel.run("", silent=True, expression=expression(call, *arguments))
        assert reply.answer is not None and reply.displayed("text/plain") == []
