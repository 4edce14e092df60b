"""IPython.core.magic of the stand-in: decorators and a base class for magics defined in
notebooks."""

from .magics import UsageError


def _register(kind):
    def decorate(function):
        import builtins

        builtins.get_ipython().register_magic_function(function, kind)
        return function

    return decorate


def _mark_method(kind):
    def decorate(argument):
        if isinstance(argument, str):
            return lambda function: _set_mark(function, kind, argument)
        return _set_mark(argument, kind, argument.__name__)

    return decorate


def _set_mark(function, kind, name):
    function.cellwright_magic = (kind, name)
    return function


class Magics:
    """Base class; its marked methods become magics when it is registered."""

    def __init__(self, shell=None, **kwargs):
        self.shell = shell
        self.magics = {"line": {}, "cell": {}}
        for name in dir(type(self)):
            kind, magic = getattr(getattr(type(self), name), "cellwright_magic", (None, None))
            if kind is None:
                continue
            for table in ("line", "cell") if kind == "line_cell" else (kind,):
                self.magics[table][magic] = getattr(self, name)


def _no_var_expand(function):
    function._ipython_magic_no_var_expand = True
    return function


def _needs_local_scope(function):
    function.needs_local_scope = True
    return function


def names():
    """Return the names of the module."""
    return {
        "register_line_magic": _register("line"),
        "register_cell_magic": _register("cell"),
        "register_line_cell_magic": _register("line_cell"),
        "line_magic": _mark_method("line"),
        "cell_magic": _mark_method("cell"),
        "line_cell_magic": _mark_method("line_cell"),
        "magics_class": lambda cls: cls,
        "needs_local_scope": _needs_local_scope,
        "no_var_expand": _no_var_expand,
        "Magics": Magics,
        "UsageError": UsageError,
    }
