"""%autoreload: modules whose files changed are loaded again before a cell runs.

Functions and classes that the user imported by name are changed in place, so that they follow.
"""

import importlib
import importlib.util
import os
import sys
import types
import weakref

from . import lazy
from .state import S


class Watcher:
    """Which modules are watched, and the file times they were loaded with."""

    def __init__(self):
        self.mode = "0"
        self.times = {}
        self.chosen = set()
        self.refused = set()
        self.versions = {}  # (module, name) -> weak references to every older object of that name

    def files(self):
        for name, module in list(sys.modules.items()):
            if (
                name == "__main__"
                or name in self.refused
                or not isinstance(module, types.ModuleType)
            ):
                continue
            if self.mode == "1" and name not in self.chosen:
                continue
            file = getattr(module, "__file__", None)
            if file and file.endswith((".py", ".pyc")) and getattr(module, "__spec__", None):
                if not file.startswith((sys.base_prefix, sys.prefix)) or name in self.chosen:
                    yield name, module, file[:-1] if file.endswith(".pyc") else file

    def look(self):
        """Reload what changed. Files never seen before are only noted."""
        changed = []
        for name, module, file in self.files():
            try:
                stat = os.stat(file)
                stamp = (stat.st_mtime_ns, stat.st_size)
            except OSError:
                continue
            known = self.times.get(name)
            self.times[name] = stamp
            if known is not None and known != stamp:
                changed.append((name, module))
        for name, module in changed:
            try:
                reload(module)
            except Exception as error:
                lines = lazy.load("tracebacks").describe(error)[2]
                sys.stderr.write("[autoreload of %s failed: %s]\n" % (name, "\n".join(lines)))

    def before_cell(self, info=None):
        if self.mode != "0":
            self.look()

    def after_cell(self, result=None):
        # Note the times of modules that the cell imported.
        if self.mode == "0":
            return
        for name, _, file in self.files():
            if name not in self.times:
                try:
                    stat = os.stat(file)
                    self.times[name] = (stat.st_mtime_ns, stat.st_size)
                except OSError:
                    pass


W = Watcher()


def reload(module):
    """importlib.reload, then old functions and classes take over the new code."""
    old = {
        name: value
        for name, value in module.__dict__.items()
        if isinstance(value, (types.FunctionType, type)) and value.__module__ == module.__name__
    }
    try:
        # The cached bytecode has the second's resolution; a quick edit must not be missed.
        cached = importlib.util.cache_from_source(module.__file__)
        if os.path.exists(cached):
            os.unlink(cached)
    except (AttributeError, NotImplementedError, OSError, TypeError):
        pass
    importlib.reload(module)
    for name, value in old.items():
        versions = W.versions.setdefault((module.__name__, name), [])
        versions.append(weakref.ref(value))
        new = module.__dict__.get(name)
        for reference in versions:
            known = reference()
            if known is not None and new is not known and type(new) is type(known):
                update(known, new)
        versions[:] = [reference for reference in versions if reference() is not None]


def update(old, new):
    """Make an old function or class behave like the new one."""
    if isinstance(old, types.FunctionType):
        for name in ("__code__", "__defaults__", "__kwdefaults__", "__doc__", "__annotations__"):
            try:
                setattr(old, name, getattr(new, name))
            except (AttributeError, TypeError, ValueError):
                pass
        old.__dict__.update(new.__dict__)
        return
    for name, value in list(old.__dict__.items()):
        if name in ("__dict__", "__weakref__", "__module__", "__name__", "__qualname__"):
            continue
        fresh = new.__dict__.get(name)
        try:
            if name not in new.__dict__:
                delattr(old, name)
            elif isinstance(value, types.FunctionType) and isinstance(fresh, types.FunctionType):
                update(value, fresh)
            elif value is not fresh:
                setattr(old, name, fresh)
        except (AttributeError, TypeError):
            pass
    for name, value in new.__dict__.items():
        if name not in old.__dict__:
            try:
                setattr(old, name, value)
            except (AttributeError, TypeError):
                pass


def switch(shell, line):
    """%autoreload [mode]"""
    mode = (line.split() or [""])[0].lower()
    if mode in ("", "now"):
        W.mode, kept = "2", W.mode
        W.look()
        W.mode = kept
        return
    names = {
        "0": "0",
        "off": "0",
        "1": "1",
        "explicit": "1",
        "2": "2",
        "all": "2",
        "3": "2",
        "complete": "2",
    }
    if mode not in names:
        from .magics import UsageError

        raise UsageError("%%autoreload knows 0, 1, 2, now, off, explicit and all, not %r" % mode)
    W.mode = names[mode]
    shell.events.register("pre_run_cell", W.before_cell)
    shell.events.register("post_run_cell", W.after_cell)
    W.after_cell()


def aimport(line):
    """%aimport [module, -module]"""
    if not line:
        print("Modules to reload:\n%s" % " ".join(sorted(W.chosen)))
        print("\nModules to skip:\n%s" % " ".join(sorted(W.refused)))
        return
    for name in line.replace(",", " ").split():
        if name.startswith("-"):
            W.refused.add(name[1:])
            W.chosen.discard(name[1:])
        else:
            W.chosen.add(name)
            W.refused.discard(name)
            module = importlib.import_module(name)
            top = name.partition(".")[0]
            S.ns[top] = sys.modules.get(top, module)
    W.after_cell()
