"""name?, name??, *pattern*? and the magics that implement them."""

import builtins
import fnmatch

from .. import lazy
from ..state import STATE
from . import USAGE, UsageError, find


def page(text):
    """Print text that Jupyter shows in a pager and does not store in a notebook."""
    display = lazy.load("display")
    display.redirect_output(True)
    try:
        print(text)
    finally:
        display.redirect_output(False)


def _show_help(shell, line, detail):
    name = line.strip()
    if name.startswith("%"):
        magic_name = name.lstrip("%")
        kind = "cell" if name.startswith("%%") else "line"
        if not (find(shell, magic_name, kind) or find(shell, magic_name)):
            print("Object `%s` not found." % name)
            return
        page(lazy.load("magics.help_text").text(shell, magic_name))
        return
    found = lazy.load("inspection").describe(name, detail)
    if found is None:
        print("Object `%s` not found." % name)
    else:
        page(found["text"])


def pinfo(shell, line):
    """name?"""
    _show_help(shell, line, 0)


def pinfo2(shell, line):
    """name??"""
    _show_help(shell, line, 1)


def psearch(shell, line):
    """*pattern*?: names that match."""
    pattern = line.strip()
    head, dot, tail = pattern.rpartition(".")
    if dot:
        found = lazy.load("inspection").resolve(head)
        if found is None:
            raise UsageError("Object `%s` not found." % head)
        names = lazy.load("completion").attribute_names(found[0])
        prefix = head + "."
    else:
        names, prefix, tail = set(STATE.ns) | set(dir(builtins)), "", pattern
    lowered = tail == tail.lower()
    matches = [
        name
        for name in sorted(names)
        if (not name.startswith("_") or tail.startswith("_"))
        and fnmatch.fnmatchcase(name.lower() if lowered else name, tail)
    ]
    page("\n".join(prefix + name for name in matches))


def quickref(shell, line):
    """%quickref"""
    page(USAGE)


def magic(shell, line):
    """%magic"""
    page(USAGE)
