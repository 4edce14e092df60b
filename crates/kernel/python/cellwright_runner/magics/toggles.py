"""%automagic, %autocall, %pprint, %xmode, %tb"""

from .. import lazy
from . import UsageError


def automagic(shell, line):
    """%automagic [on|off]: whether a cell of one line may omit the % of a magic."""
    word = line.strip().lower()
    shell.automagic = word in ("on", "1", "true") if word else not shell.automagic
    if shell.automagic:
        print("\nAutomagic is ON, % prefix IS NOT needed for line magics.")
    else:
        print("\nAutomagic is OFF, % prefix IS needed for line magics.")


def autocall(shell, line):
    """%autocall 0: calls need parentheses; other values are not available."""
    if line.strip().lower() not in ("0", "off"):
        raise UsageError("%autocall is not available; write the parentheses, or `/f x` for `f(x)`")
    print("Automatic calling is: OFF")


def pprint(shell, line):
    """%pprint: switch the wrapping of containers off or on."""
    pretty = lazy.load("pretty")
    pretty.LAYOUT.enabled = not pretty.LAYOUT.enabled
    print("Pretty printing has been turned", "ON" if pretty.LAYOUT.enabled else "OFF")


def xmode(shell, line):
    """%xmode Plain | Minimal: tracebacks are those of Python, or only the last line."""
    word = line.strip().capitalize()
    if not word:
        word = "Minimal" if shell.xmode == "Plain" else "Plain"
    if word not in ("Plain", "Context", "Verbose", "Minimal"):
        raise UsageError("%%xmode accepts Plain, Context, Verbose and Minimal, not %r" % word)
    if word in ("Context", "Verbose"):
        lazy.stdlib("warnings").warn("the runner has no %s tracebacks; Plain is used" % word)
        word = "Plain"
    shell.xmode = word
    print("Exception reporting mode: %s" % word)


def tb(shell, line):
    """%tb: print the last traceback."""
    shell.showtraceback()
