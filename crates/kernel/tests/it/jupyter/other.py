"""Jupyter's own client, for tests: told what to do in lines of JSON, one answer for each."""

import json
import os
import sys

import jupyter_client
from jupyter_client.blocking import BlockingKernelClient


class Other:
    def __init__(self):
        self.manager = self.client = None

    def attach(self, **_):
        """Finds the kernel that runs, as `jupyter console --existing` does."""
        path = jupyter_client.find_connection_file()
        self.client = BlockingKernelClient()
        self.client.load_connection_file(path)
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        return path

    def start(self, transport):
        self.manager = jupyter_client.KernelManager(kernel_name="python3", transport=transport)
        if transport == "ipc":
            self.manager.ip = os.path.abspath("k")
        self.manager.start_kernel()
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        return {"file": self.manager.connection_file, "pid": self.manager.provisioner.pid}

    def send(self, code):
        """Does not wait for it."""
        return self.client.execute(code)

    def wait(self, id):
        """What came of it: how it ended, and what it said."""
        said, state = "", None
        while state != "idle":
            message = self.client.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") != id:
                continue
            content = message["content"]
            said += content.get("text", "") + content.get("data", {}).get("text/plain", "")
            state = content.get("execution_state")
        while True:
            reply = self.client.get_shell_msg(timeout=60)
            if reply["parent_header"].get("msg_id") == id:
                return {"status": reply["content"]["status"], "said": said}

    def run(self, code):
        return self.wait(self.send(code))

    def end(self):
        self.manager.shutdown_kernel(now=True)


other = Other()
for line in sys.stdin:
    request = json.loads(line)
    answer = getattr(other, request.pop("do"))(**request)
    print(json.dumps(answer), flush=True)
if other.manager is not None:
    other.end()
