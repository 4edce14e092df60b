"""%run, %%capture"""

import io
import os
import sys
import types

from .. import lazy
from ..state import STATE
from . import UsageError, options, split


class ScriptExit(Exception):
    """A script run by %run exited with a code other than 0."""


_USAGE = "%run [-i] [-n] [-e] [-G] file [args], %run -m module [args]"


def _split_module(line):
    """Return (options before -m, module, its arguments), or None without -m."""
    words = split(line)
    for index, word in enumerate(words):
        if not word.startswith("-") or word == "--":
            return None
        letters = word[1:]
        if not letters.startswith("-") and "m" in letters:
            head, _, module = letters.partition("m")
            rest = words[index + 1 :]
            if not module:
                if not rest:
                    raise UsageError("option -m requires a module; " + _USAGE)
                module, rest = rest[0], rest[1:]
            return words[:index] + (["-" + head] if head else []), module, _after_dashes(rest)
    return None


def _after_dashes(words):
    return words[1:] if words[:1] == ["--"] else words


def run(shell, line):
    """%run [-i] [-n] [-e] [-G] file [args], %run -m module [args]: run a script (or the cells of a
    notebook) and add its names to the namespace. Patterns such as *.csv are expanded unless -G."""
    flags = ("i", "n", "e", "G")
    with_module = _split_module(line)
    if with_module is not None:
        found = options(" ".join(with_module[0]), flags, (), _USAGE)[0]
        _run_module(with_module[1], _expanded(with_module[2], found), found)
        return
    found, rest = options(line, flags, (), _USAGE)
    words = split(rest)
    if not words:
        raise UsageError("%run needs a file name")
    code = lazy.load("magics.code")
    path = code.find_file(words[0])
    if path is None:
        # As in IPython, which has no class for it.
        raise Exception("File `%r` not found." % os.path.expanduser(words[0]))
    if path.endswith(".ipynb"):
        _run_notebook(shell, path)
        return
    arguments = _expanded(_after_dashes(words[1:]), found)
    source = code.read(path)
    if path.endswith(".ipy"):
        source = lazy.load("transform").transform_cell(source)
    compiled = compile(source, os.path.abspath(path), "exec", 0, True)
    _run_script(shell, path, compiled, arguments, found)


def _expanded(words, found):
    """Expand patterns and `~` in arguments; a pattern without a match stays as it is."""
    if "G" in found:
        return words
    glob = lazy.stdlib("glob")
    expanded = []
    for word in words:
        word = os.path.expanduser(word)
        expanded += sorted(glob.glob(word)) or [word.replace("\\*", "*")]
    return expanded


def _run_module(name, arguments, found):
    argv, sys.argv = sys.argv, ["-m"] + arguments
    try:
        names = lazy.stdlib("runpy").run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as stop:
        _check_exit(name, stop, found)
        return
    finally:
        sys.argv = argv
    STATE.ns.update({k: v for k, v in names.items() if not k.startswith("__")})


def _check_exit(name, stop, found):
    if stop.code not in (None, 0) and "e" not in found:
        raise ScriptExit("%s ended with exit code %r" % (name, stop.code)) from None


def _run_script(shell, path, code, arguments, found):
    main, argv, path_entries = sys.modules["__main__"], sys.argv, sys.path[:]
    name = os.path.splitext(os.path.basename(path))[0] if "n" in found else "__main__"
    if "i" in found:
        names = STATE.ns
        saved = {key: names[key] for key in ("__file__", "__name__") if key in names}
    else:
        module = types.ModuleType("__main__")
        names, saved = module.__dict__, {}
        names["__builtins__"] = __builtins__
        sys.modules["__main__"] = module
        # Functions of the script need their globals.
        shell.scripts = getattr(shell, "scripts", [])[-20:] + [module]
    names.update(__file__=path, __name__=name)
    sys.argv = [path] + arguments
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    runs_script, STATE.runs_script = STATE.runs_script, True
    try:
        exec(code, names)
    except SystemExit as stop:
        _check_exit(path, stop, found)
    finally:
        STATE.runs_script = runs_script
        sys.modules["__main__"], sys.argv = main, argv
        sys.path[:] = path_entries
        if "i" in found:
            names.pop("__file__", None)
            names.update(saved)
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
    captured = capture_output(*["no-" + name not in found for name in _STREAMS])
    try:
        with captured:
            shell.run_body(body, lines_above=1)
            if STATE.figures is not None:
                STATE.figures.show_all()
    finally:
        if words:
            STATE.ns[words[0]] = captured.result


_STREAMS = ("stdout", "stderr", "display")


class capture_output:  # noqa: N801 (the name IPython users know)
    """Context manager: collects the output of its block in a `CapturedOutput`."""

    def __init__(self, stdout=True, stderr=True, display=True):
        self._out = io.StringIO() if stdout else None
        self._err = io.StringIO() if stderr else None
        self.result = CapturedOutput(self._out, self._err, [] if display else None)

    def __enter__(self):
        self._saved = sys.stdout, sys.stderr, STATE.captured_displays
        sys.stdout, sys.stderr = self._out or sys.stdout, self._err or sys.stderr
        if self.result._outputs is not None:
            STATE.captured_displays = self.result._outputs
        return self.result

    def __exit__(self, *error):
        sys.stdout, sys.stderr, STATE.captured_displays = self._saved
