"""name?, name??, *pattern*? and what stands behind them."""

import builtins
import fnmatch

from .. import lazy
from ..state import S
from . import USAGE, UsageError, find


def page(text):
    """Where there is a pager, it is for that: a notebook does not keep it."""
    shown = lazy.load("display")
    shown.aside(True)
    try:
        print(text)
    finally:
        shown.aside(False)


def _show(shell, line, detail):
    name = line.strip()
    if name.startswith("%"):
        bare = name.lstrip("%")
        kind = "cell" if name.startswith("%%") else "line"
        if not (find(shell, bare, kind) or find(shell, bare)):
            print("Object `%s` not found." % name)
            return
        page(lazy.load("magics.describe").text(shell, bare))
        return
    found = lazy.load("inspection").describe(name, detail)
    if found is None:
        print("Object `%s` not found." % name)
    else:
        page(found["text"])


def pinfo(shell, line):
    """name?"""
    _show(shell, line, 0)


def pinfo2(shell, line):
    """name??"""
    _show(shell, line, 1)


def psearch(shell, line):
    """*pattern*?: names that match."""
    pattern = line.strip()
    head, dot, tail = pattern.rpartition(".")
    if dot:
        found = lazy.load("inspection").resolve(head)
        if found is None:
            raise UsageError("Object `%s` not found." % head)
        names = lazy.load("completion").names_of(found[0])
        prefix = head + "."
    else:
        names, prefix, tail = set(S.ns) | set(dir(builtins)), "", pattern
    lowered = tail == tail.lower()
    hits = [
        name
        for name in sorted(names)
        if (not name.startswith("_") or tail.startswith("_"))
        and fnmatch.fnmatchcase(name.lower() if lowered else name, tail)
    ]
    page("\n".join(prefix + name for name in hits))


def quickref(shell, line):
    """%quickref"""
    page(USAGE)


def magic(shell, line):
    """%magic"""
    page(USAGE)
