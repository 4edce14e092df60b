"""`tool`: requests and answers over HTTP, with a fake bridge."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from host import Host, data, error, filter_events, result, status, text
from test_interrupt import run_and_interrupt

UNREACHABLE_PROXY = {
    name: "http://127.0.0.1:9"
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
}


class FakeBridge:
    """An HTTP server that records the calls and answers with the test's value."""

    def __init__(self):
        bridge = self
        self.calls = []
        self.answer = {"ok": True, "value": None}
        self.wait = threading.Event()
        self.wait.set()
        self.code = 200

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                call = json.loads(body)
                call["path"], call["token"] = self.path, self.headers["Authorization"]
                bridge.calls.append(call)
                bridge.wait.wait(30)
                answer = bridge.answer
                if callable(answer):
                    answer = answer(call)
                text = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(bridge.code)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                try:
                    self.wfile.write(text)
                except OSError:
                    pass

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]

    def close(self):
        self.wait.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def bridge():
    fake = FakeBridge()
    yield fake
    fake.close()


@pytest.fixture
def host(python, tmp_path, bridge):
    host = Host(python, cwd=str(tmp_path), env=UNREACHABLE_PROXY)
    host.env = {"CELLWRIGHT_BRIDGE_URL": bridge.url, "CELLWRIGHT_BRIDGE_TOKEN": "secret"}
    host.run("pass", env=host.env)
    yield host
    host.close()


def test_a_call_carries_arguments_token_and_directory(host, bridge, tmp_path):
    bridge.answer = {"ok": True, "value": {"revision": "abc", "changed": [1, None]}}
    code = "tool.edit('a.ipynb', old='x', new='y', all=True, rev=None, many=['a', 1])"
    assert result(host.run(code)) == "{'revision': 'abc', 'changed': [1, None]}"
    (call,) = bridge.calls
    assert call == {
        "path": "/v1/tool",
        "token": "Bearer secret",
        "name": "edit",
        "positional": ["a.ipynb"],
        "args": {"old": "x", "new": "y", "all": True, "rev": None, "many": ["a", 1]},
        "cwd": str(tmp_path),
    }


def test_read_returns_text(host, bridge):
    bridge.answer = {"ok": True, "value": {"view": "text", "text": "# %% [code] cell:0\n1\n"}}
    assert eval(result(host.run("tool.read('a.ipynb:cells=0')"))).startswith("# %% [code]")
    assert eval(result(host.run("tool['read'](path='a.ipynb')"))).startswith("# %% [code]")
    assert eval(result(host.run("tool.read({'path': 'a.ipynb'})"))).startswith("# %% [code]")
    assert eval(result(host.run("read('a.ipynb', 2)"))) == "1\n"
    assert [call["positional"] for call in bridge.calls] == [
        ["a.ipynb:cells=0"],
        [],
        [],
        ["a.ipynb"],
    ]
    assert bridge.calls[1]["args"] == bridge.calls[2]["args"] == {"path": "a.ipynb"}


def test_failure_raises_tool_error_with_message_and_codes(host, bridge):
    bridge.answer = {
        "ok": False,
        "error": "Could not find a.ipynb",
        "kind": "bad_file",
        "exit_code": 2,
        "causes": ["it is gone"],
        "hints": ["notebooks there: b.ipynb"],
    }
    found = error(host.run("tool.read('a.ipynb')"))
    assert found["ename"] == "ToolError"
    assert found["evalue"] == (
        "tool.read: Could not find a.ipynb\n  caused by: it is gone\nhint: notebooks there: b.ipynb"
    )
    code = "try: tool.read('a')\nexcept RuntimeError as e: print(type(e) is ToolError, e.kind, e.exit_code)"
    assert text(host.run(code)) == "True bad_file 2\n"


def test_invalid_answer_is_reported(host, bridge):
    bridge.code, bridge.answer = 502, b"<html>bad gateway</html>"
    assert "answered 502: <html>" in error(host.run("tool.doctor()"))["evalue"]


