"""Running one cell: compile, run, show the last value, tell how it ended."""

import builtins
import os
import sys
from _thread import get_ident

from . import interrupt, lazy
from .channel import dumps, utf8
from .interrupt import G
from .state import S
from .streams import O, _id

ONLY_AST = 0x400
TOP_LEVEL_AWAIT = 0x2000
COROUTINE = 0x80
FUTURES = 0x1FE0000  # the CO_FUTURE_* bits of all versions from 3.8 on
SOURCES_KEPT = 32 << 20  # bytes of cell source kept for tracebacks
SHOWN = 10_000  # characters of a cell's value kept for its history

_PLAIN = frozenset((int, float, complex, bool, str))
_LINE_STARTS = frozenset("%!?,;/>")


class History:
    """In, Out, _, __, ___, _i and so on, as IPython users know them."""

    def __init__(self):
        self.inputs = [""]
        self.outputs = {}
        self.cells = {}  # number -> the code as it was given
        self.shown = {}  # number -> the text of its value
        self.raw = ["", "", "", ""]
        self.last = ["", "", ""]

    def install(self, ns):
        ns["In"] = self.inputs
        ns["Out"] = self.outputs
        ns["_"] = ns["__"] = ns["___"] = ns["_i"] = ns["_ii"] = ns["_iii"] = ""

    def remember_input(self, raw, code, count):
        inputs = self.inputs
        while len(inputs) <= count:
            inputs.append("")
        inputs[count] = code
        self.cells[count] = raw
        _, two, three, four = self.raw
        self.raw = [two, three, four, raw]
        ns = S.ns
        ns["_i"], ns["_ii"], ns["_iii"] = four, three, two
        ns["_i%d" % count] = raw

    def remember_output(self, value, count, text=None):
        if value is self.outputs:
            return
        self.outputs[count] = value
        if text is not None:
            self.shown[count] = text if len(text) <= SHOWN else text[:SHOWN] + "…"
        ns = S.ns
        ns["_%d" % count] = value
        last = self.last
        if "_" in builtins.__dict__:  # gettext
            return
        for name, ours in (("_", last[0]), ("__", last[1]), ("___", last[2])):
            if name in ns and ns[name] is not ours:
                return  # the user took the name for himself
        self.last = last = [value, last[0], last[1]]
        ns["_"], ns["__"], ns["___"] = last


H = History()


def execute(request):
    """Handle one `execute` request; its last frame is always `done`."""
    number = request.get("id")
    S.silent = silent = bool(request.get("silent"))
    S.history = history = bool(request.get("history", True)) and not silent
    S.stdin = request.get("stdin") or "refuse"
    interrupt.install()
    G.seen = G.pending = False
    O.begin_cell()
    count = S.count + 1
    if history:
        S.count = count
    S.cell_count = count
    if S.cell != number:
        # What waits in the buffers belongs to the cell before.
        O.flush_now()
    identity = _id(number)
    # The new cell becomes current with its frame, not before.
    start(number, b'{"t":"started","id":%s,"count":%d' % (identity, count))
    status, exit_code = "error", None
    try:
        status, exit_code = _run(request, request.get("code") or "", count, history)
    except BaseException as error:  # our own trouble, or an interrupt between two steps
        status = "interrupted" if G.seen else "error"
        _last_resort(error)
    finally:
        G.running = False
        G.awaiting = None
        G.pending = False
    if S.forked:
        _leave_child(status, exit_code)
    O.send(
        b'{"t":"done","id":%s,"status":"%s","count":%d,"exit_code":%s'
        % (identity, status.encode(), count, b"null" if exit_code is None else b"%d" % exit_code)
    )


def start(number, frame):
    """Send `started` and make the cell the current one, with no text in between."""
    with O.lock:
        O.send(frame)
        S.cell = number
        S.asides = 0  # whatever the cell before has left open


