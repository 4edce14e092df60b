"""%autoreload: reloads modules whose files changed before a cell runs.

Functions and classes that the user imported by name are updated in place.
"""

import importlib
import importlib.util
import os
import sys
import types
import weakref

from . import lazy
from .state import STATE


class Watcher:
    """The watched modules and the stamps of their files when they were loaded."""

    def __init__(self):
        self.mode = "0"
        self.stamps = {}  # module name -> (modification time in ns, size in bytes)
        self.included = set()
        self.excluded = set()
        self.versions = {}  # (module, name) -> weak references to all older objects of that name

    def watched_files(self):
        """Yield (name, module, path of the source file) of the watched modules."""
        for name, module in list(sys.modules.items()):
            if (
                name == "__main__"
                or name in self.excluded
                or not isinstance(module, types.ModuleType)
            ):
                continue
            if self.mode == "1" and name not in self.included:
                continue
            file = getattr(module, "__file__", None)
            if file and file.endswith((".py", ".pyc")) and getattr(module, "__spec__", None):
                if not file.startswith((sys.base_prefix, sys.prefix)) or name in self.included:
                    yield name, module, file[:-1] if file.endswith(".pyc") else file

    def reload_changed(self):
        """Reload the modules whose files changed; new files are only recorded."""
        changed = []
        for name, module, file in self.watched_files():
            try:
                stat = os.stat(file)
                stamp = (stat.st_mtime_ns, stat.st_size)
            except OSError:
                continue
            previous = self.stamps.get(name)
            self.stamps[name] = stamp
            if previous is not None and previous != stamp:
                changed.append((name, module))
        for name, module in changed:
            try:
                reload(module)
            except Exception as error:
                lines = lazy.load("tracebacks").describe(error)[2]
                sys.stderr.write("[autoreload of %s failed: %s]\n" % (name, "\n".join(lines)))

    def before_cell(self, info=None):
        if self.mode != "0":
            self.reload_changed()

    def after_cell(self, result=None):
        # Record the stamps of modules that the cell imported.
        if self.mode == "0":
            return
        for name, _, file in self.watched_files():
            if name not in self.stamps:
                try:
                    stat = os.stat(file)
                    self.stamps[name] = (stat.st_mtime_ns, stat.st_size)
                except OSError:
                    pass


WATCHER = Watcher()


def reload(module):
    """Reload a module, then update its old functions and classes to the new code."""
    old = {
        name: value
        for name, value in module.__dict__.items()
        if isinstance(value, (types.FunctionType, type)) and value.__module__ == module.__name__
    }
    try:
        # Cached bytecode is validated by a time stamp of one second; remove it, so that two edits
        # within a second are not missed.
        cached = importlib.util.cache_from_source(module.__file__)
        if os.path.exists(cached):
            os.unlink(cached)
    except (AttributeError, NotImplementedError, OSError, TypeError):
        pass
    importlib.reload(module)
    for name, value in old.items():
        versions = WATCHER.versions.setdefault((module.__name__, name), [])
        versions.append(weakref.ref(value))
        new = module.__dict__.get(name)
        for reference in versions:
            previous = reference()
            if previous is not None and new is not previous and type(new) is type(previous):
                update(previous, new)
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
        replacement = new.__dict__.get(name)
        try:
            if name not in new.__dict__:
                delattr(old, name)
            elif isinstance(value, types.FunctionType) and isinstance(
                replacement, types.FunctionType
            ):
                update(value, replacement)
            elif value is not replacement:
                setattr(old, name, replacement)
        except (AttributeError, TypeError):
            pass
    for name, value in new.__dict__.items():
        if name not in old.__dict__:
            try:
                setattr(old, name, value)
            except (AttributeError, TypeError):
                pass


def set_mode(shell, line):
    """%autoreload [mode]"""
    mode = (line.split() or [""])[0].lower()
    if mode in ("", "now"):
        WATCHER.mode, previous_mode = "2", WATCHER.mode
        WATCHER.reload_changed()
        WATCHER.mode = previous_mode
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

        raise UsageError("%%autoreload accepts 0, 1, 2, now, off, explicit and all, not %r" % mode)
    WATCHER.mode = names[mode]
    shell.events.register("pre_run_cell", WATCHER.before_cell)
    shell.events.register("post_run_cell", WATCHER.after_cell)
    WATCHER.after_cell()


def aimport(line):
    """%aimport [module, -module]"""
    if not line:
        print("Modules to reload:\n%s" % " ".join(sorted(WATCHER.included)))
        print("\nModules to skip:\n%s" % " ".join(sorted(WATCHER.excluded)))
        return
    for name in line.replace(",", " ").split():
        if name.startswith("-"):
            WATCHER.excluded.add(name[1:])
            WATCHER.included.discard(name[1:])
        else:
            WATCHER.included.add(name)
            WATCHER.excluded.discard(name)
            module = importlib.import_module(name)
            top = name.partition(".")[0]
            STATE.ns[top] = sys.modules.get(top, module)
    WATCHER.after_cell()
