"""Magics that need a terminal: they raise an error instead of hanging the cell."""

from . import UsageError


def debug(shell, line):
    """%debug"""
    raise UsageError("%debug needs a terminal; read the traceback, or print the values")


def pdb(shell, line):
    """%pdb"""
    if line.strip().lower() in ("0", "off"):
        return
    raise UsageError("%pdb needs a terminal; read the traceback, or print the values")


def gui(shell, line):
    """%gui: accepted and ignored; there is no GUI event loop."""


def no_editor(shell, line):
    """%edit"""
    raise UsageError("%edit needs an editor; use %%writefile or edit the file outside")
