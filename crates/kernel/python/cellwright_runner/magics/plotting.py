"""%matplotlib, %pylab, %config"""

from .. import lazy
from ..state import STATE
from . import UsageError


def matplotlib(shell, line):
    """%matplotlib [inline|…]: figures are always shown inline; other names are accepted and
    ignored."""
    if line.strip() in ("-l", "--list"):
        print("Available matplotlib backends: ['inline', 'agg']")


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
    """%config Class.name = value: InlineBackend here, everything else through IPython."""
    text = line.strip()
    name, equals, value = text.partition("=")
    section, _, option = name.strip().partition(".")
    if section == "InlineBackend":
        figures = lazy.load("figures")
        if not equals:
            print(figures.options_text())
            return
        figures.set_option(option, eval(value.strip(), dict(STATE.ns)))
        return
    real = lazy.load("ipython_installed").real_shell(shell)
    if real is None:
        raise UsageError("Invalid config statement: %r (only InlineBackend without IPython)" % text)
    real.run_line_magic("config", line)
