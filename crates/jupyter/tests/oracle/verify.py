"""Decodes messages with `jupyter_client`. Reads a JSON list of hexadecimal frames per line, and writes a JSON line for
each: the message or the error.

usage: verify.py KEY
"""

import json
import sys

from jupyter_client.session import Session

session = Session(key=sys.argv[1].encode())
for line in sys.stdin:
    frames = [bytes.fromhex(frame) for frame in json.loads(line)]
    try:
        idents, rest = session.feed_identities(frames)
        message = session.deserialize(rest)
        answer = {
            "idents": [ident.hex() for ident in idents],
            "header": message["header"],
            "parent": message["parent_header"],
            "metadata": message["metadata"],
            "content": message["content"],
            "buffers": [bytes(buffer).hex() for buffer in message["buffers"]],
        }
    except ValueError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer, default=lambda value: value.isoformat()), flush=True)
