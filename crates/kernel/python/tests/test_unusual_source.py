"""Unusual source text: very large, with NUL, surrogates, other line ends, tabs, BOM."""

import time

import pytest
from host import error, result, status


@pytest.mark.parametrize(
    "code, shown",
    [
        ("x = 1\r\ny = 2\r\nx + y\r\n", "3"),
        ("x = 1\rx", "1"),
        ("\ufeffx = 4\nx", "4"),
        ("if True:\n\tx = 5\nx", "5"),
        ("\fx = 6\nx", "6"),
        ("x = 7\n\f\nx", "7"),
        ("  x = 8\n  x", "8"),
        ("\n\n\n9", "9"),
        ("'ä€😀'", "'ä€😀'"),
        ("名前 = 1\n名前", "1"),
        ("x = '\u2028'\nlen(x)", "1"),
        ("# -*- coding: latin-1 -*-\n'ä'", "'ä'"),
        ("'''a\r\nb'''", "'a\\nb'"),
    ],
)
def test_unusual_but_valid_source(host, code, shown):
    events = host.run(code)
    assert status(events) == "ok", error(events)
    assert result(events) == shown


def test_nul(host):
    for code in ("x = 1\0", "x = '\0'", "%pwd\n\0", "\0"):
        failure = error(host.run(code))
        assert (
            failure["ename"] in ("ValueError", "SyntaxError") and "null byte" in failure["evalue"]
        )
    assert result(host.run("1")) == "1"


def test_lone_surrogates(host):
    failure = error(host.run("x = 1\ny = '\ud800'"))
    assert failure["ename"] == "SyntaxError" and "line 2" in failure["traceback"][0]
    failure = error(host.run("\udfff"))
    assert failure["ename"] == "SyntaxError"
    assert status(host.run("!echo \ud800")) in ("ok", "error")
    assert result(host.run("1")) == "1"


def test_deep_code(host):
    for code in ("(" * 5000 + ")" * 5000, "-" * 100000 + "1", "x" + ".a" * 50000):
        events = host.run(code)
        assert status(events) == "error"
    assert result(host.run("1")) == "1"


def test_large_source(host):
    start = time.monotonic()
    assert result(host.run("# " + "c" * 20_000_000 + "\n5", timeout=60)) == "5"
    assert result(host.run("s = '" + "y" * 20_000_000 + "'\nlen(s)", timeout=60)) == "20000000"
    assert result(host.run("# c\n" * 2_000_000 + "6", timeout=60)) == "6"
    assert time.monotonic() - start < 40


def test_long_line(host):
    assert result(host.run("x = [" + "1," * 100_000 + "]\nlen(x)", timeout=60)) == "100000"


def test_many_cells(host):
    for i in range(300):
        assert result(host.run("%d" % i)) == str(i)
    assert error(host.run("1/0"))["traceback"][1] == "  Cell In[301], line 1, in <module>"
