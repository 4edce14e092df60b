"""The child of the bare pipe loop: reads a cell (a line with its length, then so many bytes), gives
it to `eval` and answers the same way with what it printed and its value. Nothing else: no errors, no
statements, no order of outputs."""

import io
import os
import sys

names = {}
cells = sys.stdin.buffer

while length := cells.readline():
    code = cells.read(int(length)).decode()
    sys.stdout = printed = io.StringIO()
    value = eval(code, names)
    if value is not None:
        print(repr(value))
    answer = printed.getvalue().encode()
    os.write(1, b"%d\n%s" % (len(answer), answer))
