"""asyncio.create_task and ensure_future in a cell without `await`: the task joins the session's event
loop, which runs between cells and in cells with `await`."""

from . import interrupt, lazy
from .interrupt import SIGINT_GATE
from .state import STATE


def patch(asyncio):
    """Wrap the functions that need a running loop; called when asyncio has been imported."""
    if not hasattr(asyncio, "create_task"):
        return  # a file of the user with this name
    create_task, ensure_future = asyncio.create_task, asyncio.ensure_future

    def create_in_session(coro, **options):
        if not _runs_in_plain_cell(asyncio):
            return create_task(coro, **options)
        return lazy.load("async_cells").event_loop().create_task(coro, **options)

    def ensure_in_session(coro_or_future, *, loop=None):
        if loop is None and not asyncio.isfuture(coro_or_future) and _runs_in_plain_cell(asyncio):
            loop = lazy.load("async_cells").event_loop()
        return ensure_future(coro_or_future, loop=loop)

    for wrapper, function in ((create_in_session, create_task), (ensure_in_session, ensure_future)):
        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(wrapper, name, getattr(function, name))
        wrapper.__wrapped__ = function
        setattr(asyncio, function.__name__, wrapper)


def _runs_in_plain_cell(asyncio):
    """Return whether the main thread runs a cell outside of any event loop."""
    return (
        asyncio._get_running_loop() is None
        and SIGINT_GATE.cell_running
        and interrupt.get_ident() == interrupt.MAIN_THREAD
        and not STATE.forked
    )
