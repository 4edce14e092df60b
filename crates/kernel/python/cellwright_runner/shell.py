"""Shell lines: `!cmd`, `x = !cmd`, and the expansion of {x} and $x in them and in magics."""

import codecs
import os
import re
import selectors
import subprocess
import sys

from . import lazy
from .state import S
from .streams import O

_SHELLS = ("sh", "bash", "zsh", "dash", "ksh")
_DOLLAR = re.compile(r"\$(\$?[\w.]+)(?=(?:[^']*'[^']*')*[^']*$)")


def shell_program():
    """The shell that runs the lines: the user's own if it speaks sh, else /bin/sh."""
    own = os.environ.get("SHELL", "")
    return own if os.path.basename(own) in _SHELLS and os.access(own, os.X_OK) else None


def wait(process):
    """Wait for a child; after an interrupt (which it got too) it has a second to end by itself."""
    try:
        return process.wait()
    except BaseException:
        give_up(process)
        raise


def give_up(process):
    """End a child that we no longer wait for."""
    try:
        process.wait(1)
    except subprocess.TimeoutExpired:
        process.terminate()


def streams_are_ours():
    """False while a cell has put something else in place of sys.stdout or sys.stderr."""
    return sys.stdout is O.out.text and sys.stderr is O.err.text


def call(command, **options):
    """Run a command with our fd 1 (or into the user's sys.stdout, if he replaced it). As in notebooks,
    where commands have a terminal of their own, what it says on stderr stands among the rest."""
    options["stderr"] = subprocess.STDOUT
    if S.capture is None and (S.forked or streams_are_ours()):
        return wait(subprocess.Popen(command, stdin=subprocess.DEVNULL, **options))
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        **options,
    )
    pump(process)
    return wait(process)


def pump(process):
    """Copy what a child says to sys.stdout and sys.stderr as it comes."""
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
    """`!cmd`: live output; the exit code goes to `_exit_code`."""
    code = call(expand(command), shell=True, executable=shell_program())
    S.ns["_exit_code"] = code


def getoutput(command, split=True):
    """`x = !cmd`: the lines of stdout and stderr."""
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
        give_up(process)
        raise
    S.ns["_exit_code"] = process.returncode
    text = out.decode("utf-8", "replace").replace("\r\n", "\n")
    if not split:
        return text
    return SList(text.splitlines())


class SList(list):
    """A list of lines that also answers as one text (.n, .s), as paths (.p) and to grep and
    fields."""

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
        """Lines that match (or with `prune` do not match) a regular expression or a function."""
        test = pattern if callable(pattern) else re.compile(pattern, re.IGNORECASE).search

        def piece(line):
            if field is None:
                return line
            words = line.split()
            return words[field] if -len(words) <= field < len(words) else ""

        return SList([line for line in self if bool(test(piece(line))) != prune])

    def fields(self, *fields):
        """Whitespace-separated columns of each line."""
        if not fields:
            return [line.split() for line in self]
        picked = SList()
        for line in self:
            words = line.split()
            picked.append(" ".join(words[f] for f in fields if -len(words) <= f < len(words)))
        return picked

    def sort(self, field=None, nums=False):
        """Sorted by a column, as numbers if asked."""

        def key(line):
            words = line.split()
            text = line if field is None else (words[field] if field < len(words) else "")
            if nums:
                digits = "".join(c for c in text if c.isdigit())
                return int(digits) if digits else 0
            return text

        return SList(sorted(self, key=key))


def caller_names():
    """The user's names as the calling code sees them: __main__, then the locals of a function."""
    frame = sys._getframe(1)
    ours = __name__.rpartition(".")[0]
    while frame is not None:
        name = frame.f_globals.get("__name__") or ""
        if name != ours and not name.startswith(ours + "."):
            break
        frame = frame.f_back
    names = dict(S.ns)
    if frame is not None and frame.f_locals is not S.ns and frame.f_globals is S.ns:
        names.update(frame.f_locals)
    return names


def expand(text):
    """{expression} and $name replaced by their values; the text as it is if anything in it
    fails."""
    if "{" not in text and "$" not in text:
        return text
    try:
        return "".join(_expanded(text, caller_names()))
    except Exception:
        return text


def _expanded(text, names):
    at = literal = 0
    size = len(text)
    while at < size:
        char = text[at]
        if char in "{}" and text[at : at + 2] in ("{{", "}}"):
            yield _dollars(text[literal:at], names) + char
            at += 2
            literal = at
        elif char == "}":
            raise ValueError("single } in the text")
        elif char == "{":
            yield _dollars(text[literal:at], names)
            end = _field_end(text, at + 1)
            yield _field(text[at + 1 : end], names)
            at = literal = end + 1
        else:
            at += 1
    yield _dollars(text[literal:], names)


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


def _field(field, names):
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


def _dollars(text, names):
    if "$" not in text:
        return text

    def value(match):
        field = match.group(1)
        return field if field.startswith("$") else str(eval(field, names))

    return _DOLLAR.sub(value, text)
