"""Runs one cell: compiles and runs it, sends its result or error, and sends `done`."""

import builtins
import os
import sys
from _thread import get_ident

from . import interrupt, lazy
from .channel import dumps, utf8
from .interrupt import SIGINT_GATE
from .state import STATE
from .streams import OUTPUT, encode_id

ONLY_AST = 0x400
TOP_LEVEL_AWAIT = 0x2000
CO_COROUTINE = 0x80
FUTURE_FLAGS = 0x1FE0000  # the CO_FUTURE_* bits of all versions from 3.8 on
SOURCES_LIMIT = 32 << 20  # bytes of cell source stored for tracebacks
OUTPUT_TEXT_LIMIT = 10_000  # characters of a cell's value stored in its history

_PLAIN_TYPES = frozenset((int, float, complex, bool, str))
_LINE_STARTS = frozenset("%!?,;/>")
# The first words of one-line cells that are Python for certain, see `_may_be_automagic`.
_PYTHON_WORDS = frozenset(
    "import from def class if for while with try return raise assert del pass async await not lambda"
    " global nonlocal None True False match type print yield break continue".split()
)


class History:
    """In, Out, _, __, ___, _i and so on, as IPython users know them."""

    def __init__(self):
        self.inputs = [""]
        self.outputs = {}
        self.raw_inputs = {}  # execution count -> the untransformed code
        self.output_texts = {}  # execution count -> text/plain of the cell's value
        self.recent_inputs = ["", "", "", ""]
        self.recent_outputs = ["", "", ""]

    def install(self, ns):
        ns["In"] = self.inputs
        ns["Out"] = self.outputs
        ns["_"] = ns["__"] = ns["___"] = ns["_i"] = ns["_ii"] = ns["_iii"] = ""

    def record_input(self, raw, code, count):
        inputs = self.inputs
        while len(inputs) <= count:
            inputs.append("")
        inputs[count] = code
        self.raw_inputs[count] = raw
        _, two, three, four = self.recent_inputs
        self.recent_inputs = [two, three, four, raw]
        ns = STATE.ns
        ns["_i"], ns["_ii"], ns["_iii"] = four, three, two
        ns["_i%d" % count] = raw

    def record_output(self, value, count, text=None):
        if value is self.outputs:
            return
        self.outputs[count] = value
        if text is not None:
            self.output_texts[count] = (
                text if len(text) <= OUTPUT_TEXT_LIMIT else text[:OUTPUT_TEXT_LIMIT] + "…"
            )
        ns = STATE.ns
        ns["_%d" % count] = value
        last = self.recent_outputs
        if "_" in builtins.__dict__:  # gettext
            return
        for name, own in (("_", last[0]), ("__", last[1]), ("___", last[2])):
            if name in ns and ns[name] is not own:
                return  # the user assigned one of these names
        self.recent_outputs = last = [value, last[0], last[1]]
        ns["_"], ns["__"], ns["___"] = last


HISTORY = History()


def execute(request):
    """Handle one `execute` request. The last frame is always `done`."""
    number = request.get("id")
    STATE.silent = silent = bool(request.get("silent"))
    STATE.store_history = history = bool(request.get("history", True)) and not silent
    STATE.stdin = request.get("stdin") or "refuse"
    STATE.runs_script = bool(request.get("file"))
    STATE.raw_code = request.get("code") or ""
    interrupt.install()
    SIGINT_GATE.interrupted = SIGINT_GATE.pending = False
    OUTPUT.begin_cell()
    count = STATE.count + 1
    if history:
        STATE.count = count
    STATE.cell_count = count
    if STATE.cell != number:
        # Buffered text belongs to the previous cell.
        OUTPUT.flush_now()
    identity = encode_id(number)
    # The new cell becomes current together with its `started` frame, not earlier.
    send_started(number, b'{"t":"started","id":%s,"count":%d' % (identity, count))
    status, exit_code = "error", None
    try:
        status, exit_code = _run_cell(request, request.get("code") or "", count, history)
    except BaseException as error:  # a failure of the runner, or an interrupt between two steps
        status = "interrupted" if SIGINT_GATE.interrupted else "error"
        _minimal_error(error)
    finally:
        SIGINT_GATE.cell_running = False
        SIGINT_GATE.async_runner = None
        SIGINT_GATE.pending = False
    if STATE.forked:
        _exit_forked_child(status, exit_code)
    OUTPUT.send(
        b'{"t":"done","id":%s,"status":"%s","count":%d' % (identity, status.encode(), count)
    )


