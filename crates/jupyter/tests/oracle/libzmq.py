"""A kernel made of plain libzmq sockets that executes simple commands.

usage: libzmq.py [ipc-stem] [option ...]       options: pub, ping

It prints its connection file to stdout.
"""

import hmac
import json
import sys

import zmq
from jupyter_client.session import Session

KEY = "a key that is a key"
DELIMITER = b"<IDS|MSG>"
options = sys.argv[1:]
stem = next((option for option in options if "/" in option), None)

context = zmq.Context()
session = Session(key=KEY.encode())


def socket(socket_type, number):
    zmq_socket = context.socket(socket_type)
    zmq_socket.sndhwm = zmq_socket.rcvhwm = 0
    zmq_socket.linger = 20_000
    if "ping" in options:
        zmq_socket.setsockopt(zmq.HEARTBEAT_IVL, 50)
        zmq_socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 200)
    if stem:
        zmq_socket.bind(f"ipc://{stem}-{number}")
        return zmq_socket, number
    return zmq_socket, zmq_socket.bind_to_random_port("tcp://127.0.0.1")


shell, shell_port = socket(zmq.ROUTER, 1)
iopub, iopub_port = socket(zmq.PUB if "pub" in options else zmq.XPUB, 2)
stdin, stdin_port = socket(zmq.ROUTER, 3)
control, control_port = socket(zmq.ROUTER, 4)
heart, hb_port = socket(zmq.REP, 5)
print(
    json.dumps(
        {
            "transport": "ipc" if stem else "tcp",
            "ip": stem or "127.0.0.1",
            "shell_port": shell_port,
            "iopub_port": iopub_port,
            "stdin_port": stdin_port,
            "control_port": control_port,
            "hb_port": hb_port,
            "key": KEY,
        }
    ),
    flush=True,
)


def publish(number, text):
    """Publishes a number. Signed by hand: `Session` would take half a minute for 100 000."""
    parts = [
        b'{"msg_id":"%d","msg_type":"stream","session":"s","username":"u"}' % number,
        b"{}",
        b"{}",
        b'{"number":%d,"text":"%s"}' % (number, text),
    ]
    signature = hmac.new(KEY.encode(), b"".join(parts), "sha256").hexdigest().encode()
    iopub.send_multipart([b"stream", DELIMITER, signature, *parts])


def serve(on):
    idents, message = session.recv(on, mode=0)
    content = message["content"]
    msg_type = message["header"]["msg_type"]
    if msg_type == "echo":
        session.send(
            on, "echoed", content, parent=message, ident=idents, buffers=message["buffers"]
        )
    elif msg_type == "publish":
        for number in range(content["count"]):
            publish(number, b"x" * content["size"])
        session.send(on, "done", {}, parent=message, ident=idents)
    elif msg_type == "large":
        session.send(iopub, "large", {}, ident=b"large", buffers=[b"x" * content["size"]])
        session.send(on, "done", {}, parent=message, ident=idents)
    elif msg_type == "ask":
        session.send(stdin, "input_request", content, parent=message, ident=idents)
        _, answer = session.recv(stdin, mode=0)
        session.send(on, "done", answer["content"], parent=message, ident=idents)
    elif msg_type == "end":
        session.send(on, "ended", {}, parent=message, ident=idents)
        session.send(iopub, "ended", {}, ident=b"ended")
        return False
    elif msg_type == "last":
        # Arrives although its client closes at once.
        print(json.dumps(content), sum(map(len, message["buffers"])), flush=True)
        return False
    return True


poller = zmq.Poller()
for one in (shell, control, heart):
    poller.register(one, zmq.POLLIN)
running = True
while running:
    for ready, _ in poller.poll():
        if ready is heart:
            heart.send_multipart(heart.recv_multipart())
        else:
            running = serve(ready) and running
for one in (shell, iopub, stdin, control, heart):
    one.close()
context.term()
