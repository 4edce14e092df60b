"""Directories, environment, shell commands, the list of magics."""

import os
import re
import shlex

from ..state import STATE
from . import UsageError, list_magics

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
        return {
            name: "<hidden>" if _SECRET.search(name) else value
            for name, value in os.environ.items()
        }
    if "=" in text or len(text.split(None, 1)) > 1:
        return set_env(shell, line)
    if text not in os.environ:
        raise UsageError("Environment does not have key: " + text)
    return os.environ[text]


_SECRET = re.compile("key|token|secret", re.IGNORECASE)


def set_env(shell, line):
    """%set_env NAME=VALUE, %set_env NAME VALUE"""
    name, mark, value = line.strip().partition("=" if "=" in line else " ")
    name, value = name.strip(), value.strip()
    if not mark:
        raise UsageError("usage is 'set_env var=val'")
    if not name or any(char.isspace() for char in name):
        raise UsageError("refusing to set env var with whitespace: %r" % value)
    os.environ[name] = value
    print("env: %s=%s" % (name, value))


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
