"""Formats exceptions as text lines: with cell sources, without the runner's frames, of limited
length."""

# traceback and linecache import ast and tokenize late; imported here, they cannot be user files.
import ast  # noqa: F401
import linecache
import os
import re
import sys
import tokenize  # noqa: F401
import traceback
import types

from .state import STATE

LINES_LIMIT = 400
TEXT_LIMIT = 1 << 20  # characters of an exception's message, and of a line of its traceback
_PACKAGE = __name__.rpartition(".")[0]


def describe(error):
    """Return (ename, evalue, lines)."""
    ename = type(error).__name__
    evalue = exception_text(error)
    if isinstance(error, SyntaxError) and error.filename in STATE.cell_sources:
        evalue = _with_file_name_of_jupyter(error, evalue)
    usage = getattr(error, "cellwright_usage", False)
    if usage:
        return "UsageError", evalue, ["UsageError: " + evalue]
    if isinstance(error, SystemExit):
        return ename, evalue, _exit_lines(ename, evalue)
    try:
        lines = _format(error)
    except RecursionError:
        lines = ["%s: %s" % (ename, evalue)]
    except Exception as failure:
        lines = [
            "%s: %s" % (ename, evalue),
            "(no traceback: %s while formatting it)" % type(failure).__name__,
        ]
    if STATE.shell is not None and STATE.shell.xmode == "Minimal":
        lines = lines[-1:]
    lines += _child_output_lines(error)
    if len(lines) > LINES_LIMIT:
        cut = len(lines) - LINES_LIMIT
        head = LINES_LIMIT // 2
        lines[head:-head] = ["  [%d more lines of traceback]" % cut]
    # The message of an exception can be data of any size, and the traceback contains it again.
    return ename, _shorten(evalue), [escape_surrogates(_shorten(line)) for line in lines]


def _shorten(text):
    return text if len(text) <= TEXT_LIMIT else text[:TEXT_LIMIT] + "…"


def _exit_lines(ename, evalue):
    """Return the lines that IPython shows for `sys.exit()`."""
    last = "%s: %s\n" % (ename, evalue) if evalue else ename + "\n"
    return ["An exception has occurred, use %tb to see the full traceback.\n", escape_surrogates(last)]


def _with_file_name_of_jupyter(error, evalue):
    """Replace the cell's name in `invalid syntax (NAME, line 1)` by the file name that ipykernel gives
    to a cell: a hash of its code."""
    own = "(%s, line " % os.path.basename(error.filename)
    return evalue.replace(own, "(%d.py, line " % _murmur_hash(STATE.raw_code), 1)


def _murmur_hash(text, seed=0xC70F6907):
    """Return the 32-bit MurmurHash2 of a text."""
    factor, mask = 0x5BD1E995, 0xFFFFFFFF
    data = text.encode("utf-8", "surrogatepass")
    value = seed ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        block = int.from_bytes(data[at : at + 4], "little") * factor & mask
        block = (block ^ block >> 24) * factor & mask
        value = value * factor & mask ^ block
    if whole < len(data):
        value = (value ^ int.from_bytes(data[whole:], "little")) * factor & mask
    value = (value ^ value >> 13) * factor & mask
    return value ^ value >> 15


def exception_text(error):
    """Return str(error), or a replacement text if that fails."""
    try:
        text = str(error)
        return text if type(text) is str else str.__str__(text)
    except KeyboardInterrupt:
        raise
    except BaseException as failure:
        return "<exception str() failed: %s>" % type(failure).__name__


def escape_surrogates(line):
    """Escape lone surrogates, so that every line can be encoded."""
    try:
        line.encode("utf-8")
        return line
    except UnicodeEncodeError:
        return line.encode("utf-8", "backslashreplace").decode("utf-8")


def _format(error):
    _restore_linecache()
    seen = set()
    trimmed = []
    _trim(error, seen, trimmed)
    try:
        exception = (
            traceback.TracebackException(type(error), error, error.__traceback__, compact=True)
            if sys.version_info >= (3, 10)
            else traceback.TracebackException(type(error), error, error.__traceback__)
        )
        text = "".join(exception.format())
    finally:
        for linked, original in trimmed:
            linked.__traceback__ = original
    return [_shorten(line) for line in text.rstrip("\n").split("\n")]


_FILE = re.compile(
    r'^(?P<indent>[\s|+\-]*)File "(?P<file>[^"\n]*)", line (?P<line>\d+)(?P<rest>.*)$'
)


def _shorten(line):
    """Turn `File "Cell In[3]", line 2` into `Cell In[3], line 2`."""
    match = _FILE.match(line)
    if match and match["file"] in STATE.cell_sources:
        return "%s%s, line %s%s" % (match["indent"], match["file"], match["line"], match["rest"])
    return line


def _trim(error, seen, trimmed):
    """Remove the runner's frames from an exception and all exceptions linked with it."""
    pending = [error]
    while pending:
        linked = pending.pop()
        if linked is None or id(linked) in seen:
            continue
        seen.add(id(linked))
        tb = linked.__traceback__
        clean = _without_own_frames(tb)
        if clean is not tb:
            trimmed.append((linked, tb))
            linked.__traceback__ = clean
        pending += [linked.__cause__, linked.__context__]
        pending += getattr(linked, "exceptions", ()) if _is_exception_group(linked) else ()


def _is_exception_group(error):
    group = getattr(__builtins__, "BaseExceptionGroup", None)
    if isinstance(__builtins__, dict):
        group = __builtins__.get("BaseExceptionGroup")
    return group is not None and isinstance(error, group)


def _without_own_frames(tb):
    entries, has_own_frames = [], False
    while tb is not None:
        name = tb.tb_frame.f_globals.get("__name__")
        if type(name) is str and (name == _PACKAGE or name.startswith(_PACKAGE + ".")):
            has_own_frames = True
        elif has_own_frames and not entries and type(name) is str and name.startswith("asyncio."):
            pass  # the event loop that runs a cell with await
        else:
            entries.append(tb)
        tb = tb.tb_next
    if not has_own_frames:
        return entries[0] if entries else None
    clean = None
    for entry in reversed(entries):
        clean = types.TracebackType(clean, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return clean


def _restore_linecache():
    """Register cells again that linecache lost by clearcache or checkcache."""
    for name, code in list(STATE.cell_sources.items())[-200:]:
        if name not in linecache.cache:
            linecache.cache[name] = (lambda code=code: code,)


def _child_output_lines(error):
    """Return the captured output of a failed child process."""
    subprocess = sys.modules.get("subprocess")
    if subprocess is None or not isinstance(error, getattr(subprocess, "CalledProcessError", ())):
        return []
    lines = []
    for label in ("stdout", "stderr"):
        output = getattr(error, label, None)
        if isinstance(output, bytes):
            output = output.decode("utf-8", "replace")
        if isinstance(output, str) and output.strip():
            tail = output.rstrip().split("\n")[-40:]
            lines += ["--- %s of the command ---" % label] + tail
    return lines
