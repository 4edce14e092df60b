"""%run, %load, %pycat, %%capture"""

import io
import os
import sys
import types

from .. import lazy
from ..state import S
from . import UsageError, options, split


class ScriptExit(Exception):
    """A script run by %run ended with a code other than 0."""


def _find(name):
    path = os.path.expanduser(name)
    for candidate in (path, path + ".py"):
        if os.path.isfile(candidate):
            return candidate
    raise OSError("File `%r` not found." % path)


def _read(path):
    with lazy.stdlib("tokenize").open(path) as file:
        return file.read()


def run(shell, line):
    """%run [-i] [-n] [-e] file [args]: run a script (or the cells of a notebook) and take its
    names."""
    found, rest = options(line, ("i", "n", "e", "G"), ("m",), "%run [-i] [-n] [-e] file [args]")
    words = split(rest)
    if "m" in found:
        runpy = lazy.stdlib("runpy")
        names = runpy.run_module(found["m"], run_name="__main__", alter_sys=True)
        S.ns.update({k: v for k, v in names.items() if not k.startswith("__")})
        return
    if not words:
        raise UsageError("%run needs a file name")
    path = _find(words[0])
    if path.endswith(".ipynb"):
        _run_notebook(shell, path)
        return
    arguments = [os.path.expanduser(word) for word in words[1:]]
    source = _read(path)
    if path.endswith(".ipy"):
        source = lazy.load("transform").transform_cell(source)
    code = compile(source, os.path.abspath(path), "exec", 0, True)
    main, argv, first = sys.modules["__main__"], sys.argv, sys.path[:]
    if "i" in found:
        names, had = S.ns, S.ns.get("__file__")
        names["__file__"] = path
    else:
        module = types.ModuleType("__main__")
        names, had = module.__dict__, None
        names.update(__file__=path, __builtins__=__builtins__)
        if "n" in found:
            names["__name__"] = os.path.splitext(os.path.basename(path))[0]
        sys.modules["__main__"] = module
        shell.scripts = getattr(shell, "scripts", [])[-20:] + [
            module
        ]  # functions need their globals
    sys.argv = [path] + arguments
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        exec(code, names)
    except SystemExit as stop:
        if stop.code not in (None, 0) and "e" not in found:
            raise ScriptExit("%s ended with exit code %r" % (path, stop.code)) from None
    finally:
        sys.modules["__main__"], sys.argv = main, argv
        sys.path[:] = first
        if "i" in found:
            if had is None:
                S.ns.pop("__file__", None)
            else:
                S.ns["__file__"] = had
    if "i" not in found:
        S.ns.update(
            {k: v for k, v in names.items() if not (k.startswith("__") and k.endswith("__"))}
        )


def _run_notebook(shell, path):
    with open(path, encoding="utf-8") as file:
        notebook = lazy.stdlib("json").load(file)
    for cell in notebook.get("cells", ()):
        if cell.get("cell_type") == "code":
            shell.run_body("".join(cell.get("source", ())))


def load(shell, line):
    """%load file: show the text that an editor would put into the cell."""
    _, rest = options(line, ("y", "n"), ("r", "s"), "%load file")
    if not rest:
        raise UsageError("Missing filename, URL, input history range, or macro.")
    print(_read(_find(split(rest)[0])).rstrip("\n"))


def pycat(shell, line):
    """%pycat file: show a Python file."""
    load(shell, line)


class Captured:
    """What %%capture puts into its variable."""

    def __init__(self, out, err, outputs):
        self._out = out
        self._err = err
        self._outputs = outputs

    @property
    def stdout(self):
        return self._out.getvalue() if self._out else ""

    @property
    def stderr(self):
        return self._err.getvalue() if self._err else ""

    @property
    def outputs(self):
        return [Shown(*output) for output in self._outputs or ()]

    def __str__(self):
        return self.stdout

    def show(self):
        """Show again everything that was captured."""
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)
        for output in self.outputs:
            output.display()

    __call__ = show


class Shown:
    """One captured display."""

    def __init__(self, data, metadata):
        self.data = data
        self.metadata = metadata

    def display(self):
        """Show it."""
        lazy.load("display").publish(self.data, self.metadata)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return self.data, self.metadata

    def __repr__(self):
        return self.data.get("text/plain", "<captured output>")


def capture(shell, line, body):
    """%%capture [--no-stdout] [--no-stderr] [--no-display] [name]: keep the output in a
    variable."""
    flags = ("no-stdout", "no-stderr", "no-display")
    usage = "%%capture [--no-stdout] [--no-stderr] [--no-display] [name]"
    words, found = [], {}
    for word in split(line):
        if word.startswith("--"):
            found.update(options(word, flags, (), usage)[0])
        else:
            words.append(word)
    out = None if "no-stdout" in found else io.StringIO()
    err = None if "no-stderr" in found else io.StringIO()
    outputs = None if "no-display" in found else []
    kept = sys.stdout, sys.stderr, S.capture
    try:
        sys.stdout, sys.stderr = out or sys.stdout, err or sys.stderr
        if outputs is not None:
            S.capture = outputs
        shell.run_body(body, lines_above=1)
        if S.figures is not None:
            S.figures.show_all()
    finally:
        sys.stdout, sys.stderr, S.capture = kept
        if words:
            S.ns[words[0]] = Captured(out, err, outputs)
