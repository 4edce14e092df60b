"""Patched stdout and stderr of an owned IPython kernel: same text as unpatched, but faster."""

import os
import time

import pytest
from kernels import expression, request

pytest.importorskip("jupyter_client")

# Without this, messages to a client that is slower than the kernel are dropped.
LIFT_SEND_LIMIT = """
iopub = get_ipython().kernel.iopub_thread
iopub.schedule(lambda: setattr(iopub.socket, 'sndhwm', 0))
"""


def install(kernel):
    """Install as the host does."""
    entered = kernel.run(request("install"), True, expression("install_between_cells"))
    assert entered.error is None
    assert entered.content["user_expressions"]["cellwright"]["status"] == "ok"


def merged_outputs(reply):
    """Return the outputs in order, with adjacent text of one stream joined."""
    events = []
    for kind, content in reply.events:
        if kind == "stream":
            if events and events[-1][0] == content["name"]:
                events[-1][1] += content["text"]
            else:
                events.append([content["name"], content["text"]])
        elif kind == "display_data":
            events.append([kind, content["data"]["text/plain"]])
    return events


def is_patched(kernel, name):
    return kernel.evaluate("getattr(__import__('sys').stdout.%s, 'cellwright', False)" % name)


MANY_FLUSHES = """
import sys
for n in range(2000):
    print('o', n, flush=True)
    if n % 10 == 0:
        print('e', n, file=sys.stderr, flush=True)
    if n % 7 == 0:
        print('unflushed', n)
        display(n)
"""


def test_many_flushes_keep_their_order(start_kernel):
    kernel = start_kernel()
    kernel.run(LIFT_SEND_LIMIT)
    original = merged_outputs(kernel.run(MANY_FLUSHES))
    install(kernel)
    assert is_patched(kernel, "flush") and is_patched(kernel, "write")
    assert merged_outputs(kernel.run(MANY_FLUSHES)) == original


COUNT_WAITS = """
import threading
wait, waits = threading.Event.wait, []
def counted(self, *arguments):
    waits.append(self)
    return wait(self, *arguments)
threading.Event.wait = counted
for n in range(5): print(n, flush=True)
few = len(waits)
for n in range(3000): print(n, flush=True)
many = len(waits)
threading.Event.wait = wait
"""


def test_only_frequent_flushes_do_not_block(start_kernel):
    kernel = start_kernel()
    install(kernel)
    kernel.run(COUNT_WAITS)
    few, many = kernel.evaluate("[few, many]")
    assert few >= 5 and many < 2000


def test_owned_kernel_sends_text_sooner(start_kernel):
    intervals = "[s.flush_interval for s in (__import__('sys').stdout, __import__('sys').stderr)]"
    kernel = start_kernel()
    original = kernel.evaluate(intervals)
    kernel.call("install", owned=False)
    assert kernel.evaluate(intervals) == original
    kernel.run("import sys; sys.stderr.flush_interval = 0.001")
    kernel.call("uninstall", owned=False)
    kernel.call("install", owned=True)
    out, err = kernel.evaluate(intervals)
    assert out < min(original) and err == 0.001
    # The text arrives without a flush while the cell runs.
    code = "import time; print('first', end=''); time.sleep(0.5); print('second', end='')"
    texts = [content["text"] for kind, content in kernel.run(code).events if kind == "stream"]
    assert texts == ["first", "second"]


FLUSH_SIZES = """
import sys
out, intervals = sys.stdout, []
def write_and_flush(size):
    with out._buffer_lock:  # so that no other thread sends a part of it
        out.write('x' * size)
        out._flush()
        intervals.append(out.flush_interval)
for size in (1, 50_000, 200_000, 50_000_000, 1_000_000, 1):
    write_and_flush(size)
out.flush_interval = 0.05
write_and_flush(2_000_000)
"""


