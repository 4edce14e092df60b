"""The names that every cell has: read, write, env, run, output, tool, log, phase.

Loaded at every start, so this module contains only signatures and documentation; their code is
loaded on the first call. Annotations that are not plain names are strings, so that they need no
imports.
"""

import os

from . import lazy
from .state import STATE

PRELUDE_VARIABLE = "CELLWRIGHT_PRELUDE"  # "0" in the environment turns the prelude off


def read(path: str, offset: int = 1, limit: "int | None" = None) -> str:
    """Read the text of a file: at most `limit` lines, starting at line `offset`.

    Lines count from 1. A notebook is read as text with cell markers, `artifact://N` as the full
    output that is stored under that number.
    """
    return lazy.load("prelude_files").read(path, offset, limit)


def write(path: str, content: "str | bytes") -> str:
    """Write a file, creating directories as needed, and return its path.

    The content of a notebook is text with cell markers, as `read` returns it, or a whole JSON
    document.
    """
    return lazy.load("prelude_files").write(path, content)


def env(key: "str | None" = None, value: "str | None" = None) -> "str | dict | None":
    """Return an environment variable, set it, or return all variables as a dict.

    The value of a variable that is not set is None.
    """
    if key is None:
        if value is not None:
            raise TypeError("env() takes a value only together with a key")
        return dict(sorted(os.environ.items()))
    if value is not None:
        os.environ[key] = str(value)
    return os.environ.get(key)


def run(
    cmd: "str | list",
    *,
    cwd: "str | None" = None,
    timeout: "float | None" = None,
    check: bool = False,
) -> "Result":  # noqa: F821 (defined in prelude_run)
    """Run a command and return its output and exit code.

    A string is run by the shell, a list is a program with its arguments. The result has `stdout`,
    `stderr` and `returncode` and is true if the code is 0; with `check` another code raises
    CalledProcessError. A command that takes more than `timeout` seconds is killed with all
    processes it started, and TimeoutExpired is raised.
    """
    return lazy.load("prelude_run").run(cmd, cwd, timeout, check)


def output(
    id: "int | str",
    *,
    query: "str | None" = None,
    offset: "int | None" = None,
    limit: "int | None" = None,
) -> object:
    """Read a stored full output: `output(3)` or `output("artifact://3")`.

    `offset` and `limit` select lines, which count from 1. With `query` the output is parsed as JSON
    and a part of it is returned: `query="rows[0].name"`.
    """
    return lazy.load("prelude_files").output(id, query, offset, limit)


def log(message: object) -> None:
    """Send a progress message to the clients that follow the run."""
    status({"op": "log", "message": str(message)})


def phase(title: object) -> None:
    """Announce the start of a new part of the run to the clients that follow it."""
    status({"op": "phase", "title": str(title)})


def status(event):
    """Send a status event. It is not an output and not part of the displayed text."""
    if not STATE.forked:
        send = STATE.publish_override or lazy.load("display").send
        send({"application/x-cellwright-status": event}, {})


class ToolError(RuntimeError):
    """A Cellwright verb failed; `kind` and `exit_code` classify the failure, `hints` suggest
    fixes."""

    kind = None
    exit_code = None
    hints = ()


class Tool:
    """Cellwright's verbs: `tool.read("a.ipynb:cells=1-3")`, `tool["edit"](…)`.

    Positional arguments are the verb's arguments in the order of the command line, keyword
    arguments its flags: `all=True` is `--all`, `source_file="x"` is `--source-file x`. A call
    returns what `--json` prints, as Python objects; `tool.read` returns the text. A failure raises
    ToolError.
    """

    __slots__ = ()

    def __getattr__(self, name):
        return lazy.load("bridge").verb(name)

    def __getitem__(self, name):
        return lazy.load("bridge").verb_or_key_error(name)

    def __dir__(self):
        return sorted(lazy.load("bridge").VERBS)

    def __repr__(self):
        return "<tool: %s>" % ", ".join(dir(self))


tool = Tool()

FUNCTIONS = (read, write, env, run, output, log, phase)


def install(ns):
    """Add the names to the namespace; `%reset` restores them, `variables` hides them."""
    if os.environ.get(PRELUDE_VARIABLE) == "0":
        return
    STATE.prelude_installed = True
    names = STATE.prelude_names
    for function in FUNCTIONS:
        names[function.__name__] = function
    names["tool"] = tool
    names["ToolError"] = ToolError
    ns.update(names)
