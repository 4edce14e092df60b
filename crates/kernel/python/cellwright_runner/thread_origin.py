"""Which cell a thread belongs to: the one that started it, or that of the thread that did; and from
the first thread on, writes to the streams take turns.

`Thread.start` is wrapped for that.
"""

from .state import S
from .streams import O


def connect(threading):
    """Let every thread remember its cell from now on."""
    start = threading.Thread.start
    if hasattr(start, "_cellwright"):
        return

    def remembering_start(self):
        self._cellwright_cell = O.cell_of_thread() if O.threaded else S.cell
        O.thread_starts()
        start(self)

    remembering_start.__name__ = "start"
    remembering_start.__qualname__ = "Thread.start"
    remembering_start.__doc__ = start.__doc__
    remembering_start.__wrapped__ = start
    remembering_start._cellwright = True
    threading.Thread.start = remembering_start
