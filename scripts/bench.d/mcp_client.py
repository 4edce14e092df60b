"""A minimal MCP client, so that the suite measures servers and not a client library."""

import json
import os
import subprocess
import time


class Client:
    """A server that was started, over its standard streams."""

    def __init__(self, command, directory, env):
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            [str(part) for part in command], cwd=directory, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.last = 0
        info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.request("initialize", info)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write((json.dumps(message) + "\n").encode())
        self.process.stdin.flush()

    def request(self, method, params=None):
        """Returns the reply and its size in bytes."""
        self.last += 1
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params or {}})
        while line := self.process.stdout.readline():
            message = json.loads(line)
            if message.get("id") == self.last and "method" not in message:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                self.bytes = len(line)
                return message["result"]
        raise RuntimeError(f"{method}: the server has gone")

    def call(self, tool, **arguments):
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def since(self):
        """Seconds since the server was started."""
        return time.perf_counter() - self.began

    def memory(self):
        """Memory of the server in bytes, without its kernels, which are separate processes."""
        with open(f"/proc/{self.process.pid}/status") as status:
            line = next(line for line in status if line.startswith("VmRSS"))
        return int(line.split()[1]) * 1024

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def text_of(result):
    """The text of a reply that a model reads."""
    return "\n".join(block.get("text", "") for block in result["content"])


def kernels_below(pid):
    """The descendants of a server process."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as stat:
                    parent = int(stat.read().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == pid:
                found += [int(entry), *kernels_below(int(entry))]
    return found
