"""A Jupyter kernel whose cells are scripts that send any messages, valid or not.

    kernel.py CONNECTION_FILE [SCRIPT]

SCRIPT runs before the sockets are opened. It and the code of every cell are Python that runs in this
module: they call the functions below, or replace them. The kernel sends only what a script sends;
a well-behaved cell calls `begin()` first and `end()` last.

ZMTP is implemented here, so that every byte can be wrong.
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
SOCKET_TYPES = {"shell": b"ROUTER", "iopub": b"XPUB", "stdin": b"ROUTER", "control": b"ROUTER", "hb": b"REP"}
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
# Whether an interrupt has an effect: once in a cell, unless the cell sets it again.
interruptible = False


# Frames.

def encode_frame(data, more):
    if len(data) > 255:
        return struct.pack(">BQ", 2 | more, len(data)) + data
    return struct.pack("BB", more, len(data)) + data


def encode_message(frames):
    return b"".join(encode_frame(data, at + 1 < len(frames)) for at, data in enumerate(frames))


def raw(channel, data):
    """Sends bytes unchanged to all connections of a channel."""
    for connection in list(connections[channel]):
        try:
            connection.sendall(data)
        except OSError:
            connections[channel].remove(connection)


def sign(parts, key):
    return hmac.new(key, b"".join(parts), hashlib.sha256).hexdigest().encode()


def to_bytes(value):
    return value if isinstance(value, bytes) else json.dumps(value).encode()


def message(channel, msg_type, content, parent_header=None, key=None, header=None, buffers=()):
    """Returns the frames of a message."""
    if header is None:
        header = {"msg_id": uuid.uuid4().hex, "msg_type": msg_type, "session": "odd", "username": "odd",
                  "date": "2020-01-01T00:00:00Z", "version": "5.3"}
    parts = [to_bytes(header), parent if parent_header is None else to_bytes(parent_header), b"{}", to_bytes(content)]
    topic = [msg_type.encode()] if channel == "iopub" else []
    return topic + [b"<IDS|MSG>", sign(parts, KEY if key is None else key), *parts, *buffers]


def send(channel, msg_type, content, **options):
    frames = message(channel, msg_type, content, **options)
    raw(channel, encode_message(frames))
    return frames


# Messages of a kernel.

def out(text, name="stdout", **options):
    return send("iopub", "stream", {"name": name, "text": text}, **options)


def status(state, **options):
    return send("iopub", "status", {"execution_state": state}, **options)


def begin():
    status("busy")
    send("iopub", "execute_input", {"code": "", "execution_count": cells})


def reply(content=None, **options):
    content = {"status": "ok", "execution_count": cells} if content is None else content
    return send("shell", "execute_reply", content, **options)


def end(content=None):
    reply(content)
    status("idle")


def request_input(prompt, **options):
    # The client may not have connected to stdin yet.
    while not connections["stdin"]:
        time.sleep(0.001)
    send("stdin", "input_request", {"prompt": prompt, "password": False}, **options)


def info(content=None, **options):
    status("busy")
    send("shell", "kernel_info_reply", INFO if content is None else content, **options)
    status("idle")


def drop(*channels):
    """Closes channels and all their connections."""
    for channel in channels:
        listeners[channel].close()
        for connection in connections[channel]:
            connection.shutdown(socket.SHUT_RDWR)


def flood(channel, data, total):
    """Sends the same bytes repeatedly, `total` bytes in all."""
    many = max(1, 1_000_000 // len(data))
    for _ in range(total // (many * len(data)) + 1):
        raw(channel, data * many)


# Handlers of requests; scripts replace them.

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


def on_query(msg_type):
    send("shell", msg_type.replace("request", "reply"), {"status": "ok"})


def on_accept(channel, connection):
    handshake(channel, connection)


# Receiving.

def exactly(connection, count):
    data = bytearray()
    while len(data) < count:
        reading.wait()
        piece = connection.recv(min(count - len(data), 1 << 20))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)


def handshake(channel, connection):
    greeting = b"\xff" + bytes(7) + b"\x01\x7f\x03\x00" + MECHANISM.ljust(20, b"\0") + bytes(32)
    connection.sendall(greeting)
    exactly(connection, 64)
    socket_type = SOCKET_TYPES[channel]
    ready = b"\x05READY\x0bSocket-Type" + struct.pack(">I", len(socket_type)) + socket_type
    connection.sendall(struct.pack("BB", 4, len(ready)) + ready)


def receive(connection):
    """Returns the frames of the next message."""
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
                connection.sendall(encode_message(frames))
            elif channel == "iopub":
                continue
            else:
                dispatch(channel, frames)
    except (OSError, EOFError):
        connection.close()


def dispatch(channel, frames):
    header, content = frames[2], frames[5]
    msg_type = json.loads(header)["msg_type"]
    if channel == "stdin":
        answers.put(json.loads(content)["value"])
    elif msg_type == "shutdown_request":
        on_shutdown()
    elif msg_type == "interrupt_request":
        on_interrupt()
    else:
        requests.put((msg_type, header, content))


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


def handle(msg_type, header, content):
    global parent, cells, interruptible
    parent = header
    if msg_type == "kernel_info_request":
        return on_info()
    if msg_type != "execute_request":
        status("busy")
        on_query(msg_type)
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
        # An error in the script of the test.
        out("SCRIPT ERROR %r" % error)
        end()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, interrupted)
    exec(compile("".join(sys.argv[2:3]), "script", "exec"), globals())
    for channel in CHANNELS:
        listen(channel)
    while True:
        handle(*requests.get())
