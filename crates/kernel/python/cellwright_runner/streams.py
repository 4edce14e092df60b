"""sys.stdout and sys.stderr, and the sync markers that order their text among the frames.

Text goes to private duplicates of the two pipes. A sync marker (nonce + number, written to both
pipes) and a frame with the same number let the host merge pipes and channel in the exact order (see
decision 8). In the protocol the number is the frame key `n`, and a frame that only carries a marker
has `"t":"sync"`.

The path of a write: the stream objects are C TextIOWrappers over a `PipeWriter`. While the stream
is idle, `stdout.write` is shadowed by a Python function. It sends the first complete line
immediately, wakes the flusher and removes itself. After that, prints run at C speed into the
buffer, which the flusher empties every 10 ms.
"""

import codecs
import os
import sys
from _thread import RLock, _count, allocate_lock, get_ident, start_new_thread
from io import BufferedIOBase, TextIOWrapper
from time import sleep

from . import interrupt
from .channel import write_all
from .interrupt import SIGINT_GATE, defer_sigint, resume_sigint
from .state import STATE

FLUSH_INTERVAL = 0.01  # seconds
LENIENT_ERRORS = "cellwright.lenient"

try:
    from fcntl import ioctl
except ImportError:
    ioctl = None

if sys.platform == "linux" and os.uname().machine in (
    "x86_64",
    "aarch64",
    "i686",
    "armv7l",
    "riscv64",
):
    _FIONREAD = 0x541B
elif sys.platform == "darwin":
    _FIONREAD = 0x4004667F
else:
    try:
        from termios import FIONREAD as _FIONREAD
    except ImportError:
        ioctl = None
_NO_BYTES_WAITING = b"\0\0\0\0"


