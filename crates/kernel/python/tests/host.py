"""A small host in Python: starts the runner, merges pipes and channel by sync markers, and collects
events.

An event is a dict: {"t": "stdout"|"stderr", "cell": id, "text": …} or a frame (payloads under
"payloads"). Text is decoded leniently; adjacent text of one stream and cell is one event.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RUNNER_DIRECTORY = os.path.dirname(HERE)
with open(os.path.join(RUNNER_DIRECTORY, "boot.py"), encoding="utf-8") as file:
    BOOT = file.read()


def interpreters():
    """Return the interpreters to test, from CELLWRIGHT_TEST_INTERPRETERS (colon-separated)."""
    paths = os.environ.get("CELLWRIGHT_TEST_INTERPRETERS", "")
    return [entry for entry in paths.split(":") if entry] or [sys.executable]


class RunnerExited(Exception):
    """The runner process ended."""


class Host:
    """Runs one runner process and collects its events."""

    def __init__(self, python=None, cwd=None, env=None):
        self.python = python or sys.executable
        host_end, runner_end = socket.socketpair()
        out_r, out_w = os.pipe()
        err_r, err_w = os.pipe()
        environment = dict(os.environ)
        environment.pop("MPLBACKEND", None)
        environment.update(env or {})
        self.process = subprocess.Popen(
            [self.python, "-c", BOOT, RUNNER_DIRECTORY, str(runner_end.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=out_w,
            stderr=err_w,
            pass_fds=[runner_end.fileno()],
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )
        runner_end.close()
        os.close(out_w)
        os.close(err_w)
        self.channel = host_end
        self.pipes = {"stdout": out_r, "stderr": err_r}
        self.open_fds = {host_end.fileno(): "channel", out_r: "stdout", err_r: "stderr"}
        self.text = {"stdout": b"", "stderr": b""}
        self.unparsed = b""
        self.frames = []
        self.nonce = None
        self.cell = None
        self.last_id = 0
        self.events = []
        self.hello = self.wait_for(lambda e: e["t"] == "hello")
        self.nonce = bytes.fromhex(self.hello["nonce"])
        self.events = []

    # Requests

    def send(self, **request):
        self.channel.sendall(json.dumps(request).encode() + b"\n")

    def run(self, code, timeout=30, answers=None, **fields):
        """Run a cell and return its events, `done` last."""
        self.last_id += 1
        number = fields.pop("id", self.last_id)
        request = {"op": "execute", "id": number, "code": code}
        if answers is not None:
            request["stdin"] = "ask"
        request.update(fields)
        self.send(**request)
        return self.wait_done(number, timeout, answers)

    def wait_done(self, number, timeout=30, answers=None):
        """Wait for `done` of a cell and return the events so far; answers its input requests."""
        answers = list(answers or [])

        def is_done(event):
            if event["t"] == "input":
                if answers:
                    self.send(op="answer", id=number, text=answers.pop(0))
                else:
                    self.send(op="answer", id=number, refuse=True)
            return event["t"] == "done" and event["id"] == number

        self.wait_for(is_done, timeout)
        events, self.events = self.events, []
        return events

    def request(self, op, timeout=10, **fields):
        """Send a request that has a reply and return the reply's value."""
        self.last_id += 1
        number = self.last_id
        self.send(op=op, id=number, **fields)
        reply = self.wait_for(lambda e: e["t"] == "reply" and e["id"] == number, timeout)
        self.events = []
        if not reply["ok"]:
            raise RuntimeError(reply["error"])
        return reply["value"]

    def interrupt(self):
        os.killpg(self.process.pid, signal.SIGINT)

    def collect_events(self, seconds):
        """Return the events that arrive within some seconds."""
        try:
            self.wait_for(lambda e: False, seconds)
        except TimeoutError:
            pass
        events, self.events = self.events, []
        return events

    def close(self):
        try:
            self.channel.close()
        except OSError:
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for fd in self.pipes.values():
            os.close(fd)

    # Merging

    def wait_for(self, test, timeout=30):
        """Return the first event that passes the test."""
        end = time.monotonic() + timeout
        checked = 0
        while True:
            while checked < len(self.events):
                event = self.events[checked]
                if test(event):
                    return event
                checked += 1
            # A text event may still grow, but is tested only once.
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError("nothing within %s s; so far: %r" % (timeout, self.events[-20:]))
            self.read_ready(left)

    def read_ready(self, timeout):
        """Read the pipes and the channel once they are ready, and merge the data into events."""
        ready, _, _ = select.select(list(self.open_fds), [], [], timeout)
        for fd in sorted(ready, key=lambda f: self.open_fds[f] == "channel"):
            if self.open_fds[fd] != "channel":
                data = os.read(fd, 1 << 18)
                if not data:
                    del self.open_fds[fd]
                self.text[self.open_fds.get(fd) or self._name(fd)] += data
        # The rule of the protocol: the channel is read after the pipes and before their text is
        # emitted. A frame without a sync marker that has arrived by then precedes that text.
        fd = self.channel.fileno()
        while fd in self.open_fds and select.select([fd], [], [], 0)[0]:
            try:
                data = self.channel.recv(1 << 20)
            except ConnectionError:
                data = b""
            if not data:
                del self.open_fds[fd]
                break
            self.unparsed += data
        self._parse()
        self._merge()
        if not self.open_fds:
            code = self.process.wait()
            raise RunnerExited(
                "runner ended with %s; %r; events: %r" % (code, self.text, self.events[-20:])
            )

    def _name(self, fd):
        return "stdout" if fd == self.pipes["stdout"] else "stderr"

    def _parse(self):
        while True:
            end = self.unparsed.find(b"\n")
            if end < 0:
                return
            frame = json.loads(self.unparsed[:end].decode("utf-8"), parse_constant=_reject_constant)
            sizes = frame.get("bin", [])
            if len(self.unparsed) < end + 1 + sum(sizes):
                return
            at = end + 1
            frame["payloads"] = []
            for size in sizes:
                frame["payloads"].append(self.unparsed[at : at + size])
                at += size
            self.unparsed = self.unparsed[at:]
            self.frames.append(frame)

    def _merge(self):
        while self.frames:
            frame = self.frames[0]
            n = frame.get("n")
            if n:
                if not all(self._has_marker(name, n) for name in self.text):
                    break
                for name in ("stdout", "stderr"):
                    self._emit_until_marker(name, n)
            self._emit_frame(self.frames.pop(0))
        if self.nonce is None:
            return
        for name in ("stdout", "stderr"):
            self._emit_unmarked(name)

    def _has_marker(self, name, n):
        return self.text[name].find(self.nonce + n.to_bytes(8, "little")) >= 0

    def _emit_until_marker(self, name, n):
        data = self.text[name]
        while True:
            at = data.find(self.nonce)
            number = int.from_bytes(data[at + 16 : at + 24], "little")
            self._emit_text(name, data[:at])
            data = data[at + 24 :]
            if number >= n:
                break
        self.text[name] = data

    def _emit_unmarked(self, name):
        data = self.text[name]
        at = data.find(self.nonce)
        if at < 0:
            at = len(data)
            for size in range(min(15, len(data)), 0, -1):
                if data.endswith(self.nonce[:size]):
                    at -= size
                    break

        self._emit_text(name, data[:at])
        self.text[name] = data[at:]

    def _emit_text(self, name, data):
        if not data:
            return
        text = data.decode("utf-8", "surrogateescape")
        last = self.events[-1] if self.events else None
        if last is not None and last["t"] == name and last["cell"] == self.cell:
            last["text"] += text
        else:
            self.events.append({"t": name, "cell": self.cell, "text": text})

    def _emit_frame(self, frame):
        if frame["t"] == "started":
            self.cell = frame["id"]
        elif frame["t"] == "sync":
            self.cell = frame["cell"]
            return
        self.events.append(frame)


def _reject_constant(name):
    raise ValueError("not strict JSON: " + name)


# Functions on lists of events


def filter_events(events, kind):
    """Return the events of one kind."""
    return [event for event in events if event["t"] == kind]


def text(events, kind="stdout"):
    return "".join(event["text"] for event in events if event["t"] == kind)


def kinds(events):
    return [event["t"] for event in events]


def data(event):
    """Return the data of an event as a dict MIME -> value, with payloads inserted."""
    found = {}
    for mime, kind, value in event["data"]:
        assert kind in ("text", "json", "bin", "utf8")
        if kind in ("bin", "utf8"):
            value = event["payloads"][value]
        found[mime] = value.decode() if kind == "utf8" else value
    return found


def result(events):
    """Return text/plain of the result, or None."""
    results = filter_events(events, "result")
    assert len(results) <= 1
    return data(results[0]).get("text/plain") if results else None


def status(events):
    return events[-1]["status"]


def error(events):
    errors = filter_events(events, "error")
    return errors[0] if errors else None
