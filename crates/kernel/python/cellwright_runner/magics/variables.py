"""%who, %whos, %reset and related magics."""

import gc
import re

from .. import lazy
from ..cell import HISTORY
from ..state import STATE
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
    """Return the user's names: without the runner's, private and prelude names."""
    names = []
    for name, value in list(STATE.ns.items()):
        if type(name) is not str or name.startswith("_") or name in HIDDEN:
            continue
        if name in STATE.prelude_names and STATE.prelude_names[name] is value:
            continue
        if name in STATE.hidden_names and STATE.hidden_names[name] is value:
            continue
        names.append(name)
    return sorted(names)


def who_ls(shell, line):
    """%who_ls [type …]: sorted names of the user's variables."""
    kinds = line.split()
    return [n for n in user_names() if not kinds or type(STATE.ns[n]).__name__ in kinds]


def who(shell, line):
    """%who [type …]: print the names of the user's variables."""
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
    """%whos [type …]: print names, types and previews of the user's variables."""
    names = who_ls(shell, line)
    if not names:
        print(
            "No variables match your requested type."
            if line.strip()
            else "Interactive namespace is empty."
        )
        return
    preview = lazy.load("variables").summary
    rows = [(n, type(STATE.ns[n]).__name__, preview(STATE.ns[n])) for n in names]
    name_width = max(len("Variable"), max(len(r[0]) for r in rows))
    type_width = max(len("Type"), max(len(r[1]) for r in rows))
    print("%-*s   %-*s   %s" % (name_width, "Variable", type_width, "Type", "Data/Info"))
    print("-" * (name_width + type_width + 15))
    for name, type_name, summary in rows:
        print("%-*s   %-*s   %s" % (name_width, name, type_width, type_name, summary))


def reset_names():
    """Delete the user's names; the names of the prelude and the runner stay."""
    ns = STATE.ns
    for name in list(ns):
        if type(name) is str and name.startswith("__") and name.endswith("__"):
            if name not in ("__warningregistry__",):
                continue
        if name in STATE.prelude_names:
            ns[name] = STATE.prelude_names[name]
        else:
            del ns[name]
    ns.update(STATE.prelude_names)
    HISTORY.outputs.clear()
    HISTORY.output_texts.clear()
    HISTORY.raw_inputs.clear()
    HISTORY.inputs[:] = [""] * max(1, len(HISTORY.inputs))
    HISTORY.recent_inputs = ["", "", "", ""]
    HISTORY.recent_outputs = ["", "", ""]
    HISTORY.install(ns)


def _reset_part(target):
    ns = STATE.ns
    if target == "out":
        print("Flushing output cache (%d entries)" % len(HISTORY.outputs))
        for name in [n for n in ns if type(n) is str and n[1:].isdigit() and n[0] == "_"]:
            del ns[name]
        HISTORY.outputs.clear()
        HISTORY.output_texts.clear()
    elif target == "in":
        print("Flushing input history")
        HISTORY.inputs[:] = [""] * len(HISTORY.inputs)
        HISTORY.raw_inputs.clear()
    elif target == "dhist":
        print("Flushing directory history")
        ns["_dh"] = []
    elif target == "array":
        for name in [n for n, value in ns.items() if type(value).__name__ == "ndarray"]:
            del ns[name]
    else:
        raise UsageError("%%reset accepts in, out, dhist and array, not %r" % target)


def reset(shell, line):
    """%reset [-f] [-s] [in] [out]: delete all names, without asking for confirmation."""
    found, rest = options(line, ("f", "s", "aggressive"), (), "%reset [-f] [-s] [in] [out]")
    targets = rest.split()
    for target in targets:
        _reset_part(target.lower())
    if targets:
        return
    if "s" in found:
        for name in user_names():
            del STATE.ns[name]
        return
    reset_names()
    gc.collect()


def reset_selective(shell, line):
    """%reset_selective [-f] regex: delete the names that match."""
    _, pattern = options(line, ("f",), (), "%reset_selective [-f] regex")
    if not pattern:
        raise UsageError("%reset_selective needs a regular expression")
    for name in user_names():
        if re.search(pattern, name):
            del STATE.ns[name]


def xdel(shell, line):
    """%xdel name: delete a name, also in Out."""
    name = line.replace("-n", "").strip()
    if name not in STATE.ns:
        raise UsageError("name %r is not defined" % name)
    value = STATE.ns.pop(name)
    for number in [n for n, stored in HISTORY.outputs.items() if stored is value]:
        del HISTORY.outputs[number]
        STATE.ns.pop("_%d" % number, None)
