"""Connects HTTP to a server on its standard streams, because the conformance suite supports only HTTP.

There is one process for each session, and one for all requests of the newer revision, which has no sessions.
Messages of the server during a request go into the response stream of the request.
"""

import http.server
import json
import queue
import subprocess
import threading
import uuid

from conftest import BINARY

# The separators that the server uses.
COMPACT = (",", ":")


class Process:
    """A server process and its pending requests."""

    def __init__(self, project):
        command = [BINARY, "mcp", "--root", project.directory]
        self.child = subprocess.Popen(
            command, cwd=project.directory, env=project.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.lock = threading.Lock()
        self.last = 0
        # For each request number: the id of the client and the queue of the response.
        self.pending = {}
        threading.Thread(target=self.read_messages, daemon=True).start()

    def read_messages(self):
        for line in self.child.stdout:
            message = json.loads(line)
            with self.lock:
                if "method" not in message and message.get("id") in self.pending:
                    message["id"], box = self.pending.pop(message["id"])
                    box.put(message)
                    box.put(None)
                else:
                    for _, box in self.pending.values():
                        box.put(message)

    def send(self, message):
        with self.lock:
            self.child.stdin.write(json.dumps(message) + "\n")
            self.child.stdin.flush()

    def request(self, message):
        """Sends a request. Returns the messages of the server up to and including the response."""
        box = queue.Queue()
        with self.lock:
            self.last += 1
            self.pending[self.last] = (message["id"], box)
            number = self.last
        self.send({**message, "id": number})
        return iter(lambda: box.get(timeout=60), None)

    def close(self):
        self.child.stdin.close()
        assert self.child.wait(30) == 0


class StdioServer:
    """An HTTP server with the interface of `HttpServer`."""

    token = "none"

    def __init__(self, project):
        adapter = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                adapter.respond(self)

            def do_GET(self):
                adapter.reply(self, 405, {})

            do_DELETE = do_GET

        self.project = project
        self.common = Process(project)
        self.sessions = {}
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/mcp"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        for process in [self.common, *self.sessions.values()]:
            process.close()

    def reply(self, request, status, headers):
        request.send_response_only(status)
        for name, value in {**headers, "Content-Length": "0", "Connection": "close"}.items():
            request.send_header(name, value)
        request.end_headers()
        request.close_connection = True

    def respond(self, request):
        message = json.loads(request.rfile.read(int(request.headers["content-length"])))
        headers = {}
        session = request.headers.get("mcp-session-id")
        if message.get("method") == "initialize":
            session = str(uuid.uuid4())
            self.sessions[session] = Process(self.project)
            headers["Mcp-Session-Id"] = session
        process = self.sessions.get(session, self.common)
        if "id" not in message or "method" not in message:
            process.send(message)
            return self.reply(request, 202, headers)
        request.send_response_only(200)
        for name, value in {**headers, "Content-Type": "text/event-stream", "Connection": "close"}.items():
            request.send_header(name, value)
        request.end_headers()
        request.close_connection = True
        for event in process.request(message):
            request.wfile.write(f"event: message\ndata: {json.dumps(event, separators=COMPACT)}\n\n".encode())
            request.wfile.flush()