def _run(request, raw, count, history):
    """-> (status, exit code)"""
    ns = S.ns
    status, exit_code = "ok", None
    shell = S.shell
    known = set(ns) if S.silent else None
    result = None
    try:
        try:
            G.running = True
            if (
                request.get("cwd")
                or request.get("env")
                or request.get("path")
                or request.get("file")
            ):
                surroundings(request)
            ns.pop("__warningregistry__", None)
            if shell is not None and shell.events.wanted:
                shell.events.before(raw, S.silent, history)
            if request.get("module"):
                lazy.load("modules").run(request["module"], raw)
                parts = shown = None
            else:
                parts, shown = _prepare(request, raw, count, history)
            if parts:
                value = run_parts(parts, shown)
                if shown and value is not None and not S.silent:
                    result = value
                    show_result(value)
        finally:
            G.running = False
    except SystemExit as stop:
        status, exit_code = "exit", _exit_code(stop)
    except BaseException as error:
        status = "interrupted" if G.seen and isinstance(error, KeyboardInterrupt) else "error"
        send_error(error)
        _after(raw, result, history, error)
        return status, None
    _after(raw, result, history, None)
    if known is not None and not history:
        # The host's own cells (its prelude): %reset keeps their names, `variables` hides them.
        for name in ns:
            if name not in known and type(name) is str:
                S.kept[name] = ns[name]
    return status, exit_code


def _prepare(request, raw, count, history):
    """-> (code objects, is the last one an expression to show)"""
    code = raw
    if needs_transform(raw):
        code = lazy.load("transform").transform_cell(raw)
    if history:
        H.remember_input(raw, code, count)
    parts, shown = compile_cell(code, cell_name(request.get("title"), count))
    if shown and code is not raw and raw.rstrip().endswith(";"):
        shown = _is_shown_magic(code)
    return parts, shown


def _after(raw, result, history, error):
    """What happens after every cell, failed or not: figures, hooks, buffers of libc."""
    if S.forked:
        return
    _flush_replaced()
    try:
        try:
            G.running = True
            if S.figures is not None:
                S.figures.show_all()
            shell = S.shell
            if shell is not None and shell.events.wanted:
                shell.events.after(raw, S.silent, history, result, error)
        finally:
            G.running = False
    except BaseException as trouble:
        send_error(trouble)
    if "ctypes" in sys.modules:
        lazy.load("libc").flush()


def needs_transform(code):
    """Could the text hold something that is not Python (%, !, ?, prompts, indent)? Cheap, and may
    say yes too often; the tokens decide."""
    if not code:
        return False
    if code[0] in " \t\f\ufeff\n\r" or "\r" in code or "\f" in code:
        return True
    if "!" in code or "%" in code or "?" in code:
        for mark in ("!", "%"):
            at = code.find(mark)
            while at > 0:
                before = at - 1
                while before and code[before] in " \t":
                    before -= 1
                if code[before] == "=":
                    return True
                at = code.find(mark, at + 1)
    question = "?" in code
    for line in code.split("\n"):
        stripped = line.lstrip()
        if stripped:
            first = stripped[0]
            if first in _LINE_STARTS:
                return True
            if question and stripped.rstrip()[-1] == "?":
                return True
            if (
                first == "I"
                and stripped.startswith("In [")
                or first == "."
                and stripped[:3] == "..."
            ):
                return True
    return False


def _is_shown_magic(code):
    """A cell that was transformed and ends in `;`: `%magic f();` is silent, a comment's `;` is not
    one."""
    return not code.rstrip().rpartition("\n")[2].lstrip().startswith("get_ipython().run_")


def cell_name(title, count):
    """The file name of a cell's code."""
    if title:
        name = str(title)
        return name if name not in S.sources else "%s (In[%d])" % (name, count)
    return "Cell In[%d]" % count


