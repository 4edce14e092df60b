"""Requests other than `execute`: maps each op to the module and function that answer it."""

from . import lazy

_HANDLERS = {
    "complete": ("completion", "complete"),
    "inspect": ("inspection", "inspect"),
    "is_complete": ("is_complete", "is_complete"),
    "variables": ("variables", "variables"),
    "helpers": ("helpers", "helpers"),
    "history": ("history", "history"),
}


def handle(op, request):
    """Return the value of the reply."""
    if op not in _HANDLERS:
        raise ValueError("unknown op %r" % op)
    module, function = _HANDLERS[op]
    return getattr(lazy.load(module), function)(request)
