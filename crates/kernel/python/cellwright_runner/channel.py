"""Frames: one line of strict JSON, then raw payloads; both ways over one socket.

The C parts of the json package are used directly, because importing json would import re.
"""

import os

from .interrupt import hold, release


def _refuse(value):
    raise TypeError("not JSON: %s" % type(value).__name__)


class _Context:
    """What the C scanner asks for."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = {"NaN": None, "Infinity": None, "-Infinity": None}.get


try:
    from _json import encode_basestring, make_encoder, make_scanner

    _chunks = make_encoder(None, _refuse, encode_basestring, None, ":", ",", False, False, False)
    _scan = make_scanner(_Context)
except (ImportError, TypeError):  # an interpreter without the C parts, or with other ones
    import json

    def dumps(value):
        """Strict JSON text; ValueError for NaN, TypeError for what JSON has not."""
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))

    def loads(text):
        """The value of a JSON text."""
        return json.loads(text, strict=False)

else:

    def dumps(value):
        """Strict JSON text; ValueError for NaN, TypeError for what JSON has not."""
        if type(value) is str:
            return encode_basestring(value)
        return "".join(_chunks(value, 0))

    def loads(text):
        """The value of a JSON text that begins at its first character."""
        try:
            return _scan(text, 0)[0]
        except (StopIteration, SystemError):
            # SystemError: the C part looks for an exception class in json.decoder, which is not
            # loaded.
            raise ValueError("not JSON") from None


def utf8(text):
    """Bytes of a text; lone surrogates become U+FFFD, surrogate pairs the character they mean."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")


def write_all(fd, data, stop=None):
    """Write everything, whatever the size, also when somebody made the pipe non-blocking."""
    try:
        done = os.write(fd, data)
        size = len(data)
        if done == size:
            return
    except BlockingIOError:
        done, size = 0, len(data)
    view = memoryview(data)
    while done < size:
        if stop is not None and stop():
            return
        try:
            done += os.write(fd, view[done:])
        except BlockingIOError:
            wait_for(fd, 4)  # POLLOUT


def wait_for(fd, event):
    """Wait until fd can be read (1) or written (4); a signal handler may raise out of it."""
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
        self.rest = b""  # read but not yet used
        self.waiting = []  # requests that came while a cell waited for an answer

    def write(self, data, payloads=()):
        """Write one encoded frame (with its LF) and its payloads. The caller holds the lock."""
        write_all(self.fd, data)
        for payload in payloads:
            write_all(self.fd, payload)

    def read(self):
        """The next request as a dict, or None at the end of the channel."""
        if self.waiting:
            return self.waiting.pop(0)
        return self._parse(self._line())

    def read_interruptible(self):
        """Like `read`, for a cell that waits: KeyboardInterrupt can come, but never lose bytes."""
        while b"\n" not in self.rest:
            wait_for(self.fd, 1)
            hold()
            try:
                chunk = os.read(self.fd, 65536)
                if not chunk:
                    return None
                self.rest += chunk
            finally:
                release()
        return self._parse(self._line())

    def _line(self):
        line, found, rest = self.rest.partition(b"\n")
        if found:
            self.rest = rest
            return line
        parts, size = [line], 65536
        while True:
            try:
                chunk = os.read(self.fd, size)
            except BlockingIOError:
                wait_for(self.fd, 1)
                continue
            except ConnectionError:
                chunk = b""
            if not chunk:
                return None
            head, found, rest = chunk.partition(b"\n")
            parts.append(head)
            if found:
                self.rest = rest
                return b"".join(parts)
            size = 1 << 20  # a long line: bigger bites

    @staticmethod
    def _parse(line):
        if line is None:
            return None
        try:
            value = loads(line.decode("utf-8", "replace").lstrip())
        except (ValueError, RecursionError) as error:
            return {"op": "", "id": None, "problem": "bad request: %s" % error}
        if type(value) is not dict:
            return {"op": "", "id": None, "problem": "bad request: not an object"}
        return value
