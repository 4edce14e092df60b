"""Hooks into the interpreter for child processes, threads, imports and forks.

* children: text printed so far is sent before a child process starts;
* import: a few libraries are patched right after a cell imports them (they are never imported for
  that);
* fork: the child must not use the channel.

The functions that start children are wrapped. An audit hook would see them too, but it makes every
id() of the user's code 0.2 to 0.3 µs slower: copy.deepcopy of small lists took 1.7 to 2.2 times as
long (measured with 3.8, 3.11 and 3.13).
"""

import _thread
import os
import sys
from _thread import get_ident

from . import interrupt
from .state import STATE
from .streams import OUTPUT

_CHILD_STARTERS = ("system", "posix_spawn", "posix_spawnp", "execv", "execve")


def call_before(function, action):
    """Return a wrapper of `function` that calls `action` first."""

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


def before_child_start():
    """Called before any child process is created."""
    if not STATE.forked:
        OUTPUT.before_child_start()


def patch_subprocess(subprocess):
    """Wrap the C function that forks for subprocess; called when subprocess is imported."""
    posix = sys.modules.get("_posixsubprocess")
    if posix is None or hasattr(posix.fork_exec, "__wrapped__"):
        return
    posix.fork_exec = call_before(posix.fork_exec, before_child_start)
    if hasattr(subprocess, "_fork_exec"):  # 3.12 and newer keep their own reference
        subprocess._fork_exec = posix.fork_exec


# Module -> (module of the runner, its function); called with the module once it is loaded.
IMPORT_HOOKS = {
    "asyncio": ("asyncio_tasks", "patch"),
    "threading": ("thread_cells", "patch"),
    "subprocess": ("hooks", "patch_subprocess"),
    "linecache": ("linecache_hook", "patch"),
    "getpass": ("stdin", "patch_getpass"),
    "matplotlib.backends": ("figures", "patch_backends"),
    "matplotlib.pyplot": ("figures", "patch_pyplot"),
    "matplotlib_inline.backend_inline": ("figures", "patch_inline_backend"),
    "ipywidgets.widgets.widget_output": ("widgets", "patch_output_widget"),
    "line_profiler.line_profiler": ("linecache_hook", "patch_line_profiler"),
    "IPython.core.getipython": ("ipython_installed", "patch_getipython"),
    "IPython.core.interactiveshell": ("ipython_installed", "patch_interactive_shell"),
    "IPython.core.magic": ("ipython_installed", "patch_magic"),
    "IPython.core.display_functions": ("ipython_installed", "patch_display"),
    "IPython.core.display": ("ipython_installed", "patch_display"),
}


class ImportWatcher:
    """First on sys.meta_path: finds no modules, but runs the import hook after a listed module has
    loaded."""

    active = ()

    def find_spec(self, name, path=None, target=None):
        if name not in IMPORT_HOOKS or name in self.active:
            return None
        self.active += (name,)
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
            self.active = tuple(n for n in self.active if n != name)
        loader = spec.loader
        original_exec = getattr(loader, "exec_module", None)
        if original_exec is None or isinstance(loader, type):
            return spec

        def exec_module(module):
            original_exec(module)
            run_import_hook(name, module)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass
        return spec


def run_import_hook(name, module):
    """Run the import hook of a module. A failure is reported and does not fail the import."""
    from . import lazy

    hook_module, function = IMPORT_HOOKS[name]
    try:
        getattr(lazy.load(hook_module), function)(module)
    except Exception as error:
        sys.stderr.write("cellwright: cannot patch %s: %r\n" % (name, error))


class StandInFinder:
    """Last on sys.meta_path: provides a stand-in for `IPython` when IPython is not installed."""

    def find_spec(self, name, path=None, target=None):
        if name != "IPython" and not name.startswith("IPython."):
            return None
        from . import lazy

        return lazy.load("ipython_missing").find_spec(name)


def _after_fork_in_child():
    STATE.forked = True
    interrupt.after_fork_in_child()
    OUTPUT.after_fork_in_child()
    if STATE.figures is not None:
        STATE.figures = None


def _before_fork():
    if not STATE.forked:
        if sys.version_info >= (3, 12):
            OUTPUT.stop_flusher()
        OUTPUT.before_child_start()
        OUTPUT.lock.acquire()


def _after_fork_in_parent():
    if not STATE.forked:
        OUTPUT.lock.release()


def _exit_now(status):
    """os._exit that first flushes the printed text."""
    try:
        if STATE.forked:
            sys.stdout.flush()
        else:
            OUTPUT.flush_now()
    except Exception:
        pass
    _real_exit(status)


_real_exit = os._exit
_exit_now.__name__ = _exit_now.__qualname__ = "_exit"
_exit_now.__module__ = "os"


def _system(command):
    """os.system, but an interrupt that ends the command also interrupts the cell. C's system()
    ignores SIGINT in the caller, so a loop around it would never end."""
    status = _real_system(command)
    if (
        interrupt.SIGINT_GATE.cell_running
        and get_ident() == interrupt.MAIN_THREAD
        and not STATE.forked
    ):
        signalled = os.WIFSIGNALED(status) and os.WTERMSIG(status) == interrupt.SIGINT
        if signalled or (os.WIFEXITED(status) and os.WEXITSTATUS(status) == 128 + interrupt.SIGINT):
            interrupt.SIGINT_GATE.interrupted = True
            raise KeyboardInterrupt
    return status


_real_system = os.system
_system.__name__ = _system.__qualname__ = "system"
_system.__module__ = "os"
_system.__doc__ = _real_system.__doc__


def install():
    """Install all hooks."""
    os.system = _system
    for name in _CHILD_STARTERS:
        if hasattr(os, name):
            setattr(os, name, call_before(getattr(os, name), before_child_start))
    _thread.start_new_thread = call_before(_thread.start_new_thread, OUTPUT.on_thread_start)
    sys.meta_path.insert(0, ImportWatcher())
    sys.meta_path.append(StandInFinder())
    os.register_at_fork(
        before=_before_fork,
        after_in_child=_after_fork_in_child,
        after_in_parent=_after_fork_in_parent,
    )
    os._exit = _exit_now
    for name in IMPORT_HOOKS:
        # A .pth file or `site` may have imported the module before.
        module = sys.modules.get(name)
        if module is not None:
            run_import_hook(name, module)
