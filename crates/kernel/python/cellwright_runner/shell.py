"""Shell lines: `!cmd`, `x = !cmd`, and the expansion of {x} and $x in them and in magics."""

import codecs
import os
import re
import selectors
import subprocess
import sys

from . import lazy
from .state import STATE
from .streams import OUTPUT

_SHELLS = ("sh", "bash", "zsh", "dash", "ksh")
_DOLLAR = re.compile(r"\$(\$?[\w.]+)(?=(?:[^']*'[^']*')*[^']*$)")


def shell_program():
    """Return the shell for commands: the user's shell if it understands sh syntax, else None, which
    means /bin/sh."""
    user_shell = os.environ.get("SHELL", "")
    return (
        user_shell
        if os.path.basename(user_shell) in _SHELLS and os.access(user_shell, os.X_OK)
        else None
    )


def wait(process):
    """Wait for a child. After an interrupt, which the child receives too, it has one second to exit
    before it is terminated."""
    try:
        return process.wait()
    except BaseException:
        terminate_after_grace(process)
        raise


def terminate_after_grace(process):
    """Wait one second for a child to exit, then terminate it."""
    try:
        process.wait(1)
    except subprocess.TimeoutExpired:
        process.terminate()


def streams_are_original():
    """Return False while a cell has replaced sys.stdout or sys.stderr."""
    return sys.stdout is OUTPUT.out.text and sys.stderr is OUTPUT.err.text


def call(command, **options):
    """Run a command on fd 1, or copy its output to sys.stdout if a cell replaced that. As in
    notebooks, where commands have a pseudo-terminal, stderr text is part of stdout."""
    options["stderr"] = subprocess.STDOUT
    if STATE.captured_displays is None and (STATE.forked or streams_are_original()):
        return wait(subprocess.Popen(command, stdin=subprocess.DEVNULL, **options))
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        **options,
    )
    copy_output(process)
    return wait(process)


def copy_output(process):
    """Copy the output of a child to sys.stdout and sys.stderr as it arrives."""
    decoder = codecs.getincrementaldecoder("utf-8")
    with selectors.DefaultSelector() as selector:
        for pipe, name in ((process.stdout, "stdout"), (process.stderr, "stderr")):
            if pipe is not None:
                selector.register(pipe, selectors.EVENT_READ, (name, decoder("replace")))
        while selector.get_map():
            for key, _ in selector.select():
                name, decode = key.data
                data = os.read(key.fd, 65536)
                getattr(sys, name).write(decode.decode(data, not data))
                if not data:
                    selector.unregister(key.fileobj)


def system(command):
    """`!cmd`: live output; sets `_exit_code` to the exit code."""
    code = call(expand(command), shell=True, executable=shell_program())
    STATE.ns["_exit_code"] = code


def getoutput(command, split=True):
    """`x = !cmd`: returns the lines of stdout and stderr."""
    process = subprocess.Popen(
        expand(command),
        shell=True,
        executable=shell_program(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        out = process.communicate()[0]
    except BaseException:
        terminate_after_grace(process)
        raise
    STATE.ns["_exit_code"] = process.returncode
    text = out.decode("utf-8", "replace").replace("\r\n", "\n")
    if not split:
        return text
    return SList(text.splitlines())


class SList(list):
    """A list of lines that is also available as one text (.n, .s) and as paths (.p), with the
    methods grep and fields."""

    @property
    def l(self):  # noqa: E743 (the name IPython users know)
        return self

    list = l

    @property
    def n(self):
        return "\n".join(self)

    nlstr = n

    @property
    def s(self):
        return " ".join(self)

    spstr = s

    @property
    def p(self):
        Path = lazy.stdlib("pathlib").Path
        return [Path(line) for line in self if os.path.exists(line)]

    paths = p

    def get_list(self):
        return self

    def get_nlstr(self):
        return self.n

    def get_spstr(self):
        return self.s

    def get_paths(self):
        return self.p

    def grep(self, pattern, prune=False, field=None):
        """Return the lines that match (with `prune`: do not match) a regular expression or
        function."""
        test = pattern if callable(pattern) else re.compile(pattern, re.IGNORECASE).search

        def selected_text(line):
            if field is None:
                return line
            words = line.split()
            return words[field] if -len(words) <= field < len(words) else ""

        return SList([line for line in self if bool(test(selected_text(line))) != prune])

    def fields(self, *fields):
        """Return whitespace-separated columns of each line."""
        if not fields:
            return [line.split() for line in self]
        columns = SList()
        for line in self:
            words = line.split()
            columns.append(" ".join(words[f] for f in fields if -len(words) <= f < len(words)))
        return columns

    def sort(self, field=None, nums=False):
        """Return the lines sorted by a column, with `nums` numerically."""

        def key(line):
            words = line.split()
            text = line if field is None else (words[field] if field < len(words) else "")
            if nums:
                digits = "".join(c for c in text if c.isdigit())
                return int(digits) if digits else 0
            return text

        return SList(sorted(self, key=key))


def caller_locals():
    """Return the local names of the function that runs a magic, or None in a cell itself."""
    frame = sys._getframe(1)
    package = __name__.rpartition(".")[0]
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if name != package and not name.startswith(package + "."):
            break
        frame = frame.f_back
    if frame is None or frame.f_globals is not STATE.ns or frame.f_locals is STATE.ns:
        return None
    return dict(frame.f_locals)


def caller_names():
    """Return the names visible to the calling code: __main__ and the locals of a function."""
    return dict(STATE.ns, **(caller_locals() or {}))


def expand(text):
    """Replace {expression} and $name by their values; returns the text unchanged if any of them
    fails."""
    if "{" not in text and "$" not in text:
        return text
    try:
        return "".join(_expand_parts(text, caller_names()))
    except Exception:
        return text


def _expand_parts(text, names):
    at = literal = 0
    size = len(text)
    while at < size:
        char = text[at]
        if char in "{}" and text[at : at + 2] in ("{{", "}}"):
            yield _expand_dollars(text[literal:at], names) + char
            at += 2
            literal = at
        elif char == "}":
            raise ValueError("single } in the text")
        elif char == "{":
            yield _expand_dollars(text[literal:at], names)
            end = _field_end(text, at + 1)
            yield _format_field(text[at + 1 : end], names)
            at = literal = end + 1
        else:
            at += 1
    yield _expand_dollars(text[literal:], names)


def _field_end(text, at):
    depth = 0
    while True:
        char = text[at]  # IndexError: no end; the text stays as it is
        if char == "{":
            depth += 1
        elif char == "}":
            if not depth:
                return at
            depth -= 1
        elif char in "\"'":
            at = text.index(char, at + 1)
        at += 1


def _format_field(field, names):
    expression, spec, conversion = field, "", ""
    depth = 0
    for index, char in enumerate(field):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == ":" and not depth:
            try:
                compile(field.strip(), "", "eval")
            except SyntaxError:
                expression, spec = field[:index], field[index + 1 :]
            break
    if expression[-2:] in ("!r", "!s", "!a"):
        expression, conversion = expression[:-2], expression[-1]
    value = eval(expression.strip(), names)
    if conversion:
        value = {"r": repr, "s": str, "a": ascii}[conversion](value)
    return format(value, spec)


def _expand_dollars(text, names):
    if "$" not in text:
        return text

    def value(match):
        field = match.group(1)
        return field if field.startswith("$") else str(eval(field, names))

    return _DOLLAR.sub(value, text)
