"""Exceptions as plain text lines: source of cells, none of our own frames, bounded length."""

import ast  # noqa: F401 (traceback and linecache import ast and tokenize late; not the user's files)
import linecache
import re
import sys
import tokenize  # noqa: F401
import traceback
import types

from .state import S

MAX_LINES = 400
_OURS = __name__.rpartition(".")[0]


def describe(error):
    """-> (ename, evalue, lines)"""
    ename = type(error).__name__
    evalue = text_of(error)
    usage = getattr(error, "cellwright_usage", False)
    if usage:
        return "UsageError", evalue, ["UsageError: " + evalue]
    try:
        lines = _format(error)
    except RecursionError:
        lines = ["%s: %s" % (ename, evalue)]
    except Exception as trouble:
        lines = [
            "%s: %s" % (ename, evalue),
            "(no traceback: %s while it was made)" % type(trouble).__name__,
        ]
    lines += _extras(error)
    if len(lines) > MAX_LINES:
        cut = len(lines) - MAX_LINES
        head = MAX_LINES // 2
        lines[head:-head] = ["  [%d more lines of traceback]" % cut]
    return ename, evalue, [readable(line) for line in lines]


def text_of(error):
    """str(error), whatever it does."""
    try:
        text = str(error)
        return text if type(text) is str else str.__str__(text)
    except KeyboardInterrupt:
        raise
    except BaseException as trouble:
        return "<exception str() failed: %s>" % type(trouble).__name__


def readable(line):
    """Lone surrogates as escapes, so that every line is text."""
    try:
        line.encode("utf-8")
        return line
    except UnicodeEncodeError:
        return line.encode("utf-8", "backslashreplace").decode("utf-8")


def _format(error):
    _publish_sources()
    seen = set()
    trimmed = []
    _trim(error, seen, trimmed)
    try:
        made = (
            traceback.TracebackException(type(error), error, error.__traceback__, compact=True)
            if sys.version_info >= (3, 10)
            else traceback.TracebackException(type(error), error, error.__traceback__)
        )
        text = "".join(made.format())
    finally:
        for one, original in trimmed:
            one.__traceback__ = original
    return [_shorten(line) for line in text.rstrip("\n").split("\n")]


_FILE = re.compile(
    r'^(?P<indent>[\s|+\-]*)File "(?P<file>[^"\n]*)", line (?P<line>\d+)(?P<rest>.*)$'
)


def _shorten(line):
    """`File "Cell In[3]", line 2` becomes `Cell In[3], line 2`."""
    match = _FILE.match(line)
    if match and match["file"] in S.sources:
        return "%s%s, line %s%s" % (match["indent"], match["file"], match["line"], match["rest"])
    return line


def _trim(error, seen, trimmed):
    """Take our own frames out of an exception and all it is linked with."""
    todo = [error]
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        tb = one.__traceback__
        clean = _without_ours(tb)
        if clean is not tb:
            trimmed.append((one, tb))
            one.__traceback__ = clean
        todo += [one.__cause__, one.__context__]
        todo += getattr(one, "exceptions", ()) if _is_group(one) else ()


def _is_group(error):
    group = getattr(__builtins__, "BaseExceptionGroup", None)
    if isinstance(__builtins__, dict):
        group = __builtins__.get("BaseExceptionGroup")
    return group is not None and isinstance(error, group)


def _without_ours(tb):
    entries, ours = [], False
    while tb is not None:
        name = tb.tb_frame.f_globals.get("__name__")
        if type(name) is str and (name == _OURS or name.startswith(_OURS + ".")):
            ours = True
        elif ours and not entries and type(name) is str and name.startswith("asyncio."):
            pass  # the loop that runs a cell with await
        else:
            entries.append(tb)
        tb = tb.tb_next
    if not ours:
        return entries[0] if entries else None
    clean = None
    for entry in reversed(entries):
        clean = types.TracebackType(clean, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return clean


def _publish_sources():
    """Give linecache the cells it may have lost (clearcache, checkcache)."""
    for name, code in list(S.sources.items())[-200:]:
        if name not in linecache.cache:
            linecache.cache[name] = (lambda code=code: code,)


def _extras(error):
    """What a failed child process said, if it was captured."""
    subprocess = sys.modules.get("subprocess")
    if subprocess is None or not isinstance(error, getattr(subprocess, "CalledProcessError", ())):
        return []
    lines = []
    for label in ("stdout", "stderr"):
        said = getattr(error, label, None)
        if isinstance(said, bytes):
            said = said.decode("utf-8", "replace")
        if isinstance(said, str) and said.strip():
            tail = said.rstrip().split("\n")[-40:]
            lines += ["--- %s of the command ---" % label] + tail
    return lines
