"""Directories, environment, shell aliases, history, the list of magics."""

import os
import shlex

from ..cell import H
from ..state import S
from . import UsageError, known, options

_before = []  # directories left by %cd, newest last


def _go(path):
    try:
        old = os.getcwd()
    except OSError:
        old = os.path.expanduser("~")
    os.chdir(path)
    _before.append(old)
    S.ns.setdefault("_dh", [old]).append(os.getcwd())


def cd(shell, line):
    """%cd [-q] [dir]: change the working directory; `-` goes back."""
    words = line.strip()
    quiet = False
    if words == "-q" or words.startswith("-q "):
        quiet, words = True, words[2:].strip()
    if len(words) > 1 and words[0] == words[-1] and words[0] in "\"'":
        words = words[1:-1]
    if words == "-":
        if not _before:
            raise UsageError("No previous directory to change to.")
        words = _before[-1]
    path = os.path.expanduser(words or "~")
    if not os.path.isdir(path) and os.path.isdir(path.replace("\\ ", " ")):
        path = path.replace("\\ ", " ")
    try:
        _go(path)
    except OSError as error:
        # As in IPython: it says so, and the cell goes on where it was.
        print(error)
    if not quiet:
        print(os.getcwd())


def pwd(shell, line):
    """%pwd: the working directory."""
    return os.getcwd()


def pushd(shell, line):
    """%pushd dir: go there, and %popd comes back."""
    _stack.append(os.getcwd())
    cd(shell, line)


def popd(shell, line):
    """%popd: back to where %pushd left."""
    if not _stack:
        raise UsageError("%popd on empty stack")
    path = _stack.pop()
    cd(shell, shlex.quote(path))
    print("popd -> " + path)


def dirs(shell, line):
    """%dirs: the stack of %pushd."""
    return list(_stack)


def dhist(shell, line):
    """%dhist: directories visited."""
    print("Directory history (kept in _dh)")
    for number, path in enumerate(S.ns.get("_dh", [os.getcwd()])):
        print("%d: %s" % (number, path))


_stack = []


def _alias(command):
    def run(shell, line):
        shell.system((command + " " + line).strip())

    run.__doc__ = "%%%s: the shell command of this name." % command.split()[0]
    return run


ls = _alias("ls -F")
ll = _alias("ls -F -l")
cat = _alias("cat")
mkdir = _alias("mkdir")
rmdir = _alias("rmdir")
rm = _alias("rm")
cp = _alias("cp")
mv = _alias("mv")


def system(shell, line):
    """%system cmd: lines of its output."""
    return shell.getoutput(line)


def getoutput(shell, line):
    """%sx cmd: lines of its output."""
    return shell.getoutput(line)


def env(shell, line):
    """%env, %env NAME, %env NAME=VALUE, %env NAME VALUE"""
    text = line.strip()
    if not text:
        return dict(os.environ)
    cut = next((i for i, c in enumerate(text) if c in "= \t"), None)
    if cut is None:
        if text not in os.environ:
            raise UsageError("Environment does not have key: " + text)
        return os.environ[text]
    name, value = text[:cut], text[cut + 1 :].strip()
    if not name or any(c.isspace() for c in name):
        raise UsageError("refusing to set env var with whitespace: %r" % name)
    os.environ[name] = value
    print("env: %s=%s" % (name, value))
    return None


def lsmagic(shell, line):
    """%lsmagic: the magics that need no IPython."""
    return Magics(known(shell))


class Magics:
    """A value that shows itself as the list."""

    def __init__(self, names):
        self.names = names

    def __repr__(self):
        return "\n".join(
            [
                "Available line magics:",
                "  ".join("%" + name for name in sorted(self.names["line"])),
                "",
                "Available cell magics:",
                "  ".join("%%" + name for name in sorted(self.names["cell"])),
                "",
                "Any other magic is IPython's, if IPython is installed in this environment.",
            ]
        )


def history(shell, line):
    """%history [-n] [-t] [-l N | range]: inputs of this session; with -t what they were turned into."""
    found, rest = options(
        line, ("n", "o", "p", "t", "r"), ("l", "f"), "%history [-n] [-l N | range]"
    )
    inputs = list(enumerate(H.inputs)) if "t" in found else list(H.cells.items())
    inputs = [(i, text) for i, text in inputs if i and text]
    if "l" in found:
        inputs = inputs[-int(found["l"]) :]
    elif rest:
        wanted = set()
        for part in rest.replace(",", " ").split():
            first, dash, last = part.partition("-")
            if not first.isdigit() or dash and not last.isdigit():
                raise UsageError("%%history understands numbers and ranges like 2-5, not %r" % part)
            wanted.update(range(int(first), int(last or first) + 1))
        inputs = [(i, text) for i, text in inputs if i in wanted]
    for number, text in inputs:
        text = text.rstrip()
        if "n" in found:
            text = "%4d:%s%s" % (number, "\n" if "\n" in text else " ", text)
        print(text)
