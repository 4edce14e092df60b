"""What the other tools do in the suite `eval`, each as one process, as a program that uses them would:

    peers.py client CODE [WHAT AMOUNT]      jupyter_client: start a kernel, run the code, take all output
    peers.py nbclient CODE [WHAT AMOUNT]    nbclient: a notebook of one cell
    peers.py trips COUNT CODE               jupyter_client: the code again and again; prints the
                                            nanoseconds that each took
    peers.py death CODE                     nbclient: code that kills its kernel

WHAT is `text` or `png`: if not that many bytes of it have arrived, the exit code is 3. That happens: a
kernel publishes on a socket that drops what the other side does not read in time.
"""

import base64
import sys
import time


def client(code, *wanted):
    from jupyter_client.manager import run_kernel

    arrived = Arrived()
    with run_kernel() as kernel:
        request = kernel.execute(code)
        for message in until_idle(kernel, request):
            arrived.take({"output_type": message["msg_type"], **message["content"]})
        while kernel.get_shell_msg(timeout=None)["parent_header"].get("msg_id") != request:
            pass
    arrived.check(wanted)


def nbclient(code, *wanted):
    arrived = Arrived()
    for output in notebook_client(code).execute().cells[0].outputs:
        arrived.take(output)
    arrived.check(wanted)


def death(code):
    from nbclient.exceptions import DeadKernelError

    try:
        notebook_client(code).execute()
    except DeadKernelError as error:
        print(error)
    else:
        sys.exit("the kernel did not die")


def trips(count, code):
    from jupyter_client.manager import run_kernel

    times = []
    with run_kernel() as kernel:
        for _ in range(int(count)):
            started = time.perf_counter_ns()
            request = kernel.execute(code)
            while kernel.get_shell_msg(timeout=None)["parent_header"].get("msg_id") != request:
                pass
            for _message in until_idle(kernel, request):
                pass
            times.append(time.perf_counter_ns() - started)
    print("\n".join(map(str, times)))


def until_idle(kernel, request):
    """What a kernel publishes about a request, up to the message that it is done."""
    while True:
        message = kernel.get_iopub_msg(timeout=None)
        if message["parent_header"].get("msg_id") != request:
            continue
        if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            return
        yield message


def notebook_client(code):
    from nbclient import NotebookClient
    from nbformat import v4

    book = v4.new_notebook(cells=[v4.new_code_cell(code)])
    return NotebookClient(book, timeout=None, kernel_name="python3")


class Arrived:
    """Counts outputs, and prints the first text as soon as it is there."""

    def __init__(self):
        self.amounts = {"text": 0, "png": 0}

    def take(self, output):
        if output["output_type"] == "stream":
            if not self.amounts["text"]:
                print(output["text"][:100], end="", flush=True)
            # Only ASCII is printed here.
            self.amounts["text"] += len(output["text"])
        elif output["output_type"] == "display_data":
            self.amounts["png"] += len(base64.b64decode(output["data"].get("image/png", "")))
        elif output["output_type"] == "error":
            sys.exit(output["evalue"])

    def check(self, wanted):
        if wanted and self.amounts[wanted[0]] != int(wanted[1]):
            print(f"{self.amounts} arrived, not {' '.join(wanted)}", file=sys.stderr)
            sys.exit(3)


if __name__ == "__main__":
    {"client": client, "nbclient": nbclient, "trips": trips, "death": death}[sys.argv[1]](*sys.argv[2:])
