"""is_complete: whether a text can be run, is incomplete, or is invalid."""

import re
import warnings

from . import cell, lazy
from .scanner import logical_line

_INCOMPLETE_MESSAGES = (
    "unexpected EOF",
    "was never closed",
    "unterminated triple-quoted",
    "EOF while scanning triple",
    "expected an indented block",
    "incomplete input",
    "expected 'except' or 'finally' block",
)


def is_complete(request):
    """Return the reply to `is_complete`."""
    code = request.get("code") or ""
    status = _status(code)
    return {"status": status, "indent": _indent(code) if status == "incomplete" else ""}


def _status(code):
    if not code.strip():
        return "complete"
    lines = code.split("\n")
    first = code.lstrip()
    if first.startswith("%%"):
        return "complete" if len(lines) > 1 and not lines[-1].strip() else "incomplete"
    if code.rstrip(" \t").endswith("\\"):
        return "incomplete"
    try:
        text = lazy.load("transform").transform_cell(code)
    except Exception:
        return "invalid"
    at = 0
    while at < len(text):
        line = logical_line(text, at)
        if not line.complete:
            # An unclosed bracket or string, unless the text before it is invalid.
            return "incomplete" if _try_compile(text)[0] is not False else "invalid"
        at = max(line.end, at + 1)
    if lines[-1].lstrip().startswith("@"):
        return "incomplete"  # a decorator needs its function
    compiles, message = _try_compile(text)
    if compiles is None:
        return "incomplete"
    if not compiles:
        return "invalid"
    last = lines[-1]
    if len(lines) > 1 and last.strip() and last[0] in " \t" and _in_block(text):
        return "incomplete"  # still inside the block; an empty line ends it
    if _opens_block(lines):
        return "incomplete"
    return "complete"


def _opens_block(lines):
    """Return whether the text is a one-line compound statement (`if x: y`), which an empty line
    ends, as in every REPL."""
    return (
        len(lines) == 1
        and bool(re.match(r"\s*(if|for|while|with|def|class|try|async|@)\b.*:\s*\S", lines[0]))
        and not lines[0].rstrip().endswith(";")
    )


def _in_block(text):
    return any(line[:1] in " \t" for line in text.rstrip("\n").split("\n")[-1:])


def _try_compile(text):
    """Return (True, False, or None for incomplete; message)."""
    flags = cell.TOP_LEVEL_AWAIT | cell.ONLY_AST
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "<check>", "exec", flags, True)
            return True, ""
        except SyntaxError as error:
            message = str(error.msg)
            last = text.rstrip("\n").count("\n") + 1
            at_end = (error.lineno or 0) >= last or "never closed" in message or "triple" in message
            if any(fragment in message for fragment in _INCOMPLETE_MESSAGES) and at_end:
                return None, message
            return False, message
        except (ValueError, OverflowError, RecursionError, MemoryError) as error:
            return False, str(error)


def _indent(code):
    last = code.rstrip("\n").split("\n")[-1]
    indent = last[: len(last) - len(last.lstrip(" \t"))]
    if last.rstrip().endswith(":"):
        indent += "    "
    return indent
