"""Support code inside an IPython kernel: the prelude, the request context and queries.

`injected/loader.py` loads this module by silent requests. The runner's streams, signal handler,
displays and namespace are not used here; those are IPython's.
"""

import os
import sys

from . import cell, lazy, prelude
from .channel import loads, utf8
from .state import STATE

DIRECTORY = os.path.dirname(os.path.dirname(__file__))
_PACKAGE = __name__.rpartition(".")[0]


class Installation:
    """The kernel's objects and the changes made to it. The one instance is `INSTALLED`."""

    def __init__(self):
        self.shell = None  # None: not installed
        self.publisher = None  # the original publisher, which %%capture replaces temporarily
        self.pid = 0
        self.owned = False  # Cellwright started the kernel
        self.path = []  # entries that requests put at the front of sys.path
        self.path_added = []  # those of them that sys.path did not have before
        self.env = {}  # variables that requests set
        self.env_before = {}  # their previous values
        self.names_before = None  # the names in the namespace before a silent cell


INSTALLED = Installation()


def install(options):
    """Install, or install again. Options: `prelude` adds the prelude's names; `owned` is for a
    kernel that Cellwright started, which also gets the working directory first on sys.path, as in
    the runner, and faster streams."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        raise RuntimeError("this kernel does not run IPython")
    _unhook(shell)
    INSTALLED.shell = shell
    INSTALLED.publisher = shell.display_pub
    INSTALLED.pid = os.getpid()
    STATE.publish_override = publish
    _refresh_namespace()
    names = {}
    if options.get("prelude"):
        prelude.install(names)
    _inject(names)
    init_user_ns = shell.init_user_ns

    def init_with_prelude():
        """%reset removes all names; the prelude's names are restored."""
        init_user_ns()
        shell.push(dict(STATE.prelude_names), interactive=False)

    init_with_prelude.cellwright = True
    shell.init_user_ns = init_with_prelude
    _interrupt_busy_coroutines(shell)
    if options.get("owned"):
        INSTALLED.owned = True
        streams = lazy.load("ipykernel_streams")
        streams.lift_send_limit(_kernel(shell))
        streams.close_port_for_children(_kernel(shell))
        for stream in (sys.stdout, sys.stderr):
            streams.throttle_flush(stream)
            streams.shorten_flush_interval(stream)
            streams.split_large_messages(stream)
        if sys.path[:1] != [""]:
            sys.path[:] = [""] + [entry for entry in sys.path if entry != ""]


def install_between_cells():
    """The part of `install` that must run outside of any cell: evaluated as an expression."""
    if INSTALLED.owned:
        for stream in (sys.stdout, sys.stderr):
            lazy.load("ipykernel_streams").fast_write(stream)


def is_installed():
    """Return whether `install` has been called in this kernel."""
    return INSTALLED.shell is not None


def uninstall():
    """Revert the changes, as far as possible, in a kernel that continues without Cellwright."""
    shell = INSTALLED.shell
    if shell is None:
        return
    _unhook(shell)
    for name, value in STATE.prelude_names.items():
        if shell.user_ns.get(name) is value:
            del shell.user_ns[name]
            shell.user_ns_hidden.pop(name, None)
    for name, value in INSTALLED.env_before.items():
        if os.environ.get(name) == INSTALLED.env.get(name):
            _set_variable(name, value)
    for entry in INSTALLED.path_added:
        if entry in sys.path:
            sys.path.remove(entry)
    STATE.publish_override = None
    STATE.prelude_names.clear()
    STATE.prelude_installed = False
    INSTALLED.__init__()


def _refresh_namespace():
    """Read the namespace again: IPython allows code to replace it."""
    STATE.ns = INSTALLED.shell.user_ns
    STATE.hidden_names = INSTALLED.shell.user_ns_hidden


def _unhook(shell):
    for holder, name in ((shell, "init_user_ns"), (_kernel(shell), "_cancel_on_sigint")):
        if getattr(getattr(holder, "__dict__", {}).get(name), "cellwright", False):
            delattr(holder, name)


def _kernel(shell):
    return getattr(shell, "kernel", None)


