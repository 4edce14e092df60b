"""Loading our own modules late, out of reach of files in the user's folder.

A cell may have a `json.py` or `token.py` beside it, even imported already. While one of our modules
is loaded, such strangers are hidden from `sys.path` and `sys.modules`, and put back afterwards.
"""

import os
import sys

from .interrupt import hold, release

_PACKAGE = __name__.rpartition(".")[0]
_package = sys.modules[_PACKAGE]
_loaded = {}
_stdlib_names = None
_STDLIB = os.path.dirname(os.__file__)
_AT_START = "state lazy interrupt channel streams hooks cell prelude main".split()


def load(name):
    """Our module `name` (for example "display" or "magics.basic")."""
    module = _loaded.get(name)
    if module is None:
        # An interrupt would leave half a module behind, and the next try would find it.
        hold()
        try:
            module = _loaded[name] = _guarded(_PACKAGE + "." + name)
        finally:
            release()
    return module


def stdlib(name):
    """A module of the standard library, never a file of the same name in the user's folder."""
    module = _loaded.get("=" + name)
    if module is None:
        hold()
        try:
            module = _loaded["=" + name] = _guarded(name)
        finally:
            release()
    return module


def _guarded(full):
    path, kept = sys.path, sys.path[:]
    no_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    strangers = _strangers()
    for stranger in strangers:
        del sys.modules[stranger]
    # A cell may have emptied sys.modules; our package object is still the right one.
    sys.modules[_PACKAGE] = _package
    for known, module in _loaded.items():
        if not known.startswith("="):
            sys.modules.setdefault(_PACKAGE + "." + known, module)
    for known in _AT_START:
        module = getattr(_package, known, None)
        if module is not None:
            sys.modules.setdefault(_PACKAGE + "." + known, module)
    here = os.path.dirname(os.path.dirname(__file__))
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = ""
    try:
        sys.path = [here] + [p for p in kept if p and p != "." and p != cwd]
        __import__(full)
        return sys.modules[full]
    finally:
        sys.path = path
        sys.dont_write_bytecode = no_bytecode
        sys.modules.update(strangers)


def _strangers():
    """Loaded top-level modules that carry the name of a standard module but are not it."""
    global _stdlib_names
    if _stdlib_names is None:
        names = list(sys.builtin_module_names)
        for folder in (_STDLIB, os.path.join(_STDLIB, "lib-dynload")):
            try:
                names += os.listdir(folder)
            except OSError:
                pass
        _stdlib_names = {name.partition(".")[0] for name in names}
    found = {}
    for name in _stdlib_names.intersection(sys.modules):
        if name == "__main__" or name == "site-packages":
            continue
        module = sys.modules[name]
        try:
            file = module.__dict__.get("__file__")
        except AttributeError:
            continue
        if type(file) is str and os.path.isabs(file) and not file.startswith(_STDLIB):
            found[name] = module
            prefix = name + "."
            for other in list(sys.modules):
                if other.startswith(prefix):
                    found[other] = sys.modules[other]
    return found
