"""sys.stdout and sys.stderr, and the borders that order their text among the frames.

Text goes to private duplicates of the two pipes. A border (nonce + number, written to both pipes)
and a frame with the same number let the host merge pipes and channel in the exact order. See the
protocol.

How a write travels: the objects are C TextIOWrappers over a `PipeEnd`. In quiet times
`stdout.write` is shadowed by a Python function, which sends the first complete line at once, wakes
the flusher and steps aside; from then on prints run at C speed into the buffer, which the flusher
empties every 10 ms.
"""

import codecs
import os
import sys
from _thread import RLock, _count, allocate_lock, get_ident, start_new_thread
from io import BufferedIOBase, TextIOWrapper
from time import sleep

from . import interrupt
from .channel import write_all
from .interrupt import G, hold, release
from .state import S

TICK = 0.01
LENIENT = "cellwright.lenient"

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
_NONE_WAITING = b"\0\0\0\0"


def _lenient(error):
    """Encoding errors: escaped bytes go out as the bytes they were, other surrogates as \\udXXX."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    code = ord(error.object[error.start])
    if 0xDC80 <= code <= 0xDCFF:
        return bytes((code - 0xDC00,)), error.start + 1
    return "\\u%04x" % code, error.start + 1


class PipeEnd(BufferedIOBase):
    """The `.buffer` of a stream: writes straight to the private duplicate of the pipe."""

    mode = "wb"

    def __init__(self, private, public, name):
        self._fd = private
        self._public = public
        self.name = name
        self.other = None
        self.dirty = False  # text since the last border
        self.inside = False  # the text layer is being emptied for a direct write
        self.written = 0  # number of writes: the flusher sees whether anything happened
        self.stream = None  # the Stream around us

    def write(self, data):
        if type(data) is not bytes:
            data = memoryview(data).tobytes()
        if not data:
            return 0
        hold()
        try:
            with O.lock:
                if not self.inside:
                    # A direct write to `.buffer` comes after text that was written before it. (If
                    # it is the text layer that calls, there is nothing left in it.)
                    self.inside = True
                    try:
                        self.stream.flush()
                    finally:
                        self.inside = False
                if O.held is not None:
                    O.send_held()
                if not S.forked and (self.other.dirty or O.child_wrote(self.other)):
                    self.other.stream.flush()
                    O.switch()
                self.dirty = True
                self.written += 1
                write_all(self._fd, data, _pending)
        finally:
            release()
        return len(data)

    def fileno(self):
        return self._public

    def isatty(self):
        return False

    def writable(self):
        return True

    def flush(self):
        pass

    def close(self):
        # Closing sys.stdout must not take the kernel's voice away.
        pass

    @property
    def raw(self):
        return self


def _pending():
    return G.pending


class Stream:
    """One of the two text streams and its ways of writing."""

    def __init__(self, private, public, name):
        self.end = PipeEnd(private, public, name)
        self.end.stream = self
        self.fresh = True  # the next complete line ends a quiet time: it goes out at once
        self.make()

    def make(self):
        self.text = text = TextIOWrapper(self.end, "utf-8", LENIENT, "\n")
        text.mode = "w"
        self.c_write = text.write
        self.c_flush = text.flush

    def flush(self):
        """Everything buffered goes to the pipe. The caller holds the lock."""
        try:
            self.c_flush()
        except ValueError:
            # A cell detached the buffer: put a new text layer on it.
            old = self.text
            self.make()
            self.watch()
            for name in ("stdout", "stderr"):
                if getattr(sys, name, None) is old:
                    setattr(sys, name, self.text)
                if getattr(sys, "__%s__" % name, None) is old:
                    setattr(sys, "__%s__" % name, self.text)

    def watch(self):
        """Let writes come to our Python function (unless a cell put its own there)."""
        attributes = self.text.__dict__
        current = attributes.get("write")
        if current is None or getattr(current, "__self__", None) is self:
            attributes["write"] = self.write

    def unwatch(self):
        attributes = self.text.__dict__
        if getattr(attributes.get("write"), "__self__", None) is self:
            del attributes["write"]


class Out(Stream):
    def write(self, text):
        """write() in quiet times, and always while there are threads."""
        if O.threaded:
            # Two threads inside the C text layer at once would lose text (before 3.12.4). And the
            # lock keeps the current cell what it is between the question and the write.
            with O.lock:
                if get_ident() != interrupt.MAIN:
                    cell = O.cell_of_thread()
                    if cell != S.cell:
                        return O.foreign_write(self, cell, text)
                count = self.c_write(text)
        else:
            count = self.c_write(text)
        if "\n" in text:
            if self.fresh:
                self.fresh = False
                with O.lock:
                    self.flush()
            if not O.threaded:
                self.unwatch()
        if not O.awake:
            O.wake()
        return count


class Err(Stream):
    def write(self, text):
        """write() of stderr: always ours, because what was printed before must come first."""
        if S.forked:
            return self.c_write(text)
        out = O.out
        hold()
        try:
            with O.lock:
                if O.threaded and get_ident() != interrupt.MAIN:
                    cell = O.cell_of_thread()
                    if cell != S.cell:
                        return O.foreign_write(self, cell, text)
                out.flush()
                if out.end.dirty or O.child_wrote(out.end):
                    O.switch()
                self.end.dirty = True
                count = self.c_write(text)
                if self.fresh and ("\n" in text or "\r" in text):
                    self.fresh = False
                    self.flush()
        finally:
            release()
        if not O.awake:
            O.wake()
        return count


class Output:
    """`O`: both streams, the lock, the borders, the flusher."""

    def __init__(self):
        self.lock = RLock()
        self.channel = None
        self.nonce = b""
        self.number = 0
        self.out = self.err = None
        self.awake = False  # the flusher is ticking
        self.alarm = None  # the lock the flusher sleeps on in quiet times
        self.pause = None  # … and between two ticks
        self.children = False  # the cell has started child processes
        self.threaded = False  # threads other than the main one and ours may be alive
        self.threads = 0  # threads of our own that Python counts
        self.held = None  # a result frame that waits to share a write with `done`
        self.half_lines = {}  # (stream, thread id) -> (cell, text) of threads of older cells

    def open(self, channel, nonce, high):
        """Make the two streams. `high` gives a private duplicate of an fd."""
        codecs.register_error(LENIENT, _lenient)
        self.channel = channel
        self.nonce = nonce
        self.out = Out(high(1), 1, "<stdout>")
        self.err = Err(high(2), 2, "<stderr>")
        self.out.end.other = self.err.end
        self.err.end.other = self.out.end
        self.out.watch()
        self.err.watch()
        sys.stdout = sys.__stdout__ = self.out.text
        sys.stderr = sys.__stderr__ = self.err.text

    # Borders

    def border(self, force=False):
        """Write a border if there is anything to order; its number, or 0. Lock held, flushed."""
        out, err = self.out.end, self.err.end
        if (
            not force
            and not out.dirty
            and not err.dirty
            and ioctl is not None
            and self._is_empty(out._fd)
            and self._is_empty(err._fd)
        ):
            return 0
        self.number = number = self.number + 1
        mark = self.nonce + number.to_bytes(8, "little")
        write_all(out._fd, mark)
        write_all(err._fd, mark)
        out.dirty = err.dirty = False
        return number

    @staticmethod
    def _is_empty(fd):
        try:
            return ioctl(fd, _FIONREAD, _NONE_WAITING) == _NONE_WAITING
        except OSError:
            return False

    def child_wrote(self, end):
        """May a child of this cell have text in that pipe, which comes before what we write now?"""
        return self.children and (ioctl is None or not self._is_empty(end._fd))

    def child_starts(self):
        """What was printed so far comes before what the child will say, on either stream."""
        hold()
        try:
            with self.lock:
                self.children = True
                self.flush()
                self.send_held()
                if self.out.end.dirty or self.err.end.dirty:
                    self.switch()
        finally:
            release()

    def switch(self, cell=None):
        """A border without a frame of its own: between streams, or between cells."""
        if self.held is not None:
            self.send_held()
        number = self.border(True)
        if cell is None:
            cell = S.cell
        self.channel.write(b'{"t":"border","cell":%s,"n":%d}\n' % (_id(cell), number))

    def flush(self):
        """Both buffers to the pipes. What waits for stdout was always written after what waits for
        stderr, so stderr goes first. Lock held."""
        self.err.flush()
        self.out.flush()

    def flush_now(self):
        """`flush` for callers without the lock."""
        hold()
        try:
            with self.lock:
                self.flush()
                if self.held is not None:
                    self.send_held()
        finally:
            release()

    def send(self, frame, payloads=()):
        """Send an encoded frame (bytes without the closing brace) in order with the text."""
        if S.forked:
            return
        hold()
        try:
            with self.lock:
                self.flush()
                number = self.border()
                held, self.held = self.held, None
                if held is None:
                    held = frame
                    frame = b"}\n"
                else:
                    # No text came since, so one border before both is enough.
                    frame = b"}\n" + frame + b"}\n"
                if number:
                    held += b',"n":%d' % number
                self.channel.write(held + frame, payloads)
        finally:
            release()

    def hold_frame(self, frame):
        """Keep a frame back until something else is written; `done` usually follows at once and a
        second write (and waking the host twice) would be the dearest part of a small cell."""
        if S.forked:
            return
        hold()
        try:
            with self.lock:
                self.flush()
                if self.held is not None:
                    self.send_held()
                self.held = frame
        finally:
            release()

    def send_held(self):
        """Send the frame that was kept back. Lock held."""
        held, self.held = self.held, None
        if held is not None:
            number = self.border()
            self.channel.write(held + (b',"n":%d}\n' % number if number else b"}\n"))

    def send_plain(self, frame):
        """Send a frame that has no place among text (hello, replies)."""
        hold()
        try:
            with self.lock:
                self.send_held()
                self.channel.write(frame + b"}\n")
        finally:
            release()

    # The flusher

    def wake(self):
        """Text is waiting in a buffer: see that it leaves within a tick."""
        if self.awake:
            return
        self.awake = True
        if self.alarm is None:
            self.alarm, self.pause = allocate_lock(), allocate_lock()
            self.alarm.acquire()
            self.pause.acquire()
            try:
                start_new_thread(self._flusher, (self.alarm, self.pause))
            except RuntimeError:  # the interpreter is going down
                self.alarm = None
                self.awake = False
                self.flush_now()
                return
        self.alarm.release()

    def _flusher(self, alarm, pause):
        # Said here and not by who starts us: Python counts a thread only once it runs, and one that is
        # subtracted before it is counted would hide a thread of the user's.
        if self.alarm is alarm:
            self.threads = 1
        lock, out, err = self.lock, self.out, self.err
        while True:
            alarm.acquire()
            while self.alarm is alarm:
                before = out.end.written + err.end.written
                pause.acquire(True, TICK)
                with lock:
                    self.flush()
                    if self.half_lines:
                        self._flush_half_lines()
                if out.end.written + err.end.written == before:
                    break
            if self.alarm is not alarm:
                if self.alarm is None:  # else the next one is there and counts
                    self.threads = 0
                return
            out.fresh = err.fresh = True
            out.watch()
            self.awake = False
            with lock:
                self.flush()

    def stop_flusher(self):
        """End the thread; the next text starts it again. (From 3.12 on Python warns when a process
        with more than one thread forks; the user must not be warned because of us.)"""
        alarm = self.alarm
        if alarm is None:
            return
        self.alarm = None
        self.pause.release()
        if not self.awake:
            alarm.release()
        for _ in range(200):
            if not self.threads and _os_threads() <= 1 + _count():
                break
            sleep(0.0002)
        self.threads = 0
        self.awake = False
        self.out.fresh = self.err.fresh = True
        self.out.watch()

    # Threads, and those of older cells

    def thread_starts(self):
        """From now on writes take turns."""
        if not S.forked:
            self.threaded = True
            self.out.watch()

    def cell_of_thread(self):
        """The cell that started the thread we are in; the current one if nobody knows."""
        threading = sys.modules.get("threading")
        if threading is None:
            return S.cell
        try:
            thread = threading._active.get(get_ident())
            return thread.__dict__.get("_cellwright_cell", S.cell)
        except AttributeError:
            return S.cell

    def foreign_write(self, stream, cell, text):
        """Text of a thread that an older cell started: whole lines, between two borders."""
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not %s" % type(text).__name__)
        key = (stream, get_ident())
        with self.lock:
            waiting = self.half_lines.pop(key, None)
            whole = text if waiting is None else waiting[1] + text
            cut = whole.rfind("\n") + 1
            if len(whole) > 8192:
                cut = len(whole)
            if cut < len(whole):
                self.half_lines[key] = (cell, whole[cut:])
            if cut:
                self._bracket(stream, cell, whole[:cut])
        if cut < len(whole):
            self.wake()
        return len(text)

    def _flush_half_lines(self):
        waiting, self.half_lines = self.half_lines, {}
        for (stream, _), (cell, text) in waiting.items():
            self._bracket(stream, cell, text)

    def _bracket(self, stream, cell, text):
        self.flush()
        self.switch(cell)
        stream.c_write(text)
        stream.flush()
        self.switch()

    # Around cells

    def begin_cell(self):
        """Before `started`: look which streams are ours still, and whether threads are alive."""
        if self.half_lines:
            with self.lock:
                self._flush_half_lines()
        self.children = False
        self.threaded = threaded = _count() > self.threads
        if threaded:
            self.out.watch()
        for name, stream in (("stdout", self.out), ("stderr", self.err)):
            current = getattr(sys, name, None)
            if current is stream.text:
                continue
            if current is None or _is_broken(current):
                setattr(sys, name, stream.text)

    def after_fork_in_child(self):
        """The child writes whole lines at once; channel and borders are the parent's."""
        self.lock = RLock()
        self.alarm = None
        self.awake = True
        self.threads = 0
        self.threaded = False
        self.held = None
        self.half_lines = {}
        self.out.unwatch()
        for stream in (self.out, self.err):
            stream.end.dirty = False
            try:
                stream.text.reconfigure(line_buffering=True)
            except ValueError:
                pass


def _os_threads():
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 0


def _is_broken(stream):
    try:
        return bool(stream.closed)
    except AttributeError:
        return False
    except Exception:
        return True


def _id(cell):
    if type(cell) is int:
        return b"%d" % cell
    from .channel import dumps, utf8

    return utf8(dumps(cell))


O = Output()  # noqa: E741
