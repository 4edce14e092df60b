"""%who, %whos, %reset and relatives."""

import gc
import re

from .. import lazy
from ..cell import H
from ..state import S
from . import UsageError, options

HIDDEN = frozenset(
    (
        "In",
        "Out",
        "get_ipython",
        "display",
        "exit",
        "quit",
    )
)


def user_names():
    """The names that are the user's: not ours, not private, not the host's prelude."""
    names = []
    for name, value in list(S.ns.items()):
        if type(name) is not str or name.startswith("_") or name in HIDDEN:
            continue
        if name in S.kept and S.kept[name] is value:
            continue
        if name in S.hidden and S.hidden[name] is value:
            continue
        names.append(name)
    return sorted(names)


def who_ls(shell, line):
    """%who_ls [type …]: names of the user's variables, sorted."""
    kinds = line.split()
    return [n for n in user_names() if not kinds or type(S.ns[n]).__name__ in kinds]


def who(shell, line):
    """%who [type …]: the same, printed."""
    names = who_ls(shell, line)
    if not names:
        print(
            "No variables match your requested type."
            if line.strip()
            else "Interactive namespace is empty."
        )
        return
    for start in range(0, len(names), 8):
        print("\t ".join(names[start : start + 8]) + "\t ")


def whos(shell, line):
    """%whos [type …]: names, types and a glance at the values."""
    names = who_ls(shell, line)
    if not names:
        print(
            "No variables match your requested type."
            if line.strip()
            else "Interactive namespace is empty."
        )
        return
    preview = lazy.load("variables").glance
    rows = [(n, type(S.ns[n]).__name__, preview(S.ns[n])) for n in names]
    wide = max(len("Variable"), max(len(r[0]) for r in rows))
    kind = max(len("Type"), max(len(r[1]) for r in rows))
    print("%-*s   %-*s   %s" % (wide, "Variable", kind, "Type", "Data/Info"))
    print("-" * (wide + kind + 15))
    for name, kind_name, glance in rows:
        print("%-*s   %-*s   %s" % (wide, name, kind, kind_name, glance))


def reset_names():
    """Forget the user's names; what the host's prelude and the runner put there stays."""
    ns = S.ns
    for name in list(ns):
        if type(name) is str and name.startswith("__") and name.endswith("__"):
            if name not in ("__warningregistry__",):
                continue
        if name in S.kept:
            ns[name] = S.kept[name]
        else:
            del ns[name]
    ns.update(S.kept)
    H.outputs.clear()
    H.shown.clear()
    H.cells.clear()
    H.inputs[:] = [""] * max(1, len(H.inputs))
    H.raw = ["", "", "", ""]
    H.last = ["", "", ""]
    H.install(ns)


def reset(shell, line):
    """%reset [-f] [-s] [in] [out]: forget all names (nobody is asked: there may be nobody)."""
    found, rest = options(line, ("f", "s", "aggressive"), (), "%reset [-f] [-s] [in] [out]")
    wanted = rest.split()
    if wanted:
        for target in wanted:
            if target == "out":
                for name in [n for n in S.ns if type(n) is str and n[1:].isdigit() and n[0] == "_"]:
                    del S.ns[name]
                H.outputs.clear()
                H.shown.clear()
            elif target == "in":
                H.inputs[:] = [""] * len(H.inputs)
                H.cells.clear()
            elif target not in ("dhist", "array"):
                raise UsageError("%%reset knows in, out, dhist and array, not %r" % target)
        return
    if "s" in found:
        for name in user_names():
            del S.ns[name]
        return
    reset_names()
    gc.collect()


def reset_selective(shell, line):
    """%reset_selective [-f] regex: forget the names that match."""
    _, pattern = options(line, ("f",), (), "%reset_selective [-f] regex")
    if not pattern:
        raise UsageError("%reset_selective needs a regular expression")
    for name in user_names():
        if re.search(pattern, name):
            del S.ns[name]


def xdel(shell, line):
    """%xdel name: forget a name, also in Out."""
    name = line.replace("-n", "").strip()
    if name not in S.ns:
        raise UsageError("name %r is not defined" % name)
    value = S.ns.pop(name)
    for number in [n for n, kept in H.outputs.items() if kept is value]:
        del H.outputs[number]
        S.ns.pop("_%d" % number, None)
