"""get_ipython().events: callbacks that libraries register to run before and after cells."""

import sys

from . import lazy

NAMES = (
    "pre_execute",
    "pre_run_cell",
    "post_execute",
    "post_run_cell",
    "shell_initialized",
)


class ExecutionInfo:
    """The argument of a pre_run_cell callback, and `info` of the result."""

    def __init__(self, raw_cell, store_history, silent):
        self.raw_cell = raw_cell
        self.transformed_cell = None
        self.store_history = store_history
        self.silent = silent
        self.shell_futures = True
        self.cell_id = None


class ExecutionResult:
    """The argument of a post_run_cell callback."""

    def __init__(self, info, result=None, error=None):
        self.info = info
        self.result = result
        self.execution_count = None
        self.error_before_exec = None
        self.error_in_exec = error

    @property
    def success(self):
        return self.error_before_exec is None and self.error_in_exec is None

    def raise_error(self):
        """Raise the cell's error, if any."""
        if self.error_in_exec is not None:
            raise self.error_in_exec


class Events:
    """The event manager. `has_callbacks` is False while no callback is registered."""

    def __init__(self):
        self.callbacks = {name: [] for name in NAMES}
        self.has_callbacks = False
        self.info = None

    def register(self, event, function):
        """Call `function` at every `event`."""
        if not callable(function):
            raise TypeError("Need a callable, got %r" % (function,))
        if function not in self.callbacks[event]:
            self.callbacks[event].append(function)
        self.has_callbacks = True

    def unregister(self, event, function):
        """Remove `function` from `event`."""
        callbacks = self.callbacks[event]
        if function in callbacks:
            callbacks.remove(function)
        else:
            originals = [f for f in callbacks if getattr(f, "__wrapped__", None) is function]
            if not originals:
                raise ValueError(
                    "Function %r is not registered as a %s callback" % (function, event)
                )
            callbacks.remove(originals[0])
        self.has_callbacks = any(self.callbacks.values())

    def trigger(self, event, *args, **kwargs):
        """Call the callbacks of an event. A failure is reported on stderr; the others still run."""
        for function in list(self.callbacks[event]):
            try:
                try:
                    function(*args, **kwargs)
                except TypeError:
                    if not args or not _takes_no_arguments(function):
                        raise
                    function()
            except KeyboardInterrupt:
                raise
            except Exception as error:
                lines = lazy.load("tracebacks").describe(error)[2]
                sys.stderr.write("Error in callback %r (for %s):\n" % (function, event))
                sys.stderr.write("\n".join(lines) + "\n")

    def before_cell(self, raw, silent, history):
        """Trigger the events at the start of a cell."""
        self.info = ExecutionInfo(raw, history, silent)
        self.trigger("pre_execute")
        if not silent:
            self.trigger("pre_run_cell", self.info)

    def after_cell(self, raw, silent, history, value, error):
        """Trigger the events at the end of a cell."""
        result = ExecutionResult(self.info or ExecutionInfo(raw, history, silent), value, error)
        self.trigger("post_execute")
        if not silent:
            self.trigger("post_run_cell", result)


def _takes_no_arguments(function):
    code = getattr(function, "__code__", None)
    if code is None:
        return False
    bound = 1 if getattr(function, "__self__", None) is not None else 0
    return code.co_argcount - bound == 0
