"""%autoreload: reloads modules whose files changed before a cell runs.

Functions and classes that the user imported by name are updated in place, and objects of an old class
become objects of the new one.
"""

import gc
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

    def watched_files(self, all_modules=False):
        """Yield (name, module, path of the source file) of the watched modules."""
        for name, module in list(sys.modules.items()):
            if (
                name == "__main__"
                or name in self.excluded
                or not isinstance(module, types.ModuleType)
            ):
                continue
            if self.mode == "1" and name not in self.included and not all_modules:
                continue
            file = getattr(module, "__file__", None)
            if file and file.endswith((".py", ".pyc")) and getattr(module, "__spec__", None):
                if not file.startswith((sys.base_prefix, sys.prefix)) or name in self.included:
                    yield name, module, file[:-1] if file.endswith(".pyc") else file

    def reload_changed(self, all_modules=False):
        """Reload the modules whose files changed; new files are only recorded."""
        changed = []
        for name, module, file in self.watched_files(all_modules):
            stamp = _stamp(file)
            if stamp is None:
                continue
            previous = self.stamps.get(name)
            self.stamps[name] = stamp
            if previous is not None and previous != stamp:
                changed.append((name, module))
        for name, module in changed:
            try:
                reload(module)
                if self.mode == "3":
                    _add_new_names(module)
            except Exception as error:
                lines = lazy.load("tracebacks").describe(error)[2]
                sys.stderr.write("[autoreload of %s failed: %s]\n" % (name, "\n".join(lines)))

    def before_cell(self, info=None):
        if self.mode != "0":
            self.reload_changed()

    def after_cell(self, result=None):
        # Record the stamps of modules that the cell imported, also while the mode is 0:
        # `%autoreload now` compares with them.
        for name, _, file in self.watched_files(True):
            if name not in self.stamps:
                stamp = _stamp(file)
                if stamp is not None:
                    self.stamps[name] = stamp


WATCHER = Watcher()


def _stamp(file):
    try:
        stat = os.stat(file)
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


def watch(shell):
    """Record the files of loaded modules now and after each cell; called by %load_ext."""
    shell.events.register("pre_run_cell", WATCHER.before_cell)
    shell.events.register("post_run_cell", WATCHER.after_cell)
    WATCHER.after_cell()


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


def _add_new_names(module):
    """Mode 3: add the functions and classes of a reloaded module to the user's names."""
    for name, value in list(module.__dict__.items()):
        if getattr(value, "__module__", None) == module.__name__:
            STATE.ns[name] = value


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
    _update_instances(old, new)


def _update_instances(old, new):
    """Make the objects of an old class objects of the new one."""
    for value in gc.get_referrers(old):
        if type(value) is old:
            try:
                object.__setattr__(value, "__class__", new)
            except TypeError:
                pass  # the layouts of the classes differ


def set_mode(shell, line):
    """%autoreload [mode]"""
    mode = (line.split() or [""])[0].lower()
    watch(shell)
    if mode in ("", "now"):
        WATCHER.reload_changed(True)
        return
    names = {"off": "0", "explicit": "1", "all": "2", "complete": "3"}
    mode = names.get(mode, mode)
    if mode not in ("0", "1", "2", "3"):
        from .magics import UsageError

        raise UsageError(
            "%%autoreload accepts 0, 1, 2, 3, now, off, explicit, all and complete, not %r" % mode
        )
    WATCHER.mode = mode


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
