"""A proxy between the conformance suite and the server.

The suite sends no token, and requests tools, resources and prompts with fixed names. The proxy adds the token and
replaces these names by tools, resources and prompts of the server, so that the suite checks their real results.
"""

import http.client
import http.server
import json
import threading
from urllib.parse import urlsplit

from conftest import PNG

# Tools that the suite calls, with the tool and the arguments that replace each of them.
TOOLS = {
    "test_simple_text": ("eval", {"code": "print('This is a simple text response for testing.')"}),
    "test_image_content": ("eval", {"code": PNG}),
    "test_error_handling": ("read", {"path": "missing.ipynb"}),
    "test_tool_with_progress": ("eval", {"code": "import time\nfor i in range(6):\n    print(i)\n    time.sleep(1)"}),
    "test_elicitation": ("eval", {"code": "input('Please provide your information')"}),
    "test_input_required_result_elicitation": ("eval", {"code": "print('Hello', input('What is your name?'))"}),
    "test_input_required_result_request_state": ("eval", {"code": "print('state-ok', input('Confirm?'))"}),
    "test_input_required_result_tampered_state": ("eval", {"code": "print(input('Confirm?'))"}),
    "test_input_required_result_multi_round": (
        "eval",
        {"code": "print(input('Step 1: What is your name?'), input('Step 2: What is your favorite color?'))"},
    ),
}
# Keys of input requests that the suite requires.
INPUT_KEYS = {"test_input_required_result_elicitation": "user_name"}
PROMPTS = {
    "test_simple_prompt": ("review-notebook", lambda supplied: {"path": "static.ipynb"}),
    "test_prompt_with_arguments": (
        "explore-data",
        lambda supplied: {"data": supplied.get("arg1", ""), "path": supplied.get("arg2", "")},
    ),
}


class Adapter:
    """The proxy. It listens on a free port."""

    def __init__(self, server_process, resources):
        adapter = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                adapter.forward(self)

            do_GET = do_DELETE = do_PUT = do_OPTIONS = do_POST

        self.target = urlsplit(server_process.url)
        self.token = server_process.token
        self.resources = resources
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/mcp"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()

    def forward(self, request):
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        headers = [(name, value) for name, value in request.headers.items() if name.lower() != "content-length"]
        key = self.input_key(body)
        body, headers = self.translate(body, headers)
        upstream = http.client.HTTPConnection(self.target.hostname, self.target.port)
        upstream.putrequest(request.command, request.path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers:
            upstream.putheader(name, value)
        upstream.putheader("Authorization", f"Bearer {self.token}")
        upstream.putheader("Content-Length", str(len(body)))
        upstream.endheaders(body)
        response = upstream.getresponse()
        request.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                request.send_header(name, value)
        request.send_header("Connection", "close")
        request.end_headers()
        request.close_connection = True
        try:
            while piece := response.read1(65536):
                if key:
                    piece = piece.replace(b'"inputRequests":{"answer"', f'"inputRequests":{{"{key}"'.encode())
                request.wfile.write(piece)
                request.wfile.flush()
        except OSError:
            # The suite has closed the connection. Closing the other one cancels the request.
            pass
        finally:
            upstream.close()

    def input_key(self, body):
        try:
            message = json.loads(body)
            return INPUT_KEYS.get(message["params"]["name"])
        except (ValueError, KeyError, TypeError):
            return None

    def translate(self, body, headers):
        try:
            message = json.loads(body)
        except ValueError:
            return body, headers
        params = message.get("params") if isinstance(message, dict) else None
        if not isinstance(params, dict):
            return body, headers
        name = None
        if message.get("method") == "tools/call" and params.get("name") in TOOLS:
            responses = params.get("inputResponses")
            if isinstance(responses, dict):
                key = INPUT_KEYS.get(params["name"])
                if key in responses:
                    responses["answer"] = responses.pop(key)
                # The suite sends another field name; the field of the server is `answer`.
                supplied = responses.get("answer")
                content = supplied.get("content") if isinstance(supplied, dict) else None
                if isinstance(content, dict) and content:
                    supplied["content"] = {"answer": next(iter(content.values()))}
            name, params["arguments"] = TOOLS[params["name"]]
            params["name"] = name
        elif message.get("method") == "prompts/get" and params.get("name") in PROMPTS:
            name, arguments = PROMPTS[params["name"]]
            params["name"], params["arguments"] = name, arguments(params.get("arguments") or {})
        elif str(message.get("method")).startswith("resources/") and params.get("uri") in self.resources:
            name = params["uri"] = self.resources[params["uri"]]
        if name is None:
            return body, headers
        headers = [(key, name if key.lower() == "mcp-name" else value) for key, value in headers]
        return json.dumps(message).encode(), headers
