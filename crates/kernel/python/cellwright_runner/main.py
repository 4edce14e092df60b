"""Start and serve: what happens from process start to the last request."""

import builtins
import os
import sys

from . import PROTOCOL, cell, hooks, interrupt, lazy, prelude
from .channel import Channel, dumps, utf8
from .state import S
from .streams import O

_OF_MAIN = frozenset(
    (
        "__name__",
        "__doc__",
        "__package__",
        "__loader__",
        "__spec__",
        "__annotations__",
        "__builtins__",
    )
)


def start(folder, fd):
    """Take over the process: streams, signals, names; say hello; serve until the end."""
    S.folder = folder
    # No text ends in a byte like the first one, so a host never has to hold text back because it
    # could be the beginning of a border.
    nonce = os.urandom(16)
    nonce = bytes((nonce[0] | 0xF8,)) + nonce[1:]
    channel = Channel(_high(fd, nonce[0]))
    os.close(fd)
    O.open(channel, nonce, lambda number: _high(number, nonce[number]))
    interrupt.install()
    hooks.install()
    S.ns = ns = sys.modules["__main__"].__dict__
    for name in list(ns):
        if name not in _OF_MAIN:
            del ns[name]
    cell.H.install(ns)
    _install_names()
    prelude.install(ns)
    backend = os.environ.get("MPLBACKEND", "")
    if not backend or backend.startswith("module://matplotlib_inline"):
        os.environ["MPLBACKEND"] = "Agg"
    O.send_plain(
        utf8(
            '{"t":"hello","protocol":%d,"version":"%s","implementation":%s,"executable":%s,'
            '"prefix":%s,"base_prefix":%s,"pid":%d,"nonce":"%s"'
            % (
                PROTOCOL,
                ".".join(map(str, sys.version_info[:3])),
                dumps(sys.implementation.name),
                dumps(sys.executable or ""),
                dumps(sys.prefix),
                dumps(sys.base_prefix),
                os.getpid(),
                nonce.hex(),
            )
        )
    )
    try:
        serve(channel)
    except (BrokenPipeError, ConnectionError):
        pass  # the host is gone; end as if it had said so
    try:
        O.flush_now()
    except OSError:
        hooks._real_exit(0)


def serve(channel):
    """Requests one after the other, until `exit` or the end of the channel."""
    while True:
        request = channel.read()
        if request is None:
            return
        op = request.get("op")
        if op == "execute":
            cell.execute(request)
        elif op == "exit":
            return
        elif op == "answer":
            pass  # an answer to a question that was interrupted
        else:
            _reply(request, op)


def _reply(request, op):
    number = request.get("id")
    try:
        if request.get("problem"):
            raise ValueError(request["problem"])
        value = lazy.load("requests").handle(op, request)
        text = '"ok":true,"value":%s' % lazy.load("json_values").strict(value)
    except Exception as error:
        text = '"ok":false,"error":%s' % dumps("%s: %s" % (type(error).__name__, error))
    O.send_plain(utf8('{"t":"reply","id":%s,%s' % (dumps(number), text)))


def _high(fd, spice):
    """A close-on-exec duplicate with a number that nobody uses by accident."""
    try:
        from fcntl import F_DUPFD_CLOEXEC, fcntl
    except ImportError:
        return os.dup(fd)
    for least in (700 + spice, 200 + spice % 50, 40, 20, 0):
        try:
            return fcntl(fd, F_DUPFD_CLOEXEC, least)
        except OSError:
            continue
    return os.dup(fd)


def _install_names():
    sys.displayhook = cell.displayhook
    builtins.get_ipython = get_ipython
    builtins.display = display
    builtins.input = _input
    builtins.exit = builtins.quit = Leave()
    sys.stdin = sys.__stdin__ = lazy_stdin()


def get_ipython():
    """The object that libraries and magics ask for; made when first asked for."""
    shell = S.shell
    if shell is None:
        shell = lazy.load("ipython_shell").make()
    return shell


def display(*objects, **options):
    """Show objects as richly as they can be shown: text, tables, images, HTML.

    `display_id=True` or a name gives a handle whose `update` changes what is shown; `raw=True`
    takes a dict of MIME types.
    """
    return lazy.load("display").display(*objects, **options)


def _input(prompt="", /):
    """Ask the host for a line of text, if it answers questions."""
    return lazy.load("stdin").ask(prompt, False)


_input.__name__ = _input.__qualname__ = "input"


def lazy_stdin():
    """sys.stdin as an object that loads its parts when touched."""
    from io import TextIOBase

    class Stdin(TextIOBase):
        """Text input that asks the host line by line."""

        encoding = "utf-8"
        errors = "strict"
        name = "<stdin>"
        mode = "r"
        newlines = None
        line_buffering = True

        def readline(self, size=-1, /):
            return lazy.load("stdin").readline(size)

        def read(self, size=-1, /):
            return lazy.load("stdin").read(size)

        def __next__(self):
            line = self.readline()
            if not line:
                raise StopIteration
            return line

        @property
        def buffer(self):
            return lazy.load("stdin").buffer()

        def fileno(self):
            return 0

        def isatty(self):
            return False

        def readable(self):
            return True

        def close(self):
            pass

    return Stdin()


class Leave:
    """exit and quit: end the cell with status `exit`; the state stays."""

    def __call__(self, code=None):
        raise SystemExit(code)

    def __repr__(self):
        return "exit() ends the cell; the host decides what becomes of the kernel"