def send_started(number, frame):
    """Send `started` and make the cell the current one, with no text in between."""
    with OUTPUT.lock:
        OUTPUT.send(frame)
        STATE.cell = number
        STATE.redirects = 0  # redirects that the previous cell left open end with it


def _run_cell(request, raw, count, history):
    """Run the code of a request and return (status, exit code of a forked child)."""
    ns = STATE.ns
    status, exit_code = "ok", None
    shell = STATE.shell
    names_before = set(ns) if STATE.silent else None
    result = None
    try:
        try:
            SIGINT_GATE.cell_running = True
            if (
                request.get("cwd")
                or request.get("env")
                or request.get("path")
                or request.get("file")
            ):
                apply_context(request)
            ns.pop("__warningregistry__", None)
            if shell is not None and shell.events.has_callbacks:
                shell.events.before_cell(raw, STATE.silent, history)
            if request.get("module"):
                lazy.load("modules").run(request["module"], raw)
                parts = shown = None
            else:
                parts, shown = _compile_request(request, raw, count, history)
            if parts:
                value = run_parts(parts, shown)
                if shown and value is not None and not STATE.silent:
                    result = value
                    show_result(value)
        finally:
            SIGINT_GATE.cell_running = False
    except SystemExit as stop:
        # A file ends with `sys.exit(0)`; in a cell that is an exception, as in Jupyter.
        ends_file = not stop.code and (request.get("file") or request.get("module"))
        if STATE.forked:
            exit_code = _exit_code(stop)
        elif not ends_file:
            _remember_error(stop)
            send_error(stop)
            _finish_cell(raw, result, history, stop)
            return "error", None
    except BaseException as error:
        status = (
            "interrupted"
            if SIGINT_GATE.interrupted and isinstance(error, KeyboardInterrupt)
            else "error"
        )
        _remember_error(error)
        send_error(error)
        _finish_cell(raw, result, history, error)
        return status, None
    _finish_cell(raw, result, history, None)
    if names_before is not None and not history:
        # Silent cells of the host are part of the prelude: %reset keeps their names, `variables`
        # hides them.
        for name in ns:
            if name not in names_before and type(name) is str:
                STATE.prelude_names[name] = ns[name]
    return status, exit_code


def _compile_request(request, raw, count, history):
    """Return (code objects, whether the last one is an expression whose value is shown)."""
    code = transform(raw)
    if history:
        HISTORY.record_input(raw, code, count)
    parts, shown = compile_cell(code, cell_name(request.get("title"), count))
    if shown and code is not raw and raw.rstrip().endswith(";"):
        shown = _is_shown_magic(code)
    return parts, shown


def transform(raw):
    """Return the Python text of a cell, which is the cell itself if it contains nothing else."""
    shell = STATE.shell
    if shell is not None and (shell.input_transformers_cleanup or shell.input_transformers_post):
        return lazy.load("interactivity").transform(raw, shell)
    code = lazy.load("transform").transform_cell(raw) if needs_transform(raw) else raw
    if _may_be_automagic(code):
        return lazy.load("automagic").transform(code)
    return code


def _may_be_automagic(code):
    """Return whether a cell may be a magic without `%`, such as `ls -l`: one line whose first word is
    no name. This check is cheap and has false positives."""
    line = code.strip()
    if "\n" in line or STATE.silent:
        return False
    size = 0
    for char in line:
        if not (char.isalnum() or char == "_"):
            break
        size += 1
    word = line[:size]
    if not word.isidentifier() or word in _PYTHON_WORDS:
        return False
    if word in STATE.ns:
        return size == len(line) and type(STATE.ns[word]).__name__ == "Macro"
    if word in builtins.__dict__:
        return line in ("exit", "quit")
    rest = line[size:]
    return rest[:1] not in (".", ":") and rest.lstrip()[:1] not in ("=", ",")


def _remember_error(error):
    """Keep the last error for %tb and pdb.pm()."""
    if not getattr(error, "cellwright_usage", False):
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__


