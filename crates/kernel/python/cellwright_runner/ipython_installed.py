"""Integration of an installed IPython: its display functions use the runner, its magics can be
called."""

import atexit
import builtins
import os
import shutil
import signal
import sys
import warnings

from . import lazy, temporary
from .state import STATE


def patch_getipython(module):
    """Make IPython.get_ipython return the runner's shell object."""
    module.get_ipython = builtins.get_ipython


def patch_display(module):
    """Replace display, clear_output and related functions of IPython.display by the runner's."""
    replacement = lazy.load("display")
    for name in ("display", "update_display", "clear_output", "publish_display_data"):
        if hasattr(module, name):
            setattr(module, name, getattr(replacement, name))
    if hasattr(module, "DisplayHandle"):
        module.DisplayHandle = replacement.DisplayHandle


def patch_interactive_shell(module):
    """Make InteractiveShell.instance() the runner's shell object, so that what code registers there
    has an effect."""
    module.InteractiveShell.instance = staticmethod(lambda *a, **k: builtins.get_ipython())
    module.InteractiveShell.initialized = staticmethod(lambda: True)


def patch_magic(module):
    """Let classes of magics take the runner's shell object, which is no traitlets object."""
    original = module.Magics.__init__

    def __init__(self, shell=None, **kwargs):
        if shell is not None and shell is STATE.shell:
            kwargs.setdefault("parent", None)
        original(self, shell, **kwargs)

    module.Magics.__init__ = __init__


def real_shell(shell):
    """Return IPython's own shell on the user's namespace, created on first use; None without
    IPython."""
    if shell.ipython_shell is not None:
        return shell.ipython_shell
    try:
        import IPython
        from IPython.core.interactiveshell import InteractiveShell
    except ImportError:
        return None
    if getattr(IPython, "cellwright_stand_in", False):
        return None
    shell.ipython_shell = _make_shell(shell, InteractiveShell)
    return shell.ipython_shell


def _make_shell(shell, kind):
    """Create the shell, and revert its changes to sys, builtins, signals and the namespace."""
    ns = STATE.ns
    saved_names = dict(ns)
    saved_sys = {
        n: getattr(sys, n) for n in ("displayhook", "excepthook", "stdout", "stderr", "stdin")
    }
    saved_builtins = {
        n: getattr(builtins, n)
        for n in ("get_ipython", "display", "input", "exit", "quit", "__IPYTHON__")
    }
    saved_signal = signal.getsignal(signal.SIGINT)
    saved_path = sys.path[:]
    if "IPYTHONDIR" not in os.environ:
        os.environ["IPYTHONDIR"] = _private_directory()
    try:
        from traitlets.config import Config

        config = Config()
        config.HistoryManager.enabled = False
        config.HistoryAccessor.enabled = False
        config.InteractiveShell.colors = "NoColor"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                real = kind(config=config, user_module=sys.modules["__main__"], user_ns=ns)
            except Exception:
                del config.InteractiveShell["colors"]
                real = kind(config=config, user_module=sys.modules["__main__"], user_ns=ns)
    finally:
        for name, value in saved_sys.items():
            setattr(sys, name, value)
        for name, value in saved_builtins.items():
            setattr(builtins, name, value)
        if signal.getsignal(signal.SIGINT) is not saved_signal:
            signal.signal(signal.SIGINT, saved_signal)
        sys.path[:] = saved_path
        for name in list(ns):
            if name not in saved_names:
                del ns[name]
        ns.update(saved_names)
    real.display_pub = shell.display_pub.__class__()
    real.events = shell.events
    real.system = shell.system
    real.getoutput = shell.getoutput
    real.run_cell = shell.run_cell
    real.set_next_input = shell.set_next_input
    real.showtraceback = shell.showtraceback
    real.set_hook("show_in_pager", _show_in_pager, 99)
    return real


def _show_in_pager(shell, text, start=0, screen_lines=0, pager_cmd=None):
    """Show the pager text of IPython's own magics."""
    if isinstance(text, dict):
        text = text.get("text/plain", "")
    lazy.load("magics.help").page("\n".join(text.splitlines()[max(0, start) :]))


def _private_directory():
    directory = temporary.private_directory("cellwright-ipython-")
    atexit.register(shutil.rmtree, directory, True)
    return directory
