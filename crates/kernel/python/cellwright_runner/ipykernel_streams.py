"""Patches for stdout and stderr of an ipykernel that Cellwright started: no dropped messages,
faster prints, shorter delays.

All functions rely on internals of ipykernel. Where those differ from the known versions, the stream
stays unchanged.
"""

import os
import sys

from . import lazy


def lift_send_limit(kernel):
    """Remove the send limit of the iopub socket. ZeroMQ drops published messages while a thousand
    messages wait to be sent, which happens on a busy machine. An owned kernel may queue more,
    because its client reads all the time. The change applies to clients connected at the time of
    the call; later clients have the limit."""
    thread = getattr(kernel, "iopub_thread", None)
    if thread is None:
        return

    def lift():
        try:
            thread.socket.sndhwm = 0
        except Exception:
            pass  # another type of socket

    # Only the thread that uses a socket may touch it.
    thread.schedule(lift)


def close_port_for_children(kernel):
    """Move the channel for output of forked children from a port to a Unix socket. ipykernel listens
    on a port of the loopback interface, whatever the transport of the kernel is, and prints what any
    user of the machine sends there. A kernel with Unix sockets has a directory for them that only
    this user can enter; the new socket is there. A kernel with ports is unchanged."""
    thread = getattr(kernel, "iopub_thread", None)
    application = getattr(kernel, "parent", None)
    if getattr(application, "transport", None) != "ipc":
        return
    names = ("_pipe_in", "_pipe_port", "_pipe_uuid", "_handle_pipe_msg", "_setup_pipe_out")
    if not all([hasattr(thread, name) for name in names]) or _is_patched(thread._setup_pipe_out):
        return
    zmq = sys.modules["zmq"]
    # The kernel's own sockets have the numbers 1 to 5.
    address = "ipc://%s-6" % application.ip
    done = lazy.stdlib("threading").Event()

    def connect():
        context = zmq.Context()  # the one of the parent cannot be used after a fork
        socket = context.socket(zmq.PUSH)
        socket.linger = 3000  # milliseconds
        socket.connect(address)
        return context, socket

    def replace():
        try:
            before = thread._pipe_in
            socket = thread.socket.context.socket(zmq.PULL)
            socket.linger = 0
            socket.bind(address)
            thread._pipe_in = type(before)(socket, thread.io_loop)
            thread._pipe_in.on_recv(thread._handle_pipe_msg)
            _patch(thread, "_setup_pipe_out", connect)
            before.close()
        except Exception:
            pass  # another version: the port stays
        done.set()

    # Only the thread that uses a socket may touch it.
    thread.schedule(replace)
    done.wait(5)


# The flushes that wait until their text is sent (a token bucket).
_BLOCKING_FLUSH_BURST = 20  # at once
_BLOCKING_FLUSH_RATE = 100  # per second


def throttle_flush(stream):
    """Limit the rate of flushes that block. ipykernel's flush waits for another thread, which takes
    ten times as long as the rest of a `print(…, flush=True)`. Of many flushes only some wait; the
    others hand over their text in order and return. The last text of a cell that crashes its
    process is as safe as without this patch, unless the cell flushes without pause."""
    if not all([hasattr(stream, name) for name in ("_buffer_lock", "_flush", "pub_thread")]):
        return
    if _is_patched(stream.flush):
        return
    monotonic = lazy.stdlib("time").monotonic
    original, pid = stream.flush, os.getpid()
    tokens, last_refill = float(_BLOCKING_FLUSH_BURST), monotonic()

    def flush():
        nonlocal tokens, last_refill
        now = monotonic()
        tokens, last_refill = (
            min(_BLOCKING_FLUSH_BURST, tokens + (now - last_refill) * _BLOCKING_FLUSH_RATE),
            now,
        )
        if tokens < 1 and os.getpid() == pid:
            stream._flush()
        else:
            tokens -= 1
            original()

    _patch(stream, "flush", flush)


# The delay before text is sent. At high rates the delay grows until one piece has accumulated.
_FLUSH_INTERVAL = 0.02  # seconds
_FLUSH_INTERVAL_MAX = 0.1  # seconds
_FLOOD_RATE = 5_000_000  # characters per second
_PIECE_SIZE = 2_000_000  # characters


