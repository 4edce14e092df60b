"""Our part in a kernel that is not ours: what cells of the runner find, for cells on IPython.

Brought in by `guest/call.py`, in silent requests. Nothing of the runner's own machinery is started
here: streams, signals, displays and the namespace are IPython's.
"""

import os
import sys

from . import cell, lazy, prelude
from .channel import loads, utf8
from .state import S

FOLDER = os.path.dirname(os.path.dirname(__file__))
_PACKAGE = __name__.rpartition(".")[0]


class Visit:
    """`V`, the one instance: where we are, and what we have changed there."""

    def __init__(self):
        self.shell = None  # None: not entered
        self.publisher = None  # the real one, whatever %%capture puts in its place
        self.pid = 0
        self.at_home = False  # whether the kernel is our own
        self.path = []  # what requests wanted at the front of sys.path
        self.path_added = []  # what was not there before
        self.env = {}  # what requests wanted
        self.env_before = {}  # … and what there was
        self.known = None  # the names before a silent cell


V = Visit()


def enter(options):
    """Come in, or come in again. `prelude`: with its names; `front`: the working directory comes
    first on sys.path, as in the runner."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        raise RuntimeError("this kernel has no IPython inside")
    _let_go(shell)
    V.shell = shell
    V.publisher = shell.display_pub
    V.pid = os.getpid()
    S.publish = publish
    _look()
    names = {}
    if options.get("prelude"):
        prelude.install(names)
    _furnish(names)
    init_user_ns = shell.init_user_ns

    def init_again():
        """%reset: everything is gone, and what the kernel came with comes back."""
        init_user_ns()
        shell.push(dict(S.kept), interactive=False)

    init_again.cellwright = True
    shell.init_user_ns = init_again
    _reach_busy_coroutines(shell)
    if options.get("front"):
        V.at_home = True
        streams = lazy.load("guest_streams")
        streams.drop_nothing(_kernel(shell))
        for stream in (sys.stdout, sys.stderr):
            streams.flush_in_passing(stream)
            streams.send_soon(stream)
            streams.send_in_pieces(stream)
        if sys.path[:1] != [""]:
            sys.path[:] = [""] + [entry for entry in sys.path if entry != ""]


def between_cells():
    """What is left to do after `enter`, outside of any cell: evaluated as an expression."""
    if V.at_home:
        for stream in (sys.stdout, sys.stderr):
            lazy.load("guest_streams").write_quickly(stream)


def entered():
    """Whether `enter` has been called here; a forked child is somewhere else."""
    return V.shell is not None


def leave():
    """Take back what can be taken back: for a kernel that goes on without us."""
    shell = V.shell
    if shell is None:
        return
    _let_go(shell)
    for name, value in S.kept.items():
        if shell.user_ns.get(name) is value:
            del shell.user_ns[name]
            shell.user_ns_hidden.pop(name, None)
    for name, value in V.env_before.items():
        if os.environ.get(name) == V.env.get(name):
            _set(name, value)
    for entry in V.path_added:
        if entry in sys.path:
            sys.path.remove(entry)
    S.publish = None
    S.kept.clear()
    S.prelude = False
    V.__init__()


def _look():
    """The namespace can be another than before: IPython can be given one."""
    S.ns = V.shell.user_ns
    S.hidden = V.shell.user_ns_hidden


def _let_go(shell):
    for holder, name in ((shell, "init_user_ns"), (_kernel(shell), "_cancel_on_sigint")):
        if getattr(getattr(holder, "__dict__", {}).get(name), "cellwright", False):
            delattr(holder, name)


def _kernel(shell):
    return getattr(shell, "kernel", None)


def _reach_busy_coroutines(shell):
    """While a cell awaits, ipykernel answers an interrupt by cancelling what is awaited, once its
    loop comes round again. That never happens while the cell computes between two awaits, so then it is
    interrupted as any other code."""
    kernel = _kernel(shell)
    theirs = getattr(kernel, "_cancel_on_sigint", None)
    if theirs is None:
        return
    import contextlib
    import signal

    @contextlib.contextmanager
    def cancel_on_sigint(future):
        with theirs(future):
            cancel = signal.getsignal(signal.SIGINT)

            def interrupted(number, frame):
                if _computes(frame) or not callable(cancel):
                    raise KeyboardInterrupt
                cancel(number, frame)

            try:
                signal.signal(signal.SIGINT, interrupted)
            except ValueError:
                pass  # not in the main thread: interrupts come elsewhere
            yield

    cancel_on_sigint.cellwright = True
    kernel._cancel_on_sigint = cancel_on_sigint


def _computes(frame):
    """Whether the cell itself is at work, below IPython, which catches what it raises. A task beside
    it would take the whole loop down with it."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "run_code" and frame.f_globals.get("__name__", "").startswith("IPython."):
            return True
        frame = frame.f_back
    return False


