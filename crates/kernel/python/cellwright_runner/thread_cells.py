"""Records which cell started a thread. `Thread.start` is wrapped for that.

A thread that a thread starts belongs to the same cell. From the first thread on, writes to the
streams are serialized.
"""

from .state import STATE
from .streams import OUTPUT


def patch(threading):
    """Wrap `Thread.start`, so that every new thread records its cell."""
    start = threading.Thread.start
    if hasattr(start, "_cellwright"):
        return

    def recording_start(self):
        self._cellwright_cell = OUTPUT.cell_of_thread() if OUTPUT.threaded else STATE.cell
        OUTPUT.on_thread_start()
        start(self)

    recording_start.__name__ = "start"
    recording_start.__qualname__ = "Thread.start"
    recording_start.__doc__ = start.__doc__
    recording_start.__wrapped__ = start
    recording_start._cellwright = True
    threading.Thread.start = recording_start
