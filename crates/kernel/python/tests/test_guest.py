"""Our part in IPython's kernel: the same inside as in the runner, and nothing else."""

import os
import shutil

import pytest
from host import FOLDER, error
from kernels import request
from test_prelude import MIME, NAMES
from test_requests import NOISY

pytest.importorskip("jupyter_client")


@pytest.fixture
def bare(start):
    """A kernel without us."""
    return start()


@pytest.fixture
def kernel(bare):
    """A kernel with us inside."""
    assert bare.call("enter").error is None
    return bare


def names(kernel):
    return [entry["name"] for entry in kernel.ask("variables", limit=100)]


def told(reply):
    return reply.displayed(MIME)


# Coming in


def test_nothing_but_the_names_is_new(bare):
    seen = (
        "[sorted(globals()), __import__('sys').path, len(In), len(Out), _ih, sorted(_oh), "
        "__import__('os').getcwd(), sorted(__import__('os').environ), __import__('sys').argv, "
        "sorted(dir(__import__('builtins'))), __import__('sys').meta_path.__len__()]"
    )
    before = bare.value(seen)
    entered = bare.call("enter")
    assert entered.error is None
    assert [kind for kind, _ in entered.events if kind != "status"] == []
    after = bare.value(seen)
    assert set(after[0]) - set(before[0]) == NAMES
    assert after[1] == [""] + [entry for entry in before[1] if entry]
    assert after[2:] == before[2:]
    assert bare.run("%who").text == "Interactive namespace is empty.\n"
    assert bare.run("%who_ls").result == "[]"
    assert bare.run("%history").text == "%who\n%who_ls\n%history\n"
    assert bare.run("len(In)").content["execution_count"] == 4


def test_coming_in_twice_changes_nothing(kernel):
    kernel.run("x = 1\nlog = 'mine'")
    assert kernel.call("enter").error is None
    assert kernel.run("log").result == "'mine'"
    assert names(kernel) == ["log", "x"]
    kernel.run("%reset -f")
    assert kernel.run("callable(log)").result == "True"


def test_it_can_be_turned_off(start):
    for env, options in ((None, {"prelude": False}), ({"CELLWRIGHT_PRELUDE": "0"}, {})):
        kernel = start(env)
        assert kernel.call("enter", **options).error is None
        assert kernel.value("sorted(set(globals()) & %r)" % NAMES) == []
        kernel.run("x = 1\n%reset -f\ny = 2")
        assert kernel.value("sorted(set(globals()) & %r)" % NAMES) == []
        assert kernel.ask("helpers") == []
        assert names(kernel) == ["y"]


def test_names_that_were_there_stay(bare):
    bare.run("log = 'mine'\nrun = 5")
    assert bare.call("enter").error is None
    assert bare.run("log, run, callable(read)").result == "('mine', 5, True)"
    assert names(bare) == ["log", "run"]


def test_display_is_ipythons(kernel):
    assert kernel.run("display.__module__.partition('.')[0]").result == "'IPython'"
    assert kernel.run("display({'a/b': 1}, raw=True)").displayed("a/b") == [1]


def test_reset_brings_everything_back(kernel):
    kernel.call("run_module", "/x/mine.py", "def twice(x): return 2 * x")
    for how in ("%reset -f", "%reset -s -f"):
        kernel.run("x = 1\nread = None")
        kernel.run(how)
        assert kernel.run("callable(write) and twice(4)").result == "8"
        assert kernel.run("'x' in globals()").result == "False"
        assert kernel.run("%who").text == "Interactive namespace is empty.\n"
        assert names(kernel) == []
    assert told(kernel.run("log(1)")) == [{"op": "log", "message": "1"}]


def test_a_stranger_in_the_folder_is_not_met(bare, tmp_path):
    for name in ("json", "inspect", "http", "selectors", "cellwright_runner", "re"):
        (tmp_path / (name + ".py")).write_text("raise SystemExit('met')\n")
    assert bare.call("enter").error is None
    bare.run("exec = eval = print = type = None\nx = 1")
    assert names(bare) == ["eval", "exec", "print", "type", "x"]
    assert len(bare.ask("helpers")) > 10
    assert bare.call("settle", {"env": {"A": "1"}}).error is None
    assert bare.is_settled()
    assert "no way back" in bare.run("tool.read('x.ipynb')").error
    assert bare.run("str(run(['echo', 'hi']))").result == "'hi\\n'"


