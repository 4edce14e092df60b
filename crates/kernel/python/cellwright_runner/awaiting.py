"""Cells with a top-level await: one event loop for the session, and interrupts that leave it
alive."""

import asyncio
import warnings

from .cell import COROUTINE
from .interrupt import G


class Loop:
    """The session's loop and the task of the cell that runs on it now."""

    def __init__(self):
        self.loop = None
        self.task = None
        self.asked = False  # the task was told to stop
        self.cancelled = None  # the exception by which it stopped

    def get(self):
        """The loop; made when first needed, again if a cell closed it."""
        if self.loop is None:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self.loop = asyncio.get_event_loop_policy().get_event_loop()
            except Exception:
                self.loop = None
        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        return self.loop

    def strike(self, frame=None):
        """SIGINT while a cell is awaited (called from the signal handler)."""
        loop, task = self.loop, self.task
        if task is None or task.done():
            raise KeyboardInterrupt
        # Within asyncio's own code an exception could tear a task out of the loop's queue for good.
        inside = frame is not None and str(frame.f_globals.get("__name__")).startswith("asyncio.")
        if self.asked or (asyncio.current_task(loop) is not None and not inside):
            # Python code of a task runs right now, or the polite way did not help.
            raise KeyboardInterrupt
        self.asked = True
        # The loop sleeps in select; it must be woken to see the cancellation.
        loop.call_soon_threadsafe(task.cancel)

    def run(self, parts, ns):
        """Run the code objects of a cell inside one task."""
        loop = self.get()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            asyncio.set_event_loop(loop)
        self.asked = False
        self.cancelled = None
        coroutine = self._cell(parts, ns)
        self.task = task = loop.create_task(coroutine)
        G.awaiting = self
        try:
            try:
                return loop.run_until_complete(task)
            except asyncio.CancelledError as cancelled:
                if self.asked:
                    # Before 3.11 the exception that arrives here has lost the lines of the cell.
                    where = (self.cancelled or cancelled).__traceback__
                    raise KeyboardInterrupt().with_traceback(where) from None
                raise
            except BaseException:
                if not task.done():
                    self._stop(loop, task)
                raise
        finally:
            G.awaiting = None
            self.task = self.cancelled = None

    async def _cell(self, parts, ns):
        value = None
        try:
            for part in parts:
                value = eval(part, ns)
                if part.co_flags & COROUTINE:
                    value = await value
        except asyncio.CancelledError as cancelled:
            self.cancelled = cancelled
            raise
        return value

    @staticmethod
    def _stop(loop, task):
        """The exception came from elsewhere in the loop: end the cell's own task too, in bounded
        time."""
        task.cancel()
        timer = loop.call_later(0.5, loop.stop)
        try:
            loop.run_until_complete(task)
        except BaseException:
            pass
        finally:
            timer.cancel()


_LOOP = Loop()
run = _LOOP.run
