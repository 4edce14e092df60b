"""The requests that are not `execute`: each op and the module that answers it."""

from . import lazy

_OPS = {
    "complete": ("completion", "complete"),
    "inspect": ("inspection", "inspect"),
    "is_complete": ("complete_check", "is_complete"),
    "variables": ("variables", "variables"),
    "helpers": ("describe", "describe"),
    "history": ("history", "history"),
}


def handle(op, request):
    """The value of the reply."""
    if op not in _OPS:
        raise ValueError("unknown op %r" % op)
    module, function = _OPS[op]
    return getattr(lazy.load(module), function)(request)