def test_flush_interval_grows_with_the_rate(start_kernel):
    kernel = start_kernel()
    install(kernel)
    assert kernel.run(FLUSH_SIZES).error is None
    small, moderate, flood, huge, large, small_again, chosen = kernel.evaluate("intervals")
    # 50 MB within one interval is faster than any reader, so the interval stays short.
    assert small == moderate == small_again == 0.02
    assert flood == 0.1 and large == 0.04 and huge == 0.02
    assert chosen == 0.05


LARGE_TEXT = """
import sys
text = ''.join('line %d é\\n' % n for n in range(400_000))
with sys.stdout._buffer_lock:  # so that no other thread sends a part of it
    sys.stdout.write(text)
    sys.stdout._flush()
"""
HOOKED_WRITE = """
recorded = []
def record(message):
    recorded.append(message['content']['text'])
sys.stdout.register_hook(record)
try:
    with sys.stdout._buffer_lock:
        sys.stdout.write(text)
        sys.stdout._flush()
finally:
    sys.stdout.unregister_hook(record)
"""


def test_large_text_is_split_into_messages(start_kernel):
    kernel = start_kernel()
    kernel.run(LIFT_SEND_LIMIT)
    original = kernel.run(LARGE_TEXT)
    install(kernel)
    patched = kernel.run(LARGE_TEXT)
    assert patched.text == original.text and len(patched.text) > 5_000_000
    assert len([kind for kind, _ in original.events if kind == "stream"]) == 1
    assert max(len(c["text"]) for kind, c in patched.events if kind == "stream") == 2_000_000


def test_message_hooks_receive_the_whole_text(start_kernel):
    kernel = start_kernel()
    install(kernel)
    kernel.run(LARGE_TEXT)
    assert kernel.run(HOOKED_WRITE).error is None
    assert kernel.evaluate("recorded == [text]")


# Writing


UNUSUAL_WRITES = """
import io, os, sys, warnings
warnings.simplefilter("ignore")  # there are threads where it forks
class Text(str): pass
out, err = sys.stdout, sys.stderr
print(out.write(Text('special ')), out.write('plain '), out.write(''))
for wrong in (b'bytes', None):
    try: out.write(wrong)
    except TypeError as error: print(error)
out.writelines(['of', ' lines\\n'])
thread, out.pub_thread = out.pub_thread, None
try: out.write('closed')
except ValueError as error: why = error
finally: out.pub_thread = thread
print(why)
out.echo = io.StringIO()
print('echoed')
echoed, out.echo = out.echo.getvalue(), None
print(repr(echoed), file=err)
print('é😀 \\x00')
child = os.fork()
if child == 0:
    out.pub_thread.schedule = lambda step: os._exit(7 if step == out._flush else 1)
    out.write('of a child')
    os._exit(2)
print(os.WEXITSTATUS(os.waitpid(child, 0)[1]), file=err)
"""


def test_unusual_writes_are_unchanged(start_kernel):
    kernel = start_kernel()
    original = kernel.run(UNUSUAL_WRITES)
    assert original.error is None
    install(kernel)
    patched = kernel.run(UNUSUAL_WRITES)
    assert patched.error is None
    assert patched.stream_text("stdout") == original.stream_text("stdout")
    assert patched.stream_text("stderr") == original.stream_text("stderr") == "'echoed\\n'\n7\n"


START_TASKS = """
import asyncio, threading
turn, over = threading.Event(), threading.Event()
def thread():
    turn.wait()
    print('by the thread')
    over.set()
async def task():
    for n in range(50):
        print('by the task', n)
        await asyncio.sleep(0)
threading.Thread(target=thread).start()
"""
RUN_WITH_TASK = """
beside = asyncio.ensure_future(task())
for n in range(3):
    print('by its cell', n)
    await asyncio.sleep(0)
"""
NEXT_CELL = """
for n in range(50):
    print('by the next cell', n)
    await asyncio.sleep(0)
turn.set()
over.wait()
await beside
"""


