"""Writes golden.json: messages signed by `jupyter_client`.

usage: golden.py > golden.json      (run once; the file is committed)
"""

import json
import sys
import warnings
from datetime import datetime, timezone

from jupyter_client.session import DELIM, Session

KEY = b"2f9c7c9e-5a0f4a1f6d5b7e0c1d2e3f40"
SESSION = "0a1b2c3d-4e5f60718293a4b5c6d7e8f9"
DATE = datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=timezone.utc)

warnings.simplefilter("ignore")
session = Session(key=KEY, session=SESSION, username="jürgen 🙂")


def header(msg_type, number, **more):
    made = session.msg_header(msg_type)
    return {**made, "msg_id": f"{SESSION}_{number}", "date": DATE, **more}


def case(name, content, *, parent={}, metadata=None, buffers=(), ident=None, **more):
    number = len(cases)
    message = {
        "header": header(more.pop("msg_type", "execute_request"), number, **more),
        "parent_header": parent,
        "metadata": metadata or {},
        "content": content,
    }
    frames = session.serialize(message, ident=ident) + list(buffers)
    assert DELIM in frames
    cases.append(
        {
            "name": name,
            "frames": [frame.hex() for frame in frames],
            "idents": len(frames[: frames.index(DELIM)]),
            "header": json.loads(frames[frames.index(DELIM) + 2]),
            "parent": json.loads(frames[frames.index(DELIM) + 3]),
            "content": json.loads(
                frames[frames.index(DELIM) + 5].decode("utf8", errors="replace")
            ),
            "buffers": len(buffers),
        }
    )


cases = []
case("plain", {"code": "1 + 1", "silent": False})
case("unicode", {"code": "grüße 🙂 \u2028 \x00 \x1b[31m \"\\", "é": "ß"})
case("empty content", {})
case("content that is null", None)
case("content that is a list", b'[1,null,"x"]')
case("metadata", {}, metadata={"cellId": "a-1", "nested": {"deep": [1.5, True, None]}})
case("buffers", {}, buffers=[b"", b"\x00\xff" * 20, b"<IDS|MSG>", b"x" * 300])
case("identities", {}, ident=[b"stream.stdout", b"\x00\x80\xfe"])
case("a topic", {}, ident=b"kernel.0a1b.status", msg_type="status")
case("a parent", {}, parent=header("execute_request", 99))
case(
    "a parent with a parent",
    {},
    parent={**header("execute_request", 98), "parent": header("comm_open", 97), "x": [{}]},
)
case("a parent that is null", {"a": 1}, parent=None)
case("a subshell", {}, subshell_id="a0-b1")
case("a subshell that is null", {}, subshell_id=None)
case("a date that is null", {}, date=None)
case("a date that is a number", {}, date=1709251199)
case("a date without a zone", {}, date="2024-02-29T23:59:59")
case("no user", {}, username=None)
case("more in the header", {}, extra={"a": [1, 2]}, version="5.4")
case("bytes that are no text", {"name": "stdout", "text": "a\udcffb"}, msg_type="stream")
case("numbers", {"a": 1.5e300, "b": -0.0, "c": 2**70, "d": 0.1})
case("long", {"text": "x" * 2000}, msg_type="stream")

json.dump({"key": KEY.decode(), "messages": cases}, sys.stdout, indent=1)
print()