def test_a_kernel_that_refuses_it_goes_on(bare, tmp_path):
    before = bare.value("[sorted(globals()), __import__('sys').path]")
    assert bare.call("enter", folder=str(tmp_path / "nowhere")).error is not None
    (tmp_path / "cellwright_runner").mkdir()
    (tmp_path / "cellwright_runner" / "__init__.py").write_text("")
    assert "guest" in bare.call("enter", folder=str(tmp_path)).error
    assert bare.value("[sorted(globals()), __import__('sys').path]") == before
    ours = "[n for n in __import__('sys').modules if n.startswith('cellwright')]"
    assert bare.value(ours) == []
    assert bare.run("6 * 7").result == "42"
    assert bare.call("enter").error is None
    assert bare.run("callable(read)").result == "True"


def test_another_version_takes_our_place(kernel, tmp_path):
    kernel.run("x = 1")
    shutil.copytree(
        os.path.join(FOLDER, "cellwright_runner"), str(tmp_path / "new" / "cellwright_runner")
    )
    folder = str(tmp_path / "new")
    assert kernel.call("enter", folder=folder).error is None
    places = kernel.value(
        "[m.__file__ for n, m in __import__('sys').modules.items() if n.startswith('cellwright_runner')]"
    )
    assert places and all(place.startswith(folder) for place in places)
    assert kernel.run("read.__code__.co_filename").result.startswith("'" + folder)
    assert kernel.run("%who").text.split() == ["x"]
    assert told(kernel.run("log(2)")) == [{"op": "log", "message": "2"}]
    assert kernel.call("enter", prelude=False).error is None
    assert kernel.value("sorted(set(globals()) & %r)" % NAMES) == []


def test_who_was_taken_away_comes_again(kernel):
    """As after somebody else has restarted the kernel."""
    kernel.run(
        "import sys\nfor name in list(sys.modules):\n"
        "    if name.startswith('cellwright_runner'):\n        del sys.modules[name]"
    )
    assert kernel.call("settle", {"env": {"A": "1"}}).error is None
    assert kernel.is_settled()
    assert names(kernel) == ["name"]


# Status


def test_status_is_told_in_order(kernel, tmp_path):
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
    assert told(reply) == [
        {"op": "log", "message": "é\ufffd"},
        {"op": "phase", "title": "1"},
        {"op": "read", "path": "a.txt", "chars": 4},
    ]


def test_status_of_threads_children_and_captured_cells(kernel):
    code = (
        "import threading\nt = threading.Thread(target=log, args=('thread',))\nt.start(); t.join()"
    )
    assert told(kernel.run(code)) == [{"op": "log", "message": "thread"}]
    reply = kernel.run("%%capture kept\nlog('captured')\nprint('text')\ndisplay(1)")
    assert told(reply) == [{"op": "log", "message": "captured"}]
    assert kernel.run("len(kept.outputs), kept.stdout").result == "(1, 'text\\n')"
    code = (
        "import os, sys\npid = os.fork()\nif not pid:\n    class Told:\n"
        "        def publish(self, *data): os._exit(7)\n"
        "    sys.modules['cellwright_runner.guest'].V.publisher = Told()\n"
        "    log('child')\n    os._exit(0)\nos.waitpid(pid, 0)[1]"
    )
    reply = kernel.run(code)
    assert told(reply) == [] and reply.result == "0"
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
        return  # this version has none
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
        came = client.get_iopub_msg(timeout=30)
        if came["parent_header"].get("msg_id") != message["header"]["msg_id"]:
            continue
        if came["msg_type"] == "display_data":
            found.append(came["content"]["data"][MIME])
        if came["content"].get("execution_state") == "idle":
            break
    assert found == [{"op": "log", "message": "below"}]
    assert client.get_shell_msg(timeout=30)["content"]["status"] == "ok"
    assert names(kernel) == ["here"]
    assert kernel.value("here") != "MainThread"


# What requests bring along


