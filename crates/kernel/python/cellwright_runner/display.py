"""Rich display: turns objects into MIME bundles and frames; display ids, updates, clear_output."""

import os
import sys
from binascii import Error, a2b_base64, b2a_base64

from . import lazy
from .channel import dumps, utf8
from .json_values import to_json
from .state import STATE
from .streams import OUTPUT, encode_id

# In IPython's order; the value of text/plain comes from the pretty printer.
METHODS = (
    ("text/html", "_repr_html_"),
    ("text/markdown", "_repr_markdown_"),
    ("image/svg+xml", "_repr_svg_"),
    ("image/png", "_repr_png_"),
    ("application/pdf", "_repr_pdf_"),
    ("image/jpeg", "_repr_jpeg_"),
    ("text/latex", "_repr_latex_"),
    ("application/json", "_repr_json_"),
    ("application/javascript", "_repr_javascript_"),
)
# Text of this many characters and more is sent as a payload, which needs no escaping and which the
# host reads in pieces.
_LARGE_TEXT_SIZE = 1 << 20
_CANARY_ATTRIBUTE = "_ipython_canary_method_should_not_exist_"
# Types of the values of MIME types; a value of another type would make a notebook invalid.
_VALUE_TYPES = {
    "text/html": (str,),
    "text/markdown": (str,),
    "image/svg+xml": (str,),
    "text/latex": (str,),
    "application/javascript": (str,),
    "text/plain": (str,),
    "image/png": (bytes, str),
    "image/jpeg": (bytes, str),
    "application/pdf": (bytes, str),
    "application/json": (list, dict),
}
_NO_METHODS = frozenset(
    (list, tuple, dict, set, frozenset, str, bytes, int, float, bool, complex, type(None))
)


def real_method(obj, name):
    """Return the bound method `name` of an object, or None if the object claims every name."""
    if isinstance(obj, type):
        return None
    try:
        if getattr(obj, _CANARY_ATTRIBUTE, None) is not None:
            return None
        method = getattr(obj, name, None)
    except Exception:
        return None
    return method if callable(method) else None


def is_included(mime, include, exclude):
    return (not include or mime in include) and not (exclude and mime in exclude)


def make_bundle(obj, include=None, exclude=None):
    """Return (dict MIME -> value, metadata dict), or None if the object displayed itself."""
    kind = type(obj)
    formatters = (
        STATE.shell.display_formatter.formatters
        if STATE.shell and STATE.shell.has_formatters
        else None
    )
    data, metadata = {}, {}
    if kind in _NO_METHODS and formatters is None:
        if is_included("text/plain", include, exclude):
            data["text/plain"] = plain_text(obj)
        return data, metadata
    if STATE.shell is not None and STATE.shell.display_by_formatter(obj):
        return None
    method = real_method(obj, "_ipython_display_")
    if method is not None:
        try:
            method()
            return None
        except NotImplementedError:
            pass
        except Exception as error:
            report_repr_failure(obj, "_ipython_display_", error)
    _from_mimebundle(obj, include, exclude, data, metadata)
    if STATE.figures is not None and kind.__name__ == "Figure":
        STATE.figures.add_formats(obj, data, metadata)
    if "text/plain" not in data and is_included("text/plain", include, exclude):
        custom = formatters and formatters.function_for("text/plain", obj)
        data["text/plain"] = _plain_custom(custom, obj) if custom else plain_text(obj)
    if formatters is None and not _has_any_method(obj):
        return data, metadata
    for mime, name in METHODS:
        if mime in data or not is_included(mime, include, exclude):
            continue
        custom = formatters.function_for(mime, obj) if formatters else None
        method = custom or real_method(obj, name)
        if method is None:
            continue
        value = _call_repr(obj, name, (lambda m=custom: m(obj)) if custom else method)
        if value is not None:
            _store_value(mime, value, data, metadata, obj)
    if formatters:
        _other_formatters(obj, formatters, include, exclude, data, metadata)
    return data, metadata


def _has_any_method(obj):
    """Return False quickly for most objects: no class has a `_repr_…_` method or __getattr__."""
    kind = type(obj)
    for base in kind.__mro__:
        names = base.__dict__
        if "__getattr__" in names or "__getattribute__" in names and base is not object:
            return True
        for _, name in METHODS:
            if name in names:
                return True
    return any(name in getattr(obj, "__dict__", ()) for _, name in METHODS)


