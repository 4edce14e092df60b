"""The child of the bare pipe loop: reads a cell (a line with its length, then the bytes), passes it to
`eval`, and returns the printed text and the value in the same form. It has no errors, no statements and
no order of outputs."""

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
