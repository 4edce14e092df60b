"""A small host in Python: starts the runner, merges pipes and channel by borders, hands out events.

An event is a dict: {"t": "stdout"|"stderr", "cell": id, "text": …} or a frame as it came (payloads
under "payloads"). Text is decoded leniently; adjacent text of one stream and cell is one event.
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
FOLDER = os.path.dirname(HERE)
with open(os.path.join(FOLDER, "boot.py"), encoding="utf-8") as file:
    BOOT = file.read()


def interpreters():
    """The interpreters to test, from CELLWRIGHT_TEST_INTERPRETERS (colon-separated)."""
    given = os.environ.get("CELLWRIGHT_TEST_INTERPRETERS", "")
    return [entry for entry in given.split(":") if entry] or [sys.executable]


class Dead(Exception):
    """The runner ended."""


class Host:
    def __init__(self, python=None, cwd=None, env=None, drain=True):
        self.python = python or sys.executable
        ours, theirs = socket.socketpair()
        out_r, out_w = os.pipe()
        err_r, err_w = os.pipe()
        environment = dict(os.environ)
        environment.pop("MPLBACKEND", None)
        environment.update(env or {})
        self.process = subprocess.Popen(
            [self.python, "-c", BOOT, FOLDER, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=out_w,
            stderr=err_w,
            pass_fds=[theirs.fileno()],
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )
        theirs.close()
        os.close(out_w)
        os.close(err_w)
        self.channel = ours
        self.pipes = {"stdout": out_r, "stderr": err_r}
        self.open = {ours.fileno(): "channel", out_r: "stdout", err_r: "stderr"}
        self.text = {"stdout": b"", "stderr": b""}
        self.raw = b""
        self.frames = []
        self.nonce = None
        self.cell = None
        self.number = 0
        self.events = []
        self.hello = self.wait_for(lambda e: e["t"] == "hello")
        self.nonce = bytes.fromhex(self.hello["nonce"])
        self.events = []

    # Requests

    def send(self, **request):
        self.channel.sendall(json.dumps(request).encode() + b"\n")

    def run(self, code, timeout=30, answers=None, **more):
        """Execute a cell and return its events, `done` last."""
        self.number += 1
        number = more.pop("id", self.number)
        request = {"op": "execute", "id": number, "code": code}
        if answers is not None:
            request["stdin"] = "ask"
        request.update(more)
        self.send(**request)
        return self.finish(number, timeout, answers)

    def finish(self, number, timeout=30, answers=None):
        answers = list(answers or [])

        def ended(event):
            if event["t"] == "input":
                if answers:
                    self.send(op="answer", id=number, text=answers.pop(0))
                else:
                    self.send(op="answer", id=number, refuse=True)
            return event["t"] == "done" and event["id"] == number

        self.wait_for(ended, timeout)
        events, self.events = self.events, []
        return events

    def ask(self, op, timeout=10, **more):
        """A request with a reply; returns its value."""
        self.number += 1
        number = self.number
        self.send(op=op, id=number, **more)
        reply = self.wait_for(lambda e: e["t"] == "reply" and e["id"] == number, timeout)
        self.events = []
        if not reply["ok"]:
            raise RuntimeError(reply["error"])
        return reply["value"]

    def interrupt(self):
        os.killpg(self.process.pid, signal.SIGINT)

    def more_events(self, seconds):
        """Whatever comes within some seconds."""
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
        end = time.monotonic() + timeout
        seen = 0
        while True:
            while seen < len(self.events):
                event = self.events[seen]
                if test(event):
                    return event
                seen += 1
            # Merged text may still grow: look at the last text event again never; tests use frames.
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError("nothing within %s s; so far: %r" % (timeout, self.events[-20:]))
            self.pump(left)

    def pump(self, timeout):
        ready, _, _ = select.select(list(self.open), [], [], timeout)
        for fd in sorted(ready, key=lambda f: self.open[f] == "channel"):
            if self.open[fd] != "channel":
                data = os.read(fd, 1 << 18)
                if not data:
                    del self.open[fd]
                self.text[self.open.get(fd) or self._name(fd)] += data
        # The rule of the protocol: the channel is looked at after the pipes and before their text is
        # shown; a frame without a border that is there by then comes before that text.
        fd = self.channel.fileno()
        while fd in self.open and select.select([fd], [], [], 0)[0]:
            try:
                data = self.channel.recv(1 << 20)
            except ConnectionError:
                data = b""
            if not data:
                del self.open[fd]
                break
            self.raw += data
        self._parse()
        self._merge()
        if not self.open:
            code = self.process.wait()
            raise Dead(
                "runner ended with %s; %r; events: %r" % (code, self.text, self.events[-20:])
            )

    def _name(self, fd):
        return "stdout" if fd == self.pipes["stdout"] else "stderr"

    def _parse(self):
        while True:
            end = self.raw.find(b"\n")
            if end < 0:
                return
            frame = json.loads(self.raw[:end].decode("utf-8"), parse_constant=_no_constant)
            sizes = frame.get("bin", [])
            if len(self.raw) < end + 1 + sum(sizes):
                return
            at = end + 1
            frame["payloads"] = []
            for size in sizes:
                frame["payloads"].append(self.raw[at : at + size])
                at += size
            self.raw = self.raw[at:]
            self.frames.append(frame)

    def _merge(self):
        while self.frames:
            frame = self.frames[0]
            n = frame.get("n")
            if n:
                if not all(self._has_border(name, n) for name in self.text):
                    break
                for name in ("stdout", "stderr"):
                    self._show_until(name, n)
            self._handle(self.frames.pop(0))
        if self.nonce is None:
            return
        for name in ("stdout", "stderr"):
            self._show_free(name)

    def _has_border(self, name, n):
        return self.text[name].find(self.nonce + n.to_bytes(8, "little")) >= 0

    def _show_until(self, name, n):
        data = self.text[name]
        while True:
            at = data.find(self.nonce)
            number = int.from_bytes(data[at + 16 : at + 24], "little")
            self._show(name, data[:at])
            data = data[at + 24 :]
            if number >= n:
                break
        self.text[name] = data

    def _show_free(self, name):
        data = self.text[name]
        at = data.find(self.nonce)
        if at < 0:
            at = len(data)
            for size in range(min(15, len(data)), 0, -1):
                if data.endswith(self.nonce[:size]):
                    at -= size
                    break
        elif any(f.get("n") for f in self.frames) is False and len(data) >= at + 24:
            pass  # a border whose frame is still on its way
        self._show(name, data[:at])
        self.text[name] = data[at:]

    def _show(self, name, data):
        if not data:
            return
        text = data.decode("utf-8", "surrogateescape")
        last = self.events[-1] if self.events else None
        if last is not None and last["t"] == name and last["cell"] == self.cell:
            last["text"] += text
        else:
            self.events.append({"t": name, "cell": self.cell, "text": text})

    def _handle(self, frame):
        if frame["t"] == "started":
            self.cell = frame["id"]
        elif frame["t"] == "border":
            self.cell = frame["cell"]
            return
        self.events.append(frame)


def _no_constant(name):
    raise ValueError("not strict JSON: " + name)


# Looking at events


def of(events, kind):
    return [event for event in events if event["t"] == kind]


def text(events, kind="stdout"):
    return "".join(event["text"] for event in events if event["t"] == kind)


def kinds(events):
    return [event["t"] for event in events]


def data(event):
    """dict MIME -> value, payloads put in."""
    found = {}
    for mime, kind, value in event["data"]:
        assert kind in ("text", "json", "bin", "utf8")
        if kind in ("bin", "utf8"):
            value = event["payloads"][value]
        found[mime] = value.decode() if kind == "utf8" else value
    return found


def result(events):
    """text/plain of the result, or None."""
    results = of(events, "result")
    assert len(results) <= 1
    return data(results[0]).get("text/plain") if results else None


def status(events):
    return events[-1]["status"]


def error(events):
    errors = of(events, "error")
    return errors[0] if errors else None
