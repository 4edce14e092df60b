"""The code that the suite `eval` runs. Every tool gets the same."""

from measure import BENCH

ONE = "print(1)"
TWO = "1+1"

LINES = """\
line = "x" * 99
for _ in range(1_000_000):
    print(line)
"""
LINES_BYTES = 100_000_000

FLUSHES = """\
for number in range(100_000):
    print(number, flush=True)
"""
FLUSHES_BYTES = sum(len(str(number)) + 1 for number in range(100_000))

PNG = b"\x89PNG\r\n\x1a\n"
PICTURE_SEED = 5
PICTURE = f"""\
import random
noise = random.Random({PICTURE_SEED}).randbytes(1_000_000)
class Picture:
    def _repr_png_(self):
        return {PNG!r} + noise * 50
display(Picture())
"""
PICTURE_BYTES = len(PNG) + 50_000_000

DEATH_NOTE = BENCH / "death"
DEATH = f"""\
import os, time
note = os.open({str(DEATH_NOTE)!r}, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
os.write(note, str(time.monotonic_ns()).encode())
os.kill(os.getpid(), 9)
"""

# What is written again and again: expressions for a list of pieces.
FLOODS = {
    "lines of 100 bytes": "[(b'x' * 99 + b'\\n') * 10_000]",
    "one line": "[b'y' * 1_000_000]",
    "binary noise": "[os.urandom(1_000_000) for _ in range(16)]",
    # Every piece begins or ends within a character.
    "UTF-8, cut within characters": "[text[:500_001], text[500_001:]]",
}
FLOOD_NOTE = BENCH / "flood"


def flood(pieces, amount):
    """Code that writes so many bytes and leaves their hash in a file."""
    return f"""\
import hashlib, itertools, os
text = ("ä€😀" * 111_112).encode()
written, left = hashlib.sha256(), {amount}
for piece in itertools.cycle({pieces}):
    piece = piece[:left]
    written.update(piece)
    left -= len(piece)
    while piece:
        piece = piece[os.write(1, piece):]
    if not left:
        break
with open({str(FLOOD_NOTE)!r}, "w") as note:
    note.write(written.hexdigest())
"""


def notebook(code):
    cell = {"cell_type": "code", "execution_count": None, "id": "one", "metadata": {},
            "outputs": [], "source": [code]}
    spec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": [cell], "metadata": {"kernelspec": spec}, "nbformat": 4, "nbformat_minor": 5}
