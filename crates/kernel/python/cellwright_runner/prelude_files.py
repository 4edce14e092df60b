"""Implements `read`, `write` and `output` of the prelude."""

import os
from itertools import islice

from . import lazy
from .prelude import status

_SCHEME = "artifact://"
_BINARY_SUFFIXES = (".png", ".jpg", ".jpeg", ".bin")


def read(path, offset, limit):
    """Return lines of a file, a notebook or an artifact."""
    _check_lines(offset, limit)
    name = _checked_path(path)
    if name.startswith(_SCHEME):
        text = _artifact_text(name, offset, limit)[0]
    elif _is_notebook(name):
        lines = lazy.load("bridge").verb("read")(name).splitlines(True)
        text = "".join(_line_range(lines, offset, limit))
    else:
        text = _file_text(name, offset, limit)[0]
    status({"op": "read", "path": name, "chars": len(text)})
    return text


def write(path, content):
    """Write a file; the content for a notebook must be a valid notebook."""
    name = _checked_path(path)
    if name.startswith(_SCHEME):
        raise ValueError("%s cannot be written: artifacts are stored outputs; give a path" % name)
    if not isinstance(content, (str, bytes, bytearray, memoryview)):
        raise TypeError(
            "content must be str or bytes, not %s; convert it with json.dumps(…) or str(…)"
            % type(content).__name__
        )
    directory = os.path.dirname(name)
    if directory:
        os.makedirs(directory, exist_ok=True)
    if _is_notebook(name) and _is_cell_text(name, content):
        lazy.load("bridge").verb("write")(name, content, create=True)
    elif isinstance(content, str):
        # newline="" writes line ends unchanged.
        with open(name, "w", encoding="utf-8", newline="") as file:
            file.write(content)
    else:
        with open(name, "wb") as file:
            file.write(content)
    event = {"op": "write", "path": name}
    event["chars" if isinstance(content, str) else "bytes"] = len(content)
    status(event)
    return name


def output(id, query, offset, limit):
    """Return lines of an artifact, or a part of the JSON in it."""
    if query is not None and (offset is not None or limit is not None):
        raise ValueError("query cannot be combined with offset/limit")
    address = _address(id)
    first = 1 if offset is None else offset
    _check_lines(first, limit)
    text, line_count = _artifact_text(address, first, limit)
    if query is not None:
        value = _query(_json(text, address), query, address)
        status({"op": "output", "id": address, "query": query})
        return value
    if first > 1 and line_count < first:
        raise ValueError(
            "Offset %d is beyond end of output (%d lines) for %s" % (first, line_count, address)
        )
    status({"op": "output", "id": address, "chars": len(text)})
    return text


def _checked_path(path):
    name = os.fspath(path)
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    scheme, separator, _ = name.partition("://")
    if separator and scheme != "artifact" and scheme.isalnum():
        raise ValueError(
            "%s:// addresses are not supported; give the path of a file, or artifact://N" % scheme
        )
    return name


def _is_notebook(name):
    return name[-6:].lower() == ".ipynb"


def _is_cell_text(name, content):
    """Return True for text with cell markers and False for a JSON document; ValueError for other
    content, which would destroy the notebook."""
    start = content.lstrip()[:1] if isinstance(content, str) else bytes(content).lstrip()[:1]
    if start in ("{", b"{"):
        return False
    if isinstance(content, str) and content.startswith("# %% ["):
        return True
    raise ValueError(
        "%s is a notebook: write text that begins with a cell marker such as `# %%%% [code]`, as "
        "read() returns it, or a whole JSON document" % name
    )


def _address(id):
    if isinstance(id, int) and not isinstance(id, bool):
        return "%s%d" % (_SCHEME, id)
    text = str(id).strip()
    number = text[len(_SCHEME) :] if text.startswith(_SCHEME) else text
    if not (number.isascii() and number.isdigit()):
        raise ValueError(
            "%r is not an output: give its number, as in output(3) or output('artifact://3')"
            % (id,)
        )
    return _SCHEME + number


def _check_lines(offset, limit):
    if not isinstance(offset, int) or offset < 1:
        raise ValueError("offset is a line number that counts from 1, not %r" % (offset,))
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise ValueError("limit is a number of lines, not %r" % (limit,))


def _line_range(lines, offset, limit):
    return islice(lines, offset - 1, None if limit is None else offset - 1 + limit)


def _file_text(name, offset, limit, errors="strict"):
    """Return (text, number of lines read; -1 if they were not counted)."""
    with open(name, encoding="utf-8", errors=errors, newline="") as file:
        if offset == 1 and limit is None:
            return file.read(), -1
        # Only line feeds end a line; iteration with newline="" would also split at carriage
        # returns.
        line_count, selected = 0, []
        for line in _lines(file):
            line_count += 1
            if limit is not None and line_count >= offset + limit:
                break
            if line_count >= offset:
                selected.append(line)
        return "".join(selected), line_count


def _lines(file):
    """Yield the lines of a file opened with newline=""; a carriage return alone does not end
    one."""
    pieces = []
    for piece in file:
        pieces.append(piece)
        if piece[-1] == "\n":
            yield "".join(pieces)
            pieces = []
    if pieces:
        yield "".join(pieces)


def _artifact_text(address, offset, limit):
    path = lazy.load("bridge").verb("artifact")("path", address)["path"]
    if path.lower().endswith(_BINARY_SUFFIXES):
        raise ValueError("%s is not text; the file is %s" % (address, path))
    return _file_text(path, offset, limit, "replace")


def _json(text, address):
    json = lazy.stdlib("json")
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError("Output %s is not valid JSON: %s" % (address, error)) from None


def _query(value, query, address):
    """Follow dotted keys, [i] and ["key"]."""
    prefix = ""
    for step, shown in _query_steps(query):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            raise ValueError(
                "%s has nothing at %s%s; there %s"
                % (address, prefix, shown, _describe_value(value))
            ) from None
        prefix += shown
    return value


def _describe_value(value):
    if isinstance(value, dict):
        names = ", ".join(list(value)[:20])
        return "are the keys %s" % names if names else "is an empty object"
    if isinstance(value, list):
        return "is a list of %d" % len(value)
    return "is %s" % type(value).__name__


def _query_steps(query):
    re = lazy.stdlib("re")
    pattern = re.compile(r"""\.?([^.\[\]"']+)|\[(-?\d+)\]|\["([^"]*)"\]|\['([^']*)'\]""")
    at = 1 if query.startswith(".") else 0
    while at < len(query):
        match = pattern.match(query, at)
        if match is None:
            raise ValueError(
                'bad query %r at %r; a query consists of keys and indexes: a.b[0]["c d"]'
                % (query, query[at:])
            )
        key, index, double, single = match.groups()
        if index is not None:
            yield int(index), match[0]
        else:
            yield next(part for part in (key, double, single) if part is not None), match[0]
        at = match.end()
