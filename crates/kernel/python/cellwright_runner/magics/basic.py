"""Directories, environment, shell aliases, history, the list of magics."""

import os
import shlex

from ..cell import HISTORY
from ..state import STATE
from . import UsageError, list_magics, options

_previous_dirs = []  # directories left by %cd, newest last


def _change_dir(path):
    try:
        old = os.getcwd()
    except OSError:
        old = os.path.expanduser("~")
    os.chdir(path)
    _previous_dirs.append(old)
    STATE.ns.setdefault("_dh", [old]).append(os.getcwd())


def cd(shell, line):
    """%cd [-q] [dir]: change the working directory; `-` goes back."""
    target = line.strip()
    quiet = False
    if target == "-q" or target.startswith("-q "):
        quiet, target = True, target[2:].strip()
    if len(target) > 1 and target[0] == target[-1] and target[0] in "\"'":
        target = target[1:-1]
    if target == "-":
        if not _previous_dirs:
            raise UsageError("No previous directory to change to.")
        target = _previous_dirs[-1]
    path = os.path.expanduser(target or "~")
    if not os.path.isdir(path) and os.path.isdir(path.replace("\\ ", " ")):
        path = path.replace("\\ ", " ")
    try:
        _change_dir(path)
    except OSError as error:
        # As in IPython: print the error and continue in the old directory.
        print(error)
    if not quiet:
        print(os.getcwd())


def pwd(shell, line):
    """%pwd: the working directory."""
    return os.getcwd()


def pushd(shell, line):
    """%pushd dir: change to a directory; %popd returns."""
    _dir_stack.append(os.getcwd())
    cd(shell, line)


def popd(shell, line):
    """%popd: return to the directory before %pushd."""
    if not _dir_stack:
        raise UsageError("%popd on empty stack")
    path = _dir_stack.pop()
    cd(shell, shlex.quote(path))
    print("popd -> " + path)


def dirs(shell, line):
    """%dirs: the stack of %pushd."""
    return list(_dir_stack)


def dhist(shell, line):
    """%dhist: directories visited."""
    print("Directory history (kept in _dh)")
    for number, path in enumerate(STATE.ns.get("_dh", [os.getcwd()])):
        print("%d: %s" % (number, path))


_dir_stack = []


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
    """%lsmagic: the magics that work without IPython."""
    return MagicList(list_magics(shell))


class MagicList:
    """The value of %lsmagic; its repr is the list."""

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
    """%history [-n] [-t] [-l N | range]: inputs of this session; with -t the transformed ones."""
    found, rest = options(
        line, ("n", "o", "p", "t", "r"), ("l", "f"), "%history [-n] [-l N | range]"
    )
    inputs = list(enumerate(HISTORY.inputs)) if "t" in found else list(HISTORY.raw_inputs.items())
    inputs = [(i, text) for i, text in inputs if i and text]
    if "l" in found:
        inputs = inputs[-int(found["l"]) :]
    elif rest:
        numbers = set()
        for part in rest.replace(",", " ").split():
            first, dash, last = part.partition("-")
            if not first.isdigit() or dash and not last.isdigit():
                raise UsageError("%%history accepts numbers and ranges like 2-5, not %r" % part)
            numbers.update(range(int(first), int(last or first) + 1))
        inputs = [(i, text) for i, text in inputs if i in numbers]
    for number, text in inputs:
        text = text.rstrip()
        if "n" in found:
            text = "%4d:%s%s" % (number, "\n" if "\n" in text else " ", text)
        print(text)
