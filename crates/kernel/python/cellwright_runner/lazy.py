"""Loads the runner's modules on first use, out of reach of files in the user's directory.

The user's directory may contain a `json.py` or `token.py`, which a cell may have imported already.
While a module of the runner loads, such modules are removed from `sys.path` and `sys.modules` and
restored afterwards.
"""

import os
import sys

from .interrupt import defer_sigint, resume_sigint

_PACKAGE = __name__.rpartition(".")[0]
_package = sys.modules[_PACKAGE]
_loaded = {}
_stdlib_names = None
_STDLIB = os.path.dirname(os.__file__)
_CORE_MODULES = "state lazy interrupt channel streams hooks cell prelude main".split()


def load(name):
    """Return the runner's module `name` (for example "display" or "magics.basic")."""
    module = _loaded.get(name)
    if module is None:
        # An interrupt would leave a half-loaded module, which the next import would return.
        defer_sigint()
        try:
            module = _loaded[name] = _import_isolated(_PACKAGE + "." + name)
        finally:
            resume_sigint()
    return module


def stdlib(name):
    """Return a standard library module, never a file of the same name in the user's directory."""
    module = _loaded.get("=" + name)
    if module is None:
        defer_sigint()
        try:
            module = _loaded["=" + name] = _import_isolated(name)
        finally:
            resume_sigint()
    return module


def _import_isolated(full_name):
    path, entries = sys.path, sys.path[:]
    no_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    shadowing = _shadowing_modules()
    for name in shadowing:
        del sys.modules[name]
    # A cell may have emptied sys.modules; the package object is still valid.
    sys.modules[_PACKAGE] = _package
    for name, module in _loaded.items():
        if not name.startswith("="):
            sys.modules.setdefault(_PACKAGE + "." + name, module)
    for name in _CORE_MODULES:
        module = getattr(_package, name, None)
        if module is not None:
            sys.modules.setdefault(_PACKAGE + "." + name, module)
    package_parent = os.path.dirname(os.path.dirname(__file__))
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = ""
    try:
        sys.path = [package_parent] + [p for p in entries if p and p != "." and p != cwd]
        __import__(full_name)
        return sys.modules[full_name]
    finally:
        sys.path = path
        sys.dont_write_bytecode = no_bytecode
        sys.modules.update(shadowing)


def _shadowing_modules():
    """Return loaded modules that have a standard module's name but come from elsewhere."""
    global _stdlib_names
    if _stdlib_names is None:
        names = list(sys.builtin_module_names)
        for directory in (_STDLIB, os.path.join(_STDLIB, "lib-dynload")):
            try:
                names += os.listdir(directory)
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
