"""The server on its standard streams, put behind HTTP: the conformance suite speaks nothing else.

One process for each session that a client begins, and one for all requests of the newer revision, which stand for
themselves. What the server says while it works on a request goes into the stream of that request's answer.
"""

import http.server
import json
import queue
import subprocess
import threading
import uuid

from conftest import BINARY

# As the server writes it.
COMPACT = (",", ":")


class Process:
    """One server, and who waits for which of its answers."""

    def __init__(self, place):
        command = [BINARY, "mcp", "--root", place.folder]
        self.child = subprocess.Popen(
            command, cwd=place.folder, env=place.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.lock = threading.Lock()
        self.last = 0
        # By number: what the client calls it, and where the answer goes.
        self.waiting = {}
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.child.stdout:
            message = json.loads(line)
            with self.lock:
                if "method" not in message and message.get("id") in self.waiting:
                    message["id"], box = self.waiting.pop(message["id"])
                    box.put(message)
                    box.put(None)
                else:
                    for _, box in self.waiting.values():
                        box.put(message)

    def send(self, message):
        with self.lock:
            self.child.stdin.write(json.dumps(message) + "\n")
            self.child.stdin.flush()

    def ask(self, message):
        """Sends a request; gives what the server says until its answer, the answer last."""
        box = queue.Queue()
        with self.lock:
            self.last += 1
            self.waiting[self.last] = (message["id"], box)
            number = self.last
        self.send({**message, "id": number})
        return iter(lambda: box.get(timeout=60), None)

    def close(self):
        self.child.stdin.close()
        assert self.child.wait(30) == 0


class OverStdio:
    """Has the address and the token of a server that listens."""

    token = "none"

    def __init__(self, place):
        bridge = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                bridge.answer(self)

            def do_GET(self):
                bridge.reply(self, 405, {})

            do_DELETE = do_GET

        self.place = place
        self.common = Process(place)
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

    def answer(self, request):
        message = json.loads(request.rfile.read(int(request.headers["content-length"])))
        headers = {}
        session = request.headers.get("mcp-session-id")
        if message.get("method") == "initialize":
            session = str(uuid.uuid4())
            self.sessions[session] = Process(self.place)
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
        for said in process.ask(message):
            request.wfile.write(f"event: message\ndata: {json.dumps(said, separators=COMPACT)}\n\n".encode())
            request.wfile.flush()
