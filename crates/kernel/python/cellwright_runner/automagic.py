"""Magics without `%` in a cell of one line (`pip list`, `ls -l`, `cd ..`), names of macros, and `exit`
without parentheses."""

import re

from . import lazy
from .state import STATE

_WORD = re.compile(r"\s*(\w+)\s*(.*)", re.DOTALL)
# IPython's line magics that the runner does not have. Looking for a name in IPython itself would load
# it for every misspelled name.
_OF_IPYTHON = frozenset(
    "alias_magic autoawait bookmark code_wrap colors doctest_mode gui killbgscripts less man more"
    " mprun memit lprun notebook page pastebin pdef pdoc pfile prun psource pycat pypi quickref"
    " rehashx sc subshell".split()
)


def transform(code):
    """Return the call of the magic, or the code itself if its first word is no magic."""
    word, rest = _WORD.match(code).groups()
    if word in STATE.ns:
        value = STATE.ns[word]
        if not isinstance(value, lazy.load("magics.code").Macro):
            return code
        return lazy.load("transform").transform_cell(value.value)
    if word in ("exit", "quit"):
        return word + "()\n"
    shell = lazy.load("ipython_shell").make()
    if not shell.automagic or not _is_line_magic(shell, word):
        return code
    return "get_ipython().run_line_magic(%r, %r)\n" % (word, rest.rstrip("\n"))


def _is_line_magic(shell, word):
    magics = lazy.load("magics")
    if word in shell.custom_magics["line"] or word in magics.LINE:
        return True
    if shell.ipython_shell is None and word not in _OF_IPYTHON:
        return False
    real = lazy.load("ipython_installed").real_shell(shell)
    return real is not None and real.find_magic(word, "line") is not None
