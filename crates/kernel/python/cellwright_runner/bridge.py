"""The bridge: calls Cellwright's verbs over HTTP on the loopback address."""

import json
import os
import socket
from http.client import HTTPConnection, HTTPException

from . import lazy
from .prelude import ToolError, status

URL_VARIABLE = "CELLWRIGHT_BRIDGE_URL"
TOKEN_VARIABLE = "CELLWRIGHT_BRIDGE_TOKEN"
REQUEST_LIMIT = 64 << 20  # bytes that the host accepts

# Each verb: the names of its positional arguments in order, and its documentation.
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
        "Replace a piece of a notebook's text.\n\ntool.edit(path, old=…, new=…, all=True, rev=…)",
    ),
    "notebook": (
        ("action", "path", "cell"),
        "Change, add, remove or list cells.\n\n"
        'tool.notebook("insert", path, source=…, after=2), tool.notebook("outline", path)',
    ),
    "artifact": (
        ("action", "id"),
        "List or print stored full outputs.\n\n"
        'tool.artifact("list"), tool.artifact("show", "artifact://3", grep="Traceback")',
    ),
    "doctor": ((), "Check the interpreter, the runner and the required directories."),
}
_VERB_FUNCTIONS = {}


def verb(name):
    """Return the function that calls a verb; AttributeError if the verb does not exist."""
    function = _VERB_FUNCTIONS.get(name)
    if function is None:
        if name not in VERBS:
            raise AttributeError("unknown tool %r; available: %s" % (name, ", ".join(VERBS)))
        function = _VERB_FUNCTIONS[name] = _make_verb(name)
    return function


def verb_or_key_error(name):
    """Like `verb`, for tool["name"]: raises KeyError."""
    try:
        return verb(name)
    except AttributeError as error:
        raise KeyError(str(error)) from None


def _make_verb(name):
    parameters, doc = VERBS[name]

    def call(*args, **flags):
        if len(args) == 1 and isinstance(args[0], dict) and parameters:
            args, flags = (), dict(args[0], **flags)
        value = request(name, args, flags)
        if name == "read" and isinstance(value, dict) and isinstance(value.get("text"), str):
            return value["text"]
        return value

    call.__name__ = call.__qualname__ = name
    call.__module__ = "tool"
    call.__doc__ = doc
    call.__signature__ = _signature(parameters)
    return call


def _signature(parameters):
    inspect = lazy.stdlib("inspect")
    Parameter, Signature = inspect.Parameter, inspect.Signature
    kind = Parameter.POSITIONAL_OR_KEYWORD
    names = [Parameter(parameter, kind, default=None) for parameter in parameters[1:]]
    names = [Parameter(parameter, kind) for parameter in parameters[:1]] + names
    return Signature(names + [Parameter("flags", Parameter.VAR_KEYWORD)])


def request(name, args, flags):
    """Call a verb and return its answer."""
    body = {
        "name": name,
        "positional": [_json_argument(value) for value in args],
        "args": {key: _json_argument(value) for key, value in flags.items()},
        "cwd": _cwd(),
    }
    try:
        data = json.dumps(body, allow_nan=False).encode("utf-8")
    except (TypeError, ValueError) as error:
        raise TypeError("tool.%s: %s; arguments are text, numbers, bools, lists" % (name, error))
    if len(data) > REQUEST_LIMIT:
        raise ToolError(
            "tool.%s: the arguments have %d MiB; the limit for one call is %d MiB"
            % (name, len(data) >> 20, REQUEST_LIMIT >> 20)
        )
    answer = _post(data)
    if answer.get("ok"):
        status({"op": "tool", "name": name, "ok": True})
        return answer.get("value")
    status({"op": "tool", "name": name, "ok": False})
    raise _error(name, answer)


def _json_argument(value):
    """Return a path as text and any other value unchanged."""
    if isinstance(value, (list, tuple)):
        return [_json_argument(item) for item in value]
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


def _connect(host, port):
    """Connect to a loopback address.

    Not by name: the codec that encodes host names imports modules, which would come from the user's
    directory.
    """
    family = socket.AF_INET6 if host == "[::1]" else socket.AF_INET
    connected = socket.socket(family, socket.SOCK_STREAM)
    try:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.connect(("::1" if host == "[::1]" else "127.0.0.1", port))
    except BaseException:
        connected.close()
        raise
    return connected


def _post(data):
    """Send one request to the loopback address. Proxy settings of the environment are ignored."""
    url, token = os.environ.get(URL_VARIABLE, ""), os.environ.get(TOKEN_VARIABLE, "")
    if not url or not token:
        raise ToolError(
            "tools are not available: this kernel has no bridge to Cellwright "
            "(%s is not set)" % (URL_VARIABLE if not url else TOKEN_VARIABLE)
        )
    host, _, port = url.partition("://")[2].partition("/")[0].rpartition(":")
    if host not in ("127.0.0.1", "localhost", "[::1]") or not port.isdigit():
        raise ToolError("%s is %r, which is not a loopback address" % (URL_VARIABLE, url))
    connection = HTTPConnection(host, int(port), timeout=None)
    try:
        connection.sock = _connect(host, int(port))
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
            raise ValueError("not an object")
    except ValueError:
        excerpt = text[:200].decode("utf-8", "replace")
        raise ToolError("Cellwright answered %d: %s" % (response.status, excerpt)) from None
    return answer