def _interrupt_busy_coroutines(shell):
    """Interrupt cells that compute between two awaits. While a cell awaits, ipykernel handles an
    interrupt by cancelling the awaited future in the next iteration of its loop. That iteration
    never comes while the cell computes, so then KeyboardInterrupt is raised as in any other
    code."""
    kernel = _kernel(shell)
    original = getattr(kernel, "_cancel_on_sigint", None)
    if original is None:
        return
    import contextlib
    import signal

    @contextlib.contextmanager
    def cancel_on_sigint(future):
        with original(future):
            cancel = signal.getsignal(signal.SIGINT)

            def interrupted(number, frame):
                if _cell_is_running(frame) or not callable(cancel):
                    raise KeyboardInterrupt
                cancel(number, frame)

            try:
                signal.signal(signal.SIGINT, interrupted)
            except ValueError:
                pass  # not in the main thread, which receives the interrupts
            yield

    cancel_on_sigint.cellwright = True
    kernel._cancel_on_sigint = cancel_on_sigint


def _cell_is_running(frame):
    """Return whether the cell's own code runs, called by IPython, which catches its exceptions. An
    exception in any other task would end the whole loop."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "run_code" and frame.f_globals.get("__name__", "").startswith(
            "IPython."
        ):
            return True
        frame = frame.f_back
    return False


def _inject(names):
    """Add names to the namespace, hidden from %who. Existing names of the user stay."""
    ns = INSTALLED.shell.user_ns
    for name, value in names.items():
        if name not in ns or _is_own(ns[name]):
            INSTALLED.shell.push({name: value}, interactive=False)


def _is_own(value):
    module = getattr(value, "__module__", None)
    return type(module) is str and module.startswith(_PACKAGE + ".")


def publish(data, metadata):
    """Send a display past %%capture. Errors are dropped, because they must not fail the cell."""
    if os.getpid() != INSTALLED.pid:
        return
    to_json = lazy.load("json_values").to_json
    try:
        INSTALLED.publisher.publish(loads(utf8(to_json(data)).decode("utf-8")), metadata)
    except Exception:
        pass


def apply_context(request):
    """Apply the context of a request: `env`, `path`, `file`, `cwd`. With `silent`, the names that
    the next cell defines are not the user's."""
    _refresh_namespace()
    before = list(sys.path)
    env = request.get("env") or {}
    for name in env:
        INSTALLED.env_before.setdefault(name, os.environ.get(name))
    INSTALLED.env.update(env)
    INSTALLED.path = request.get("path") or INSTALLED.path
    cell.apply_context(request)
    INSTALLED.path_added += [
        e for e in sys.path if e not in before and e not in INSTALLED.path_added
    ]
    INSTALLED.names_before = set(STATE.ns) if request.get("silent") else None


def keep_silent_names():
    """Add the names that a silent cell defined to the prelude's names."""
    _refresh_namespace()
    names_before, INSTALLED.names_before = INSTALLED.names_before, None
    if names_before is None:
        return
    for name in list(STATE.ns):
        if name not in names_before and type(name) is str and not name.startswith("__"):
            STATE.prelude_names[name] = STATE.ns[name]
    STATE.hidden_names.update(STATE.prelude_names)


def is_context_applied():
    """Return whether the context that requests applied is still in effect. Checked after each
    cell."""
    for name, value in INSTALLED.env.items():
        if os.environ.get(name) != value:
            return False
    return sys.path[: len(INSTALLED.path)] == INSTALLED.path and os.getpid() == INSTALLED.pid


def run_module(path, code):
    """Run the text of a user module, as the runner does."""
    _refresh_namespace()
    try:
        lazy.load("modules").run(path, code)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise _rendered(error) from None
    finally:
        STATE.hidden_names.update(STATE.prelude_names)


def _rendered(error):
    """Return an exception that IPython shows as the runner would: without frames of this
    package."""
    name, text, lines = lazy.load("tracebacks").describe(error)
    methods = {"__str__": lambda self: text, "_render_traceback_": lambda self, *args: lines}
    return type(name, (Exception,), methods)(text)


class JsonRepr:
    """A value whose repr is JSON in one line of ASCII, which IPython's printers do not change."""

    __slots__ = ("text",)

    def __init__(self, value):
        # Not every JSON parser accepts lone surrogates; `utf8` replaces them by U+FFFD.
        text = utf8(lazy.load("json_values").to_json(value)).decode("utf-8")
        self.text = lazy.stdlib("json").dumps(loads(text))

    def __repr__(self):
        return self.text

    def _repr_mimebundle_(self, include=None, exclude=None):
        # A formatter that a library such as rich has installed for text/plain is not called, so it
        # does not display this value.
        return {"text/plain": self.text}


def query(op, request):
    """Return the runner's reply to a request."""
    _refresh_namespace()
    return JsonRepr(lazy.load("requests").handle(op, request))


def ensure_installed():
    """Does nothing: the loader installs this module before it calls a function of it."""


def context_applied():
    """Return `is_context_applied` as JSON."""
    return JsonRepr(is_context_applied())


def _set_variable(name, value):
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
