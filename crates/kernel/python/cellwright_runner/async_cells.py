"""Cells with a top-level await: one event loop for the session, which survives interrupts and runs
its tasks between cells."""

import asyncio
import sys
import warnings

from . import lazy
from .cell import CO_COROUTINE
from .interrupt import SIGINT_GATE
from .state import STATE

# Turns of the loop after the arrival of a request. Tasks that need no waiting advance before the next
# cell, also if that follows immediately.
TURNS_BEFORE_CELL = 8


class AsyncRunner:
    """The session's event loop and the task of the cell that runs on it."""

    def __init__(self):
        self.loop = None
        self.task = None
        self.cancel_requested = False  # an interrupt has requested the task's cancellation
        self.cancellation = None  # the CancelledError that ended the task

    def event_loop(self):
        """Return the loop; created on first use and after a cell closed it."""
        if self.loop is None:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self.loop = asyncio.get_event_loop_policy().get_event_loop()
            except Exception:
                self.loop = None
        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        STATE.async_runner = self
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            asyncio.set_event_loop(self.loop)
        return self.loop

    def interrupt(self, frame=None):
        """Interrupt the cell's task; called from the signal handler. Raises KeyboardInterrupt, or
        requests the task's cancellation."""
        loop, task = self.loop, self.task
        if task is None or task.done():
            raise KeyboardInterrupt
        # An exception raised inside asyncio's own code could remove a task from the loop's queue
        # permanently.
        module = "" if frame is None else str(frame.f_globals.get("__name__"))
        in_asyncio = module.startswith("asyncio.")
        if self.cancel_requested or (asyncio.current_task(loop) is not None and not in_asyncio):
            # A task's Python code is running, or the cancellation had no effect.
            raise KeyboardInterrupt
        self.cancel_requested = True
        # The loop may be blocked in select; call_soon_threadsafe wakes it.
        loop.call_soon_threadsafe(task.cancel)

    def run(self, parts, ns):
        """Run the code objects of a cell in one task and return the last value."""
        loop = self.event_loop()
        self.cancel_requested = False
        self.cancellation = None
        coroutine = self._run_parts(parts, ns)
        self.task = task = loop.create_task(coroutine)
        SIGINT_GATE.async_runner = self
        try:
            try:
                return loop.run_until_complete(task)
            except asyncio.CancelledError as cancellation:
                if self.cancel_requested:
                    # Before 3.11 the exception caught here has lost the cell's frames.
                    traceback = (self.cancellation or cancellation).__traceback__
                    raise KeyboardInterrupt().with_traceback(traceback) from None
                raise
            except BaseException:
                if not task.done():
                    self._cancel_task(loop, task)
                raise
        finally:
            SIGINT_GATE.async_runner = None
            self.task = self.cancellation = None

    async def _run_parts(self, parts, ns):
        value = None
        try:
            for part in parts:
                value = eval(part, ns)
                if part.co_flags & CO_COROUTINE:
                    value = await value
        except asyncio.CancelledError as cancellation:
            self.cancellation = cancellation
            raise
        return value

    @staticmethod
    def _cancel_task(loop, task):
        """Cancel the cell's task after an exception from elsewhere in the loop; waits at most
        0.5 s for it."""
        task.cancel()
        timer = loop.call_later(0.5, loop.stop)
        try:
            loop.run_until_complete(task)
        except BaseException:
            pass
        finally:
            timer.cancel()


    def run_between_cells(self, channel):
        """Run the tasks of the loop until the channel has a request. Returns immediately if the
        loop has nothing to do."""
        while True:
            loop = self.loop
            if loop is None or loop.is_closed() or not _has_work(loop):
                return
            arrived = channel.has_request()
            SIGINT_GATE.background_loop = True
            try:
                if arrived:
                    loop.call_soon(_stop_after, loop, TURNS_BEFORE_CELL)
                else:
                    loop.add_reader(channel.fd, self._on_request, loop, channel.fd)
                loop.run_forever()
            except BaseException as error:  # KeyboardInterrupt or SystemExit of a task
                SIGINT_GATE.background_loop = False
                lines = lazy.load("tracebacks").describe(error)[2]
                sys.stderr.write("\n".join(lines) + "\n")
            finally:
                SIGINT_GATE.background_loop = False
                if not arrived and not loop.is_closed():
                    arrived = not loop.remove_reader(channel.fd)
            if arrived:
                return

    @staticmethod
    def _on_request(loop, fd):
        loop.remove_reader(fd)
        _stop_after(loop, TURNS_BEFORE_CELL)

    def close(self):
        """Drop the tasks that have not ended, without a message about each of them."""
        if self.loop is not None and not self.loop.is_closed():
            for task in asyncio.all_tasks(self.loop):
                task._log_destroy_pending = False


def _stop_after(loop, turns):
    if turns:
        loop.call_soon(_stop_after, loop, turns - 1)
    else:
        loop.stop()


def _has_work(loop):
    """Return whether a loop has tasks, callbacks, timers or open connections."""
    if asyncio.all_tasks(loop):
        return True
    try:
        # The selector has one entry of the loop itself, its wake-up pipe.
        return bool(loop._ready or loop._scheduled or len(loop._selector.get_map()) > 1)
    except AttributeError:  # another implementation of loops
        return True


_RUNNER = AsyncRunner()
run = _RUNNER.run
event_loop = _RUNNER.event_loop
