"""text/plain: containers wrapped at 79 columns and cut at 1000 items, other objects as their repr.

The printer has the methods that `_repr_pretty_` methods and registered functions use: text,
breakable, break_, group, indent, begin_group, end_group, pretty.
"""

import collections
import os
import types

from . import lazy
from .state import STATE

WIDTH = 79
ITEMS_LIMIT = 1000
_ATOMS = frozenset((int, str, bool, bytes, complex, type(None)))
_RE_FLAGS = ("IGNORECASE", "LOCALE", "MULTILINE", "DOTALL", "UNICODE", "VERBOSE", "DEBUG")
_NEWLINE = object()


class FloatFormat:
    """The format of floats, which %precision sets. The one instance is `FLOAT_FORMAT`."""

    template = "%r"


FLOAT_FORMAT = FloatFormat()


class Layout:
    """The options of the formatter for text/plain; %pprint switches `enabled`. The one instance is
    `LAYOUT`."""

    enabled = True  # containers are wrapped
    max_width = WIDTH
    max_seq_length = ITEMS_LIMIT  # 0: no limit


LAYOUT = Layout()


class _Break:
    __slots__ = ("text",)

    def __init__(self, text):
        self.text = text


class _Group:
    __slots__ = ("indent", "items", "width")

    def __init__(self, indent):
        self.indent = indent
        self.items = []
        self.width = None


class Printer:
    """Collects groups of text and breaks; `result` returns the layout."""

    def __init__(self):
        self.max_width = LAYOUT.max_width
        self.max_seq_length = LAYOUT.max_seq_length
        self.verbose = False
        self.root = _Group(0)
        self.open = [self.root]
        self.stack = []  # ids of the enclosing containers

    def text(self, text):
        self.open[-1].items.append(text)

    def breakable(self, sep=" "):
        self.open[-1].items.append(_Break(sep))

    def break_(self):
        self.open[-1].items.append(_NEWLINE)

    def begin_group(self, indent=0, open=""):
        if open:
            self.text(open)
        group = _Group(indent)
        self.open[-1].items.append(group)
        self.open.append(group)

    def end_group(self, dedent=0, close=""):
        if len(self.open) > 1:
            self.open.pop()
        if close:
            self.text(close)

    def group(self, indent=0, open="", close=""):
        return _GroupContext(self, indent, open, close)

    def indent(self, indent):
        return _GroupContext(self, indent, "", "")

    def flush(self):
        pass

    def _enumerate(self, seq):
        for index, item in enumerate(seq):
            if self.max_seq_length and index >= self.max_seq_length:
                self.text(",")
                self.breakable()
                self.text("...")
                return
            yield index, item

    def pretty(self, obj):
        """Print any object into the current group."""
        number = id(obj)
        cycle = number in self.stack
        self.stack.append(number)
        try:
            _print(self, obj, cycle)
        finally:
            self.stack.pop()

    def result(self):
        lines = [""]
        _lay_out(self.root, 0, 0, False, lines, self.max_width)
        return "\n".join(lines)


class _GroupContext:
    def __init__(self, printer, indent, opening, closing):
        self.printer, self.indent, self.opening, self.closing = printer, indent, opening, closing

    def __enter__(self):
        self.printer.begin_group(self.indent, self.opening)

    def __exit__(self, *error):
        self.printer.end_group(self.indent, self.closing)


def _flat_width(group):
    if group.width is None:
        width = 0
        for item in group.items:
            if item is _NEWLINE:
                width = 1 << 30
            elif type(item) is _Group:
                width += _flat_width(item)
            elif type(item) is _Break:
                width += len(item.text)
            else:
                width += len(item) if "\n" not in item else 1 << 30
            if width >= 1 << 30:
                break
        group.width = width
    return group.width


def _lay_out(group, base, trailing, flat, lines, limit):
    """Append a group to the lines; `trailing` is the width of the text that follows its last
    line."""
    if not flat:
        flat = len(lines[-1]) + _flat_width(group) + trailing <= limit
    inner = base + group.indent
    items = group.items
    for index, item in enumerate(items):
        if item is _NEWLINE:
            lines.append(" " * inner)
        elif type(item) is _Group:
            after = 0
            if not flat:
                for follower in items[index + 1 :]:
                    if type(follower) is not str:
                        break
                    after += len(follower)
                else:
                    after += trailing
            _lay_out(item, inner, after, flat, lines, limit)
        elif type(item) is _Break:
            if flat:
                lines[-1] += item.text
            else:
                lines.append(" " * inner)
        else:
            lines[-1] += item


