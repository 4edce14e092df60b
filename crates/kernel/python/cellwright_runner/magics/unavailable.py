"""Magics that need a terminal: a clear error instead of a hanging cell."""

from . import UsageError


def debug(shell, line):
    """%debug"""
    raise UsageError("%debug needs a terminal; look at the traceback, or print what you need")


def pdb(shell, line):
    """%pdb"""
    if line.strip().lower() in ("0", "off"):
        return
    raise UsageError("%pdb needs a terminal; look at the traceback, or print what you need")


def gui(shell, line):
    """%gui: there is no event loop of a GUI to join; accepted."""


def no_editor(shell, line):
    """%edit"""
    raise UsageError("%edit needs an editor; use %%writefile or edit the file outside")
