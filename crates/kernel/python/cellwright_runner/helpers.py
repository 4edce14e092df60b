"""helpers: the prelude's functions with their signatures and docstrings."""

import inspect
import re

from . import lazy, main, modules, prelude
from .state import STATE

# An annotation that is a string: `path: 'str | None'`, `-> 'Result'`.
_QUOTED = re.compile(r"(: |-> )'([^']*)'")


def helpers(request=None):
    """Return [{"name", "signature", "doc", "module"}]; `module` is the user's file, or None."""
    entries = []
    if STATE.prelude_installed:
        entries.append(_entry("display", main.display, None, "(*objects, **options) -> None"))
        for function in prelude.FUNCTIONS:
            entries.append(_entry(function.__name__, function, None))
        bridge = lazy.load("bridge")
        for name in bridge.VERBS:
            entries.append(_entry("tool." + name, bridge.verb(name), None))
    for path in STATE.module_paths:
        for name, function in modules.functions(path):
            entries.append(_entry(name, function, path))
    return entries


def _entry(name, function, module, signature=None):
    return {
        "name": name,
        "signature": signature or _signature(function),
        "doc": _doc(function),
        "module": module,
    }


def _signature(function):
    try:
        text = str(inspect.signature(function))
    except (TypeError, ValueError):
        return "(...)"
    return _QUOTED.sub(r"\1\2", text)


def _doc(function):
    text = inspect.getdoc(function) or ""
    return text.strip()
