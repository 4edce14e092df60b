"""A Jupyter kernel that does what its cells say, whether the protocol allows it or not.

    kernel.py CONNECTION_FILE [SCRIPT]

Both SCRIPT, which runs before the sockets are opened, and the code of every cell are Python that runs
in this module: they call what is below, or put something else in its place. Nothing is said that a
script does not say; `begin()` and `end()` are what a well-behaved cell has around it.

It speaks ZMTP by itself, so that every byte can be wrong.
"""

import hashlib
import hmac
import json
import os
import queue
import signal
import socket
import struct
import sys
import threading
import time
import uuid

CHANNELS = ["shell", "iopub", "stdin", "control", "hb"]
ROLES = {"shell": b"ROUTER", "iopub": b"XPUB", "stdin": b"ROUTER", "control": b"ROUTER", "hb": b"REP"}
MECHANISM = b"NULL"
INFO = {
    "status": "ok",
    "protocol_version": "5.3",
    "implementation": "odd",
    "implementation_version": "1",
    "banner": "",
    "language_info": {"name": "odd", "version": "7.1", "mimetype": "text/plain", "file_extension": ".odd"},
}

with open(sys.argv[1]) as file:
    CONNECTION = json.load(file)
KEY = CONNECTION["key"].encode()

requests = queue.Queue()
answers = queue.Queue()
listeners = {}
connections = {channel: [] for channel in CHANNELS}
reading = threading.Event()
reading.set()
cells = 0
parent = b"{}"
# Whether an interrupt is heeded: once in a cell, unless the cell sets it again.
interruptible = False


# Frames.

def frame(data, more):
    if len(data) > 255:
        return struct.pack(">BQ", 2 | more, len(data)) + data
    return struct.pack("BB", more, len(data)) + data


def bundle(frames):
    return b"".join(frame(data, at + 1 < len(frames)) for at, data in enumerate(frames))


def raw(channel, data):
    """Bytes as they are, to everybody on a channel."""
    for connection in list(connections[channel]):
        try:
            connection.sendall(data)
        except OSError:
            connections[channel].remove(connection)


def sign(parts, key):
    return hmac.new(key, b"".join(parts), hashlib.sha256).hexdigest().encode()


def written(value):
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def message(channel, kind, content, cause=None, key=None, header=None, buffers=()):
    """The frames of a message."""
    if header is None:
        header = {"msg_id": uuid.uuid4().hex, "msg_type": kind, "session": "odd", "username": "odd",
                  "date": "2020-01-01T00:00:00Z", "version": "5.3"}
    parts = [written(header), parent if cause is None else written(cause), b"{}", written(content)]
    topic = [kind.encode()] if channel == "iopub" else []
    return topic + [b"<IDS|MSG>", sign(parts, KEY if key is None else key), *parts, *buffers]


def send(channel, kind, content, **how):
    frames = message(channel, kind, content, **how)
    raw(channel, bundle(frames))
    return frames


# What a kernel says.

def out(text, name="stdout", **how):
    return send("iopub", "stream", {"name": name, "text": text}, **how)


def status(state, **how):
    return send("iopub", "status", {"execution_state": state}, **how)


def begin():
    status("busy")
    send("iopub", "execute_input", {"code": "", "execution_count": cells})


def reply(content=None, **how):
    content = {"status": "ok", "execution_count": cells} if content is None else content
    return send("shell", "execute_reply", content, **how)


def end(content=None):
    reply(content)
    status("idle")


def ask(prompt, **how):
    # Whoever is to be asked may have only just said hello.
    while not connections["stdin"]:
        time.sleep(0.001)
    send("stdin", "input_request", {"prompt": prompt, "password": False}, **how)


def info(content=None, **how):
    status("busy")
    send("shell", "kernel_info_reply", INFO if content is None else content, **how)
    status("idle")


def drop(*channels):
    """Closes channels, with everybody who is there."""
    for channel in channels:
        listeners[channel].close()
        for connection in connections[channel]:
            connection.shutdown(socket.SHUT_RDWR)


