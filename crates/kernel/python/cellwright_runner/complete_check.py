"""is_complete: may the text be run, or is there more to come?"""

import re
import warnings

from . import cell, lazy
from .scanner import logical_line

_MORE = (
    "unexpected EOF",
    "was never closed",
    "unterminated triple-quoted",
    "EOF while scanning triple",
    "expected an indented block",
    "incomplete input",
    "expected 'except' or 'finally' block",
)


def is_complete(request):
    """The reply to `is_complete`."""
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
            # An unclosed bracket or string; unless something before it is wrong already.
            return "incomplete" if _compiles(text)[0] is not False else "invalid"
        at = max(line.end, at + 1)
    if lines[-1].lstrip().startswith("@"):
        return "incomplete"  # a decorator wants its function
    good, message = _compiles(text)
    if good is None:
        return "incomplete"
    if not good:
        return "invalid"
    last = lines[-1]
    if len(lines) > 1 and last.strip() and last[0] in " \t" and _in_block(text):
        return "incomplete"  # still inside the block; an empty line ends it
    if _opens_block(lines):
        return "incomplete"
    return "complete"


def _opens_block(lines):
    """A one-line compound statement (`if x: y`) waits for an empty line, as in every REPL."""
    return (
        len(lines) == 1
        and bool(re.match(r"\s*(if|for|while|with|def|class|try|async|@)\b.*:\s*\S", lines[0]))
        and not lines[0].rstrip().endswith(";")
    )


def _in_block(text):
    return any(line[:1] in " \t" for line in text.rstrip("\n").split("\n")[-1:])


def _compiles(text):
    """(True | False | None for more to come, message)"""
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
            if any(sign in message for sign in _MORE) and at_end:
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
