"""input(), sys.stdin, getpass: refused, or requested from the host."""

import pytest
from host import error, filter_events, kinds, result, status


@pytest.mark.parametrize(
    "code, prompt",
    [
        ("input('name? ')", "name? "),
        ("input()", ""),
        ("import sys; sys.stdin.readline()", ""),
        ("import sys; sys.stdin.read()", ""),
        ("import sys; list(sys.stdin)", ""),
        ("import sys; sys.stdin.buffer.readline()", ""),
        ("import getpass; getpass.getpass('secret: ')", "secret: "),
    ],
)
def test_input_is_refused(host, code, prompt):
    events = host.run(code)
    assert status(events) == "error"
    assert kinds(events) == ["started", "refused", "error", "done"]
    assert filter_events(events, "refused")[0]["prompt"] == prompt
    failure = error(events)
    assert failure["ename"] == "StdinNotImplementedError"
    assert failure["evalue"] == (
        "input() was called (prompt: %r) but no answer is available; "
        "set the value in code, or pass the answer with the call (`answer`)" % prompt
    )
    assert result(host.run("1")) == "1"


def test_refusal_is_an_eof_error(host):
    assert result(host.run("try:\n    input()\nexcept EOFError:\n    x = 'eof'\nx")) == "'eof'"


def test_input_is_requested(host):
    events = host.run("input('a? ') + input('b? ')", answers=["1", "zwei ä"])
    assert [e["prompt"] for e in filter_events(events, "input")] == ["a? ", "b? "]
    assert [e["password"] for e in filter_events(events, "input")] == [False, False]
    assert result(events) == "'1zwei ä'"


def test_second_input_request_is_refused(host):
    events = host.run("input('a? ')\ninput('b? ')", answers=["1"])
    assert status(events) == "error" and "'b? '" in error(events)["evalue"]


def test_password(host):
    events = host.run("from getpass import getpass\ngetpass()", answers=["pw"])
    assert filter_events(events, "input")[0]["password"] is True and result(events) == "'pw'"


def test_stdin_object(host):
    events = host.run(
        "import sys\n[next(sys.stdin), sys.stdin.readline(2), sys.stdin.readline()]",
        answers=["one", "two"],
    )
    assert result(events) == "['one\\n', 'tw', 'o\\n']"
    assert result(host.run("sys.stdin.read()", answers=["a", "b"])) == "'a\\nb\\n'"
    assert result(host.run("sys.stdin.isatty(), sys.stdin.fileno(), sys.stdin.readable()")) == (
        "(False, 0, True)"
    )


def test_text_precedes_the_input_request(host):
    events = host.run("print('before')\nx = input('q')\nprint('after')", answers=["a"])
    assert kinds(events) == ["started", "stdout", "input", "stdout", "done"]


def test_other_requests_wait_during_an_input_request(host):
    host.send(op="execute", id=1, code="input('?')", stdin="ask")
    host.wait_for(lambda e: e["t"] == "input")
    host.send(op="variables", id=50)
    host.send(op="answer", id=1, text="ok")
    host.wait_for(lambda e: e["t"] == "done")
    assert host.wait_for(lambda e: e["t"] == "reply")["id"] == 50
    assert result(host.events[:]) == "'ok'"


def test_input_in_a_thread_is_refused(host):
    events = host.run(
        "import threading\ncaught = []\ndef f():\n    try:\n        input('t')\n"
        "    except EOFError as e:\n        caught.append(str(e))\n"
        "t = threading.Thread(target=f); t.start(); t.join()\n'main thread' in caught[0]",
        answers=["x"],
    )
    assert result(events) == "True"


def test_children_have_an_empty_stdin(host):
    assert result(host.run("import subprocess\nsubprocess.run(['cat'], stdout=-1).stdout")) == "b''"
