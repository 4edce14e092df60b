"""What `read`, `write` and `output` of the prelude do."""

import os
from itertools import islice

from . import lazy
from .prelude import status

_ADDRESS = "artifact://"
_IMAGES = (".png", ".jpg", ".jpeg", ".bin")


def read(path, offset, limit):
    """The text of a file, a notebook or an artifact, by lines."""
    _check_lines(offset, limit)
    name = _name(path)
    if name.startswith(_ADDRESS):
        text = _artifact_text(name, offset, limit)[0]
    elif _is_notebook(name):
        lines = lazy.load("bridge").verb("read")(name).splitlines(True)
        text = "".join(_part(lines, offset, limit))
    else:
        text = _file_text(name, offset, limit)[0]
    status({"op": "read", "path": name, "chars": len(text)})
    return text


def write(path, content):
    """Write a file; a notebook only by what makes a notebook."""
    name = _name(path)
    if name.startswith(_ADDRESS):
        raise ValueError("%s cannot be written: artifacts are kept outputs; give a path" % name)
    if not isinstance(content, (str, bytes, bytearray, memoryview)):
        raise TypeError(
            "content must be str or bytes, not %s; json.dumps(…) or str(…) makes text of it"
            % type(content).__name__
        )
    folder = os.path.dirname(name)
    if folder:
        os.makedirs(folder, exist_ok=True)
    if _is_notebook(name) and _is_cell_text(name, content):
        lazy.load("bridge").verb("write")(name, content, create=True)
    elif isinstance(content, str):
        # Line ends stay as they are.
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
    """Lines of an artifact, or a part of the JSON in it."""
    if query is not None and (offset is not None or limit is not None):
        raise ValueError("query cannot be combined with offset/limit")
    address = _address(id)
    first = 1 if offset is None else offset
    _check_lines(first, limit)
    text, seen = _artifact_text(address, first, limit)
    if query is not None:
        value = _query(_json(text, address), query, address)
        status({"op": "output", "id": address, "query": query})
        return value
    if first > 1 and seen < first:
        raise ValueError(
            "Offset %d is beyond end of output (%d lines) for %s" % (first, seen, address)
        )
    status({"op": "output", "id": address, "chars": len(text)})
    return text


def _name(path):
    name = os.fspath(path)
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    scheme, mark, _ = name.partition("://")
    if mark and scheme != "artifact" and scheme.isalnum():
        raise ValueError(
            "%s:// addresses cannot be used here; give the path of a file, or artifact://N" % scheme
        )
    return name


def _is_notebook(name):
    return name[-6:].lower() == ".ipynb"


def _is_cell_text(name, content):
    """Cell-marked text, or else a whole JSON document; anything else would destroy the notebook."""
    start = content.lstrip()[:1] if isinstance(content, str) else bytes(content).lstrip()[:1]
    if start in ("{", b"{"):
        return False
    if isinstance(content, str) and content.startswith("# %% ["):
        return True
    raise ValueError(
        "%s is a notebook: write text that begins with a cell marker such as `# %%%% [code]`, as "
        "read() gives it, or a whole JSON document" % name
    )


def _address(id):
    if isinstance(id, int) and not isinstance(id, bool):
        return "%s%d" % (_ADDRESS, id)
    text = str(id).strip()
    number = text[len(_ADDRESS) :] if text.startswith(_ADDRESS) else text
    if not (number.isascii() and number.isdigit()):
        raise ValueError(
            "%r is no output: give its number, as in output(3) or output('artifact://3')" % (id,)
        )
    return _ADDRESS + number


def _check_lines(offset, limit):
    if not isinstance(offset, int) or offset < 1:
        raise ValueError("offset is a line number and counts from 1, not %r" % (offset,))
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise ValueError("limit is a number of lines, not %r" % (limit,))


def _part(lines, offset, limit):
    return islice(lines, offset - 1, None if limit is None else offset - 1 + limit)


def _file_text(name, offset, limit, errors="strict"):
    """-> (text, how many lines were seen; -1 if nobody counted)"""
    with open(name, encoding="utf-8", errors=errors, newline="") as file:
        if offset == 1 and limit is None:
            return file.read(), -1
        # Only line feeds end a line; newline="" would split at carriage returns, too.
        seen, kept = 0, []
        for line in _lines(file):
            seen += 1
            if limit is not None and seen >= offset + limit:
                break
            if seen >= offset:
                kept.append(line)
        return "".join(kept), seen


def _lines(file):
    """Lines of a file opened with newline="": a carriage return alone does not end one."""
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
    if path.lower().endswith(_IMAGES):
        raise ValueError("%s is no text; the file is %s" % (address, path))
    return _file_text(path, offset, limit, "replace")


def _json(text, address):
    json = lazy.stdlib("json")
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError("Output %s is not valid JSON: %s" % (address, error)) from None


def _query(value, query, address):
    """Follow dotted keys, [i] and ["key"]."""
    done = ""
    for step, shown in _steps(query):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            raise ValueError(
                "%s has nothing at %s%s; there %s" % (address, done, shown, _inside(value))
            ) from None
        done += shown
    return value


def _inside(value):
    if isinstance(value, dict):
        names = ", ".join(list(value)[:20])
        return "are the keys %s" % names if names else "is an empty object"
    if isinstance(value, list):
        return "is a list of %d" % len(value)
    return "is %s" % type(value).__name__


def _steps(query):
    re = lazy.stdlib("re")
    pattern = re.compile(r"""\.?([^.\[\]"']+)|\[(-?\d+)\]|\["([^"]*)"\]|\['([^']*)'\]""")
    at = 1 if query.startswith(".") else 0
    while at < len(query):
        match = pattern.match(query, at)
        if match is None:
            raise ValueError(
                'bad query %r at %r; it is made of keys and indexes: a.b[0]["c d"]'
                % (query, query[at:])
            )
        key, index, double, single = match.groups()
        if index is not None:
            yield int(index), match[0]
        else:
            yield next(part for part in (key, double, single) if part is not None), match[0]
        at = match.end()