def shorten_flush_interval(stream):
    """Send text sooner. ipykernel collects text for 0.2 s, which delays live output, and at high
    rates makes very large messages. At moderately high rates a longer delay makes fewer messages,
    each of which costs the kernel and the client time."""
    original = getattr(stream, "_flush", None)
    try:
        if _is_patched(original) or stream.flush_interval <= _FLUSH_INTERVAL:
            return  # patched already, or the user chose a shorter interval
        stream.flush_interval = _FLUSH_INTERVAL
    except (AttributeError, TypeError):
        return  # not a stream of ipykernel
    if original is None or not _has_known_buffers(stream):
        return
    last_interval = _FLUSH_INTERVAL

    def flush():
        nonlocal last_interval
        with stream._buffer_lock:
            buffered = sum([buffer.tell() for buffer in stream._buffers.values()])
            # A different value was set by the cell and stays.
            if stream.flush_interval == last_interval:
                last_interval = stream.flush_interval = _next_interval(last_interval, buffered)
        original()

    _patch(stream, "_flush", flush)


def _next_interval(interval, buffered):
    """Return the next delay in seconds, after `buffered` characters within `interval`."""
    rate = buffered / interval
    return (
        _FLUSH_INTERVAL
        if rate < _FLOOD_RATE
        else min(max(_PIECE_SIZE / rate, _FLUSH_INTERVAL), _FLUSH_INTERVAL_MAX)
    )


def split_large_messages(stream):
    """Split large text into several messages. At very high rates the sending thread waits long for
    the interpreter lock and then finds a dozen megabytes. The client can store messages of limited
    size, and reads one while the kernel makes the next."""
    original = getattr(stream, "_flush_buffers", None)
    if original is None or _is_patched(original) or not _has_known_buffers(stream):
        return

    def flush_buffers():
        for parent, text in original():
            # A hook replaces the sending of one message, so it must receive the whole text.
            if len(text) <= 2 * _PIECE_SIZE or getattr(stream, "_hooks", None):
                yield parent, text
                continue
            for at in range(0, len(text), _PIECE_SIZE):
                yield parent, text[at : at + _PIECE_SIZE]

    _patch(stream, "_flush_buffers", flush_buffers)


# Names that `write` uses in the known ipykernel versions. Another version may lack some.
_WRITE_NAMES = {
    "parent_header",
    "echo",
    "pub_thread",
    "_is_master_process",
    "_buffer_lock",
    "_buffers",
}
_WRITE_NAMES |= {"frozenset", "items", "_schedule_flush"}


def fast_write(stream):
    """Make `write` faster. ipykernel builds and compares a set of the cell's header at every write.
    Here the set is cached: the header is the same object as long as the cell is the same.

    Call this only between two cells: while a cell runs, IPython replaces `write`, and afterwards it
    restores the previous one."""
    original = getattr(stream, "write", None)
    # `write` is patched already, here or by other code: keep it.
    if getattr(original, "__func__", None) is not getattr(type(stream), "write", None):
        return
    code = getattr(original, "__code__", None)
    if code is None or not _WRITE_NAMES.issubset(code.co_names):
        return
    if not _has_known_buffers(stream) or not hasattr(stream, "_flush_pending"):
        return
    getpid, pid, lock = os.getpid, os.getpid(), stream._buffer_lock
    # One tuple, so that no thread sees a header with the key of another.
    cached = (None, None)

    def write(string):
        nonlocal cached
        if (
            type(string) is not str
            or stream.echo is not None
            or stream.pub_thread is None
            or getpid() != pid
        ):
            return original(string)
        parent = stream.parent_header
        header, key = cached
        if header is not parent:
            key = frozenset(parent.items())
            cached = (parent, key)
        with lock:
            stream._buffers[key].write(string)
        if not stream._flush_pending:
            stream._schedule_flush()
        return len(string)

    _patch(stream, "write", write)


def _has_known_buffers(stream):
    """Return whether the stream buffers text as in the known ipykernel versions."""
    kind = getattr(getattr(stream, "_buffers", None), "default_factory", None)
    return hasattr(stream, "_buffer_lock") and kind is lazy.stdlib("io").StringIO


def _is_patched(function):
    return getattr(function, "cellwright", False)


def _patch(stream, name, function):
    function.cellwright = True
    try:
        setattr(stream, name, function)
    except AttributeError:
        pass  # an object without this attribute
