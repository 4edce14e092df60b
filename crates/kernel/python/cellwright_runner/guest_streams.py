"""stdout and stderr of an ipykernel of ours: nothing dropped, prints that take less time, sent sooner.

Everything here reaches into ipykernel. Where that is not as expected, it stays as it is.
"""

import os

from . import lazy


def drop_nothing(kernel):
    """ZeroMQ drops what is published while a thousand messages wait to be sent, which they do when the
    machine is busy. In a kernel of our own they may wait: we do nothing but read. It counts for those who
    are connected when it is called; who comes later has the limit."""
    thread = getattr(kernel, "iopub_thread", None)
    if thread is None:
        return

    def lift():
        try:
            thread.socket.sndhwm = 0
        except Exception:
            pass  # some other sort of socket

    # Only the thread that uses a socket may touch it.
    thread.schedule(lift)


# How many flushes wait until their text is sent: so many at once, and so many in a second.
_WAITING_FLUSHES = 20
_WAITING_RATE = 100


def flush_in_passing(stream):
    """ipykernel's flush waits for another thread, which takes ten times as long as everything else in a
    `print(…, flush=True)`. Of a flood of them only some wait; the others hand their text over, in order, and
    go on. What a cell says last before it brings its process down is as safe as ever, unless it never
    stopped talking."""
    if not all([hasattr(stream, name) for name in ("_buffer_lock", "_flush", "pub_thread")]):
        return
    if _is_ours(stream.flush):
        return
    monotonic = lazy.stdlib("time").monotonic
    theirs, pid = stream.flush, os.getpid()
    left, then = float(_WAITING_FLUSHES), monotonic()

    def flush():
        nonlocal left, then
        now = monotonic()
        left, then = min(_WAITING_FLUSHES, left + (now - then) * _WAITING_RATE), now
        if left < 1 and os.getpid() == pid:
            stream._flush()
        else:
            left -= 1
            theirs()

    _put(stream, "flush", flush)


# How long text waits to be sent, in seconds; and in a flood, of so many characters a second and more, how
# long at most until so many are there.
_SOON = 0.02
_LATE = 0.1
_FLOOD = 5_000_000
_PIECE = 2_000_000


def send_soon(stream):
    """ipykernel gathers text for a fifth of a second. That is late for whoever watches, and of a flood it makes
    messages so large that nobody has room for them. In a slower flood there are fewer if they wait a little:
    each costs both sides something."""
    theirs = getattr(stream, "_flush", None)
    try:
        if _is_ours(theirs) or stream.flush_interval <= _SOON:
            return  # done before, or somebody wants it so
        stream.flush_interval = _SOON
    except (AttributeError, TypeError):
        return  # somebody else's
    if theirs is None or not _gathers(stream):
        return
    set_last = _SOON

    def flush():
        nonlocal set_last
        with stream._buffer_lock:
            waiting = sum([buffer.tell() for buffer in stream._buffers.values()])
            # Else the cell has set one.
            if stream.flush_interval == set_last:
                set_last = stream.flush_interval = _next_interval(set_last, waiting)
        theirs()

    _put(stream, "_flush", flush)


def _next_interval(interval, waiting):
    """How long to wait, after so much has come in this time."""
    rate = waiting / interval
    return _SOON if rate < _FLOOD else min(max(_PIECE / rate, _SOON), _LATE)


def send_in_pieces(stream):
    """However soon text is sent: a quick flood keeps the thread that sends waiting for its turn, and by then
    there are a dozen megabytes. In pieces the reader has room for them, and reads one while the next is made."""
    theirs = getattr(stream, "_flush_buffers", None)
    if theirs is None or _is_ours(theirs) or not _gathers(stream):
        return

    def flush_buffers():
        for parent, text in theirs():
            # Who hooks into a message takes it instead of all that would be sent with it.
            if len(text) <= 2 * _PIECE or getattr(stream, "_hooks", None):
                yield parent, text
                continue
            for at in range(0, len(text), _PIECE):
                yield parent, text[at : at + _PIECE]

    _put(stream, "_flush_buffers", flush_buffers)


# What `write` of the ipykernels that we know goes through, of all that could be different in another.
_STEPS = {"parent_header", "echo", "pub_thread", "_is_master_process", "_buffer_lock", "_buffers"}
_STEPS |= {"frozenset", "items", "_schedule_flush"}


def write_quickly(stream):
    """ipykernel makes a set of the cell's header and compares it, at every write. It need not: the header is
    the same object as long as the cell is the same.

    Only between two cells: IPython has a `write` of its own in this place while one runs, and afterwards puts
    back what was there before."""
    theirs = getattr(stream, "write", None)
    # Ours, or somebody else's: it stays.
    if getattr(theirs, "__func__", None) is not getattr(type(stream), "write", None):
        return
    code = getattr(theirs, "__code__", None)
    if code is None or not _STEPS.issubset(code.co_names):
        return
    if not _gathers(stream) or not hasattr(stream, "_flush_pending"):
        return
    getpid, pid, lock = os.getpid, os.getpid(), stream._buffer_lock
    # One object, so that no thread sees half of a change.
    known = (None, None)

    def write(string):
        nonlocal known
        if (
            type(string) is not str
            or stream.echo is not None
            or stream.pub_thread is None
            or getpid() != pid
        ):
            return theirs(string)
        parent = stream.parent_header
        header, key = known
        if header is not parent:
            key = frozenset(parent.items())
            known = (parent, key)
        with lock:
            stream._buffers[key].write(string)
        if not stream._flush_pending:
            stream._schedule_flush()
        return len(string)

    _put(stream, "write", write)


def _gathers(stream):
    """Whether what waits to be sent is kept as in the ipykernels that we know."""
    kind = getattr(getattr(stream, "_buffers", None), "default_factory", None)
    return hasattr(stream, "_buffer_lock") and kind is lazy.stdlib("io").StringIO


def _is_ours(function):
    return getattr(function, "cellwright", False)


def _put(stream, name, function):
    function.cellwright = True
    try:
        setattr(stream, name, function)
    except AttributeError:
        pass  # one without room for it
