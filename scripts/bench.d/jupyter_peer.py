"""What jupyter_client does in the suite `jupyter`: the counterpart of crates/kernel/examples/jupyter.rs,
with the same arguments and the same answer.

    jupyter_peer.py blocking|interactive|async tcp|ipc PREPARE CODE COUNT

starts an ipykernel, runs `1+1`, then PREPARE, then CODE so many times, and shuts it down. What it imports
is there before anything is timed.
"""

import asyncio
import json
import resource
import sys
import time

from jupyter_client.manager import AsyncKernelManager, KernelManager

TIMEOUT = 120


class Counted:
    """Counts received bytes and keeps none."""

    def __init__(self):
        self.text = self.shown = 0

    def take(self, message):
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            # Only ASCII is printed here.
            self.text += len(content["text"])
        elif kind in ("display_data", "execute_result"):
            self.shown += sum(len(data) for data in content["data"].values())
        elif kind == "error":
            sys.exit(content["evalue"])


def is_last(message):
    return message["msg_type"] == "status" and message["content"]["execution_state"] == "idle"


class Blocking:
    """One message after the other, with the calls that wait."""

    def __init__(self, options):
        self.manager = KernelManager(kernel_name="python3", **options)

    async def start(self):
        self.manager.start_kernel()
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=TIMEOUT)

    async def run(self, code):
        received = Counted()
        request = self.client.execute(code)
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT)
            if message["parent_header"].get("msg_id") == request:
                if is_last(message):
                    break
                received.take(message)
        while self.client.get_shell_msg(timeout=TIMEOUT)["parent_header"].get("msg_id") != request:
            pass
        return received

    async def stop(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel()


class Interactive(Blocking):
    """With the one call that does it all."""

    async def run(self, code):
        received = Counted()
        self.client.execute_interactive(code, output_hook=received.take, timeout=TIMEOUT)
        return received


class Async:
    """One message after the other, with the calls that do not wait."""

    def __init__(self, options):
        self.manager = AsyncKernelManager(kernel_name="python3", **options)

    async def start(self):
        await self.manager.start_kernel()
        self.client = self.manager.client()
        self.client.start_channels()
        await self.client.wait_for_ready(timeout=TIMEOUT)

    async def run(self, code):
        received = Counted()
        request = self.client.execute(code)
        while True:
            message = await self.client.get_iopub_msg(timeout=TIMEOUT)
            if message["parent_header"].get("msg_id") == request:
                if is_last(message):
                    break
                received.take(message)
        while True:
            message = await self.client.get_shell_msg(timeout=TIMEOUT)
            if message["parent_header"].get("msg_id") == request:
                return received

    async def stop(self):
        self.client.stop_channels()
        await self.manager.shutdown_kernel()


class Watch:
    """Wall time and processor time since it was made."""

    def __init__(self):
        self.began, self.used = time.perf_counter(), used()

    def elapsed(self):
        return {"wall": time.perf_counter() - self.began, "cpu": used() - self.used}


def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def most_memory():
    with open("/proc/self/status") as status:
        [line] = [line for line in status if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


async def main(way, transport, prepare, code, count):
    ways = {"blocking": Blocking, "interactive": Interactive, "async": Async}
    kernel = ways[way]({"transport": transport})
    start = Watch()
    await kernel.start()
    ready = start.elapsed()
    if (await kernel.run("1+1")).shown != 1:
        sys.exit("it is not 2")
    first = start.elapsed()

    await kernel.run(prepare)
    times, text, shown = [], 0, 0
    running = Watch()
    for _ in range(int(count)):
        began = time.perf_counter()
        received = await kernel.run(code)
        times.append(time.perf_counter() - began)
        text += received.text
        shown += received.shown
    running, memory = running.elapsed(), most_memory()

    ending = Watch()
    await kernel.stop()
    print(json.dumps({"ready": ready, "first": first, "running": running, "times": times,
                      "shutdown": ending.elapsed(), "memory": memory, "text": text, "shown": shown}))


if __name__ == "__main__":
    # The blocking calls start an event loop, and must not be called from within one.
    if sys.argv[1] == "async":
        asyncio.run(main(*sys.argv[1:]))
    else:
        try:
            main(*sys.argv[1:]).send(None)
        except StopIteration:
            pass
