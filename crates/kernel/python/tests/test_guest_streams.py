"""stdout and stderr of a kernel of ours: as IPython's own has them, only quicker."""

import pytest
from kernels import expression, request

pytest.importorskip("jupyter_client")

# A client that is slower than the kernel would else have some dropped.
LIFT = """
iopub = get_ipython().kernel.iopub_thread
iopub.schedule(lambda: setattr(iopub.socket, 'sndhwm', 0))
"""


def come_in(kernel):
    """Have us come in, as the host does it."""
    entered = kernel.run(request("enter"), True, expression("between_cells"))
    assert entered.error is None
    assert entered.content["user_expressions"]["cellwright"]["status"] == "ok"


def heard(reply):
    """What was put out, streams joined as long as nothing comes between."""
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


def is_ours(kernel, name):
    return kernel.value("getattr(__import__('sys').stdout.%s, 'cellwright', False)" % name)


FLOOD = """
import sys
for n in range(2000):
    print('o', n, flush=True)
    if n % 10 == 0:
        print('e', n, file=sys.stderr, flush=True)
    if n % 7 == 0:
        print('unflushed', n)
        display(n)
"""


def test_a_flood_of_flushes_keeps_its_order(start):
    kernel = start()
    kernel.run(LIFT)
    theirs = heard(kernel.run(FLOOD))
    come_in(kernel)
    assert is_ours(kernel, "flush") and is_ours(kernel, "write")
    assert heard(kernel.run(FLOOD)) == theirs


WAITS = """
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


def test_only_of_a_flood_some_flushes_do_not_wait(start):
    kernel = start()
    come_in(kernel)
    kernel.run(WAITS)
    few, many = kernel.value("[few, many]")
    assert few >= 5 and many < 2000


def test_what_is_printed_is_sent_soon_in_a_kernel_of_ours(start):
    intervals = "[s.flush_interval for s in (__import__('sys').stdout, __import__('sys').stderr)]"
    kernel = start()
    theirs = kernel.value(intervals)
    kernel.call("enter", front=False)
    assert kernel.value(intervals) == theirs
    kernel.run("import sys; sys.stderr.flush_interval = 0.001")
    kernel.call("leave", front=False)
    kernel.call("enter", front=True)
    out, err = kernel.value(intervals)
    assert out < min(theirs) and err == 0.001
    # Nobody flushes, and the cell goes on.
    said = "import time; print('first', end=''); time.sleep(0.5); print('second', end='')"
    texts = [content["text"] for kind, content in kernel.run(said).events if kind == "stream"]
    assert texts == ["first", "second"]


SIZES = """
import sys
out, intervals = sys.stdout, []
def say(size):
    with out._buffer_lock:  # and no other thread sends some of it
        out.write('x' * size)
        out._flush()
        intervals.append(out.flush_interval)
for size in (1, 50_000, 200_000, 50_000_000, 1_000_000, 1):
    say(size)
out.flush_interval = 0.05
say(2_000_000)
"""


def test_a_flood_is_sent_in_larger_pieces(start):
    kernel = start()
    come_in(kernel)
    assert kernel.run(SIZES).error is None
    few, some, flood, most, more, over, wanted = kernel.value("intervals")
    # Nobody reads as fast as that.
    assert few == some == over == 0.02
    assert flood == 0.1 and more == 0.04 and most == 0.02
    assert wanted == 0.05


LARGE = """
import sys
text = ''.join('line %d é\\n' % n for n in range(400_000))
with sys.stdout._buffer_lock:  # and no other thread sends some of it
    sys.stdout.write(text)
    sys.stdout._flush()
"""
HOOKED = """
taken = []
def take(message):
    taken.append(message['content']['text'])
sys.stdout.register_hook(take)
try:
    with sys.stdout._buffer_lock:
        sys.stdout.write(text)
        sys.stdout._flush()
finally:
    sys.stdout.unregister_hook(take)
"""


def test_what_is_much_at_once_comes_in_pieces(start):
    kernel = start()
    kernel.run(LIFT)
    theirs = kernel.run(LARGE)
    come_in(kernel)
    ours = kernel.run(LARGE)
    assert ours.text == theirs.text and len(ours.text) > 5_000_000
    assert len([kind for kind, _ in theirs.events if kind == "stream"]) == 1
    assert max(len(c["text"]) for kind, c in ours.events if kind == "stream") == 2_000_000


def test_who_hooks_into_messages_gets_all_of_it(start):
    kernel = start()
    come_in(kernel)
    kernel.run(LARGE)
    assert kernel.run(HOOKED).error is None
    assert kernel.value("taken == [text]")


# Writing


ODD = """
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


def test_what_is_odd_is_written_as_ever(start):
    kernel = start()
    theirs = kernel.run(ODD)
    assert theirs.error is None
    come_in(kernel)
    ours = kernel.run(ODD)
    assert ours.error is None
    assert ours.said("stdout") == theirs.said("stdout")
    assert ours.said("stderr") == theirs.said("stderr") == "'echoed\\n'\n7\n"


TASK = """
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
BESIDE = """
beside = asyncio.ensure_future(task())
for n in range(3):
    print('by its cell', n)
    await asyncio.sleep(0)
"""
AFTER = """
for n in range(50):
    print('by the next cell', n)
    await asyncio.sleep(0)
turn.set()
over.wait()
await beside
"""


def test_each_cell_has_its_own_text(start):
    def said(kernel):
        return [heard(kernel.run(code)) for code in (TASK, BESIDE, AFTER)]

    kernel = start()
    theirs = said(kernel)
    come_in(kernel)
    assert said(kernel) == theirs
    (stream, text), = theirs[2]
    assert "by the next cell 49\n" in text and "by the task" not in text


COUNTED = """
import sys
class Header(dict):
    asked = 0
    def items(self):
        Header.asked += 1
        return super().items()
sys.stdout.parent_header = Header(sys.stdout.parent_header)
for n in range(500): print(n)
"""


def test_the_header_of_a_cell_is_not_looked_at_for_every_write(start):
    kernel = start()
    kernel.run(COUNTED)
    assert kernel.value("Header.asked") >= 1000
    come_in(kernel)
    text = "".join("%d\n" % n for n in range(500))
    assert kernel.run(COUNTED).text == text
    assert kernel.value("Header.asked") < 100


STRANGE = """
import io, sys
class Other(type(sys.stdout)):
    def write(self, text): return super().write(text.upper())
sys.stdout = Other(sys.stdout.session, sys.stdout.pub_thread, 'stdout', watchfd=False)
sys.stderr = io.StringIO()
"""


def test_streams_of_somebody_else_stay_as_they_are(start):
    kernel = start()
    kernel.run(STRANGE)
    come_in(kernel)
    assert not is_ours(kernel, "write")
    assert kernel.run("print('loud'); print('kept', file=sys.stderr)").text == "LOUD\n"
    assert kernel.value("sys.stderr.getvalue()") == "kept\n"


def test_a_kernel_that_is_not_ours_keeps_its_own(start):
    kernel = start()
    kernel.run(request("enter", front=False), True, expression("between_cells"))
    assert not any(is_ours(kernel, name) for name in ("write", "flush", "_flush"))
