"""input(), sys.stdin and getpass: refused with an error, or requested over the channel."""

import io

from . import interrupt
from .channel import dumps, utf8
from .state import STATE
from .streams import OUTPUT


class StdinNotImplementedError(EOFError, NotImplementedError):
    """input() was called and no answer is available. An EOFError, so that programs that stop at the
    end of their input do so."""


def _refused_error(prompt):
    return StdinNotImplementedError(
        "input() was called (prompt: %r) but no answer is available; "
        "set the value in code, or pass the answer with the call (`answer`)" % prompt
    )


def request_input(prompt, password):
    """Return one line from the host."""
    prompt = str(prompt)
    if STATE.forked:
        raise _refused_error(prompt)
    text = dumps(prompt)
    if STATE.stdin != "ask":
        OUTPUT.send(utf8('{"t":"refused","id":%s,"prompt":%s' % (dumps(STATE.cell), text)))
        raise _refused_error(prompt)
    if interrupt.get_ident() != interrupt.MAIN_THREAD:
        raise StdinNotImplementedError(
            "input() works only in the main thread (prompt: %r)" % prompt
        )
    OUTPUT.send(
        utf8(
            '{"t":"input","id":%s,"prompt":%s,"password":%s'
            % (dumps(STATE.cell), text, "true" if password else "false")
        )
    )
    while True:
        request = OUTPUT.channel.read_interruptible()
        if request is None:
            raise _refused_error(prompt)
        if request.get("op") != "answer":
            OUTPUT.channel.queued_requests.append(request)
        elif request.get("id") == STATE.cell:
            if request.get("refuse"):
                raise _refused_error(prompt)
            return str(request.get("text") or "")


_unread = ""


def readline(size=-1):
    """sys.stdin.readline"""
    global _unread
    if not _unread:
        try:
            _unread = request_input("", False) + "\n"
        except StdinNotImplementedError:
            raise
    if size is None or size < 0:
        line, _unread = _unread, ""
    else:
        line, _unread = _unread[:size], _unread[size:]
    return line


def read(size=-1):
    """sys.stdin.read: lines until the host refuses, which is the end of the file. If the first
    request is refused, the error is raised."""
    if size is not None and size >= 0:
        return readline(size)
    parts = [readline()]
    while True:
        try:
            parts.append(readline())
        except StdinNotImplementedError:
            return "".join(parts)


def buffer():
    """sys.stdin.buffer"""

    class StdinBytes(io.RawIOBase):
        rest = b""

        def readable(self):
            return True

        def readinto(self, target):
            if not self.rest:
                self.rest = readline().encode("utf-8", "surrogateescape")
            piece, self.rest = self.rest[: len(target)], self.rest[len(target) :]
            target[: len(piece)] = piece
            return len(piece)

        def fileno(self):
            return 0

    return io.BufferedReader(StdinBytes())


def patch_getpass(module):
    """Make getpass.getpass request input from the host; called when getpass is imported."""

    def getpass(prompt="Password: ", stream=None, **options):
        return request_input(prompt, True)

    getpass.__doc__ = module.getpass.__doc__
    module.getpass = getpass
