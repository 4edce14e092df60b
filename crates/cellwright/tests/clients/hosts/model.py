"""A scripted model behind a loopback HTTP server.

It speaks two APIs of OpenAI: chat completions, streamed or not, and responses, not streamed. In each turn it calls the
tool of the first step whose result is not in the request. After the last step it sends a final message. The state is
in the requests only, so a host may repeat a request.
"""

import dataclasses
import http.server
import json
import threading
import time
from collections.abc import Callable

MODEL_NAME = "scripted"
FINAL_MESSAGE = "The story is over."
USAGE = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
# The same quantities in the terms of the responses API.
RESPONSES_USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 10,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 20,
}


@dataclasses.dataclass
class ToolResult:
    """The result of one tool call as the model receives it."""

    # Text blocks of the result.
    texts: list[str] = dataclasses.field(default_factory=list)
    # Text blocks of user messages that the host adds after the result.
    added_texts: list[str] = dataclasses.field(default_factory=list)
    # URLs of images, in the result or in the messages that the host adds.
    images: list[str] = dataclasses.field(default_factory=list)
    # Types of all other blocks.
    other_types: list[str] = dataclasses.field(default_factory=list)
    # Number of messages that have this result.
    message_count: int = 0

    @property
    def text(self):
        return "\n".join(self.texts)

    def add(self, content, texts):
        """Adds the content of a message: a text, or blocks."""
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content or []:
            match block["type"]:
                case "text" | "input_text" | "output_text":
                    texts.append(block["text"])
                case "image_url":
                    self.images.append(block["image_url"]["url"])
                case "input_image":
                    self.images.append(block["image_url"])
                case other:
                    self.other_types.append(other)


@dataclasses.dataclass(frozen=True)
class Step:
    """One tool call of the script. `arguments` may be a function of the results so far, by the names of their steps."""

    name: str
    tool: str
    arguments: dict | Callable[[dict[str, ToolResult]], dict]

    @property
    def call_id(self):
        return f"call_{self.name}"


@dataclasses.dataclass(frozen=True)
class Request:
    """One request of a host: its path and its whole body."""

    path: str
    body: dict

    @property
    def tools(self):
        """The definitions of the tools, without the wrapper that only one of the APIs has."""
        return [tool.get("function", tool) for tool in self.body.get("tools") or []]

    def results(self):
        """The tool results of the conversation by the ids of their calls."""
        results = {}
        # The result that a user message belongs to.
        current = None
        for message in self.body.get("messages") or self.body.get("input") or []:
            if message.get("role") == "tool" or message.get("type") == "function_call_output":
                call_id = message.get("tool_call_id") or message.get("call_id")
                current = results.setdefault(call_id, ToolResult())
                current.message_count += 1
                current.add(message.get("content") or message.get("output"), current.texts)
            elif message.get("role") == "user" and current:
                current.add(message["content"], current.added_texts)
            else:
                current = None
        return results


class ScriptedModel:
    """The server. It listens on a free port of the loopback interface."""

    def __init__(self, steps, tool_prefix=""):
        model = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                entry = {"id": MODEL_NAME, "object": "model", "created": 0, "owned_by": "tests"}
                send_json(self, 200, {"object": "list", "data": [entry]})

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                model.answer(self, Request(self.path, body))

        self.steps = steps
        self.tool_prefix = tool_prefix
        self.requests = []
        # Reasons why the script could not continue.
        self.failures = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def results(self):
        """The tool results by the names of their steps, each from the first request that has it."""
        results = {}
        names = {step.call_id: step.name for step in self.steps}
        for request in self.requests:
            for call_id, result in request.results().items():
                results.setdefault(names.get(call_id, call_id), result)
        return results

    def answer(self, handler, request):
        self.requests.append(request)
        call = self.next_call(request)
        if request.path.endswith("/chat/completions"):
            send = send_chat_stream if request.body.get("stream") else send_chat
            send(handler, call)
        elif request.path.endswith("/responses") and not request.body.get("stream"):
            send_response(handler, call)
        else:
            self.failures.append(f"unexpected request: {request.path}")
            send_json(handler, 404, {"error": {"message": "unknown path", "type": "invalid_request_error"}})

    def next_call(self, request):
        """The next tool call as id, name and arguments, or nothing for a final message."""
        names = [tool["name"] for tool in request.tools]
        if not names:
            # Hosts ask for a title in this way.
            return None
        results = request.results()
        step = next((step for step in self.steps if step.call_id not in results), None)
        if step is None:
            return None
        try:
            name = self.tool_prefix + step.tool
            if name not in names:
                raise LookupError(f"the host offers no tool `{name}`, only {names}")
            so_far = {done.name: results[done.call_id] for done in self.steps if done.call_id in results}
            arguments = step.arguments if isinstance(step.arguments, dict) else step.arguments(so_far)
        except LookupError as error:
            self.failures.append(f"step `{step.name}`: {error}")
            return None
        return step.call_id, name, json.dumps(arguments)


def send_json(handler, status, document):
    data = json.dumps(document).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def chat_message(call):
    """The message of the model, and the reason why it ends."""
    if call is None:
        return {"role": "assistant", "content": FINAL_MESSAGE}, "stop"
    call_id, name, arguments = call
    function = {"name": name, "arguments": arguments}
    tool_calls = [{"index": 0, "id": call_id, "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": tool_calls}, "tool_calls"


def chat_header(kind):
    return {"id": "chatcmpl-1", "object": kind, "created": int(time.time()), "model": MODEL_NAME}


def send_chat(handler, call):
    message, reason = chat_message(call)
    choice = {"index": 0, "message": message, "finish_reason": reason}
    send_json(handler, 200, {**chat_header("chat.completion"), "choices": [choice], "usage": USAGE})


def send_chat_stream(handler, call):
    message, reason = chat_message(call)
    header = chat_header("chat.completion.chunk")
    chunks = [
        {**header, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**header, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {**header, "choices": [], "usage": USAGE},
    ]
    data = "".join(f"data: {chunk}\n\n" for chunk in [*map(json.dumps, chunks), "[DONE]"]).encode()
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def send_response(handler, call):
    if call is None:
        block = {"type": "output_text", "text": FINAL_MESSAGE, "annotations": []}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [block]}
    else:
        call_id, name, arguments = call
        item = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "status": "completed"}
        item |= {"name": name, "arguments": arguments}
    response = {
        "id": "resp_1",
        "object": "response",
        "created_at": int(time.time()),
        "model": MODEL_NAME,
        "status": "completed",
        "output": [item],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": RESPONSES_USAGE,
    }
    send_json(handler, 200, response)