def remember_source(name, code):
    """Keep the source for tracebacks and inspect; the oldest ones go when it becomes much."""
    sources = S.sources
    sources[name] = code
    if len(sources) > 64 and len(sources) % 64 == 0:
        total = sum(map(len, sources.values()))
        while total > SOURCES_KEPT and len(sources) > 1:
            oldest = next(iter(sources))
            total -= len(sources.pop(oldest))
    elif len(code) > SOURCES_KEPT:
        for other in list(sources):
            if other != name:
                del sources[other]
    linecache = sys.modules.get("linecache")
    if linecache is not None:
        try:
            linecache.cache[name] = (lambda: sources.get(name, ""),)
        except Exception:
            pass


def compile_cell(code, name):
    """-> (code objects, is the last one an expression to show)"""
    remember_source(name, code)
    flags = TOP_LEVEL_AWAIT | S.future_flags
    if len(code) < 200 and "\n" not in code and "=" not in code:
        # Most short cells are one expression; this saves the way over the syntax tree.
        try:
            return [compile(code, name, "eval", flags, True)], True
        except Exception:
            pass
    try:
        tree = compile(code, name, "exec", flags | ONLY_AST, True)
    except UnicodeEncodeError as error:
        raise _surrogate_error(code, name, error) from None
    body = tree.body
    if not body:
        return [], False
    last = body[-1]
    if type(last).__name__ != "Expr" or is_silenced(code, last):
        whole = compile(tree, name, "exec", flags, True)
        S.future_flags |= whole.co_flags & FUTURES
        return [whole], False
    parts = []
    if len(body) > 1:
        del body[-1]
        first = compile(tree, name, "exec", flags, True)
        S.future_flags |= first.co_flags & FUTURES
        flags |= S.future_flags
        parts.append(first)
    from _ast import Expression

    parts.append(compile(Expression(body=last.value), name, "eval", flags, True))
    return parts, True


def is_silenced(code, node):
    """Does a semicolon follow the last expression? (Comments may stand behind it.)"""
    if ";" not in code:
        return False
    lines = code.split("\n")
    rest = lines[node.end_lineno - 1 :]
    rest[0] = rest[0].encode("utf-8", "replace")[node.end_col_offset :].decode("utf-8", "replace")
    return any(";" in line.partition("#")[0] for line in rest)


def _surrogate_error(code, name, error):
    line = code.count("\n", 0, error.start) + 1
    text = code.split("\n")[line - 1]
    column = error.start - (code.rfind("\n", 0, error.start) + 1) + 1
    message = "the source has a lone surrogate (U+%04X), which is no character" % ord(
        code[error.start]
    )
    text = text.encode("utf-8", "backslashreplace").decode()
    return SyntaxError(message, (name, line, column, text))


def run_parts(parts, shown):
    """Run the code objects in __main__; the value of the last one if it is an expression."""
    ns = S.ns
    for part in parts:
        if part.co_flags & COROUTINE:
            return lazy.load("awaiting").run(parts, ns)
    if len(parts) == 1:
        part = parts[0]
        return eval(part, ns) if shown else exec(part, ns)
    exec(parts[0], ns)
    return eval(parts[1], ns)


def _flush_replaced():
    """A cell may have put a stream of its own in the place of ours, with text still in it."""
    for name, ours in (("stdout", O.out.text), ("stderr", O.err.text)):
        current = getattr(sys, name, None)
        if current is not ours and current is not None:
            try:
                current.flush()
            except Exception:
                pass  # no stream, or a broken one: its text is its own business


def show_result(value):
    """Show the value of the last expression, through sys.displayhook if the user replaced it."""
    _flush_replaced()
    hook = sys.displayhook
    if hook is displayhook:
        _show(value, True)
    else:
        hook(value)


def displayhook(value):
    """sys.displayhook: send the value as the cell's result and remember it."""
    if value is not None:
        _show(value, False)