def test_missing_bridge_is_reported(host):
    found = error(host.run("tool.read('a')", env={"CELLWRIGHT_BRIDGE_URL": None}))
    assert (
        "no bridge to Cellwright" in found["evalue"] and "CELLWRIGHT_BRIDGE_URL" in found["evalue"]
    )
    found = error(host.run("output(1)"))
    assert found["ename"] == "ToolError"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://example.org:80", "nonsense"])
def test_unreachable_or_foreign_bridge_is_an_error(host, url):
    assert (
        error(host.run("tool.read('a')", env={"CELLWRIGHT_BRIDGE_URL": url}))["ename"]
        == "ToolError"
    )


def test_address_is_read_at_each_call(host, bridge):
    other = FakeBridge()
    try:
        host.run("tool.doctor()")
        host.run("tool.doctor()", env={"CELLWRIGHT_BRIDGE_URL": other.url})
        assert (len(bridge.calls), len(other.calls)) == (1, 1)
    finally:
        other.close()


def test_a_call_can_be_interrupted(host, bridge):
    bridge.wait.clear()
    events, seconds = run_and_interrupt(host, "tool.doctor()", after=0.5)
    assert status(events) == "interrupted" and seconds < 2
    bridge.wait.set()
    assert status(host.run("tool.doctor()")) == "ok"


def test_threads_can_call(host, bridge):
    bridge.answer = lambda call: {"ok": True, "value": {"text": call["positional"][0]}}
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    r = list(pool.map(tool.read, [str(i) for i in range(24)]))\n"
        "r == [str(i) for i in range(24)]"
    )
    assert result(host.run(code)) == "True"


def test_user_files_do_not_shadow_bridge_imports(host, bridge, tmp_path):
    for name in ("json", "socket", "http", "inspect"):
        (tmp_path / (name + ".py")).write_text("raise RuntimeError('the user file %s')\n" % name)
    assert status(host.run("tool.doctor()")) == "ok"


RECORD = """import os
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "imported"), "a") as file:
    file.write(__name__ + " ")
raise ImportError("a file of the working directory")
"""


def test_no_call_imports_a_module_of_the_working_directory(host, bridge, tmp_path):
    names = result(host.run("import os, sys; sorted(os.listdir(os.path.dirname(os.__file__)))"))
    modules = {name.partition(".")[0] for name in eval(names) if not name.startswith("_")}
    for name in modules - {"site-packages", "os"}:
        (tmp_path / (name + ".py")).write_text(RECORD)
    bridge.answer = {"ok": True, "value": {"text": "é"}}
    for call in ("tool.read('é')", "tool.doctor()", "tool.edit('a', old='x', new='y')"):
        assert status(host.run(call)) == "ok"
    bridge.answer = {"ok": False, "error": "é", "kind": "bad_file", "hints": ["h"]}
    assert error(host.run("tool.read('a')"))["ename"] == "ToolError"
    bridge.code, bridge.answer = 502, b"\xff<html>"
    assert error(host.run("tool.read('a')"))["ename"] == "ToolError"
    for url in ("http://localhost:1", "http://[::1]:1", "http://example.org:1"):
        assert error(host.run("tool.read('a')", env={**host.env, "CELLWRIGHT_BRIDGE_URL": url}))
    assert result(host.run("run('echo hi').stdout")) == "'hi\\n'"
    assert text(host.run("%%bash\necho hi")) == "hi\n"
    assert text(host.run("%%script cat\nhi")) == "hi\n"
    assert not (tmp_path / "imported").exists(), (tmp_path / "imported").read_text()


def test_unsupported_values_raise_type_error(host, bridge):
    assert error(host.run("tool.edit('a', old=object())"))["ename"] == "TypeError"
    assert bridge.calls == []


def test_oversized_request_is_not_sent(host, bridge):
    found = error(host.run("tool.write('a', 'x' * (65 << 20))"))
    assert (
        found["evalue"] == "tool.write: the arguments have 65 MiB; the limit for one call is 64 MiB"
    )
    assert bridge.calls == []