def _furnish(names):
    """Put names into the namespace, out of sight of %who; never over something that is there."""
    ns = V.shell.user_ns
    for name, value in names.items():
        if name not in ns or _is_ours(ns[name]):
            V.shell.push({name: value}, interactive=False)


def _is_ours(value):
    module = getattr(value, "__module__", None)
    return type(module) is str and module.startswith(_PACKAGE + ".")


def publish(data, metadata):
    """Send a display that nobody should miss and that must never disturb a cell."""
    if os.getpid() != V.pid:
        return
    strict = lazy.load("json_values").strict
    try:
        V.publisher.publish(loads(utf8(strict(data)).decode("utf-8")), metadata)
    except Exception:
        pass


def settle(wanted):
    """What a request brings along: `env`, `path`, `file`, `cwd`; `silent`: its names are not the
    user's."""
    _look()
    before = list(sys.path)
    env = wanted.get("env") or {}
    for name in env:
        V.env_before.setdefault(name, os.environ.get(name))
    V.env.update(env)
    V.path = wanted.get("path") or V.path
    cell.surroundings(wanted)
    V.path_added += [e for e in sys.path if e not in before and e not in V.path_added]
    V.known = set(S.ns) if wanted.get("silent") else None


def keep():
    """After a silent cell: what it has defined counts as what the kernel came with."""
    _look()
    known, V.known = V.known, None
    if known is None:
        return
    for name in list(S.ns):
        if name not in known and type(name) is str and not name.startswith("__"):
            S.kept[name] = S.ns[name]
    S.hidden.update(S.kept)


def is_settled():
    """Whether all that requests wanted is still so. Asked after each cell."""
    for name, value in V.env.items():
        if os.environ.get(name) != value:
            return False
    return sys.path[: len(V.path)] == V.path and os.getpid() == V.pid


def run_module(path, code):
    """Run the text of a file of the user's, as the runner does."""
    _look()
    try:
        lazy.load("modules").run(path, code)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise _told(error) from None
    finally:
        S.hidden.update(S.kept)


def _told(error):
    """An exception that IPython shows as the runner would: without our frames, by file and line."""
    name, text, lines = lazy.load("tracebacks").describe(error)
    methods = {"__str__": lambda self: text, "_render_traceback_": lambda self, *args: lines}
    return type(name, (Exception,), methods)(text)


class Answer:
    """JSON that comes through IPython's printers as it is: one line of ASCII."""

    __slots__ = ("text",)

    def __init__(self, value):
        # Lone surrogates are no JSON for everybody; `utf8` makes U+FFFD of them.
        text = utf8(lazy.load("json_values").strict(value)).decode("utf-8")
        self.text = lazy.stdlib("json").dumps(loads(text))

    def __repr__(self):
        return self.text


def answer(op, request):
    """What the runner replies to such a request."""
    _look()
    return Answer(lazy.load("requests").handle(op, request))


def ready():
    """Nothing is wanted but that we are here."""


def settled():
    """`is_settled` as an answer."""
    return Answer(is_settled())


def _set(name, value):
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
