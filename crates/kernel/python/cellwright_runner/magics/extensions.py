"""%load_ext and related magics; the autoreload extension is the runner's."""

import importlib
import sys

from .. import lazy
from . import UsageError


class ExtensionManager:
    """get_ipython().extension_manager"""

    def __init__(self, shell):
        self.shell = shell

    @property
    def loaded(self):
        return _loaded

    def load_extension(self, name):
        """Load an extension. Returns None, "already loaded" or "no load function", as IPython."""
        return _load(self.shell, name)

    def unload_extension(self, name):
        return _unload(self.shell, name)

    def reload_extension(self, name):
        _unload(self.shell, name)
        return _load(self.shell, name)


_loaded = set()


def _load(shell, name):
    if name in _loaded:
        return "already loaded"
    if name in ("autoreload", "IPython.extensions.autoreload"):
        _loaded.add(name)
        lazy.load("autoreload").watch(shell)
        return None
    if name == "storemagic":
        _loaded.add(name)  # %store is a magic of the runner
        return None
    real = lazy.load("ipython_installed").real_shell(shell)
    if real is not None:
        outcome = real.extension_manager.load_extension(name)
    else:
        module = importlib.import_module(name)
        function = getattr(module, "load_ipython_extension", None)
        if function is None:
            return "no load function"
        outcome = function(shell) and None
    if outcome is None:
        _loaded.add(name)
    return outcome


def _unload(shell, name):
    if name not in _loaded:
        return "not loaded"
    _loaded.discard(name)
    if name == "autoreload":
        lazy.load("autoreload").set_mode(shell, "0")
        return "no unload function"
    real = lazy.load("ipython_installed").real_shell(shell)
    if real is not None:
        return real.extension_manager.unload_extension(name)
    function = getattr(sys.modules.get(name), "unload_ipython_extension", None)
    if function is None:
        return "no unload function"
    function(shell)
    return None


def load_ext(shell, line):
    """%load_ext name"""
    name = line.strip()
    if not name:
        raise UsageError("Missing module name.")
    outcome = _load(shell, name)
    if outcome == "already loaded":
        print("The %s extension is already loaded. To reload it, use:" % name)
        print("  %reload_ext", name)
    elif outcome == "no load function":
        print("The %s module is not an IPython extension." % name)


def unload_ext(shell, line):
    """%unload_ext name"""
    name = line.strip()
    if not name:
        raise UsageError("Missing module name.")
    outcome = _unload(shell, name)
    if outcome == "not loaded":
        print("The %s extension is not loaded." % name)
    elif outcome == "no unload function":
        print("The %s extension doesn't define how to unload it." % name)


def reload_ext(shell, line):
    """%reload_ext name"""
    _unload(shell, line.strip())
    load_ext(shell, line)


def autoreload(shell, line):
    """%autoreload [0|1|2|3|now|off|explicit|all|complete]"""
    lazy.load("autoreload").set_mode(shell, line.strip())


def aimport(shell, line):
    """%aimport [module | -module]"""
    lazy.load("autoreload").aimport(line.strip())
