"""%precision: the format of floats."""

import sys

from .. import lazy
from . import UsageError


def precision(shell, line):
    """%precision [N | %format]: set the format of floats; without an argument, the default."""
    argument = line.strip()
    digits = None
    if not argument:
        template, digits = "%r", 8
    elif "%" in argument:
        template = argument
        try:
            template % 3.14159
        except (TypeError, ValueError):
            raise UsageError("Precision must be int or format string, not %r" % argument) from None
    elif argument.isdigit():
        template, digits = "%%.%sf" % argument, int(argument)
    else:
        raise UsageError("Precision must be int or format string, not %r" % argument)
    lazy.load("pretty").FLOAT_FORMAT.template = template
    shell.has_formatters = True  # plain numbers must take the path with formatters, too
    numpy = sys.modules.get("numpy")
    if numpy is not None and digits is not None:
        numpy.set_printoptions(precision=digits)
    return template