def _encode_leniently(error):
    """Handle encoding errors: escaped bytes become the original bytes, other surrogates \\udXXX."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    code = ord(error.object[error.start])
    if 0xDC80 <= code <= 0xDCFF:
        return bytes((code - 0xDC00,)), error.start + 1
    return "\\u%04x" % code, error.start + 1


class PipeWriter(BufferedIOBase):
    """The `.buffer` of a stream: writes straight to the private duplicate of the pipe."""

    mode = "wb"

    def __init__(self, private, public, name):
        self.private_fd = private
        self.public_fd = public
        self.name = name
        self.sibling = None
        self.unsynced = False  # text was written since the last sync marker
        self.flushing_text = False  # the text layer is being flushed for a direct write
        self.write_count = 0  # number of writes; the flusher stops when it does not change
        self.stream = None  # the Stream that owns this writer

    def write(self, data):
        if type(data) is not bytes:
            data = memoryview(data).tobytes()
        if not data:
            return 0
        defer_sigint()
        deferred = True  # noqa: F841 (read by `interrupt._is_before_defer`)
        try:
            with OUTPUT.lock:
                if not self.flushing_text:
                    # A direct write to `.buffer` follows text that was written before it. (If the
                    # text layer itself is the caller, it is already empty.)
                    self.flushing_text = True
                    try:
                        self.stream.flush()
                    finally:
                        self.flushing_text = False
                if OUTPUT.deferred is not None:
                    OUTPUT.send_deferred()
                if not STATE.forked and (
                    self.sibling.unsynced or OUTPUT.child_may_have_written(self.sibling)
                ):
                    self.sibling.stream.flush()
                    OUTPUT.send_sync_frame()
                self.unsynced = True
                self.write_count += 1
                write_all(self.private_fd, data, _interrupt_pending)
        finally:
            resume_sigint()
        return len(data)

    def fileno(self):
        return self.public_fd

    def isatty(self):
        return False

    def writable(self):
        return True

    def flush(self):
        pass

    def close(self):
        # A closed sys.stdout must not stop the kernel's output.
        pass

    @property
    def raw(self):
        return self


SIGINT_GATE.write_code = PipeWriter.write.__code__


def _interrupt_pending():
    return SIGINT_GATE.pending


class Stream:
    """One of the two text streams: its pipe, its text layer and its write function."""

    def __init__(self, private, public, name):
        self.pipe = PipeWriter(private, public, name)
        self.pipe.stream = self
        self.idle = True  # no recent text: the next complete line is sent immediately
        self.make_text_layer()

    def make_text_layer(self):
        self.text = text = TextIOWrapper(self.pipe, "utf-8", LENIENT_ERRORS, "\n")
        text.mode = "w"
        self.c_write = text.write
        self.c_flush = text.flush

    def flush(self):
        """Write all buffered text to the pipe. The caller holds the lock."""
        try:
            self.c_flush()
        except ValueError:
            # A cell detached the buffer: create a new text layer.
            old = self.text
            self.make_text_layer()
            self.hook_write()
            for name in ("stdout", "stderr"):
                if getattr(sys, name, None) is old:
                    setattr(sys, name, self.text)
                if getattr(sys, "__%s__" % name, None) is old:
                    setattr(sys, "__%s__" % name, self.text)

    def hook_write(self):
        """Shadow `write` of the text layer by `self.write`, unless a cell replaced it."""
        attributes = self.text.__dict__
        current = attributes.get("write")
        if current is None or getattr(current, "__self__", None) is self:
            attributes["write"] = self.write

    def unhook_write(self):
        """Restore the C `write`."""
        attributes = self.text.__dict__
        if getattr(attributes.get("write"), "__self__", None) is self:
            del attributes["write"]


class StdoutStream(Stream):
    """sys.stdout."""

    def write(self, text):
        """write() while the stream is idle, and always while other threads exist."""
        if OUTPUT.threaded:
            # Before 3.12.4, two threads in the C text layer at the same time lose text. The lock
            # also prevents a change of the current cell between the check and the write.
            with OUTPUT.lock:
                if get_ident() != interrupt.MAIN_THREAD:
                    cell = OUTPUT.cell_of_thread()
                    if cell != STATE.cell:
                        return OUTPUT.write_for_older_cell(self, cell, text)
                count = self.c_write(text)
        else:
            count = self.c_write(text)
        if "\n" in text:
            if self.idle:
                self.idle = False
                with OUTPUT.lock:
                    self.flush()
            if not OUTPUT.threaded:
                self.unhook_write()
        if not OUTPUT.flusher_awake:
            OUTPUT.wake_flusher()
        return count


class StderrStream(Stream):
    """sys.stderr."""

    def write(self, text):
        """write() of stderr. Never unhooked, because buffered stdout text must precede it."""
        if STATE.forked:
            return self.c_write(text)
        out = OUTPUT.out
        defer_sigint()
        try:
            with OUTPUT.lock:
                if OUTPUT.threaded and get_ident() != interrupt.MAIN_THREAD:
                    cell = OUTPUT.cell_of_thread()
                    if cell != STATE.cell:
                        return OUTPUT.write_for_older_cell(self, cell, text)
                out.flush()
                if out.pipe.unsynced or OUTPUT.child_may_have_written(out.pipe):
                    OUTPUT.send_sync_frame()
                self.pipe.unsynced = True
                count = self.c_write(text)
                if self.idle and ("\n" in text or "\r" in text):
                    self.idle = False
                    self.flush()
        finally:
            resume_sigint()
        if not OUTPUT.flusher_awake:
            OUTPUT.wake_flusher()
        return count


class Output:
    """Both streams, the lock, the sync markers and the flusher. The one instance is `OUTPUT`."""

    def __init__(self):
        self.lock = RLock()
        self.channel = None
        self.nonce = b""
        self.marker_number = 0
        self.out = self.err = None
        self.flusher_awake = False  # the flusher flushes every FLUSH_INTERVAL
        self.wake_lock = None  # the lock that the sleeping flusher waits for
        self.tick_lock = None  # the lock that it waits for between two flushes
        self.has_children = False  # the cell has started child processes
        self.threaded = False  # threads other than the main thread and the flusher may exist
        self.own_threads = 0  # number of threads of the runner among those that Python counts
        self.deferred = None  # a result frame that is sent in one write with `done`
        self.partial_lines = {}  # (stream, thread id) -> (cell, text), for threads of older cells

    def open(self, channel, nonce, duplicate):
        """Create the two streams. `duplicate` returns a private duplicate of an fd."""
        codecs.register_error(LENIENT_ERRORS, _encode_leniently)
        self.channel = channel
        self.nonce = nonce
        self.out = StdoutStream(duplicate(1), 1, "<stdout>")
        self.err = StderrStream(duplicate(2), 2, "<stderr>")
        self.out.pipe.sibling = self.err.pipe
        self.err.pipe.sibling = self.out.pipe
        self.out.hook_write()
        self.err.hook_write()
        sys.stdout = sys.__stdout__ = self.out.text
        sys.stderr = sys.__stderr__ = self.err.text

    # Sync markers

    def write_sync_marker(self, force=False):
        """Write a sync marker if text may be in the pipes. Returns its number, or 0 without one.
        The caller holds the lock and has flushed."""
        out, err = self.out.pipe, self.err.pipe
        if (
            not force
            and not out.unsynced
            and not err.unsynced
            and ioctl is not None
            and self._is_empty(out.private_fd)
            and self._is_empty(err.private_fd)
        ):
            return 0
        self.marker_number = number = self.marker_number + 1
        marker = self.nonce + number.to_bytes(8, "little")
        write_all(out.private_fd, marker)
        write_all(err.private_fd, marker)
        out.unsynced = err.unsynced = False
        return number

    @staticmethod
    def _is_empty(fd):
        try:
            return ioctl(fd, _FIONREAD, _NO_BYTES_WAITING) == _NO_BYTES_WAITING
        except OSError:
            return False

    def child_may_have_written(self, pipe):
        """Return whether a child of this cell may have text in `pipe`, which precedes new text."""
        return self.has_children and (ioctl is None or not self._is_empty(pipe.private_fd))

    def before_child_start(self):
        """Send all text so far, so that it precedes the child's text on both streams."""
        defer_sigint()
        try:
            with self.lock:
                self.has_children = True
                self.flush()
                self.send_deferred()
                if self.out.pipe.unsynced or self.err.pipe.unsynced:
                    self.send_sync_frame()
        finally:
            resume_sigint()

    def send_sync_frame(self, cell=None):
        """Send a sync marker with a frame that carries only its number: between text of the two
        streams, or of two cells."""
        if self.deferred is not None:
            self.send_deferred()
        number = self.write_sync_marker(True)
        if cell is None:
            cell = STATE.cell
        self.channel.write(b'{"t":"sync","cell":%s,"n":%d}\n' % (encode_id(cell), number))

    def flush(self):
        """Write both buffers to the pipes. The caller holds the lock. Buffered stdout text is
        always newer than buffered stderr text, so stderr goes first."""
        self.err.flush()
        self.out.flush()

    def flush_now(self):
        """Flush for callers without the lock; also sends the deferred frame."""
        defer_sigint()
        try:
            with self.lock:
                self.flush()
                if self.deferred is not None:
                    self.send_deferred()
        finally:
            resume_sigint()

    def send(self, frame, payloads=()):
        """Send an encoded frame (bytes without the closing brace) in order with the text."""
        if STATE.forked:
            return
        defer_sigint()
        try:
            with self.lock:
                self.flush()
                number = self.write_sync_marker()
                deferred, self.deferred = self.deferred, None
                if deferred is None:
                    deferred = frame
                    frame = b"}\n"
                else:
                    # No text was written in between, so one sync marker before both is enough.
                    frame = b"}\n" + frame + b"}\n"
                if number:
                    deferred += b',"n":%d' % number
                self.channel.write(deferred + frame, payloads)
        finally:
            resume_sigint()

    def defer_frame(self, frame):
        """Defer a frame until the next write. `done` usually follows immediately, and a second
        write (which wakes the host twice) would dominate the cost of a small cell."""
        if STATE.forked:
            return
        defer_sigint()
        try:
            with self.lock:
                self.flush()
                if self.deferred is not None:
                    self.send_deferred()
                self.deferred = frame
        finally:
            resume_sigint()

    def send_deferred(self):
        """Send the deferred frame. The caller holds the lock."""
        deferred, self.deferred = self.deferred, None
        if deferred is not None:
            number = self.write_sync_marker()
            self.channel.write(deferred + (b',"n":%d}\n' % number if number else b"}\n"))

    def send_plain(self, frame):
        """Send a frame that is not ordered among text (hello, replies)."""
        defer_sigint()
        try:
            with self.lock:
                self.send_deferred()
                self.channel.write(frame + b"}\n")
        finally:
            resume_sigint()

    # The flusher

    def wake_flusher(self):
        """Wake the flusher, so that buffered text is sent within FLUSH_INTERVAL."""
        if self.flusher_awake:
            return
        self.flusher_awake = True
        if self.wake_lock is None:
            self.wake_lock, self.tick_lock = allocate_lock(), allocate_lock()
            self.wake_lock.acquire()
            self.tick_lock.acquire()
            try:
                start_new_thread(self._flush_loop, (self.wake_lock, self.tick_lock))
            except RuntimeError:  # the interpreter is shutting down
                self.wake_lock = None
                self.flusher_awake = False
                self.flush_now()
                return
        self.wake_lock.release()

    def _flush_loop(self, wake_lock, tick_lock):
        # Set here and not by the starter of this thread: Python counts a thread only once it runs.
        # A thread that is subtracted before it is counted would hide a thread of the user.
        if self.wake_lock is wake_lock:
            self.own_threads = 1
        lock, out, err = self.lock, self.out, self.err
        while True:
            wake_lock.acquire()
            while self.wake_lock is wake_lock:
                before = out.pipe.write_count + err.pipe.write_count
                tick_lock.acquire(True, FLUSH_INTERVAL)
                with lock:
                    self.flush()
                    if self.partial_lines:
                        self._flush_partial_lines()
                if out.pipe.write_count + err.pipe.write_count == before:
                    break
            if self.wake_lock is not wake_lock:
                if self.wake_lock is None:  # otherwise the next flusher runs and is counted
                    self.own_threads = 0
                return
            out.idle = err.idle = True
            out.hook_write()
            self.flusher_awake = False
            with lock:
                self.flush()

    def stop_flusher(self):
        """End the flusher thread; the next text starts it again. From 3.12 on Python warns when a
        process with several threads forks, and the flusher must not cause that warning."""
        wake_lock = self.wake_lock
        if wake_lock is None:
            return
        self.wake_lock = None
        self.tick_lock.release()
        if not self.flusher_awake:
            wake_lock.release()
        for _ in range(200):
            if not self.own_threads and _os_thread_count() <= 1 + _count():
                break
            sleep(0.0002)
        self.own_threads = 0
        self.flusher_awake = False
        self.out.idle = self.err.idle = True
        self.out.hook_write()

    # Threads, and those of older cells

    def on_thread_start(self):
        """Serialize all writes from now on."""
        if not STATE.forked:
            self.threaded = True
            self.out.hook_write()

    def cell_of_thread(self):
        """Return the cell that started this thread, or the current cell if that is unknown."""
        threading = sys.modules.get("threading")
        if threading is None:
            return STATE.cell
        try:
            thread = threading._active.get(get_ident())
            return thread.__dict__.get("_cellwright_cell", STATE.cell)
        except AttributeError:
            return STATE.cell

    def write_for_older_cell(self, stream, cell, text):
        """Write text of a thread that an older cell started: whole lines, between two markers."""
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not %s" % type(text).__name__)
        key = (stream, get_ident())
        with self.lock:
            waiting = self.partial_lines.pop(key, None)
            joined = text if waiting is None else waiting[1] + text
            cut = joined.rfind("\n") + 1
            if len(joined) > 8192:
                cut = len(joined)
            if cut < len(joined):
                self.partial_lines[key] = (cell, joined[cut:])
            if cut:
                self._write_between_markers(stream, cell, joined[:cut])
        if cut < len(joined):
            self.wake_flusher()
        return len(text)

    def _flush_partial_lines(self):
        waiting, self.partial_lines = self.partial_lines, {}
        for (stream, _), (cell, text) in waiting.items():
            self._write_between_markers(stream, cell, text)

    def _write_between_markers(self, stream, cell, text):
        self.flush()
        self.send_sync_frame(cell)
        stream.c_write(text)
        stream.flush()
        self.send_sync_frame()

    # Around cells

    def begin_cell(self):
        """Restore closed streams and detect live threads; called before `started`."""
        if self.partial_lines:
            with self.lock:
                self._flush_partial_lines()
        self.has_children = False
        self.threaded = threaded = _count() > self.own_threads
        if threaded:
            self.out.hook_write()
        for name, stream in (("stdout", self.out), ("stderr", self.err)):
            current = getattr(sys, name, None)
            if current is stream.text:
                continue
            if current is None or _is_closed(current):
                setattr(sys, name, stream.text)

    def after_fork_in_child(self):
        """Make the child write whole lines directly; channel and sync markers are the parent's."""
        self.lock = RLock()
        self.wake_lock = None
        self.flusher_awake = True
        self.own_threads = 0
        self.threaded = False
        self.deferred = None
        self.partial_lines = {}
        self.out.unhook_write()
        for stream in (self.out, self.err):
            stream.pipe.unsynced = False
            try:
                stream.text.reconfigure(line_buffering=True)
            except ValueError:
                pass


def _os_thread_count():
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 0


def _is_closed(stream):
    try:
        return bool(stream.closed)
    except AttributeError:
        return False
    except Exception:
        return True


def encode_id(cell):
    if type(cell) is int:
        return b"%d" % cell
    from .channel import dumps, utf8

    return utf8(dumps(cell))


OUTPUT = Output()