def _finish_cell(raw, result, history, error):
    """Show figures, call event callbacks and flush libc; done after failed cells too."""
    if STATE.forked:
        return
    _flush_user_streams()
    try:
        try:
            SIGINT_GATE.cell_running = True
            if STATE.figures is not None:
                STATE.figures.show_all()
            shell = STATE.shell
            if shell is not None and shell.events.has_callbacks:
                shell.events.after_cell(raw, STATE.silent, history, result, error)
        finally:
            SIGINT_GATE.cell_running = False
    except BaseException as failure:
        send_error(failure)
    if "ctypes" in sys.modules:
        lazy.load("libc").flush()


def needs_transform(code):
    """Return whether the text may contain IPython syntax (%, !, ?, prompts, indent). This check is
    cheap and has false positives; the transform decides by tokens."""
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
    """Return whether the value of a transformed cell that ends in `;` is shown: `%magic f();` is
    silent, a `;` in a comment has no effect."""
    return not code.rstrip().rpartition("\n")[2].lstrip().startswith("get_ipython().run_")


def cell_name(title, count):
    """Return the file name for a cell's code."""
    if title:
        name = str(title)
        return name if name not in STATE.cell_sources else "%s (In[%d])" % (name, count)
    return "Cell In[%d]" % count


def store_source(name, code):
    """Store the source for tracebacks and inspect; drops the oldest sources above the limit."""
    sources = STATE.cell_sources
    sources[name] = code
    if len(sources) > 64 and len(sources) % 64 == 0:
        total = sum(map(len, sources.values()))
        while total > SOURCES_LIMIT and len(sources) > 1:
            oldest = next(iter(sources))
            total -= len(sources.pop(oldest))
    elif len(code) > SOURCES_LIMIT:
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
    """Return (code objects, whether the last one is an expression whose value is shown)."""
    store_source(name, code)
    shell = STATE.shell
    if (
        "IPython.core.interactiveshell" in sys.modules
        or shell is not None
        and (shell.ast_transformers or shell.ast_node_interactivity != "last_expr")
    ):
        return lazy.load("interactivity").compile_cell(code, name)
    return compile_last_expression(code, name)


def compile_last_expression(code, name):
    """Like `compile_cell`; only the value of a last expression is shown."""
    flags = TOP_LEVEL_AWAIT | STATE.future_flags
    if len(code) < 200 and "\n" not in code and "=" not in code:
        # Most short cells are one expression; compiling it directly avoids the syntax tree.
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
    if type(last).__name__ != "Expr" or ends_with_semicolon(code, last):
        whole = compile(tree, name, "exec", flags, True)
        STATE.future_flags |= whole.co_flags & FUTURE_FLAGS
        return [whole], False
    parts = []
    if len(body) > 1:
        del body[-1]
        first = compile(tree, name, "exec", flags, True)
        STATE.future_flags |= first.co_flags & FUTURE_FLAGS
        flags |= STATE.future_flags
        parts.append(first)
    from _ast import Expression

    parts.append(compile(Expression(body=last.value), name, "eval", flags, True))
    return parts, True


def ends_with_semicolon(code, node):
    """Return whether a semicolon follows the last expression; a comment may follow it."""
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


def run_parts(parts, shown, local_names=None):
    """Run the code objects in __main__ and return the value of the last one if `shown`."""
    ns = STATE.ns
    for part in parts:
        if part.co_flags & CO_COROUTINE:
            return lazy.load("async_cells").run(parts, ns)
    for part in parts[:-1]:
        exec(part, ns, local_names)
    return eval(parts[-1], ns, local_names) if shown else exec(parts[-1], ns, local_names)


def _flush_user_streams():
    """Flush the streams with which a cell replaced sys.stdout and sys.stderr."""
    for name, own in (("stdout", OUTPUT.out.text), ("stderr", OUTPUT.err.text)):
        current = getattr(sys, name, None)
        if current is not own and current is not None:
            try:
                current.flush()
            except Exception:
                pass  # not a stream, or a broken one


def show_result(value):
    """Show the value of the last expression, through sys.displayhook if the user replaced it."""
    _flush_user_streams()
    hook = sys.displayhook
    if hook is displayhook:
        _send_result(value, True)
    else:
        hook(value)


def displayhook(value):
    """sys.displayhook: send the value as the cell's result and add it to the history."""
    if value is not None:
        _send_result(value, False)


