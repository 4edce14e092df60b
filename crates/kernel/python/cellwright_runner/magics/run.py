"""%run, %load, %pycat, %%capture"""

import io
import os
import sys
import types

from .. import lazy
from ..state import STATE
from . import UsageError, options, split


class ScriptExit(Exception):
    """A script run by %run exited with a code other than 0."""


def _find_file(name):
    path = os.path.expanduser(name)
    for candidate in (path, path + ".py"):
        if os.path.isfile(candidate):
            return candidate
    raise OSError("File `%r` not found." % path)


def _read(path):
    with lazy.stdlib("tokenize").open(path) as file:
        return file.read()


def run(shell, line):
    """%run [-i] [-n] [-e] file [args]: run a script (or the cells of a notebook) and add its names
    to the namespace."""
    found, rest = options(line, ("i", "n", "e", "G"), ("m",), "%run [-i] [-n] [-e] file [args]")
    words = split(rest)
    if "m" in found:
        runpy = lazy.stdlib("runpy")
        names = runpy.run_module(found["m"], run_name="__main__", alter_sys=True)
        STATE.ns.update({k: v for k, v in names.items() if not k.startswith("__")})
        return
    if not words:
        raise UsageError("%run needs a file name")
    path = _find_file(words[0])
    if path.endswith(".ipynb"):
        _run_notebook(shell, path)
        return
    arguments = [os.path.expanduser(word) for word in words[1:]]
    source = _read(path)
    if path.endswith(".ipy"):
        source = lazy.load("transform").transform_cell(source)
    code = compile(source, os.path.abspath(path), "exec", 0, True)
    main, argv, path_entries = sys.modules["__main__"], sys.argv, sys.path[:]
    if "i" in found:
        names, previous_file = STATE.ns, STATE.ns.get("__file__")
        names["__file__"] = path
    else:
        module = types.ModuleType("__main__")
        names, previous_file = module.__dict__, None
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
        sys.path[:] = path_entries
        if "i" in found:
            if previous_file is None:
                STATE.ns.pop("__file__", None)
            else:
                STATE.ns["__file__"] = previous_file
    if "i" not in found:
        STATE.ns.update(
            {k: v for k, v in names.items() if not (k.startswith("__") and k.endswith("__"))}
        )


def _run_notebook(shell, path):
    with open(path, encoding="utf-8") as file:
        notebook = lazy.stdlib("json").load(file)
    for cell in notebook.get("cells", ()):
        if cell.get("cell_type") == "code":
            shell.run_body("".join(cell.get("source", ())))


def load(shell, line):
    """%load file: print the text of a file."""
    _, rest = options(line, ("y", "n"), ("r", "s"), "%load file")
    if not rest:
        raise UsageError("Missing filename, URL, input history range, or macro.")
    print(_read(_find_file(split(rest)[0])).rstrip("\n"))


def pycat(shell, line):
    """%pycat file: print a Python file."""
    load(shell, line)


class CapturedOutput:
    """The value that %%capture assigns to its variable."""

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
        return [CapturedDisplay(*output) for output in self._outputs or ()]

    def __str__(self):
        return self.stdout

    def show(self):
        """Show all captured outputs."""
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)
        for output in self.outputs:
            output.display()

    __call__ = show


class CapturedDisplay:
    """One captured display."""

    def __init__(self, data, metadata):
        self.data = data
        self.metadata = metadata

    def display(self):
        """Show the display."""
        lazy.load("display").publish(self.data, self.metadata)

    def _repr_mimebundle_(self, include=None, exclude=None):
        return self.data, self.metadata

    def __repr__(self):
        return self.data.get("text/plain", "<captured output>")


def capture(shell, line, body):
    """%%capture [--no-stdout] [--no-stderr] [--no-display] [name]: store the output in a
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
    saved = sys.stdout, sys.stderr, STATE.captured_displays
    try:
        sys.stdout, sys.stderr = out or sys.stdout, err or sys.stderr
        if outputs is not None:
            STATE.captured_displays = outputs
        shell.run_body(body, lines_above=1)
        if STATE.figures is not None:
            STATE.figures.show_all()
    finally:
        sys.stdout, sys.stderr, STATE.captured_displays = saved
        if words:
            STATE.ns[words[0]] = CapturedOutput(out, err, outputs)
