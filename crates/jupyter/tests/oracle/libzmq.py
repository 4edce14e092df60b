"""A kernel made of bare ZeroMQ sockets, that does what it is told.

usage: libzmq.py [ipc-stem] [option ...]       options: pub, ping

It says on its standard output where it is, as a connection file.
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


def socket(kind, number):
    made = context.socket(kind)
    made.sndhwm = made.rcvhwm = 0
    made.linger = 20_000
    if "ping" in options:
        made.setsockopt(zmq.HEARTBEAT_IVL, 50)
        made.setsockopt(zmq.HEARTBEAT_TIMEOUT, 200)
    if stem:
        made.bind(f"ipc://{stem}-{number}")
        return made, number
    return made, made.bind_to_random_port("tcp://127.0.0.1")


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


def tell(number, text):
    """Tells a number. Signed by hand: the library would take half a minute for 100 000."""
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
    wanted = message["header"]["msg_type"]
    if wanted == "echo":
        session.send(
            on, "echoed", content, parent=message, ident=idents, buffers=message["buffers"]
        )
    elif wanted == "tell":
        for number in range(content["count"]):
            tell(number, b"x" * content["size"])
        session.send(on, "told", {}, parent=message, ident=idents)
    elif wanted == "large":
        session.send(iopub, "large", {}, ident=b"large", buffers=[b"x" * content["size"]])
        session.send(on, "told", {}, parent=message, ident=idents)
    elif wanted == "ask":
        session.send(stdin, "input_request", content, parent=message, ident=idents)
        _, answer = session.recv(stdin, mode=0)
        session.send(on, "told", answer["content"], parent=message, ident=idents)
    elif wanted == "end":
        session.send(on, "ended", {}, parent=message, ident=idents)
        session.send(iopub, "ended", {}, ident=b"ended")
        return False
    elif wanted == "last":
        # Heard although its client has gone at once.
        print(json.dumps(content), sum(map(len, message["buffers"])), flush=True)
        return False
    return True


poller = zmq.Poller()
for one in (shell, control, heart):
    poller.register(one, zmq.POLLIN)
going = True
while going:
    for ready, _ in poller.poll():
        if ready is heart:
            heart.send_multipart(heart.recv_multipart())
        else:
            going = serve(ready) and going
for one in (shell, iopub, stdin, control, heart):
    one.close()
context.term()
