"""The way back: verbs of Cellwright, called over its loopback door."""

import json
import os
import socket
from http.client import HTTPConnection, HTTPException

from . import lazy
from .prelude import ToolError, status

URL = "CELLWRIGHT_BRIDGE_URL"
TOKEN = "CELLWRIGHT_BRIDGE_TOKEN"
LARGEST = 64 << 20  # bytes that the other side reads

# Each verb: the names of its own arguments in order, and what it does.
VERBS = {
    "read": (
        ("path",),
        "Read a notebook as text with cell markers, a part of it, or an artifact.\n\n"
        'tool.read("a.ipynb:cells=1-3"), tool.read("a.ipynb:outputs"), tool.read("artifact://3")',
    ),
    "write": (
        ("path", "text"),
        "Replace a notebook by edited text, keeping everything the text does not show.\n\n"
        "tool.write(path, text, rev=…, create=True)",
    ),
    "edit": (
        ("path",),
        "Replace a piece of a notebook's text.\n\n"
        "tool.edit(path, old=…, new=…, all=True, rev=…)",
    ),
    "notebook": (
        ("action", "path", "cell"),
        "Change, add, remove or list cells.\n\n"
        'tool.notebook("insert", path, source=…, after=2), tool.notebook("outline", path)',
    ),
    "artifact": (
        ("action", "id"),
        "List or print full outputs that were kept.\n\n"
        'tool.artifact("list"), tool.artifact("show", "artifact://3", grep="Traceback")',
    ),
    "doctor": ((), "Check the interpreter, the runner and the folders that are needed."),
}
_SHELVES = {}


def verb(name):
    """The function that calls a verb; AttributeError if there is none of that name."""
    made = _SHELVES.get(name)
    if made is None:
        if name not in VERBS:
            raise AttributeError("there is no tool %r; there are %s" % (name, ", ".join(VERBS)))
        made = _SHELVES[name] = _make(name)
    return made


def verb_or_key_error(name):
    """The same for tool["name"]."""
    try:
        return verb(name)
    except AttributeError as error:
        raise KeyError(str(error)) from None


def _make(name):
    words, doc = VERBS[name]

    def call(*args, **flags):
        if len(args) == 1 and isinstance(args[0], dict) and words:
            args, flags = (), dict(args[0], **flags)
        value = request(name, args, flags)
        if name == "read" and isinstance(value, dict) and isinstance(value.get("text"), str):
            return value["text"]
        return value

    call.__name__ = call.__qualname__ = name
    call.__module__ = "tool"
    call.__doc__ = doc
    call.__signature__ = _signature(words)
    return call


def _signature(words):
    inspect = lazy.stdlib("inspect")
    Parameter, Signature = inspect.Parameter, inspect.Signature
    kind = Parameter.POSITIONAL_OR_KEYWORD
    names = [Parameter(word, kind, default=None) for word in words[1:]]
    names = [Parameter(word, kind) for word in words[:1]] + names
    return Signature(names + [Parameter("flags", Parameter.VAR_KEYWORD)])


def request(name, args, flags):
    """Call a verb and return what it answers."""
    body = {
        "name": name,
        "positional": [_plain(value) for value in args],
        "args": {key: _plain(value) for key, value in flags.items()},
        "cwd": _cwd(),
    }
    try:
        data = json.dumps(body, allow_nan=False).encode("utf-8")
    except (TypeError, ValueError) as error:
        raise TypeError("tool.%s: %s; arguments are text, numbers, bools, lists" % (name, error))
    if len(data) > LARGEST:
        raise ToolError(
            "tool.%s: %d MiB are too much for one call; it takes %d MiB"
            % (name, len(data) >> 20, LARGEST >> 20)
        )
    answer = _post(data)
    if answer.get("ok"):
        status({"op": "tool", "name": name, "ok": True})
        return answer.get("value")
    status({"op": "tool", "name": name, "ok": False})
    raise _error(name, answer)


def _plain(value):
    """Paths become text; everything else is as it is."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "__fspath__"):
        value = os.fspath(value)
    if isinstance(value, bytes):
        value = os.fsdecode(value)
    return value


def _cwd():
    try:
        return os.getcwd()
    except OSError:
        return None


def _error(name, answer):
    lines = [str(answer.get("error") or "the call failed")]
    lines += ["  caused by: %s" % cause for cause in answer.get("causes") or ()]
    hints = tuple(answer.get("hints") or ())
    lines += ["hint: %s" % hint for hint in hints]
    error = ToolError("tool.%s: %s" % (name, "\n".join(lines)))
    error.kind = answer.get("kind")
    error.exit_code = answer.get("exit_code")
    error.hints = hints
    return error


def _post(data):
    """One request, straight to the loopback address: proxies of the environment are not for it."""
    url, token = os.environ.get(URL, ""), os.environ.get(TOKEN, "")
    if not url or not token:
        raise ToolError(
            "tools cannot be called here: this kernel has no way back to Cellwright "
            "(%s is not set)" % (URL if not url else TOKEN)
        )
    host, _, port = url.partition("://")[2].partition("/")[0].rpartition(":")
    if host not in ("127.0.0.1", "localhost", "[::1]") or not port.isdigit():
        raise ToolError("%s is %r, which is no address on this machine" % (URL, url))
    connection = HTTPConnection(host, int(port), timeout=None)
    try:
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.request(
            "POST",
            "/v1/tool",
            body=data,
            headers={"Authorization": "Bearer " + token, "Content-Type": "application/json"},
        )
        response = connection.getresponse()
        text = response.read()
    except (OSError, HTTPException) as error:
        raise ToolError(
            "Cellwright did not answer at %s: %s: %s" % (url, type(error).__name__, error)
        ) from None
    finally:
        connection.close()
    try:
        answer = json.loads(text.decode("utf-8"))
        if not isinstance(answer, dict):
            raise ValueError("no object")
    except ValueError:
        shown = text[:200].decode("utf-8", "replace")
        raise ToolError("Cellwright answered %d: %s" % (response.status, shown)) from None
    return answer
