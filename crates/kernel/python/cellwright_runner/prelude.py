"""The names that every cell finds: read, write, env, run, output, tool, log, phase.

Loaded at every start, so it holds signatures and documentation only; what they do is loaded when
they are first called. Annotations that are not plain names are strings: nothing is imported for
them.
"""

import os

from . import lazy
from .state import S

OFF = "CELLWRIGHT_PRELUDE"  # "0" in the environment: none of these names


def read(path: str, offset: int = 1, limit: "int | None" = None) -> str:
    """Read the text of a file, from line `offset` on, at most `limit` lines.

    Lines count from 1. A notebook is read as text with cell markers, `artifact://N` as the full
    output that was kept under that number.
    """
    return lazy.load("prelude_files").read(path, offset, limit)


def write(path: str, content: "str | bytes") -> str:
    """Write a file, making folders as needed, and return its path.

    Into a notebook goes the text with cell markers that `read` gives, or a whole JSON document.
    """
    return lazy.load("prelude_files").write(path, content)


def env(key: "str | None" = None, value: "str | None" = None) -> "str | dict | None":
    """Look up an environment variable, set it, or get all of them as a dict.

    A variable that is not set is None.
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
) -> "Result":
    """Run a command and return what it printed and its exit code.

    A text goes to the shell, a list is a program with its arguments. The result has `stdout`,
    `stderr` and `returncode` and is true if the code is 0; with `check` another code raises
    CalledProcessError. A command that takes more than `timeout` seconds is ended, with everything
    it started, and TimeoutExpired is raised.
    """
    return lazy.load("prelude_run").run(cmd, cwd, timeout, check)


def output(
    id: "int | str",
    *,
    query: "str | None" = None,
    offset: "int | None" = None,
    limit: "int | None" = None,
) -> object:
    """Read a full output that was kept: `output(3)` or `output("artifact://3")`.

    `offset` and `limit` choose lines, which count from 1. With `query` the output is taken as JSON
    and a part of it is returned: `query="rows[0].name"`.
    """
    return lazy.load("prelude_files").output(id, query, offset, limit)


def log(message: object) -> None:
    """Tell whoever follows the run what is going on."""
    status({"op": "log", "message": str(message)})


def phase(title: object) -> None:
    """Tell whoever follows the run that a new part of it begins."""
    status({"op": "phase", "title": str(title)})


def status(event):
    """Send a status event: it is no output, and no part of the text that is shown."""
    if not S.forked:
        send = S.publish or lazy.load("display").send
        send({"application/x-cellwright-status": event}, {})


class ToolError(RuntimeError):
    """A verb of Cellwright failed; `kind` and `exit_code` say how, `hints` what to do."""

    kind = None
    exit_code = None
    hints = ()


class Tool:
    """Cellwright's own verbs: `tool.read("a.ipynb:cells=1-3")`, `tool["edit"](…)`.

    Arguments without a name are the verb's own in the order of the command line, the others its
    flags: `all=True` is `--all`, `source_file="x"` is `--source-file x`. The answer is what `--json`
    prints, as Python objects; `tool.read` gives the text. What fails raises ToolError.
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
    """Put the names into the namespace; `%reset` brings them back, `variables` hides them."""
    if os.environ.get(OFF) == "0":
        return
    S.prelude = True
    kept = S.kept
    for function in FUNCTIONS:
        kept[function.__name__] = function
    kept["tool"] = tool
    kept["ToolError"] = ToolError
    ns.update(kept)
