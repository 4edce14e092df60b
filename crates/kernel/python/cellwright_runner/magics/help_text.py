"""The help text of a magic."""

import inspect

from .. import lazy
from . import CELL, LINE, find


def text(shell, name):
    """Return the text that `%name?` shows."""
    for kind, table in (("line", LINE), ("cell", CELL)):
        entry = table.get(name)
        if entry is not None and name not in shell.custom_magics[kind]:
            function = getattr(lazy.load("magics." + entry[0]), entry[1])
            return "Docstring: %s" % (inspect.getdoc(function) or "<no docstring>")
    function = find(shell, name) or find(shell, name, "cell")
    return "Docstring: %s" % (inspect.getdoc(function) or "<no docstring>")