def test_text_is_attributed_to_its_cell(start_kernel):
    def outputs(kernel):
        return [
            merged_outputs(kernel.run(code)) for code in (START_TASKS, RUN_WITH_TASK, NEXT_CELL)
        ]

    kernel = start_kernel()
    original = outputs(kernel)
    install(kernel)
    assert outputs(kernel) == original
    ((stream, text),) = original[2]
    assert "by the next cell 49\n" in text and "by the task" not in text


COUNT_HEADER_READS = """
import sys
class Header(dict):
    reads = 0
    def items(self):
        Header.reads += 1
        return super().items()
sys.stdout.parent_header = Header(sys.stdout.parent_header)
for n in range(500): print(n)
"""


def test_header_is_not_read_for_every_write(start_kernel):
    kernel = start_kernel()
    kernel.run(COUNT_HEADER_READS)
    assert kernel.evaluate("Header.reads") >= 1000
    install(kernel)
    text = "".join("%d\n" % n for n in range(500))
    assert kernel.run(COUNT_HEADER_READS).text == text
    assert kernel.evaluate("Header.reads") < 100


REPLACE_STREAMS = """
import io, sys
class Other(type(sys.stdout)):
    def write(self, text): return super().write(text.upper())
sys.stdout = Other(sys.stdout.session, sys.stdout.pub_thread, 'stdout', watchfd=False)
sys.stderr = io.StringIO()
"""


def test_replaced_streams_are_not_patched(start_kernel):
    kernel = start_kernel()
    kernel.run(REPLACE_STREAMS)
    install(kernel)
    assert not is_patched(kernel, "write")
    assert kernel.run("print('loud'); print('kept', file=sys.stderr)").text == "LOUD\n"
    assert kernel.evaluate("sys.stderr.getvalue()") == "kept\n"


def test_attached_kernel_is_not_patched(start_kernel):
    kernel = start_kernel()
    kernel.run(request("install", owned=False), True, expression("install_between_cells"))
    assert not any(is_patched(kernel, name) for name in ("write", "flush", "_flush"))


# Ports


LISTENING_PORTS = """
import os
def listening_ports():
    inodes = set()
    for name in os.listdir('/proc/self/fd'):
        try: target = os.readlink('/proc/self/fd/' + name)
        except OSError: continue
        if target.startswith('socket:['): inodes.add(target[8:-1])
    found = []
    for name in ('tcp', 'tcp6'):
        try: lines = open('/proc/self/net/' + name).read().splitlines()[1:]
        except OSError: continue
        fields = [line.split() for line in lines]
        found += [row[1] for row in fields if row[3] == '0A' and row[9] in inodes]
    return found
"""

FORKED_CHILD = """
import os, sys, warnings
warnings.simplefilter("ignore")  # there are threads where it forks
child = os.fork()
if child == 0:
    print('of a child')
    print('of its stderr', file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/net/tcp"), reason="needs /proc")
def test_owned_kernel_listens_on_no_port(start_kernel):
    kernel = start_kernel()
    kernel.run(LISTENING_PORTS)
    assert kernel.evaluate("len(listening_ports())") == 1
    original = kernel.run(FORKED_CHILD)
    install(kernel)
    deadline = time.monotonic() + 10
    while kernel.evaluate("listening_ports()") != []:
        assert time.monotonic() < deadline, "the port stays open"
    install(kernel)
    reply = kernel.run(FORKED_CHILD)
    for name in ("stdout", "stderr"):
        assert sorted(reply.stream_text(name).split("\n")) == sorted(
            original.stream_text(name).split("\n")
        )
    assert "of a child" in reply.text


def test_kernel_of_others_keeps_its_port(start_kernel):
    kernel = start_kernel()
    kernel.run(LISTENING_PORTS)
    kernel.call("ensure_installed", owned=False)
    ports = "hasattr(get_ipython().kernel.iopub_thread._setup_pipe_out, 'cellwright')"
    assert kernel.evaluate(ports) is False
