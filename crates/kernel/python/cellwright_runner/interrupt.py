"""SIGINT: when it raises, when it waits, when it is ignored.

The handler raises KeyboardInterrupt only while a cell runs. While the main thread writes a frame or
reads the channel (`hold` … `release`) the signal is only noted, so that no frame is torn apart.
"""

import _signal
from _thread import get_ident

MAIN = get_ident()
SIGINT = _signal.SIGINT


class Gate:
    """`G`, the one instance. A plain object, because attribute access is cheap and clear."""

    def __init__(self):
        self.running = False  # user code may be on the stack
        self.seen = False  # the current cell was interrupted by a signal
        self.depth = 0  # > 0: the main thread is inside something that must not be torn
        self.pending = False  # a signal came while depth was > 0
        self.awaiting = None  # module `awaiting` while a top-level await runs


G = Gate()


def on_sigint(signum, frame):
    """The Python-level handler; always called in the main thread."""
    if not G.running:
        return
    G.seen = True
    if G.depth:
        G.pending = True
        return
    _strike(frame)


def _strike(frame=None):
    if G.awaiting is not None:
        G.awaiting.strike(frame)
    else:
        raise KeyboardInterrupt


def hold():
    """From here to `release` a SIGINT is only noted."""
    if get_ident() == MAIN:
        G.depth += 1


def release():
    """End of `hold`; a SIGINT that came meanwhile strikes now."""
    if get_ident() == MAIN:
        G.depth -= 1
        if G.pending and not G.depth:
            G.pending = False
            if G.running:
                _strike()


def install():
    """Put our handler in place (again: a cell may have changed it)."""
    if _signal.getsignal(SIGINT) is not on_sigint:
        _signal.signal(SIGINT, on_sigint)


def after_fork_in_child():
    """A forked child has no host that would interrupt it: default behaviour."""
    global MAIN
    MAIN = get_ident()
    G.depth = 0
    G.pending = False
    try:
        _signal.signal(SIGINT, _signal.SIG_DFL)
    except (ValueError, OSError):
        pass
