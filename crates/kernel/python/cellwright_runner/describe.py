"""The prelude in words: each name with its signature and what it says about itself."""

import inspect
import re

from . import lazy, main, modules, prelude
from .state import S

# An annotation that is a string: `path: 'str | None'`, `-> 'Result'`.
_QUOTED = re.compile(r"(: |-> )'([^']*)'")


def describe(request=None):
    """-> [{"name", "signature", "doc", "module"}]; `module` is the user's file, or None."""
    listed = []
    if S.prelude:
        listed.append(_entry("display", main.display, None, "(*objects, **options) -> None"))
        for function in prelude.FUNCTIONS:
            listed.append(_entry(function.__name__, function, None))
        bridge = lazy.load("bridge")
        for name in bridge.VERBS:
            listed.append(_entry("tool." + name, bridge.verb(name), None))
    for path in S.modules:
        for name, function in modules.functions(path):
            listed.append(_entry(name, function, path))
    return listed


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
