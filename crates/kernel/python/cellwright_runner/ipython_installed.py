"""The real IPython, when it is installed: its display functions come to us, its magics are at
hand."""

import atexit
import builtins
import os
import signal
import sys
import shutil
import tempfile
import warnings

from . import lazy
from .state import S


def connect_getipython(module):
    """IPython.get_ipython is our shell object."""
    module.get_ipython = builtins.get_ipython


def connect_display(module):
    """display, clear_output and relatives of IPython.display are ours."""
    ours = lazy.load("display")
    for name in ("display", "update_display", "clear_output", "publish_display_data"):
        if hasattr(module, name):
            setattr(module, name, getattr(ours, name))
    if hasattr(module, "DisplayHandle"):
        module.DisplayHandle = ours.DisplayHandle


def real_shell(shell):
    """IPython's own shell over our namespace, made at the first need; None without IPython."""
    if shell.real is not None:
        return shell.real
    try:
        import IPython
        from IPython.core.interactiveshell import InteractiveShell
    except ImportError:
        return None
    if getattr(IPython, "cellwright_stand_in", False):
        return None
    shell.real = _make(shell, InteractiveShell)
    return shell.real


def _make(shell, kind):
    """Create the shell, and undo whatever it takes over for itself."""
    ns = S.ns
    kept_names = dict(ns)
    kept_sys = {
        n: getattr(sys, n) for n in ("displayhook", "excepthook", "stdout", "stderr", "stdin")
    }
    kept_builtins = {
        n: getattr(builtins, n) for n in ("get_ipython", "display", "input", "exit", "quit")
    }
    kept_signal = signal.getsignal(signal.SIGINT)
    kept_path = sys.path[:]
    os.environ.setdefault("IPYTHONDIR", _private_folder())
    try:
        from traitlets.config import Config

        config = Config()
        config.HistoryManager.enabled = False
        config.HistoryAccessor.enabled = False
        config.InteractiveShell.colors = "NoColor"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                real = kind.instance(config=config, user_module=sys.modules["__main__"], user_ns=ns)
            except Exception:
                del config.InteractiveShell["colors"]
                real = kind.instance(config=config, user_module=sys.modules["__main__"], user_ns=ns)
    finally:
        for name, value in kept_sys.items():
            setattr(sys, name, value)
        for name, value in kept_builtins.items():
            setattr(builtins, name, value)
        if signal.getsignal(signal.SIGINT) is not kept_signal:
            signal.signal(signal.SIGINT, kept_signal)
        sys.path[:] = kept_path
        for name in list(ns):
            if name not in kept_names:
                del ns[name]
        ns.update(kept_names)
    real.display_pub = shell.display_pub.__class__()
    real.events = shell.events
    real.system = shell.system
    real.getoutput = shell.getoutput
    real.run_cell = shell.run_cell
    real.set_next_input = shell.set_next_input
    real.showtraceback = shell.showtraceback
    real.set_hook("show_in_pager", _page, 99)
    return real


def _page(shell, text, start=0, screen_lines=0, pager_cmd=None):
    """What IPython's own magics show in a pager."""
    if isinstance(text, dict):
        text = text.get("text/plain", "")
    lazy.load("magics.helping").page("\n".join(text.splitlines()[max(0, start) :]))


def _private_folder():
    folder = tempfile.mkdtemp(prefix="cellwright-ipython-")
    atexit.register(shutil.rmtree, folder, True)
    return folder
