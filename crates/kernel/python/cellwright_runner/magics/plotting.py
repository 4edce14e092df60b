"""%matplotlib, %pylab, %config"""

import importlib.util

from .. import lazy
from ..state import STATE
from . import UsageError


def matplotlib(shell, line):
    """%matplotlib [inline|…]: figures are shown inline, whatever the backend. A name that matplotlib
    does not know, such as `widget` without ipympl, is an error."""
    name = line.strip()
    if name in ("-l", "--list"):
        print("Available matplotlib backends: ['inline', 'agg']")
        return
    if importlib.util.find_spec("matplotlib") is None:
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
    if name.lower() not in ("", "inline", "agg", "auto"):
        _check_backend(name)
    lazy.load("figures").select_inline()


def _check_backend(name):
    """Raise an error for a name that matplotlib does not know."""
    try:
        from matplotlib.backends.registry import backend_registry
    except ImportError:  # before 3.9
        if name in ("widget", "ipympl") and importlib.util.find_spec("ipympl") is None:
            raise RuntimeError(
                "'%s' is not a recognised GUI loop or backend name" % name
            ) from None
        return
    backend_registry.resolve_gui_or_backend(name)


def pylab(shell, line):
    """%pylab: import the names of numpy and matplotlib into the namespace."""
    print("%pylab is deprecated, use %matplotlib inline and import the required libraries.")
    print("Populating the interactive namespace from numpy and matplotlib")
    exec(
        "import numpy\nimport matplotlib\nfrom matplotlib import pylab, mlab, pyplot\n"
        "np = numpy\nplt = pyplot\nfrom pylab import *\nfrom numpy import *\n",
        STATE.ns,
    )


def config(shell, line):
    """%config Class.name = value: InlineBackend and the shell here, others through IPython."""
    text = line.strip()
    name, equals, value = text.partition("=")
    section, _, option = name.strip().partition(".")
    if section == "InlineBackend":
        figures = lazy.load("figures")
        if not equals:
            print(figures.options_text())
            return None
        figures.set_option(option, eval(value.strip(), dict(STATE.ns)))
        return None
    if section in ("InteractiveShell", "ZMQInteractiveShell") and shell.has_trait(option):
        if not equals:
            return getattr(shell, option)
        _set_shell_option(shell, option, value.strip())
        return None
    real = lazy.load("ipython_installed").real_shell(shell)
    if real is None:
        raise UsageError(
            "Invalid config statement: %r (without IPython only InlineBackend and InteractiveShell)"
            % text
        )
    return real.run_line_magic("config", line)


def _set_shell_option(shell, option, text):
    try:
        value = eval(text, dict(STATE.ns))
    except NameError:
        value = text  # `%config InteractiveShell.xmode = Plain`
    if option == "ast_node_interactivity" and value not in lazy.load("interactivity").MODES:
        raise UsageError(
            "ast_node_interactivity is one of %s, not %r"
            % (", ".join(lazy.load("interactivity").MODES), value)
        )
    if option == "xmode":
        lazy.load("magics.toggles").xmode(shell, str(value))
        return
    setattr(shell, option, value)
