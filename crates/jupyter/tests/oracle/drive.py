"""Drives a kernel with `jupyter_client` and checks its messages.

usage: drive.py CONNECTION_FILE
"""

import sys
import threading

from jupyter_client import BlockingKernelClient

TIMEOUT = 30
# Required members of the content by message type.
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
    """Asserts that a message conforms to the specification."""
    header = message["header"]
    for name in ("msg_id", "msg_type", "session", "username", "version"):
        assert isinstance(header[name], str) and header[name], (name, header)
    # Session has converted a valid date to a datetime.
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
    """Runs a cell. Returns its reply and (type, content) of its iopub messages between busy and idle."""
    msg_id = client.execute(code, allow_stdin=answer is not None)
    if answer is not None:
        input_request = check(client.get_stdin_msg(timeout=TIMEOUT), msg_id)
        assert input_request["msg_type"] == "input_request"
        assert input_request["content"]["prompt"] == "name? ", input_request
        client.input(answer)
    reply = check(client.get_shell_msg(timeout=TIMEOUT), msg_id)
    assert reply["msg_type"] == "execute_reply"
    published = []
    while True:
        message = client.get_iopub_msg(timeout=TIMEOUT)
        if message["parent_header"].get("msg_id") != msg_id:
            check(message)
            continue
        check(message, msg_id)
        published.append((message["msg_type"], message["content"]))
        if message["content"] == {"execution_state": "idle"}:
            break
    assert published[0] == ("status", {"execution_state": "busy"}), published
    assert published[1][0] == "execute_input", published
    assert published[1][1]["code"] == code
    return reply["content"], published[2:-1]


def text(published):
    assert all(msg_type == "stream" for msg_type, _ in published), published
    return "".join(content["text"] for _, content in published)


def check_cells(client):
    info = check(client.kernel_info(reply=True, timeout=TIMEOUT))
    assert info["content"]["implementation"] == "echo", info
    reply, published = run(client, "print grüße 🙂\n")
    assert reply["status"] == "ok", reply
    assert published == [("stream", {"name": "stdout", "text": "grüße 🙂\n"})], published
    reply, published = run(client, "ask name? ", answer="Zoë")
    assert text(published) == "Zoë", published
    reply, published = run(client, "anything else")
    assert published[0][0] == "execute_result", published
    assert published[0][1]["data"] == {"text/plain": "anything else"}
    reply, published = run(client, "fail badly")
    assert reply["status"] == "error" and reply["evalue"] == "badly", reply
    assert published[0][0] == "error", published
    # One message for each number.
    reply, published = run(client, "flood 1000")
    assert text(published) == "".join(f"{number}\n" for number in range(1000))


def check_interrupt(client):
    msg_id = client.execute("wait")
    while client.get_iopub_msg(timeout=TIMEOUT)["msg_type"] != "execute_input":
        pass
    request = client.session.msg("interrupt_request", {})
    client.control_channel.send(request)
    answer = client.get_control_msg(timeout=TIMEOUT)
    check(answer, request["header"]["msg_id"])
    assert answer["msg_type"] == "interrupt_reply", answer
    reply = check(client.get_shell_msg(timeout=TIMEOUT), msg_id)
    assert reply["content"]["ename"] == "KeyboardInterrupt", reply


def main(path):
    one, two = connect(path), connect(path)
    check_cells(one)
    check_interrupt(one)
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
    # Each client sees the outputs of the other one.
    msg_id = one.execute("print seen by both")
    check(one.get_shell_msg(timeout=TIMEOUT), msg_id)
    seen = []
    while len(seen) < 4:
        message = check(two.get_iopub_msg(timeout=TIMEOUT))
        if message["parent_header"].get("msg_id") == msg_id:
            seen.append(message["msg_type"])
    assert seen == ["status", "execute_input", "stream", "status"], seen
    for client in (one, two):
        assert client.is_alive() and client.hb_channel.is_beating()
    msg_id = two.shutdown()
    reply = check(two.get_control_msg(timeout=TIMEOUT), msg_id)
    assert reply["msg_type"] == "shutdown_reply", reply
    while True:
        # The last message.
        message = check(one.get_iopub_msg(timeout=TIMEOUT))
        if (
            message["parent_header"].get("msg_type") == "shutdown_request"
            and message["content"] == {"execution_state": "idle"}
        ):
            break
    for client in (one, two):
        client.stop_channels()
    print("ok")


main(sys.argv[1])
