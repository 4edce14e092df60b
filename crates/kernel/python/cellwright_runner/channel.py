"""Frames: one line of strict JSON, then raw payloads; both ways over one socket.

The C parts of the json package are used directly, because importing json would import re.
"""

import os

from .interrupt import defer_sigint, resume_sigint


def _reject_value(value):
    raise TypeError("not JSON: %s" % type(value).__name__)


class _ScannerOptions:
    """The attributes that the C scanner reads."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = {"NaN": None, "Infinity": None, "-Infinity": None}.get


try:
    from _json import encode_basestring, make_encoder, make_scanner

    _encode_chunks = make_encoder(
        None, _reject_value, encode_basestring, None, ":", ",", False, False, False
    )
    _scan = make_scanner(_ScannerOptions)
except (ImportError, TypeError):  # no C parts, or C parts with another signature
    import json

    def dumps(value):
        """Return strict JSON text; ValueError for NaN, TypeError for types that JSON lacks."""
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))

    def loads(text):
        """Return the value of a JSON text."""
        return json.loads(text, strict=False)

else:

    def dumps(value):
        """Return strict JSON text; ValueError for NaN, TypeError for types that JSON lacks."""
        if type(value) is str:
            return encode_basestring(value)
        return "".join(_encode_chunks(value, 0))

    def loads(text):
        """Return the value of a JSON text that begins at its first character."""
        try:
            return _scan(text, 0)[0]
        except (StopIteration, SystemError):
            # SystemError: the C part looks for an exception class in json.decoder, which is not
            # loaded.
            raise ValueError("not JSON") from None


def utf8(text):
    """Encode a text; lone surrogates become U+FFFD, surrogate pairs the character they encode."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")


def write_all(fd, data, should_stop=None):
    """Write all data of any size, also to a pipe that a cell made non-blocking."""
    try:
        done = os.write(fd, data)
        size = len(data)
        if done == size:
            return
    except BlockingIOError:
        done, size = 0, len(data)
    view = memoryview(data)
    while done < size:
        if should_stop is not None and should_stop():
            return
        try:
            done += os.write(fd, view[done:])
        except BlockingIOError:
            wait_until_ready(fd, 4)  # POLLOUT


def wait_until_ready(fd, event):
    """Wait until fd is readable (1) or writable (4); a signal handler may raise out of it."""
    from . import lazy

    select = lazy.stdlib("select")
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(fd, event)
        poll.poll()
    elif event == 1:
        select.select([fd], [], [])
    else:
        select.select([], [fd], [])


class Channel:
    """The runner's end of the socket."""

    def __init__(self, fd):
        self.fd = fd
        self.unread = b""  # bytes received but not yet parsed
        self.queued_requests = []  # requests that arrived while a cell waited for an answer

    def write(self, data, payloads=()):
        """Write one encoded frame (with its LF) and its payloads. The caller holds the lock."""
        write_all(self.fd, data)
        for payload in payloads:
            write_all(self.fd, payload)

    def read(self):
        """Return the next request as a dict, or None at the end of the channel."""
        if self.queued_requests:
            return self.queued_requests.pop(0)
        return self._parse_request(self._read_line())

    def has_request(self):
        """Return whether a whole request has been received and not yet returned."""
        return bool(self.queued_requests) or b"\n" in self.unread

    def read_interruptible(self):
        """Like `read`, for a cell that waits: KeyboardInterrupt may be raised without losing
        bytes."""
        while b"\n" not in self.unread:
            wait_until_ready(self.fd, 1)
            defer_sigint()
            try:
                chunk = os.read(self.fd, 65536)
                if not chunk:
                    return None
                self.unread += chunk
            finally:
                resume_sigint()
        return self._parse_request(self._read_line())

    def _read_line(self):
        line, found, rest = self.unread.partition(b"\n")
        if found:
            self.unread = rest
            return line
        parts, size = [line], 65536
        while True:
            try:
                chunk = os.read(self.fd, size)
            except BlockingIOError:
                wait_until_ready(self.fd, 1)
                continue
            except ConnectionError:
                chunk = b""
            if not chunk:
                return None
            head, found, rest = chunk.partition(b"\n")
            parts.append(head)
            if found:
                self.unread = rest
                return b"".join(parts)
            size = 1 << 20  # a long line: read larger chunks

    @staticmethod
    def _parse_request(line):
        if line is None:
            return None
        try:
            value = loads(line.decode("utf-8", "replace").lstrip())
        except (ValueError, RecursionError) as error:
            return {"op": "", "id": None, "problem": "bad request: %s" % error}
        if type(value) is not dict:
            return {"op": "", "id": None, "problem": "bad request: not an object"}
        return value