def flood(channel, data, total):
    """The same bytes again and again."""
    many = max(1, 1_000_000 // len(data))
    for _ in range(total // (many * len(data)) + 1):
        raw(channel, data * many)


# What it does when it is asked; scripts put other things here.

def on_info():
    info()


def on_interrupt():
    send("control", "interrupt_reply", {"status": "ok"})
    os.kill(os.getpid(), signal.SIGINT)


def on_shutdown():
    send("control", "shutdown_reply", {"status": "ok", "restart": False})
    os._exit(0)


def on_silent(code):
    reply({"status": "ok", "execution_count": cells, "user_expressions": {}})
    status("idle")


def on_question(kind):
    send("shell", kind.replace("request", "reply"), {"status": "ok"})


def on_accept(channel, connection):
    greet(channel, connection)


# How it hears.

def exactly(connection, count):
    data = bytearray()
    while len(data) < count:
        reading.wait()
        piece = connection.recv(min(count - len(data), 1 << 20))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


def greet(channel, connection):
    greeting = b"\xff" + bytes(7) + b"\x01\x7f\x03\x00" + MECHANISM.ljust(20, b"\0") + bytes(32)
    connection.sendall(greeting)
    exactly(connection, 64)
    kind = ROLES[channel]
    ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind
    connection.sendall(struct.pack("BB", 4, len(ready)) + ready)


def receive(connection):
    """The frames of the next message."""
    frames = []
    while True:
        flags = exactly(connection, 1)[0]
        length = struct.unpack(">Q", exactly(connection, 8))[0] if flags & 2 else exactly(connection, 1)[0]
        data = exactly(connection, length)
        if flags & 4:
            continue
        frames.append(data)
        if not flags & 1:
            return frames


def serve(channel, connection):
    try:
        on_accept(channel, connection)
        if channel != "hb":
            connections[channel].append(connection)
        while True:
            frames = receive(connection)
            if channel == "hb":
                connection.sendall(bundle(frames))
            elif channel == "iopub":
                continue
            else:
                heard(channel, frames)
    except (OSError, EOFError):
        connection.close()


def heard(channel, frames):
    header, content = frames[2], frames[5]
    kind = json.loads(header)["msg_type"]
    if channel == "stdin":
        answers.put(json.loads(content)["value"])
    elif kind == "shutdown_request":
        on_shutdown()
    elif kind == "interrupt_request":
        on_interrupt()
    else:
        requests.put((kind, header, content))


def listen(channel):
    port = CONNECTION[channel + "_port"]
    if CONNECTION["transport"] == "ipc":
        listener = socket.socket(socket.AF_UNIX)
        listener.bind("%s-%d" % (CONNECTION["ip"], port))
    else:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((CONNECTION["ip"], port))
    listener.listen()
    listeners[channel] = listener
    threading.Thread(target=accept, args=(channel, listener), daemon=True).start()


def accept(channel, listener):
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=serve, args=(channel, connection), daemon=True).start()


def interrupted(*_):
    global interruptible
    if interruptible:
        interruptible = False
        raise KeyboardInterrupt


def handle(kind, header, content):
    global parent, cells, interruptible
    parent = header
    if kind == "kernel_info_request":
        return on_info()
    if kind != "execute_request":
        status("busy")
        on_question(kind)
        return status("idle")
    content = json.loads(content)
    if content["silent"]:
        return on_silent(content["code"])
    cells += 1
    try:
        interruptible = True
        exec(compile(content["code"], "cell", "exec"), globals())
        interruptible = False
    except KeyboardInterrupt:
        failure = {"ename": "KeyboardInterrupt", "evalue": "", "traceback": []}
        send("iopub", "error", failure)
        end({"status": "error", "execution_count": cells, **failure})
    except Exception as error:
        interruptible = False
        # A mistake in the test.
        out("MISTAKE %r" % error)
        end()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, interrupted)
    exec(compile("".join(sys.argv[2:3]), "script", "exec"), globals())
    for channel in CHANNELS:
        listen(channel)
    while True:
        handle(*requests.get())
