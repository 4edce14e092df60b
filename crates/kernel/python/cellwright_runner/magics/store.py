"""%store: variables on disk, in the files in which IPython stores them, so that both find them."""

import os
import pickle
import pprint
import sys

from ..state import STATE
from . import UsageError, options


def _directory():
    base = os.environ.get("IPYTHONDIR") or os.path.join(os.path.expanduser("~"), ".ipython")
    return os.path.join(base, "profile_default", "db", "autorestore")


def _names():
    try:
        return sorted(os.listdir(_directory()))
    except FileNotFoundError:
        return []


def _read(name):
    with open(os.path.join(_directory(), name), "rb") as file:
        return pickle.load(file)


def _write(name, value):
    os.makedirs(_directory(), exist_ok=True)
    path = os.path.join(_directory(), name)
    with open(path + ".new", "wb") as file:
        pickle.dump(value, file, protocol=2)
    os.replace(path + ".new", path)


def store(shell, line):
    """%store [name …] | -r [name …] | -d name | -z | name > file: store variables; -r reads them, -d
    and -z delete one or all; without arguments, the list."""
    found, rest = options(line, ("d", "r", "z"), (), "%store [-r | -d | -z] [name …]")
    words = rest.split()
    if "d" in found:
        if not words:
            raise UsageError("You must provide the variable to forget")
        if words[0] not in _names():
            raise UsageError("Can't delete variable '%s'" % words[0])
        os.unlink(os.path.join(_directory(), words[0]))
    elif "z" in found:
        for name in _names():
            os.unlink(os.path.join(_directory(), name))
    elif "r" in found:
        _restore(words)
    elif not words:
        _show_all()
    elif len(words) > 1 and words[1].startswith(">"):
        _write_text(shell, words[0], "".join(words[1:]))
    else:
        for name in words:
            _store_one(name)


def _restore(words):
    for name in words or _names():
        try:
            STATE.ns[name] = _read(name)
        except FileNotFoundError:
            print("no stored variable or alias %s" % name)
        except Exception as error:
            print("Unable to restore variable '%s': %s" % (name, error), file=sys.stderr)


def _show_all():
    print("Stored variables and their in-db values:")
    width = max(map(len, _names()), default=0) + len("autorestore/")
    for name in _names():
        try:
            text = repr(_read(name))[:50]
        except Exception:
            text = "'<unavailable>'"
        print("%-*s -> %s" % (width, name, text))


def _write_text(shell, name, target):
    path = os.path.expanduser(target.lstrip(">"))
    value = shell.ev(name)
    with open(path, "a" if target.startswith(">>") else "w", encoding="utf-8") as file:
        print("Writing '%s' (%s) to file '%s'." % (name, type(value).__name__, path))
        text = value if isinstance(value, str) else pprint.pformat(value)
        file.write(text if text.endswith("\n") else text + "\n")


def _store_one(name):
    if name not in STATE.ns:
        raise UsageError("Unknown variable '%s'" % name)
    value = STATE.ns[name]
    if getattr(value, "__module__", None) == "__main__":
        raise UsageError(
            "%s is of a class that a cell defines. Only instances of classes in modules can be stored"
            % name
        )
    _write(name, value)
    print("Stored '%s' (%s)" % (name, type(value).__name__))