def test_surroundings_are_set_and_stay(kernel, tmp_path):
    place = tmp_path / 'it\'s "odd"\\'
    place.mkdir()
    (place / "beside.py").write_text("name = __file__\n")
    wanted = {
        "env": {"AN_ODD": "a'\n\"é", "PATH": os.environ["PATH"], "HOME": None},
        "path": [str(place)],
    }
    assert kernel.call("settle", dict(wanted, cwd=str(place))).error is None
    reply = kernel.run(
        "import os, sys, beside\nos.getcwd(), os.environ['AN_ODD'], os.getenv('HOME'), sys.path[:2]"
    )
    assert eval(reply.result) == (str(place), "a'\n\"é", None, [str(place), ""])
    assert kernel.is_settled()
    # A folder changed by a cell is its own business, everything else is wanted as it was.
    kernel.run("os.chdir('/')")
    assert kernel.is_settled()
    for change in ("os.environ.clear()", "os.environ['HOME'] = '/'", "sys.path.insert(0, '/')"):
        kernel.run(change)
        assert not kernel.is_settled(), change
        assert kernel.call("settle", wanted).error is None
        assert kernel.is_settled(), change
    assert kernel.run("os.getcwd()").result == "'/'"
    missing = str(tmp_path / "missing")
    assert kernel.call("settle", {"cwd": missing}).error.startswith("FileNotFoundError")


def test_going_takes_everything_back(bare, tmp_path):
    seen = "[sorted(globals()), __import__('sys').path, dict(__import__('os').environ)]"
    bare.run("x = 1")
    before = bare.value(seen)
    assert bare.call("enter", front=False).error is None
    bare.call("settle", {"env": {"AN_ODD": "1", "HOME": None}, "path": [str(tmp_path)]})
    bare.call("run_module", "/x/mine.py", "def twice(x): return 2 * x")
    assert bare.value(seen) != before
    assert bare.call("leave", front=False).error is None
    assert bare.value(seen) == before
    bare.run("%reset -f")
    assert bare.value("sorted(set(globals()) & %r)" % NAMES) == []
    assert bare.call("enter", front=False).error is None
    assert told(bare.run("log('back')")) == [{"op": "log", "message": "back"}]


def test_a_script_knows_its_name(kernel, tmp_path):
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "neighbour.py").write_text("x = 5\n")
    file = str(folder / "script.py")
    kernel.call("settle", {"file": file})
    reply = kernel.run("import neighbour, sys\n__file__, sys.argv, sys.path[0], neighbour.x")
    assert eval(reply.result) == (file, [file], str(folder), 5)
    assert names(kernel) == []


def test_names_of_silent_cells_are_not_the_users(kernel):
    kernel.run("mine = 1")
    kernel.call("settle", {"silent": True})
    kernel.run("ours = 2\nmine = 3", silent=True)
    kernel.call("keep")
    assert names(kernel) == ["mine"]
    assert kernel.run("%who_ls").result == "['mine']"
    kernel.run("%reset -f")
    assert kernel.run("ours").result == "2"


# Modules


def test_a_module_is_run_as_the_runner_does(kernel, host, tmp_path):
    good = "import os\nFACTOR = 2\n_private = 1\ndef twice(x):\n    '''Two.'''\n    return FACTOR * x\nwhere = __file__"
    bad = "def fail(x):\n    return 1 / x\n\ntry:\n    fail(0)\nexcept ZeroDivisionError as e:\n    raise ValueError('é') from e"
    for name, code in (("good", good), ("bad", bad), ("magic", "%time 1"), ("broken", "x = (\n")):
        path = str(tmp_path / (name + ".py"))
        (tmp_path / (name + ".py")).write_text(code)
        events = host.run(code, module=path, silent=True, history=False)
        reply = kernel.call("run_module", path, code)
        said = error(events)
        if said is None:
            assert reply.error is None
            continue
        assert reply.error == "%s: %s" % (said["ename"], said["evalue"])
        assert reply.content["traceback"] == said["traceback"]
        shown = [content for kind, content in reply.events if kind == "error"]
        assert [one["traceback"] for one in shown] == [said["traceback"]]
        assert path in "\n".join(said["traceback"]) and "guest" not in str(
            reply.content["traceback"]
        )
    assert names(kernel) == [] and kernel.run("%who_ls").result == "[]"
    assert kernel.run("twice(21), where").result == repr((42, str(tmp_path / "good.py")))
    assert kernel.run("'__file__' in globals(), len(In)").result == "(False, 4)"
    assert kernel.ask("helpers") == host.ask("helpers")
    kernel.run("twice = 5")
    host.run("twice = 5")
    assert kernel.ask("helpers") == host.ask("helpers")
    assert names(kernel) == ["twice"]


