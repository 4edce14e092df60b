"""%precision: how numbers look."""

import sys

from .. import lazy
from . import UsageError


def precision(shell, line):
    """%precision [N | %format]: how floats are shown; without anything, as they are."""
    wanted = line.strip()
    digits = None
    if not wanted:
        form, digits = "%r", 8
    elif "%" in wanted:
        form = wanted
        try:
            form % 3.14159
        except (TypeError, ValueError):
            raise UsageError("Precision must be int or format string, not %r" % wanted) from None
    elif wanted.isdigit():
        form, digits = "%%.%sf" % wanted, int(wanted)
    else:
        raise UsageError("Precision must be int or format string, not %r" % wanted)
    lazy.load("pretty").F.form = form
    shell.has_formatters = True  # plain numbers, too, are asked how they look
    numpy = sys.modules.get("numpy")
    if numpy is not None and digits is not None:
        numpy.set_printoptions(precision=digits)
    return form
