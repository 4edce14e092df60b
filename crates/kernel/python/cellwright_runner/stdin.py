"""input(), sys.stdin and getpass: refused with a clear error, or asked over the channel."""

import io

from . import interrupt
from .channel import dumps, utf8
from .state import S
from .streams import O


class StdinNotImplementedError(EOFError, NotImplementedError):
    """input() was called and nobody can answer. An EOFError, so that programs that end at the end
    of their input do so."""


def _refusal(prompt):
    return StdinNotImplementedError(
        "input() was called (prompt: %r) but nobody can answer; "
        "pass answers with --answer or set the value in code" % prompt
    )


def ask(prompt, password):
    """One line from the host."""
    prompt = str(prompt)
    if S.forked:
        raise _refusal(prompt)
    text = dumps(prompt)
    if S.stdin != "ask":
        O.send(utf8('{"t":"refused","id":%s,"prompt":%s' % (dumps(S.cell), text)))
        raise _refusal(prompt)
    if interrupt.get_ident() != interrupt.MAIN:
        raise StdinNotImplementedError(
            "input() works only in the main thread (prompt: %r)" % prompt
        )
    O.send(
        utf8(
            '{"t":"input","id":%s,"prompt":%s,"password":%s'
            % (dumps(S.cell), text, "true" if password else "false")
        )
    )
    while True:
        request = O.channel.read_interruptible()
        if request is None:
            raise _refusal(prompt)
        if request.get("op") != "answer":
            O.channel.waiting.append(request)
        elif request.get("id") == S.cell:
            if request.get("refuse"):
                raise _refusal(prompt)
            return str(request.get("text") or "")


_rest = ""


def readline(size=-1):
    """sys.stdin.readline"""
    global _rest
    if not _rest:
        try:
            _rest = ask("", False) + "\n"
        except StdinNotImplementedError:
            raise
    if size is None or size < 0:
        line, _rest = _rest, ""
    else:
        line, _rest = _rest[:size], _rest[size:]
    return line


def read(size=-1):
    """sys.stdin.read: lines until a refusal, which is the end of the file; the first one raises."""
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

    class Bytes(io.RawIOBase):
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

    return io.BufferedReader(Bytes())


def connect_getpass(module):
    """getpass.getpass asks the host, too; called when the module is imported."""

    def getpass(prompt="Password: ", stream=None, **options):
        return ask(prompt, True)

    getpass.__doc__ = module.getpass.__doc__
    module.getpass = getpass
