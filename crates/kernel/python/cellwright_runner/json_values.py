"""Strict JSON of any Python value: NaN and infinities become null, unknown types become text."""

import math
from binascii import b2a_base64

from .channel import dumps

DEPTH_LIMIT = 100


def to_json(value):
    """Return the JSON text of a value. Values that are JSON already need no copy."""
    try:
        return dumps(value)
    except (ValueError, TypeError, RecursionError, OverflowError):
        return dumps(jsonable(value, 0))


def jsonable(value, depth):
    """Return a copy that contains only JSON types."""
    kind = type(value)
    if value is None or kind is bool or kind is int or kind is str:
        return value
    if kind is float:
        return value if math.isfinite(value) else None
    if depth > DEPTH_LIMIT:
        return "…"
    if isinstance(value, dict):
        return {_object_key(k): jsonable(v, depth + 1) for k, v in dict.items(value)}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [jsonable(item, depth + 1) for item in value]
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool):
        return bool(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return jsonable(float(value), depth)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return b2a_base64(bytes(value), newline=False).decode("ascii")
    for name in ("tolist", "item"):  # numpy and similar libraries
        method = getattr(kind, name, None)
        if callable(method):
            try:
                return jsonable(method(value), depth + 1)
            except Exception:
                pass
    try:
        return str(value)
    except Exception:
        return "<%s>" % kind.__name__


def _object_key(key):
    if type(key) is str:
        return key
    if key is None or isinstance(key, (bool, int)):
        return dumps(key) if key is None or isinstance(key, bool) else str(int(key))
    try:
        return str(key)
    except Exception:
        return "<%s>" % type(key).__name__
