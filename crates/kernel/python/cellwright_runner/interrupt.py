"""SIGINT handling: when the signal raises, when it is deferred, when it is ignored.

The handler raises KeyboardInterrupt only while a cell runs. While the main thread writes a frame or
reads the channel (between `defer_sigint` and `resume_sigint`) the handler only records the signal,
so that no frame is cut in two.
"""

import _signal
from _thread import get_ident

MAIN_THREAD = get_ident()
_PACKAGE = __name__.partition(".")[0]
SIGINT = _signal.SIGINT


class SigintGate:
    """The one instance is `SIGINT_GATE`. A plain object, because attribute access is cheap."""

    def __init__(self):
        self.cell_running = False  # user code may be on the stack
        self.interrupted = False  # the current cell was interrupted by a signal
        self.defer_depth = 0  # > 0: the main thread is in a section that must not be interrupted
        self.pending = False  # a signal arrived while defer_depth was > 0
        self.async_runner = None  # the `AsyncRunner` while a top-level await runs
        self.background_loop = False  # tasks of the session's loop run between two cells
        self.write_code = None  # the code of `PipeWriter.write`, see `_is_before_defer`


SIGINT_GATE = SigintGate()


def on_sigint(signum, frame):
    """The Python-level signal handler; Python calls it in the main thread."""
    if not SIGINT_GATE.cell_running:
        if SIGINT_GATE.background_loop and not SIGINT_GATE.defer_depth and _is_user_code(frame):
            # A task that never returns to its loop delays the next cell. The host sends the signal
            # again once that cell runs.
            raise KeyboardInterrupt
        return
    SIGINT_GATE.interrupted = True
    if SIGINT_GATE.defer_depth or _is_before_defer(frame):
        SIGINT_GATE.pending = True
        return
    _raise_interrupt(frame)


def _is_user_code(frame):
    """Return whether `frame` belongs neither to an event loop nor to the runner."""
    name = "" if frame is None else str(frame.f_globals.get("__name__"))
    return name.partition(".")[0] not in ("", "asyncio", "selectors", _PACKAGE)


def _is_before_defer(frame):
    """Return whether `frame` is about to defer SIGINT. The text layer empties its buffer before it
    calls `PipeWriter.write`, so an exception at the first instruction of it would lose that text."""
    if frame is None:
        return False
    code = frame.f_code
    if code is SIGINT_GATE.write_code:
        return "deferred" not in frame.f_locals
    return code is defer_sigint.__code__


def _raise_interrupt(frame=None):
    if SIGINT_GATE.async_runner is not None:
        SIGINT_GATE.async_runner.interrupt(frame)
    else:
        raise KeyboardInterrupt


def defer_sigint():
    """Defer SIGINT until `resume_sigint`; calls may be nested."""
    if get_ident() == MAIN_THREAD:
        SIGINT_GATE.defer_depth += 1


def resume_sigint():
    """End `defer_sigint`; raises for a SIGINT that arrived in between."""
    if get_ident() == MAIN_THREAD:
        SIGINT_GATE.defer_depth -= 1
        if SIGINT_GATE.pending and not SIGINT_GATE.defer_depth:
            SIGINT_GATE.pending = False
            if SIGINT_GATE.cell_running:
                _raise_interrupt()


def install():
    """Install the signal handler; repeated before each cell, because a cell may replace it."""
    if _signal.getsignal(SIGINT) is not on_sigint:
        _signal.signal(SIGINT, on_sigint)


def after_fork_in_child():
    """Restore the default SIGINT action in a forked child, which has no host to interrupt it."""
    global MAIN_THREAD
    MAIN_THREAD = get_ident()
    SIGINT_GATE.defer_depth = 0
    SIGINT_GATE.pending = False
    try:
        _signal.signal(SIGINT, _signal.SIG_DFL)
    except (ValueError, OSError):
        pass
