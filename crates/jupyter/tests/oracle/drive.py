"""Drives a kernel with Jupyter's own client and says what is wrong with it.

usage: drive.py CONNECTION_FILE
"""

import sys
import threading

from jupyter_client import BlockingKernelClient

TIMEOUT = 30
# What the specification of messages asks for, by type.
REQUIRED = {
    "status": {"execution_state"},
    "stream": {"name", "text"},
    "execute_input": {"code", "execution_count"},
    "execute_result": {"data", "metadata", "execution_count"},
    "execute_reply": {"status", "execution_count"},
    "error": {"ename", "evalue", "traceback"},
    "input_request": {"prompt", "password"},
    "shutdown_reply": {"status", "restart"},
    "interrupt_reply": {"status"},
    "iopub_welcome": {"subscription"},
    "kernel_info_reply": {
        "status", "protocol_version", "implementation", "implementation_version",
        "language_info", "banner",
    },
}


def check(message, parent=None):
    """Asserts that it is a message as the specification has it."""
    header = message["header"]
    for name in ("msg_id", "msg_type", "session", "username", "version"):
        assert isinstance(header[name], str) and header[name], (name, header)
    # Session has made a datetime of it, if it is a date.
    assert not isinstance(header["date"], str), header["date"]
    assert header["date"].tzinfo is not None, header["date"]
    assert isinstance(message["metadata"], dict)
    missing = REQUIRED.get(header["msg_type"], set()) - set(message["content"])
    assert not missing, (header["msg_type"], missing)
    if parent is not None:
        assert message["parent_header"]["msg_id"] == parent, message
    return message


def connect(path):
    client = BlockingKernelClient(connection_file=path)
    client.load_connection_file()
    client.start_channels()
    client.wait_for_ready(timeout=TIMEOUT)
    return client


def run(client, code, answer=None):
    """What a cell tells: (type, content) from busy to idle, and its reply."""
    number = client.execute(code, allow_stdin=answer is not None)
    if answer is not None:
        question = check(client.get_stdin_msg(timeout=TIMEOUT), number)
        assert question["msg_type"] == "input_request"
        assert question["content"]["prompt"] == "name? ", question
        client.input(answer)
    reply = check(client.get_shell_msg(timeout=TIMEOUT), number)
    assert reply["msg_type"] == "execute_reply"
    told = []
    while True:
        message = client.get_iopub_msg(timeout=TIMEOUT)
        if message["parent_header"].get("msg_id") != number:
            check(message)
            continue
        check(message, number)
        told.append((message["msg_type"], message["content"]))
        if message["content"] == {"execution_state": "idle"}:
            break
    assert told[0] == ("status", {"execution_state": "busy"}), told
    assert told[1][0] == "execute_input", told
    assert told[1][1]["code"] == code
    return reply["content"], told[2:-1]


def text(told):
    assert all(kind == "stream" for kind, _ in told), told
    return "".join(content["text"] for _, content in told)


def ask(client):
    info = check(client.kernel_info(reply=True, timeout=TIMEOUT))
    assert info["content"]["implementation"] == "echo", info
    reply, told = run(client, "print grüße 🙂\n")
    assert reply["status"] == "ok", reply
    assert told == [("stream", {"name": "stdout", "text": "grüße 🙂\n"})], told
    reply, told = run(client, "ask name? ", answer="Zoë")
    assert text(told) == "Zoë", told
    reply, told = run(client, "anything else")
    assert told[0][0] == "execute_result", told
    assert told[0][1]["data"] == {"text/plain": "anything else"}
    reply, told = run(client, "fail badly")
    assert reply["status"] == "error" and reply["evalue"] == "badly", reply
    assert told[0][0] == "error", told
    # Every number in a message of its own.
    reply, told = run(client, "flood 1000")
    assert text(told) == "".join(f"{number}\n" for number in range(1000))


def interrupt(client):
    number = client.execute("wait")
    while client.get_iopub_msg(timeout=TIMEOUT)["msg_type"] != "execute_input":
        pass
    request = client.session.msg("interrupt_request", {})
    client.control_channel.send(request)
    answer = client.get_control_msg(timeout=TIMEOUT)
    check(answer, request["header"]["msg_id"])
    assert answer["msg_type"] == "interrupt_reply", answer
    reply = check(client.get_shell_msg(timeout=TIMEOUT), number)
    assert reply["content"]["ename"] == "KeyboardInterrupt", reply


def main(path):
    one, two = connect(path), connect(path)
    ask(one)
    interrupt(one)
    failures = []

    def again(client):
        try:
            for _ in range(20):
                assert run(client, "one of two")[0]["status"] == "ok"
        except BaseException as error:  # noqa: BLE001
            failures.append(repr(error))

    threads = [threading.Thread(target=again, args=[client]) for client in (one, two)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    # Each client sees what the other one does.
    number = one.execute("print seen by both")
    check(one.get_shell_msg(timeout=TIMEOUT), number)
    seen = []
    while len(seen) < 4:
        message = check(two.get_iopub_msg(timeout=TIMEOUT))
        if message["parent_header"].get("msg_id") == number:
            seen.append(message["msg_type"])
    assert seen == ["status", "execute_input", "stream", "status"], seen
    for client in (one, two):
        assert client.is_alive() and client.hb_channel.is_beating()
    number = two.shutdown()
    reply = check(two.get_control_msg(timeout=TIMEOUT), number)
    assert reply["msg_type"] == "shutdown_reply", reply
    while True:
        # The very last message.
        message = check(one.get_iopub_msg(timeout=TIMEOUT))
        if (
            message["parent_header"].get("msg_type") == "shutdown_request"
            and message["content"] == {"execution_state": "idle"}
        ):
            break
    for client in (one, two):
        client.stop_channels()
    print("all well")


main(sys.argv[1])
