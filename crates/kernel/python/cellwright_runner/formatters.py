"""get_ipython().display_formatter: formatters that users and libraries register for their types."""

from . import lazy
from .state import STATE

MIMES = (
    "text/plain",
    "text/html",
    "text/markdown",
    "image/svg+xml",
    "image/png",
    "application/pdf",
    "image/jpeg",
    "text/latex",
    "application/json",
    "application/javascript",
)


class Formatter:
    """Functions for one MIME type, by type or by the name of a type not imported yet."""

    def __init__(self, mime):
        self.format_type = mime
        self.enabled = True
        self.type_printers = {}
        self.deferred_printers = {}
        self.singleton_printers = {}

    def for_type(self, kind, function=None):
        """Register a function. Returns the previous one."""
        if isinstance(kind, str):
            module, _, name = kind.rpartition(".")
            return self.for_type_by_name(module, name, function)
        old = self.type_printers.get(kind)
        if function is not None:
            self.type_printers[kind] = function
            if STATE.shell is not None:
                STATE.shell.has_formatters = True
        return old

    def for_type_by_name(self, module, name, function=None):
        """Like `for_type`, for a type that is not imported yet."""
        key = (module, name)
        old = self.deferred_printers.get(key)
        if function is not None:
            self.deferred_printers[key] = function
            if STATE.shell is not None:
                STATE.shell.has_formatters = True
        return old

    def pop(self, kind, default=None):
        """Remove and return a function."""
        if isinstance(kind, str):
            module, _, name = kind.rpartition(".")
            return self.deferred_printers.pop((module, name), default)
        return self.type_printers.pop(kind, default)

    def lookup_by_type(self, kind):
        """Return the function for a type; KeyError if there is none."""
        for base in kind.__mro__:
            function = self.type_printers.get(base)
            if function is None:
                function = self.deferred_printers.get((base.__module__, base.__name__))
            if function is not None:
                return function
        raise KeyError(kind)

    def lookup(self, obj):
        """Return the function for an object; KeyError if there is none."""
        return self.lookup_by_type(type(obj))

    def lookup_quiet(self, obj):
        """Return the function for an object, or None."""
        try:
            return self.lookup_by_type(type(obj))
        except (KeyError, AttributeError):
            return None

    def __call__(self, obj):
        data = lazy.load("display").make_bundle(obj, include=[self.format_type])
        return data[0].get(self.format_type) if data else None

    def __contains__(self, kind):
        try:
            self.lookup_by_type(kind)
        except KeyError:
            return False
        return True


def _layout_option(name):
    """Return a property that reads and sets an option of the printer."""

    def read(self):
        return getattr(lazy.load("pretty").LAYOUT, name)

    def write(self, value):
        setattr(lazy.load("pretty").LAYOUT, name, value)

    return property(read, write)


class PlainTextFormatter(Formatter):
    """The formatter for text/plain, which has the options of the printer."""

    pprint = _layout_option("enabled")
    max_width = _layout_option("max_width")
    max_seq_length = _layout_option("max_seq_length")


class Formatters(dict):
    """The formatters by MIME type. Libraries such as rich replace one by their own object."""

    def __setitem__(self, mime, formatter):
        super().__setitem__(mime, formatter)
        if STATE.shell is not None:
            STATE.shell.has_formatters = True

    def function_for(self, mime, obj):
        """Return the function that a user or library registered for an object, or None."""
        formatter = self.get(mime)
        if isinstance(formatter, Formatter):
            return formatter.lookup_quiet(obj)
        return (lambda value: formatter(value)) if callable(formatter) else None


class DisplayFormatter:
    """All formatters, and `format` over all of them."""

    def __init__(self):
        self.formatters = Formatters((mime, Formatter(mime)) for mime in MIMES)
        dict.__setitem__(self.formatters, "text/plain", PlainTextFormatter("text/plain"))
        self.ipython_display_formatter = Formatter("_ipython_display_")
        self.mimebundle_formatter = Formatter("_repr_mimebundle_")
        self.active_types = list(MIMES)

    @property
    def format_types(self):
        return list(self.formatters)

    def format(self, obj, include=None, exclude=None):
        """Return (data, metadata), both empty if the object displayed itself."""
        return lazy.load("display").make_bundle(obj, include, exclude) or ({}, {})


class DisplayPublisher:
    """get_ipython().display_pub"""

    def publish(self, data, metadata=None, source=None, *, transient=None, update=False, **kwargs):
        """Show a MIME bundle."""
        lazy.load("display").publish_display_data(
            data, metadata, transient=transient, update=update
        )

    def clear_output(self, wait=False):
        """Clear the cell's outputs."""
        lazy.load("display").clear_output(wait)
