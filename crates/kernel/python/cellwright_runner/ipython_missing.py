"""A stand-in for IPython where it is not installed: enough for `from IPython.display import …`.

`version_info` is a recent version on purpose: with older ones matplotlib uses parts of IPython that
do not exist here.
"""

import sys
from importlib.machinery import ModuleSpec

from . import display_objects, lazy
from .display import (
    DisplayHandle,
    clear_output,
    display,
    publish_display_data,
    update_display,
)

VERSION = (9, 0, 0)


_DISPLAY_FUNCTIONS = {
    "pretty": "text/plain",
    "html": "text/html",
    "markdown": "text/markdown",
    "svg": "image/svg+xml",
    "png": "image/png",
    "jpeg": "image/jpeg",
    "latex": "text/latex",
    "json": "application/json",
    "javascript": "application/javascript",
    "pdf": "application/pdf",
}


def _display_function(mime):
    """Return display_html and so on: they show one form of objects, or raw data of that form."""

    def show(*objects, raw=False, metadata=None):
        for obj in objects:
            if raw:
                publish_display_data({mime: obj}, {mime: metadata} if metadata else None)
            else:
                display(obj, include=["text/plain", mime], metadata=metadata)

    return show


def _display_names():
    names = {
        "display": display,
        "update_display": update_display,
        "clear_output": clear_output,
        "publish_display_data": publish_display_data,
        "DisplayHandle": DisplayHandle,
        "set_matplotlib_formats": lambda *f, **k: lazy.load("figures").set_option(
            "figure_formats", f
        ),
        "set_matplotlib_close": lambda close=True: None,
    }
    for kind, mime in _DISPLAY_FUNCTIONS.items():
        names["display_" + kind] = _display_function(mime)
    for name in display_objects.NAMES:
        names[name] = getattr(display_objects, name)
    names["__all__"] = [n for n in names if not n.startswith("_")]
    return names


def _get_ipython():
    import builtins

    return builtins.get_ipython()


def _package_names():
    return {
        "get_ipython": _get_ipython,
        "version_info": VERSION,
        "__version__": ".".join(map(str, VERSION)),
        "display": None,
        "cellwright_stand_in": True,
        "__path__": [],
    }


def _magic_names():
    return lazy.load("magic_decorators").names()


def _shell_names():
    return {"InteractiveShell": type(_get_ipython())}


def _capture_names():
    run = lazy.load("magics.run")
    return {"capture_output": run.capture_output, "CapturedIO": run.CapturedOutput}


def _pretty_names():
    pretty = lazy.load("pretty")
    return {
        "pretty": lambda obj, *options, **more: pretty.pretty(obj),
        "pprint": lambda obj, *options, **more: print(pretty.pretty(obj)),
        "PrettyPrinter": pretty.Printer,
        "RepresentationPrinter": pretty.Printer,
    }


MODULES = {
    "IPython": _package_names,
    "IPython.display": _display_names,
    "IPython.core": lambda: {"__path__": []},
    "IPython.core.display": _display_names,
    "IPython.core.display_functions": _display_names,
    "IPython.core.getipython": lambda: {"get_ipython": _get_ipython},
    "IPython.core.magic": _magic_names,
    "IPython.core.interactiveshell": _shell_names,
    "IPython.core.pylabtools": lambda: {"backend2gui": {}},
    "IPython.lib": lambda: {"__path__": []},
    "IPython.lib.display": _display_names,
    "IPython.lib.pretty": _pretty_names,
    "IPython.utils": lambda: {"__path__": []},
    "IPython.utils.capture": _capture_names,
}


PACKAGES = ("IPython", "IPython.core", "IPython.lib", "IPython.utils")


class StandInLoader:
    """Fills a stand-in module."""

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__dict__.update(MODULES[module.__name__]())
        if module.__name__ == "IPython":
            # `import IPython; IPython.display.display(x)` works with IPython.
            import importlib

            module.display = importlib.import_module("IPython.display")


def find_spec(name):
    """Return the spec of a stand-in module; None for parts of IPython that the stand-in lacks."""
    real = sys.modules.get("IPython")
    if name not in MODULES or name != "IPython" and not getattr(real, "cellwright_stand_in", False):
        return None
    return ModuleSpec(name, StandInLoader(), is_package=name in PACKAGES)
