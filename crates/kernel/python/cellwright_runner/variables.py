"""variables: the user's variables with type, size and a preview of the value.

None of the user's code runs: a value is read only if its exact type is a builtin type or a type of
numpy, pandas or polars. For other values only the type is returned.
"""

import sys

from . import lazy
from .state import STATE

_SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset, range)
_ATOMS = (int, float, complex, bool, type(None))
PREVIEW_LIMIT = 160  # characters


def variables(request):
    """Return the reply to `variables`."""
    limit = int(request.get("limit") or 200)
    names = lazy.load("magics.variables").user_names()
    entries = []
    for name in names:
        if len(entries) >= limit:
            break
        value = STATE.ns[name]
        if type(value).__name__ == "module":
            continue
        entries.append(facts(name, value))
    return entries


def facts(name, value):
    """Return the entry of one variable."""
    kind = type(value)
    entry = {
        "name": name,
        "type": kind.__qualname__,
        "module": kind.__module__ if type(kind.__module__) is str else None,
        "shape": None,
        "length": None,
        "size_bytes": None,
        "preview": None,
    }
    try:
        if kind in _SIZED:
            entry["length"] = len(value)
        if kind in _SIZED or kind in _ATOMS:
            entry["size_bytes"] = sys.getsizeof(value)
            entry["preview"] = preview(value)
        elif kind.__name__ in ("function", "builtin_function_or_method", "type"):
            entry["preview"] = _callable_preview(value, kind)
        else:
            _library_facts(value, kind, entry)
    except Exception:
        pass
    return entry


def _callable_preview(value, kind):
    name = value.__qualname__
    if kind.__name__ == "type":
        return "class %s" % name
    code = getattr(value, "__code__", None)
    if code is None:
        return name
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return "%s(%s)" % (name, ", ".join(arguments))


def _is_exact_type(kind, module, *names):
    """Return whether `kind` is exactly one of a library's types; the library must be loaded."""
    library = sys.modules.get(module)
    return library is not None and any(kind is getattr(library, name, None) for name in names)


def _library_facts(value, kind, entry):
    if _is_exact_type(kind, "numpy", "ndarray"):
        entry["shape"] = list(value.shape)
        entry["length"] = int(value.shape[0]) if value.ndim else None
        entry["size_bytes"] = int(value.nbytes)
        entry["preview"] = "%s %s" % (value.dtype, "×".join(map(str, value.shape)) or "scalar")
        if value.size <= 8 and value.dtype.kind in "biufcUSM":
            entry["preview"] = preview(value.tolist())
    elif _is_exact_type(kind, "pandas", "DataFrame") or _is_exact_type(kind, "polars", "DataFrame"):
        entry["shape"] = [int(n) for n in value.shape]
        entry["length"] = int(value.shape[0])
        names = [str(c) for c in list(value.columns)[:12]]
        entry["preview"] = "columns: " + ", ".join(names) + (" …" if value.shape[1] > 12 else "")
        entry["size_bytes"] = _data_size(value)
    elif _is_exact_type(kind, "pandas", "Series", "Index") or _is_exact_type(
        kind, "polars", "Series"
    ):
        entry["shape"] = [int(n) for n in value.shape]
        entry["length"] = int(value.shape[0])
        entry["preview"] = "%s of %s" % (kind.__name__, value.dtype)
        entry["size_bytes"] = _data_size(value)
    elif kind.__module__ == "numpy" and hasattr(sys.modules.get("numpy"), "generic"):
        if issubclass(kind, sys.modules["numpy"].generic):
            entry["preview"] = preview(value.item())
            entry["size_bytes"] = int(value.nbytes)


def _data_size(value):
    if hasattr(type(value), "estimated_size"):
        return int(value.estimated_size())
    used = value.memory_usage() if hasattr(type(value), "memory_usage") else value.nbytes
    return int(used.sum()) if hasattr(used, "sum") else int(used)


def preview(value, limit=PREVIEW_LIMIT):
    """Return a short text of a builtin value; items of other types appear as <Type>."""
    text = _short_repr(value, limit, 0)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _short_repr(value, limit, depth):
    kind = type(value)
    if kind is str or kind is bytes:
        return repr(value[:limit]) + ("…" if len(value) > limit else "")
    if kind is int:
        bits = value.bit_length()
        return repr(value) if bits < 1000 else "<int of %d bits>" % bits
    if kind in _ATOMS or kind is range:
        return repr(value)
    if kind is bytearray:
        return "bytearray(%s)" % _short_repr(bytes(value[:limit]), limit, depth)
    if kind not in _SIZED:
        return "<%s>" % kind.__name__
    if depth > 3:
        return "…"
    opening, closing = {
        list: "[]",
        tuple: "()",
        dict: "{}",
        set: "{}",
        frozenset: "{}",
    }[kind]
    parts, used = [], 0
    for item in value:
        if used > limit:
            parts.append("…")
            break
        if kind is dict:
            part = "%s: %s" % (
                _short_repr(item, limit, depth + 1),
                _short_repr(value[item], limit, depth + 1),
            )
        else:
            part = _short_repr(item, limit, depth + 1)
        parts.append(part)
        used += len(part) + 2
    inner = ", ".join(parts)
    if kind is tuple and len(value) == 1:
        inner += ","
    if kind is frozenset:
        return "frozenset({%s})" % inner
    if kind is set and not value:
        return "set()"
    return opening + inner + closing


def summary(value):
    """Return the last column of %whos."""
    entry = facts("", value)
    if entry["preview"] is None:
        return "<%s>" % entry["type"]
    prefix = "n=%d: " % entry["length"] if type(value) in (list, tuple, dict, set) else ""
    return (prefix + entry["preview"])[:60]
