"""A program that uses the host over its socket, as the suite `host` measures it:

    host_client.py trips FOLDER REQUEST COUNT CODE        the code again and again on one session
    host_client.py new FOLDER REQUEST COUNT CODE          each time on a new session
    host_client.py many FOLDER REQUEST SESSIONS COUNT CODE   on so many sessions at once, COUNT each

and what jupyter_client does beside it:

    host_client.py starts COUNT CODE                      each time on a new kernel
    host_client.py idle CODE                              a kernel that has run the code, until stdin ends

Prints the nanoseconds that each took; `many` those of all together; `idle` the kernel's process.
REQUEST is a file with what the command line sends for an `eval` (see `recorded`).
"""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

# Time in which the host starts the next spare kernel.
PAUSE = 0.6


class Connection:
    def __init__(self, directory, request):
        info = json.loads(Path(directory, "host.json").read_text())
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(Path(directory, info["socket"])))
        self.reader = self.socket.makefile("rb")
        self.request = json.loads(Path(request).read_text())
        self.send({"hello": {"protocol": info["protocol"], "version": info["version"]}})
        self.receive()

    def send(self, head):
        self.socket.sendall(json.dumps(head).encode() + b"\n")

    def receive(self):
        head = json.loads(self.reader.readline())
        head["payload"] = self.reader.read(head["n"]) if head.get("n") else b""
        return head

    def eval(self, session, code):
        """Runs code and returns the duration in nanoseconds."""
        self.request["session"] = session
        self.request["request"]["cells"][0]["code"] = code
        started = time.perf_counter_ns()
        self.send(self.request)
        while "finished" != (answer := self.receive()).get("reply"):
            if "error" in answer or "failed" in answer["reply"]:
                sys.exit(f"wrong: {answer}")
        took = time.perf_counter_ns() - started
        if json.loads(answer["payload"])["status"] != "ok":
            sys.exit(f"wrong: {answer}")
        return took


def recorded(command, real, directory, request):
    """Writes the request of an `eval` command to the file `request`. The command connects to the socket
    of this function, which sends the hello of the real host."""
    directory.mkdir(mode=0o700)
    info = json.loads((real / "host.json").read_text())
    (directory / "host.json").write_text(json.dumps(info))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(directory / info["socket"]))
    listener.listen()
    listener.settimeout(20)
    environment = {**os.environ, "CELLWRIGHT_HOST_DIR": str(directory)}
    child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stream, _ = listener.accept()
    reader = stream.makefile("rb")
    reader.readline()
    hello = {name: info[name] for name in ["protocol", "version", "pid", "instance"]}
    stream.sendall(json.dumps({"hello": hello}).encode() + b"\n")
    request.write_bytes(reader.readline())
    child.kill()
    child.wait()
    stream.close()
    listener.close()


def print_times(times):
    print("\n".join(map(str, times)))


def trips(directory, request, count, code):
    connection = Connection(directory, request)
    connection.eval("trips", code)
    print_times(connection.eval("trips", code) for _ in range(int(count)))


def new(directory, request, count, code):
    connection = Connection(directory, request)
    times = []
    for number in range(int(count)):
        time.sleep(PAUSE)
        times.append(connection.eval(f"new-{os.getpid()}-{number}", code))
    print_times(times)


def many(directory, request, sessions, count, code):
    connections = [Connection(directory, request) for _ in range(int(sessions))]
    for number, connection in enumerate(connections):
        connection.eval(f"many-{number}", code)

    def use(number, connection):
        for _ in range(int(count)):
            connection.eval(f"many-{number}", code)

    threads = [threading.Thread(target=use, args=each) for each in enumerate(connections)]
    started = time.perf_counter_ns()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print_times([time.perf_counter_ns() - started])


def starts(count, code):
    from jupyter_client.manager import run_kernel
    from peers import until_idle

    times = []
    for _ in range(int(count)):
        started = time.perf_counter_ns()
        with run_kernel() as kernel:
            for _message in until_idle(kernel, kernel.execute(code)):
                pass
            times.append(time.perf_counter_ns() - started)
    print_times(times)


def idle(code):
    from jupyter_client.manager import run_kernel
    from peers import until_idle

    with run_kernel() as kernel:
        for message in until_idle(kernel, kernel.execute(f"import os; {code}; print(os.getpid())")):
            if message["msg_type"] == "stream":
                print(message["content"]["text"].strip(), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    ways = {"trips": trips, "new": new, "many": many, "starts": starts, "idle": idle}
    ways[sys.argv[1]](*sys.argv[2:])