def pretty(obj):
    """Return the text of an object; exceptions of its __repr__ propagate to the caller."""
    if not LAYOUT.enabled:
        return repr(obj)
    kind = type(obj)
    limit = LAYOUT.max_seq_length or ITEMS_LIMIT
    if kind in (list, tuple, set, frozenset) and len(obj) <= min(40, limit):
        simple = all(type(item) in _ATOMS for item in obj)
        if simple and (kind in (list, tuple) or len(obj) < 2):
            text = repr(obj)
            if len(text) <= LAYOUT.max_width:
                return text
    printer = Printer()
    printer.pretty(obj)
    if len(printer.root.items) == 1 and type(printer.root.items[0]) is str:
        return printer.root.items[0]
    return printer.result()


def with_function(function, obj):
    """Call a function registered for text/plain: f(obj, printer, cycle), or f(obj) -> text."""
    printer = Printer()
    try:
        function(obj, printer, False)
    except TypeError:
        text = function(obj)
        if isinstance(text, str):
            return text
        raise
    return printer.result()


def _print(p, obj, cycle):
    kind = type(obj)
    custom = _registered_function(obj)
    if custom is not None:
        custom(obj, p, cycle)
        return
    if kind in _ATOMS:
        p.text(repr(obj))
        return
    if kind.__module__ == "re" and kind.__name__ == "Pattern":
        _pattern(p, obj)
        return
    for base in _class_of(obj).__mro__:
        function = _PRINTERS.get(base)
        if function is not None:
            function(p, obj, cycle)
            return
        names = base.__dict__
        if "_repr_pretty_" in names and callable(base._repr_pretty_):
            base._repr_pretty_(obj, p, cycle)
            return
        if base is not object and "__repr__" in names and callable(base.__repr__):
            _repr(p, obj, cycle)
            return
    _plain_object(p, obj)


def _registered_function(obj):
    """Return the function that is registered for text/plain of the object's type, or None."""
    shell = STATE.shell
    if shell is None or not shell.has_formatters:
        return None
    formatter = shell.display_formatter.formatters["text/plain"]
    # An object that replaces the formatter formats whole values only.
    return formatter.lookup_quiet(obj) if hasattr(formatter, "lookup_quiet") else None


def _class_of(obj):
    """Return the class that an object names, which a proxy may replace, or its type."""
    try:
        kind = obj.__class__
    except Exception:
        kind = None
    return kind if isinstance(kind, type) else type(obj)


def _repr(p, obj, cycle):
    _lines(p, repr(obj))


def _float(p, obj, cycle):
    _lines(p, FLOAT_FORMAT.template % obj)


def _lines(p, text):
    """Print a text; a line break at its end is dropped."""
    lines = text.splitlines()
    if len(lines) < 2:
        p.text(lines[0] if lines else "")
        return
    with p.group():
        for index, line in enumerate(lines):
            if index:
                p.break_()
            p.text(line)


def _sequence(opening, closing):
    def show(p, obj, cycle):
        if cycle:
            p.text(opening + "..." + closing)
            return
        p.begin_group(len(opening), opening)
        for index, item in p._enumerate(obj):
            if index:
                p.text(",")
                p.breakable()
            p.pretty(item)
        if isinstance(obj, tuple) and len(obj) == 1:
            p.text(",")
        p.end_group(len(opening), closing)

    return show


def _mapping(opening, closing):
    def show(p, obj, cycle):
        if cycle:
            p.text("{...}")
            return
        p.begin_group(len(opening), opening)
        for index, key in p._enumerate(obj.keys()):
            if index:
                p.text(",")
                p.breakable()
            p.pretty(key)
            p.text(": ")
            p.pretty(obj[key])
        p.end_group(len(opening), closing)

    return show


def _set(p, obj, cycle):
    frozen = isinstance(obj, frozenset)
    opening, closing = ("frozenset({", "})") if frozen else ("{", "}")
    if not len(obj):
        p.text(type(obj).__name__ + "()")
    elif cycle:
        p.text(opening + "..." + closing)
    else:
        items = obj
        if not p.max_seq_length or len(obj) < p.max_seq_length:
            try:
                items = sorted(obj)
            except Exception:
                try:
                    items = sorted(obj, key=str)
                except Exception:
                    items = obj
        p.begin_group(len(opening), opening)
        for index, item in p._enumerate(items):
            if index:
                p.text(",")
                p.breakable()
            p.pretty(item)
        p.end_group(len(opening), closing)