def test_tool_lists_and_documents_its_verbs(host):
    assert result(host.run("dir(tool)")) == (
        "['artifact', 'doctor', 'edit', 'notebook', 'read', 'write']"
    )
    assert "cell markers" in text(host.run("help(tool.read)"))
    assert result(host.run("import inspect; str(inspect.signature(tool.write))")) == (
        "'(path, text=None, **flags)'"
    )
    assert result(host.run("tool")).startswith("<tool: artifact")
    assert result(host.run("hasattr(tool, 'kernels')")) == "False"


def test_calls_send_status_events(host, bridge):
    events = host.run("tool.doctor()")
    status_events = [data(event) for event in filter_events(events, "display")]
    assert status_events == [
        {"application/x-cellwright-status": {"op": "tool", "name": "doctor", "ok": True}}
    ]


ROWS = {"rows": [{"name": "a b", "n": 1}, {"name": "c", "n": [1, 2]}], "x.y": {"": 5}}


@pytest.fixture
def artifact(bridge, tmp_path):
    """Creates an artifact whose path the bridge returns."""

    def make(content, name="1.txt"):
        path = tmp_path / name
        path.write_bytes(content)
        bridge.answer = {"ok": True, "value": {"artifact": "artifact://1", "path": str(path)}}

    return make


@pytest.mark.parametrize("id", ["1", "'1'", "'artifact://1'"])
def test_output_reads_an_artifact(host, bridge, artifact, id):
    artifact(b"one\ntwo\n\xffthree")
    assert eval(result(host.run("output(%s)" % id))) == "one\ntwo\n\ufffdthree"
    assert bridge.calls[0]["name"] == "artifact"
    assert bridge.calls[0]["positional"] == ["path", "artifact://1"]
    assert eval(result(host.run("output(%s, offset=2, limit=1)" % id))) == "two\n"
    assert eval(result(host.run("read('artifact://1', 2, 1)"))) == "two\n"
    assert (
        "Offset 9 is beyond end of output (3 lines)"
        in error(host.run("output(1, offset=9)"))["evalue"]
    )


def test_image_artifact_is_not_text(host, artifact):
    artifact(b"\x89PNG", "1.png")
    assert "is not text; the file is" in error(host.run("output(1)"))["evalue"]


@pytest.mark.parametrize(
    "query, expected",
    [
        ("rows[0].name", "a b"),
        (".rows[-1].n[1]", 2),
        ("['x.y']['']", 5),
        ('rows[1]["name"]', "c"),
        ("rows[0]", {"name": "a b", "n": 1}),
        ("", ROWS),
    ],
)
def test_output_follows_a_query(host, artifact, query, expected):
    artifact(json.dumps(ROWS).encode())
    assert eval(result(host.run("output(1, query=%r)" % query))) == expected


@pytest.mark.parametrize(
    "query, fragment",
    [
        ("rows[7].name", "there is a list of 2"),
        ("row", "there are the keys rows, x.y"),
        ("rows.name", "there is a list of 2"),
        ("rows[", "bad query"),
        ("rows[x]", "bad query"),
    ],
)
def test_failed_query_lists_available_keys(host, artifact, query, fragment):
    artifact(json.dumps(ROWS).encode())
    found = error(host.run("output(1, query=%r)" % query))
    assert found["ename"] == "ValueError" and fragment in found["evalue"]


def test_query_needs_json_output(host, artifact):
    artifact(b"plain")
    assert "is not valid JSON" in error(host.run("output(1, query='a')"))["evalue"]


def test_a_notebook_is_written_through_the_bridge(host, bridge):
    host.run("write('a.ipynb', '# %% [code] cell:0\\n1\\n')")
    (call,) = bridge.calls
    assert (call["name"], call["positional"]) == ("write", ["a.ipynb", "# %% [code] cell:0\n1\n"])
    assert call["args"] == {"create": True}
