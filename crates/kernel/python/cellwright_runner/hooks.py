"""Hooks into the interpreter: children and threads that start, modules just imported, forks.

* children: text printed so far leaves before a child process starts;
* import: a few libraries get connected to us right after they were loaded (never loaded for that);
* fork: the child must not touch the channel.

The functions that start children are wrapped. An audit hook would see them too, but it makes every
id() of the user's code 0.2 to 0.3 µs slower: copy.deepcopy of small lists took 1.7 to 2.2 times as
long (measured with 3.8, 3.11 and 3.13).
"""

import _thread
import os
import sys
from _thread import get_ident

from . import interrupt
from .state import S
from .streams import O

_STARTERS = ("system", "posix_spawn", "posix_spawnp", "execv", "execve")


def before(function, action):
    """A function that calls `action` first and else is like `function`."""

    def wrapper(*args, **kwargs):
        action()
        return function(*args, **kwargs)

    for name in ("__name__", "__qualname__", "__doc__", "__text_signature__"):
        try:
            setattr(wrapper, name, getattr(function, name))
        except (AttributeError, TypeError):
            pass
    wrapper.__module__ = "os" if function.__module__ == "posix" else function.__module__
    wrapper.__wrapped__ = function
    return wrapper


def child_starts():
    """Called before a child process is made in whatever way."""
    if not S.forked:
        O.child_starts()


def connect_subprocess(subprocess):
    """Called when subprocess is imported: its C function that forks."""
    posix = sys.modules.get("_posixsubprocess")
    if posix is None or hasattr(posix.fork_exec, "__wrapped__"):
        return
    posix.fork_exec = before(posix.fork_exec, child_starts)
    if hasattr(subprocess, "_fork_exec"):  # 3.12 and newer keep their own reference
        subprocess._fork_exec = posix.fork_exec


# Module -> (our module, its function), called with the module once it is loaded.
AFTER_IMPORT = {
    "threading": ("thread_origin", "connect"),
    "subprocess": ("hooks", "connect_subprocess"),
    "linecache": ("sources", "connect"),
    "getpass": ("stdin", "connect_getpass"),
    "matplotlib.pyplot": ("figures", "connect"),
    "matplotlib_inline.backend_inline": ("figures", "connect_inline"),
    "ipywidgets.widgets.widget_output": ("widgets", "connect"),
    "IPython.core.getipython": ("ipython_installed", "connect_getipython"),
    "IPython.core.display_functions": ("ipython_installed", "connect_display"),
    "IPython.core.display": ("ipython_installed", "connect_display"),
}


class ImportWatcher:
    """First on sys.meta_path; answers for nothing, but stays near when a module of the list
    loads."""

    busy = ()

    def find_spec(self, name, path=None, target=None):
        if name not in AFTER_IMPORT or name in self.busy:
            return None
        self.busy += (name,)
        try:
            for finder in sys.meta_path:
                if finder is self or not hasattr(finder, "find_spec"):
                    continue
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    break
            else:
                return None
        finally:
            self.busy = tuple(n for n in self.busy if n != name)
        loader = spec.loader
        execute = getattr(loader, "exec_module", None)
        if execute is None or isinstance(loader, type):
            return spec

        def exec_module(module):
            execute(module)
            connect(name, module)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass
        return spec


def connect(name, module):
    """Connect a freshly loaded module to us; its importer must never suffer from that."""
    from . import lazy

    ours, function = AFTER_IMPORT[name]
    try:
        getattr(lazy.load(ours), function)(module)
    except Exception as error:
        sys.stderr.write("cellwright: cannot connect %s: %r\n" % (name, error))


class FallBackFinder:
    """Last on sys.meta_path: offers a small `IPython` when the real one is not installed."""

    def find_spec(self, name, path=None, target=None):
        if name != "IPython" and not name.startswith("IPython."):
            return None
        from . import lazy

        return lazy.load("ipython_missing").find_spec(name)


def _after_fork_in_child():
    S.forked = True
    interrupt.after_fork_in_child()
    O.after_fork_in_child()
    if S.figures is not None:
        S.figures = None


def _before_fork():
    if not S.forked:
        if sys.version_info >= (3, 12):
            O.stop_flusher()
        O.child_starts()
        O.lock.acquire()


def _after_fork_in_parent():
    if not S.forked:
        O.lock.release()


def _exit_now(status):
    """os._exit, but what was printed is not lost."""
    try:
        if S.forked:
            sys.stdout.flush()
        else:
            O.flush_now()
    except Exception:
        pass
    _real_exit(status)


_real_exit = os._exit
_exit_now.__name__ = _exit_now.__qualname__ = "_exit"
_exit_now.__module__ = "os"


def _system(command):
    """os.system, but an interrupt that ends the command also interrupts the cell: C's system() lets
    nobody but the command hear it, and a loop around it would go on for ever."""
    status = _real_system(command)
    if interrupt.G.running and get_ident() == interrupt.MAIN and not S.forked:
        signalled = os.WIFSIGNALED(status) and os.WTERMSIG(status) == interrupt.SIGINT
        if signalled or (os.WIFEXITED(status) and os.WEXITSTATUS(status) == 128 + interrupt.SIGINT):
            interrupt.G.seen = True
            raise KeyboardInterrupt
    return status


_real_system = os.system
_system.__name__ = _system.__qualname__ = "system"
_system.__module__ = "os"
_system.__doc__ = _real_system.__doc__


def install():
    """Put all hooks in place."""
    os.system = _system
    for name in _STARTERS:
        if hasattr(os, name):
            setattr(os, name, before(getattr(os, name), child_starts))
    _thread.start_new_thread = before(_thread.start_new_thread, O.thread_starts)
    sys.meta_path.insert(0, ImportWatcher())
    sys.meta_path.append(FallBackFinder())
    os.register_at_fork(
        before=_before_fork,
        after_in_child=_after_fork_in_child,
        after_in_parent=_after_fork_in_parent,
    )
    os._exit = _exit_now
    for name in AFTER_IMPORT:
        # Something (a .pth file, site) may have imported it before us.
        module = sys.modules.get(name)
        if module is not None:
            connect(name, module)