def _constructor(arguments, name=None):
    """Return a printer for `Name(argument, key=argument)`; `arguments` returns both kinds for an
    object. Without a name, that of the object's class is shown."""

    def show(p, obj, cycle):
        positional, named = ((), {}) if cycle else arguments(obj)
        _call(p, name or type(obj).__name__, positional, named, cycle)

    return show


def _call(p, name, positional, named, cycle):
    with p.group(len(name) + 1, name + "(", ")"):
        if cycle:
            p.text("...")
        parts = [("", value) for value in positional]
        parts += [(key + "=", value) for key, value in named.items()]
        for index, (prefix, value) in enumerate(parts):
            if index:
                p.text(",")
                p.breakable()
            if prefix:
                with p.group(len(prefix), prefix, ""):
                    p.pretty(value)
            else:
                p.pretty(value)


def _exception(p, obj, cycle):
    kind = type(obj)
    name = kind.__qualname__
    if kind.__module__ not in ("exceptions", "builtins"):
        name = "%s.%s" % (kind.__module__, name)
    _call(p, name, getattr(obj, "args", ()), {}, False)


def _super(p, obj, cycle):
    p.begin_group(8, "<super: ")
    p.pretty(obj.__thisclass__)
    p.text(",")
    p.breakable()
    p.pretty(obj.__self__)
    p.end_group(8, ">")


def _class(p, obj, cycle):
    try:
        name = obj.__qualname__
        module = obj.__module__
    except Exception:
        p.text(repr(obj))
        return
    if type(obj).__repr__ is not type.__repr__:
        _lines(p, repr(obj))
    elif type(module) is not str or module in ("builtins", "exceptions"):
        p.text(str(name))
    else:
        p.text("%s.%s" % (module, name))


def _pattern(p, obj):
    module = lazy.stdlib("re")
    flags = [name for name in _RE_FLAGS if obj.flags & getattr(module, name)]
    text = "re.compile(r" + repr(obj.pattern).replace("\\\\", "\\")
    p.text(text + (", " + "|".join(["re." + name for name in flags]) if flags else "") + ")")


def _plain_object(p, obj):
    kind = _class_of(obj)
    if kind.__repr__ is not object.__repr__:
        _repr(p, obj, False)
        return
    module = kind.__module__
    name = kind.__qualname__
    if type(module) is str and module not in ("builtins",):
        name = "%s.%s" % (module, name)
    p.text("<%s at 0x%x>" % (name, id(obj)))


def _function(p, obj, cycle):
    inspect = lazy.stdlib("inspect")
    name = getattr(obj, "__qualname__", obj.__name__)
    module = obj.__module__
    if module and module not in ("__builtin__", "builtins", "exceptions"):
        name = "%s.%s" % (module, name)
    try:
        p.text("<function %s%s>" % (name, inspect.signature(obj)))
    except (ValueError, TypeError):
        p.text("<function %s>" % name)


def _deque_arguments(obj):
    return (list(obj),), {} if obj.maxlen is None else {"maxlen": obj.maxlen}


_PRINTERS = {
    int: _repr,
    float: _float,
    str: _repr,
    list: _sequence("[", "]"),
    tuple: _sequence("(", ")"),
    dict: _mapping("{", "}"),
    set: _set,
    frozenset: _set,
    type: _class,
    super: _super,
    BaseException: _exception,
    types.FunctionType: _function,
    types.BuiltinFunctionType: _function,
    types.MethodType: _repr,
    types.MappingProxyType: _mapping("mappingproxy({", "})"),
    types.SimpleNamespace: _constructor(lambda obj: ((), vars(obj)), "namespace"),
    type(os.environ): _mapping("environ{", "}"),
    collections.defaultdict: _constructor(lambda obj: ((obj.default_factory, dict(obj)), {})),
    collections.Counter: _constructor(lambda obj: ((dict(obj.most_common()),) if obj else (), {})),
    collections.OrderedDict: _constructor(lambda obj: ((list(obj.items()),) if obj else (), {})),
    collections.deque: _constructor(_deque_arguments),
    collections.UserList: _constructor(lambda obj: ((obj.data,), {})),
}