def _other_formatters(obj, formatters, include, exclude, data, metadata):
    standard_mimes = {mime for mime, _ in METHODS}
    for mime in list(formatters):
        if (
            mime in standard_mimes
            or mime in data
            or mime == "text/plain"
            or not is_included(mime, include, exclude)
        ):
            continue
        custom = formatters.function_for(mime, obj)
        if custom is not None:
            value = _call_repr(obj, mime, lambda m=custom: m(obj))
            if value is not None:
                _store_value(mime, value, data, metadata, obj)


def _plain_custom(custom, obj):
    """Call a registered text/plain formatter: f(obj, printer, cycle), as in IPython."""
    return lazy.load("pretty").with_function(custom, obj)


def _from_mimebundle(obj, include, exclude, data, metadata):
    method = real_method(obj, "_repr_mimebundle_")
    if method is None:
        return
    returned = _call_repr(
        obj, "_repr_mimebundle_", lambda: method(include=include, exclude=exclude)
    )
    if returned is None:
        return
    extra = {}
    if isinstance(returned, tuple) and len(returned) == 2:
        returned, extra = returned
    if not isinstance(returned, dict):
        return
    for mime, value in returned.items():
        mime = str(mime)
        if value is not None and is_included(mime, include, exclude):
            is_lines = isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value)
            if mime == "application/json" or is_lines or _has_valid_type(mime, value, obj):
                data[mime] = value
    if isinstance(extra, dict):
        metadata.update(extra)


def _call_repr(obj, name, function):
    try:
        return function()
    except NotImplementedError:
        return None
    except Exception as error:
        report_repr_failure(obj, name, error)
        return None


def _has_valid_type(mime, value, obj):
    """Return whether a value has the type of its MIME type; warns as IPython does if not."""
    types = _VALUE_TYPES.get(mime)
    if types is None or isinstance(value, types) or bytes in types and _is_buffer(value):
        return True
    lazy.stdlib("warnings").warn_explicit(
        "%s formatter returned invalid type %s (expected %s) for object: %s"
        % (mime, type(value), types if types[1:] else types[0], object.__repr__(obj)),
        FormatterWarning,
        "display.py",
        0,
    )
    return False


def _is_buffer(value):
    return isinstance(value, (bytearray, memoryview))


class FormatterWarning(UserWarning):
    """A repr method that returns a value of the wrong type."""


def _store_value(mime, value, data, metadata, obj):
    extra = None
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict):
        value, extra = value
    if value is None or not _has_valid_type(mime, value, obj):
        return
    data[mime] = value
    if extra:
        metadata.setdefault(mime, {}).update(extra)


def report_repr_failure(obj, name, error):
    """Report a failed repr method on stderr; the other forms are still shown."""
    lines = lazy.load("tracebacks").describe(error)[2]
    sys.stderr.write("%s of %s failed:\n%s\n" % (name, type(obj).__name__, "\n".join(lines)))


def plain_text(obj):
    """Return text/plain; an exception of __repr__ propagates to the caller."""
    if type(obj) in (int, str, bytes, bool, complex):
        return repr(obj)
    return lazy.load("pretty").pretty(obj)


def encode_bundle(data, metadata):
    """Return (bytes `[…],"metadata":{…}` and, with payloads, `,"bin":[…]`; payloads)."""
    items, payloads = [], []
    for mime, value in data.items():
        kind, value = _encode(mime, value, payloads)
        items.append('[%s,"%s",%s]' % (dumps(mime), kind, value))
    text = '[%s],"metadata":%s' % (",".join(items), to_json(metadata))
    if payloads:
        text += ',"bin":[%s]' % ",".join([str(len(p)) for p in payloads])
    return utf8(text), payloads


def _encode(mime, value, payloads):
    if isinstance(value, (bytes, bytearray, memoryview)):
        payloads.append(bytes(value))
        return "bin", len(payloads) - 1
    is_json = mime == "application/json" or mime.endswith("+json")
    if isinstance(value, str) and not is_json:
        if mime.startswith("image/") and mime != "image/svg+xml":
            raw = _from_base64(value)
            if raw is not None:
                payloads.append(raw)
                return "bin", len(payloads) - 1
        return _encode_text(str.__str__(value), payloads)
    if not is_json and isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value):
        return _encode_text("".join(value), payloads)
    return "json", to_json(value)


def _encode_text(text, payloads):
    if len(text) < _LARGE_TEXT_SIZE:
        return "text", dumps(text)
    payloads.append(utf8(text))
    return "utf8", len(payloads) - 1


def _from_base64(text):
    compact = "".join(text.split())
    if not compact or len(compact) % 4:
        return None
    try:
        raw = a2b_base64(compact.encode("ascii"))
    except (Error, ValueError):
        return None
    return raw if b2a_base64(raw, newline=False).decode() == compact else None