def _send_result(value, last):
    if STATE.captured_displays is not None:
        bundle = lazy.load("display").make_bundle(value)
        if bundle is not None:
            STATE.captured_displays.append(bundle)
        return
    if STATE.forked:
        print(repr(value))
        return
    if type(value) in _PLAIN_TYPES and not (STATE.shell is not None and STATE.shell.has_formatters):
        text = repr(value)
        data, payloads = b'[["text/plain","text",%s]],"metadata":{}' % utf8(dumps(text)), ()
    else:
        display = lazy.load("display")
        bundle = display.make_bundle(value)
        if bundle is None:  # the object displayed itself
            if STATE.store_history:
                HISTORY.record_output(value, STATE.cell_count)
            return
        data, payloads = display.encode_bundle(*bundle)
        text = bundle[0].get("text/plain")
    if STATE.store_history:
        HISTORY.record_output(value, STATE.cell_count, text if type(text) is str else None)
    if get_ident() == interrupt.MAIN_THREAD and STATE.silent:
        return
    frame = b'{"t":"result","id":%s,"count":%d,"data":%s' % (
        encode_id(STATE.cell),
        STATE.cell_count,
        data,
    )
    shell = STATE.shell
    if (
        last
        and not payloads
        and STATE.figures is None
        and not (shell and shell.events.has_callbacks)
    ):
        OUTPUT.defer_frame(frame)
    else:
        OUTPUT.send(frame, payloads)


def send_error(error):
    """Send the error frame for an exception, even if the exception's own methods fail."""
    _flush_user_streams()
    try:
        try:
            SIGINT_GATE.cell_running = True
            ename, evalue, lines = lazy.load("tracebacks").describe(error)
            shell = STATE.shell
            if shell is not None and shell.custom_exceptions:
                lines = shell.handle_custom_exception(error) or lines
        finally:
            SIGINT_GATE.cell_running = False
    except BaseException as failure:
        _minimal_error(error, failure)
        return
    _send_error_frame(ename, evalue, lines)


def _send_error_frame(ename, evalue, lines):
    if STATE.forked:
        try:
            sys.stderr.write("\n".join(lines) + "\n")
        except Exception:
            pass
        return
    OUTPUT.send(
        utf8(
            '{"t":"error","id":%s,"ename":%s,"evalue":%s,"traceback":%s'
            % (dumps(STATE.cell), dumps(ename), dumps(evalue), dumps(lines))
        )
    )


def _minimal_error(error, failure=None):
    """Send an error frame without traceback formatting."""
    ename = type(error).__name__
    lines = [ename]
    if failure is not None:
        lines.append("(no traceback: %s while formatting it)" % type(failure).__name__)
    try:
        evalue = str(error)
        lines[0] = "%s: %s" % (ename, evalue)
    except BaseException:
        evalue = "<exception str() failed>"
    try:
        _send_error_frame(ename, evalue, lines)
    except (BrokenPipeError, ConnectionError):
        raise
    except BaseException:
        pass


def _exit_code(stop):
    """Return the exit code that the exception requests, and print its text as Python does."""
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


def _exit_forked_child(status, exit_code):
    """Exit a forked child at the end of the cell, so that it does not serve requests."""
    from .hooks import _real_exit

    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    _real_exit((exit_code or 0) & 255 if status == "ok" else 1)


def _change_directory(path, identity):
    """Change to a directory. With an identity (device and inode), the path must still lead to it."""
    if identity is None:
        os.chdir(path)
        return
    fd = os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY)
    try:
        found = os.fstat(fd)
        if [found.st_dev, found.st_ino] != list(identity):
            raise OSError("another directory has replaced {}".format(path))
        os.fchdir(fd)
    finally:
        os.close(fd)


def apply_context(request):
    """Apply the request's environment, module path, script name and working directory."""
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
        # A script has `__file__`, imports modules from its directory, and processes that
        # multiprocessing spawns can import its functions.
        STATE.ns["__file__"] = file
        sys.argv[:] = [file]
        directory = os.path.dirname(os.path.abspath(file))
        if directory not in sys.path[:1]:
            sys.path.insert(0, directory)
    if request.get("cwd"):
        _change_directory(request["cwd"], request.get("cwd_identity"))
        # A shell that started the interpreter set PWD, and programs rely on it.
        if "PWD" in os.environ:
            os.environ["PWD"] = request["cwd"]