def test_a_module_may_exit(kernel):
    assert kernel.call("run_module", "/x/a.py", "raise SystemExit(3)").error == "SystemExit: 3"
    assert kernel.run("1").result == "1"


# Questions


CELLS = (
    "import os, sys as system\na = 1\nb = 'text \\ud800 \\u2028 é \"q\"'\nc = [1, 2, {'k': (1,)}]\nd = {'k': 'v'}\n_hidden = 1",
    "def f(x, y=1, *z): pass\nclass K: pass\nk = K()\ne = 2 ** 100000\ng = 'x' * 10000",
    "h = {1, 2}\ni = frozenset((3,))\nj = range(5)\nl = b'bytes\\xff'\nm = bytearray(b'xyz')\nn = None\no = (1,)",
    "p = float('nan')\nq = 1 + 2j\nr = True\ns = []\ns.append(s)\nt = print\nu = type\nread = 'mine'\nopen = 5",
)


def test_variables_are_the_runners(kernel, host):
    for code in CELLS:
        host.run(code)
        assert kernel.run(code).error is None
    for limit in (200, 3):
        expected = host.ask("variables", limit=limit)
        assert len(expected) == min(limit, 24), [entry["name"] for entry in expected]
        assert kernel.ask("variables", limit=limit) == expected


def test_variables_of_libraries_are_the_runners(kernel, host, needs):
    needs("numpy", "pandas")
    code = (
        "import numpy as np, pandas as pd\na = np.zeros((3, 4))\nb = np.arange(3)\n"
        "d = pd.DataFrame({'x': [1, 2]})\ns = d['x']\nn = np.float64(1.5)"
    )
    host.run(code, timeout=60)
    assert kernel.run(code).error is None
    assert kernel.ask("variables") == host.ask("variables")


def test_nothing_of_the_user_runs(kernel):
    kernel.run(NOISY)
    reply = kernel.run(request("ready"), True)
    assert reply.text == ""
    listed = kernel.ask("variables", limit=10)
    assert [entry["type"] for entry in listed] == ["type", "Noisy"]
    assert listed[1]["preview"] is None


def test_helpers_are_the_runners(kernel, host):
    assert kernel.ask("helpers") == host.ask("helpers")
    kernel.run("log = None")
    assert len(kernel.ask("helpers")) == len(host.ask("helpers"))


HISTORY = (
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


def test_history_is_what_ipython_remembers(bare, host):
    """The runner's answer beside IPython's own; nobody is inside there."""
    for code in HISTORY:
        host.run(code)
        bare.run(code)
    host.run("'nobody'", silent=True, history=False)
    bare.run("'nobody'", silent=True)
    reply = bare.client.history(
        raw=True, output=True, hist_access_type="range", session=0, start=1, stop=100, reply=True
    )
    expected = [
        {"count": count, "code": code, "output": output}
        for _, count, (code, output) in reply["content"]["history"]
    ]
    told = host.ask("history", last=100)
    assert [entry["code"] for entry in told] == list(HISTORY)
    assert told == expected
    assert host.ask("history", last=2) == told[-2:]
    assert host.ask("history", last=0) == []


def test_history_after_reset_and_of_long_values(host):
    host.run("'x' * 1_000_000")
    kept = host.ask("history", last=1)[0]["output"]
    assert kept.startswith("'xxx") and kept.endswith("…") and len(kept) < 20_000
    host.run("%reset out")
    assert [entry["output"] for entry in host.ask("history", last=9)] == [None, None]
    host.run("%reset -f")
    host.run("5")
    assert [(e["code"], e["output"]) for e in host.ask("history", last=9)] == [("5", "5")]
