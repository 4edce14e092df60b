"""`tool`: what goes over the wire, and what comes back, with a bridge played by the test."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from host import Host, data, error, of, result, status, text
from test_interrupt import interrupted

DEAD_PROXY = {
    name: "http://127.0.0.1:9"
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
}


class Bridge:
    """Answers with what the test says, and remembers what was asked."""

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
    made = Bridge()
    yield made
    made.close()


@pytest.fixture
def host(python, tmp_path, bridge):
    made = Host(python, cwd=str(tmp_path), env=DEAD_PROXY)
    made.env = {"CELLWRIGHT_BRIDGE_URL": bridge.url, "CELLWRIGHT_BRIDGE_TOKEN": "secret"}
    made.run("pass", env=made.env)
    yield made
    made.close()


def test_a_call_carries_arguments_token_and_folder(host, bridge, tmp_path):
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


def test_read_gives_the_text(host, bridge):
    bridge.answer = {"ok": True, "value": {"view": "text", "text": "# %% [code] cell:0\n1\n"}}
    assert eval(result(host.run("tool.read('a.ipynb:cells=0')"))).startswith("# %% [code]")
    assert eval(result(host.run("tool['read'](path='a.ipynb')"))).startswith("# %% [code]")
    assert eval(result(host.run("tool.read({'path': 'a.ipynb'})"))).startswith("# %% [code]")
    assert eval(result(host.run("read('a.ipynb', 2)"))) == "1\n"
    assert [call["positional"] for call in bridge.calls] == [["a.ipynb:cells=0"], [], [], ["a.ipynb"]]
    assert bridge.calls[1]["args"] == bridge.calls[2]["args"] == {"path": "a.ipynb"}


def test_what_fails_raises_with_words_and_codes(host, bridge):
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


def test_an_answer_that_is_none_is_shown(host, bridge):
    bridge.code, bridge.answer = 502, b"<html>bad gateway</html>"
    assert "answered 502: <html>" in error(host.run("tool.doctor()"))["evalue"]


def test_without_a_bridge_it_says_so(host):
    found = error(host.run("tool.read('a')", env={"CELLWRIGHT_BRIDGE_URL": None}))
    assert "no way back" in found["evalue"] and "CELLWRIGHT_BRIDGE_URL" in found["evalue"]
    found = error(host.run("output(1)"))
    assert found["ename"] == "ToolError"


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://example.org:80", "nonsense"])
def test_a_bridge_that_is_not_there_or_elsewhere_is_an_error(host, url):
    assert error(host.run("tool.read('a')", env={"CELLWRIGHT_BRIDGE_URL": url}))["ename"] == "ToolError"


def test_the_address_is_looked_up_at_each_call(host, bridge):
    other = Bridge()
    try:
        host.run("tool.doctor()")
        host.run("tool.doctor()", env={"CELLWRIGHT_BRIDGE_URL": other.url})
        assert (len(bridge.calls), len(other.calls)) == (1, 1)
    finally:
        other.close()


def test_a_call_can_be_interrupted(host, bridge):
    bridge.wait.clear()
    events, seconds = interrupted(host, "tool.doctor()", after=0.5)
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


def test_users_files_do_not_get_in_the_way(host, bridge, tmp_path):
    for name in ("json", "socket", "http", "inspect"):
        (tmp_path / (name + ".py")).write_text("raise RuntimeError('the user file %s')\n" % name)
    assert status(host.run("tool.doctor()")) == "ok"


def test_bad_values_are_a_type_error(host, bridge):
    assert error(host.run("tool.edit('a', old=object())"))["ename"] == "TypeError"
    assert bridge.calls == []


def test_what_is_too_large_is_not_sent(host, bridge):
    found = error(host.run("tool.write('a', 'x' * (65 << 20))"))
    assert found["evalue"] == "tool.write: 65 MiB are too much for one call; it takes 64 MiB"
    assert bridge.calls == []


def test_tool_can_be_explored(host):
    assert result(host.run("dir(tool)")) == (
        "['artifact', 'doctor', 'edit', 'notebook', 'read', 'write']"
    )
    assert "cell markers" in text(host.run("help(tool.read)"))
    assert result(host.run("import inspect; str(inspect.signature(tool.write))")) == (
        "'(path, text=None, **flags)'"
    )
    assert result(host.run("tool")).startswith("<tool: artifact")
    assert result(host.run("hasattr(tool, 'kernels')")) == "False"


def test_calls_are_told(host, bridge):
    events = host.run("tool.doctor()")
    told = [data(event) for event in of(events, "display")]
    assert told == [{"application/x-cellwright-status": {"op": "tool", "name": "doctor", "ok": True}}]


ROWS = {"rows": [{"name": "a b", "n": 1}, {"name": "c", "n": [1, 2]}], "x.y": {"": 5}}


@pytest.fixture
def artifact(bridge, tmp_path):
    """An artifact that the bridge knows the place of."""

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
    assert "Offset 9 is beyond end of output (3 lines)" in error(host.run("output(1, offset=9)"))["evalue"]


def test_an_image_is_no_text(host, artifact):
    artifact(b"\x89PNG", "1.png")
    assert "is no text; the file is" in error(host.run("output(1)"))["evalue"]


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
    "query, words",
    [
        ("rows[7].name", "there is a list of 2"),
        ("row", "there are the keys rows, x.y"),
        ("rows.name", "there is a list of 2"),
        ("rows[", "bad query"),
        ("rows[x]", "bad query"),
    ],
)
def test_a_query_that_leads_nowhere_says_what_is_there(host, artifact, query, words):
    artifact(json.dumps(ROWS).encode())
    found = error(host.run("output(1, query=%r)" % query))
    assert found["ename"] == "ValueError" and words in found["evalue"]


def test_output_that_is_no_json_cannot_be_queried(host, artifact):
    artifact(b"plain")
    assert "is not valid JSON" in error(host.run("output(1, query='a')"))["evalue"]


def test_a_notebook_is_written_through_the_bridge(host, bridge):
    host.run("write('a.ipynb', '# %% [code] cell:0\\n1\\n')")
    (call,) = bridge.calls
    assert (call["name"], call["positional"]) == ("write", ["a.ipynb", "# %% [code] cell:0\n1\n"])
    assert call["args"] == {"create": True}
