"""Jupyter's own client, for tests. It reads commands as lines of JSON and prints one result for each."""

import json
import os
import sys

import jupyter_client
from jupyter_client.blocking import BlockingKernelClient


class Client:
    def __init__(self):
        self.manager = self.client = None

    def attach(self, **_):
        """Attaches to the running kernel, as `jupyter console --existing` does."""
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
        """Sends code without waiting for its end. Returns the msg_id."""
        return self.client.execute(code)

    def wait(self, id):
        """Waits for the end of a cell. Returns its status and output."""
        output, state = "", None
        while state != "idle":
            message = self.client.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") != id:
                continue
            content = message["content"]
            output += content.get("text", "") + content.get("data", {}).get("text/plain", "")
            state = content.get("execution_state")
        while True:
            reply = self.client.get_shell_msg(timeout=60)
            if reply["parent_header"].get("msg_id") == id:
                return {"status": reply["content"]["status"], "output": output}

    def run(self, code):
        return self.wait(self.send(code))

    def end(self):
        self.manager.shutdown_kernel(now=True)


client = Client()
for line in sys.stdin:
    request = json.loads(line)
    result = getattr(client, request.pop("do"))(**request)
    print(json.dumps(result), flush=True)
if client.manager is not None:
    client.end()