def _show(value, last):
    if S.capture is not None:
        bundle = lazy.load("display").result_bundle(value)
        if bundle is not None:
            S.capture.append(bundle)
        return
    if S.forked:
        print(repr(value))
        return
    if type(value) in _PLAIN and not (S.shell is not None and S.shell.has_formatters):
        text = repr(value)
        data, payloads = b'[["text/plain","text",%s]],"metadata":{}' % utf8(dumps(text)), ()
    else:
        display = lazy.load("display")
        bundle = display.result_bundle(value)
        if bundle is None:  # the object showed itself
            if S.history:
                H.remember_output(value, S.cell_count)
            return
        data, payloads = display.encode_bundle(*bundle)
        text = bundle[0].get("text/plain")
    if S.history:
        H.remember_output(value, S.cell_count, text if type(text) is str else None)
    if get_ident() == interrupt.MAIN and S.silent:
        return
    frame = b'{"t":"result","id":%s,"count":%d,"data":%s' % (_id(S.cell), S.cell_count, data)
    shell = S.shell
    if last and not payloads and S.figures is None and not (shell and shell.events.wanted):
        O.hold_frame(frame)
    else:
        O.send(frame, payloads)


def send_error(error):
    """The error frame for an exception; nothing the exception does can stop it."""
    _flush_replaced()
    try:
        try:
            G.running = True
            ename, evalue, lines = lazy.load("tracebacks").describe(error)
        finally:
            G.running = False
    except BaseException as trouble:
        _last_resort(error, trouble)
        return
    _error_frame(ename, evalue, lines)


def _error_frame(ename, evalue, lines):
    if S.forked:
        try:
            sys.stderr.write("\n".join(lines) + "\n")
        except Exception:
            pass
        return
    O.send(
        utf8(
            '{"t":"error","id":%s,"ename":%s,"evalue":%s,"traceback":%s'
            % (dumps(S.cell), dumps(ename), dumps(evalue), dumps(lines))
        )
    )


def _last_resort(error, trouble=None):
    """An error frame made with as little machinery as possible."""
    ename = type(error).__name__
    lines = [ename]
    if trouble is not None:
        lines.append("(no traceback: %s while it was made)" % type(trouble).__name__)
    try:
        evalue = str(error)
        lines[0] = "%s: %s" % (ename, evalue)
    except BaseException:
        evalue = "<exception str() failed>"
    try:
        _error_frame(ename, evalue, lines)
    except (BrokenPipeError, ConnectionError):
        raise
    except BaseException:
        pass


def _exit_code(stop):
    code = stop.code
    if code is None:
        return 0
    if isinstance(code, int):
        return int(code) & 0xFFFFFFFF if code < 0 else int(code)
    try:
        sys.stderr.write("%s\n" % (code,))
    except Exception:
        pass
    return 1


def _leave_child(status, exit_code):
    """A forked child that came to the end of the cell must not go on serving requests."""
    from .hooks import _real_exit

    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    _real_exit((exit_code or 0) & 255 if status in ("ok", "exit") else 1)


def surroundings(request):
    """Working directory, environment and module path that the request brings along."""
    for name, value in (request.get("env") or {}).items():
        if value is None:
            os.environ.pop(name, None)
        elif os.environ.get(name) != value:
            os.environ[name] = value
    for entry in reversed(request.get("path") or ()):
        if entry in sys.path:
            if entry == sys.path[0]:
                continue
            sys.path.remove(entry)
        sys.path.insert(0, entry)
    file = request.get("file")
    if file:
        # A script: it knows its name, finds its neighbours, and processes that multiprocessing
        # starts anew can find its functions.
        S.ns["__file__"] = file
        sys.argv[:] = [file]
        folder = os.path.dirname(os.path.abspath(file))
        if folder not in sys.path[:1]:
            sys.path.insert(0, folder)
    if request.get("cwd"):
        os.chdir(request["cwd"])
        # Shells that start an interpreter leave it behind, and programs believe it.
        if "PWD" in os.environ:
            os.environ["PWD"] = request["cwd"]