def publish(data, metadata=None, display_id=None, update=False):
    """Send a display frame (or print the text in a forked child)."""
    if STATE.captured_displays is not None:
        STATE.captured_displays.append((data, metadata or {}))
        return
    if STATE.forked:
        if "text/plain" in data:
            print(data["text/plain"])
        return
    send(data, metadata or {}, display_id, update)


def send(data, metadata, display_id=None, update=False):
    """Send a display frame, even while %%capture collects displays."""
    cell = OUTPUT.cell_of_thread() if OUTPUT.threaded else STATE.cell
    body, payloads = encode_bundle(data, metadata)
    OUTPUT.send(
        b'{"t":"display","id":%s,"display_id":%s,"update":%s,"data":%s'
        % (
            encode_id(cell),
            b"null" if display_id is None else utf8(dumps(str(display_id))),
            b"true" if update else b"false",
            body,
        ),
        payloads,
    )


def display(
    *objs,
    include=None,
    exclude=None,
    metadata=None,
    transient=None,
    display_id=None,
    raw=False,
    clear=False,
    **kwargs,
):
    """Show objects. `display_id=True` or a name returns a handle whose `update` replaces the
    display later."""
    if clear:
        clear_output(wait=True)
    transient = dict(transient or {})
    if display_id is not None:
        if display_id is True:
            display_id = new_display_id()
        transient["display_id"] = display_id
    update = bool(kwargs.pop("update", False))
    if update and display_id is None and "display_id" not in transient:
        raise TypeError("display_id required for update_display")
    name = transient.get("display_id")
    if display_id is not None and not objs:
        publish({}, metadata, name, update)  # an empty display, to be filled by updates
    for obj in objs:
        if raw:
            if not isinstance(obj, dict):
                raise TypeError(
                    "raw display takes a dict of MIME types, not %s" % type(obj).__name__
                )
            publish(obj, metadata, name, update)
            continue
        bundle = make_bundle(obj, include, exclude)
        if bundle is None:
            continue
        data, extra = bundle
        if metadata:
            extra = _merge(extra, metadata)
        if data:
            publish(data, extra, name, update)
        if STATE.figures is not None:
            STATE.figures.mark_displayed(obj)
    return DisplayHandle(display_id) if display_id is not None else None


def _merge(first, second):
    merged = dict(first)
    for key, value in second.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = dict(merged[key], **value)
        else:
            merged[key] = value
    return merged


def update_display(obj, *, display_id, **kwargs):
    """Replace the displays that have a display id."""
    kwargs["update"] = True
    display(obj, display_id=display_id, **kwargs)


def publish_display_data(data, metadata=None, source=None, *, transient=None, **kwargs):
    """Show a MIME bundle."""
    if source is not None and isinstance(source, dict) and metadata is None:
        metadata = source
    transient = transient or {}
    publish(data, metadata, transient.get("display_id"), bool(kwargs.get("update", False)))


def clear_output(wait=False):
    """Clear the cell's outputs (with `wait`: when the next output arrives)."""
    if STATE.forked:
        return
    cell = OUTPUT.cell_of_thread() if OUTPUT.threaded else STATE.cell
    OUTPUT.send(
        b'{"t":"clear","id":%s,"wait":%s' % (encode_id(cell), b"true" if wait else b"false")
    )


def redirect_output(begin):
    """Begin or end a redirect of the output from the cell to a pager or widget. Redirects may be
    nested."""
    previous = STATE.redirects
    STATE.redirects = max(0, previous + (1 if begin else -1))
    if STATE.forked or bool(previous) == bool(STATE.redirects):
        return
    cell = OUTPUT.cell_of_thread() if OUTPUT.threaded else STATE.cell
    frame_type = b"redirect_begin" if begin else b"redirect_end"
    OUTPUT.send(b'{"t":"%s","id":%s' % (frame_type, encode_id(cell)))


def new_display_id():
    """Return a new random display id."""
    return os.urandom(16).hex()


class DisplayHandle:
    """Returned by display(…, display_id=…)."""

    def __init__(self, display_id=None):
        self.display_id = new_display_id() if display_id is None else display_id

    def __repr__(self):
        return "<%s display_id=%s>" % (type(self).__name__, self.display_id)

    def display(self, obj, **kwargs):
        """Show the object as a new display with this id."""
        display(obj, display_id=self.display_id, **kwargs)

    def update(self, obj, **kwargs):
        """Replace the displays that have this id."""
        update_display(obj, display_id=self.display_id, **kwargs)
