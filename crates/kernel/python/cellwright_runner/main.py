"""Process start, `hello`, and the request loop."""

import builtins
import os
import sys

from . import PROTOCOL, cell, hooks, interrupt, lazy, prelude
from .channel import Channel, dumps, utf8
from .state import STATE
from .streams import OUTPUT

_MAIN_ATTRIBUTES = frozenset(
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


def start(directory, fd):
    """Set up streams, signals and names, send `hello`, and serve requests until the end."""
    STATE.directory = directory
    # No UTF-8 text ends in a byte of 0xF8 or above, so the host never delays text because its end
    # could be the start of a sync marker.
    nonce = os.urandom(16)
    nonce = bytes((nonce[0] | 0xF8,)) + nonce[1:]
    channel = Channel(_duplicate_high(fd, nonce[0]))
    os.close(fd)
    OUTPUT.open(channel, nonce, lambda number: _duplicate_high(number, nonce[number]))
    interrupt.install()
    hooks.install()
    STATE.ns = ns = sys.modules["__main__"].__dict__
    for name in list(ns):
        if name not in _MAIN_ATTRIBUTES:
            del ns[name]
    cell.HISTORY.install(ns)
    _install_builtins()
    prelude.install(ns)
    backend = os.environ.get("MPLBACKEND", "")
    if not backend or backend.startswith("module://matplotlib_inline"):
        os.environ["MPLBACKEND"] = "Agg"
    OUTPUT.send_plain(
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
        pass  # the host is gone: exit as on an `exit` request
    if STATE.async_runner is not None:
        STATE.async_runner.close()
    try:
        OUTPUT.flush_now()
    except OSError:
        hooks._real_exit(0)


def serve(channel):
    """Handle requests one by one, until `exit` or the end of the channel."""
    while True:
        if STATE.async_runner is not None:
            STATE.async_runner.run_between_cells(channel)
        request = channel.read()
        if request is None:
            return
        op = request.get("op")
        if op == "execute":
            cell.execute(request)
        elif op == "exit":
            return
        elif op == "answer":
            pass  # the input request that this answers was interrupted
        else:
            _send_reply(request, op)


def _send_reply(request, op):
    number = request.get("id")
    try:
        if request.get("problem"):
            raise ValueError(request["problem"])
        value = lazy.load("requests").handle(op, request)
        text = '"ok":true,"value":%s' % lazy.load("json_values").to_json(value)
    except Exception as error:
        text = '"ok":false,"error":%s' % dumps("%s: %s" % (type(error).__name__, error))
    OUTPUT.send_plain(utf8('{"t":"reply","id":%s,%s' % (dumps(number), text)))


def _duplicate_high(fd, offset):
    """Return a close-on-exec duplicate with a high number, which code does not use by accident."""
    try:
        from fcntl import F_DUPFD_CLOEXEC, fcntl
    except ImportError:
        return os.dup(fd)
    for minimum in (700 + offset, 200 + offset % 50, 40, 20, 0):
        try:
            return fcntl(fd, F_DUPFD_CLOEXEC, minimum)
        except OSError:
            continue
    return os.dup(fd)


def _install_builtins():
    sys.displayhook = cell.displayhook
    builtins.get_ipython = get_ipython
    builtins.display = display
    builtins.__IPYTHON__ = True  # libraries look for it to find out whether code runs in IPython
    builtins.input = _input
    builtins.exit = builtins.quit = ExitCommand()
    sys.stdin = sys.__stdin__ = make_stdin()


def get_ipython():
    """Return the shell object that libraries and magics use; created on first use."""
    shell = STATE.shell
    if shell is None:
        shell = lazy.load("ipython_shell").make()
    return shell


def display(*objects, **options):
    """Show objects in their richest form: text, tables, images, HTML.

    `display_id=True` or a name returns a handle whose `update` replaces the display; `raw=True`
    takes a dict of MIME types.
    """
    return lazy.load("display").display(*objects, **options)


def _input(prompt="", /):
    """Request a line of text from the host."""
    return lazy.load("stdin").request_input(prompt, False)


_input.__name__ = _input.__qualname__ = "input"


def make_stdin():
    """Return the object for sys.stdin; it loads the module `stdin` on first use."""
    from io import TextIOBase

    class Stdin(TextIOBase):
        """Text input that requests line after line from the host."""

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


class ExitCommand:
    """`exit` and `quit`. In a cell they have no effect, as in a Jupyter kernel whose front end keeps
    it: the kernel ends with its session. In a file they end the script."""

    def __call__(self, code=None, keep_kernel=False):
        if STATE.runs_script or STATE.forked:
            raise SystemExit(code)

    def __repr__(self):
        return "exit() ends a script; a cell ends with sys.exit()"
