"""The suite `mcp`: servers that give notebooks and kernels to agents."""

import json
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from mcp_client import Client, text_of
from measure import (BENCH, Cellwright, environment, goal_table, measure, micro_text, name_text, output_of, part, ratio_text,
                     rows, log, size_text, time_text, version_of)
from notebooks import write_large

LINES = 100_000
TRIPS, SLOW_TRIPS = 300, 10
PORT = 8971
TOKEN = "bench"
PEERS = {
    "jupyter-mcp-server": {"jupyter-mcp-server": "2.2.4", "jupyterlab": "4.6.6", "jupyter-collaboration": None, "ipykernel": "7.4.0"},
    "mcp-jupyter-notebook": {"mcp-jupyter-notebook": "0.10.0", "ipykernel": "7.4.0"},
}


def run(rounds, quick):
    """Runs the suite and returns its part of the document."""
    built = Cellwright()
    directory = BENCH / "mcp"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    write_large(directory / "big.ipynb", 1 if quick else 10)
    pythons = {name: environment_of(name, packages) for name, packages in PEERS.items()}
    python = pythons["mcp-jupyter-notebook"]
    with Lab(pythons["jupyter-mcp-server"], directory) as lab:
        log("measuring servers")
        tools = measure([
            Ours("`cellwright mcp`, its own runner", built.path, python, directory, "runner"),
            Ours("`cellwright mcp`, ipykernel", built.path, python, directory, "jupyter"),
            Local(python, directory),
            Datalayer(pythons["jupyter-mcp-server"], directory),
        ], rounds)
        lab_memory = lab.memory()
    versions = [built.version(), *[f"{name} {version_of(pythons[name], name)}" for name in PEERS],
                f"jupyterlab {version_of(pythons['jupyter-mcp-server'], 'jupyterlab')}",
                f"ipykernel {version_of(python, 'ipykernel')}", output_of(python, "--version")]
    method = METHOD.format(rounds=rounds, trips=TRIPS, slow=SLOW_TRIPS, lab=size_text(lab_memory), start=time_text(lab.took))
    return part("MCP servers", versions, goal_table(goals(tools)), method, tables(tools))


def environment_of(name, packages):
    """A separate environment for each server: their dependencies conflict."""
    directory = BENCH / f"venv-{name}"
    python = directory / "bin" / "python"
    if not python.exists():
        log(f"installing {name}")
        subprocess.run([sys.executable, "-m", "venv", directory], check=True)
        wanted = [f"{package}=={version}" if version else package for package, version in packages.items()]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    return python


class Lab:
    """JupyterLab, which one of the servers needs; until the end of the block."""

    def __init__(self, python, directory):
        self.python, self.directory = python, directory

    def __enter__(self):
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [self.python.parent / "jupyter", "lab", "--port", str(PORT), "--IdentityProvider.token", TOKEN, "--ip", "127.0.0.1",
             "--allow-root", "--no-browser"],
            cwd=self.directory, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/api/status?token={TOKEN}").close()
                break
            except OSError:
                if self.process.poll() is not None or time.perf_counter() - began > 60:
                    sys.exit("JupyterLab did not start")
                time.sleep(0.05)
        self.took = time.perf_counter() - began
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)

    def memory(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024


class Server:
    """A server, from its start to its end, once a round."""

    ours = False
    warm = True
    trips = TRIPS
    # Whether it writes what it reads out of the notebook.
    FIELDS = ["start", "ready", "trip", "read", "lines"]

    def __init__(self, name, directory):
        self.name, self.directory = name, directory
        self.values = {field: {} for field in self.FIELDS}
        self.listed = self.characters = self.idle = self.after = 0

    def is_done(self):
        return False

    def run(self, number, measured):
        client = Client(self.command(), self.directory, {**environment(), **self.variables()})
        try:
            client.request("tools/list")
            start, listed = client.since(), client.bytes
            idle = client.memory()
            self.open(client)
            self.check(self.execute(client, "1 + 1"), "2")
            ready = client.since()
            trips = [timed(lambda: self.execute(client, "1 + 1")) for _ in range(self.trips)]
            read = timed(lambda: self.read(client))
            began = time.perf_counter()
            characters = len(text_of(self.execute(client, f"for i in range({LINES}): print(i)")))
            lines = time.perf_counter() - began
            after = client.memory()
        finally:
            client.close()
        if measured:
            values = {"start": start, "ready": ready, "trip": statistics.median(trips), "read": read, "lines": lines}
            for field, value in values.items():
                self.values[field][number] = value
            self.listed, self.characters = listed, characters
            self.idle, self.after = max(self.idle, idle), max(self.after, after)

    def variables(self):
        return {}

    def open(self, client):
        """What must be done before code can run."""

    def check(self, result, expected):
        if result.get("isError") or expected not in text_of(result):
            sys.exit(f"{self.name}: {json.dumps(result)[:500]}")

    def time(self, of):
        return statistics.median(self.values[of].values())

    def ratio(self, other, of):
        mine, theirs = self.values[of], other.values[of]
        return statistics.median(mine[n] / theirs[n] for n in mine.keys() & theirs.keys())


def timed(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


class Ours(Server):
    ours = True

    def __init__(self, name, binary, python, directory, backend):
        super().__init__(name, directory)
        self.binary, self.python, self.backend = binary, python, backend

    def command(self):
        return [self.binary, "mcp"]

    def variables(self):
        return {"CELLWRIGHT_PYTHON": str(self.python)}

    def execute(self, client, code):
        return client.call("eval", code=code, backend=self.backend)

    def read(self, client):
        client.call("read", path="big.ipynb")


class Local(Server):
    def __init__(self, python, directory):
        super().__init__("mcp-jupyter-notebook, local", directory)
        self.python = python

    def command(self):
        return [self.python.parent / "mcp-jupyter-notebook", "--mode", "local"]

    def execute(self, client, code):
        return client.call("notebook_code_execute", code=code)

    def read(self, client):
        client.call("notebook_open", notebook_path="big.ipynb")
        client.call("notebook_read", notebook_path="big.ipynb")


class Datalayer(Server):
    trips = SLOW_TRIPS

    def __init__(self, python, directory):
        super().__init__("jupyter-mcp-server, JupyterLab runs already", directory)
        self.python = python
        self.count = 0

    def command(self):
        return [self.python.parent / "jupyter-mcp-server", "start", "--transport", "stdio",
                "--jupyter-url", f"http://127.0.0.1:{PORT}", "--jupyter-token", TOKEN]

    def open(self, client):
        self.count += 1
        path = f"new{self.count}.ipynb"
        client.call("use_notebook", notebook_name="new", notebook_path=path, mode="create")

    def execute(self, client, code):
        return client.call("execute_code", code=code)

    def read(self, client):
        client.call("use_notebook", notebook_name="big", notebook_path="big.ipynb", mode="connect")
        client.call("read_notebook", notebook_name="big", response_format="detailed", limit=0)


def tables(tools):
    ours = tools[0]
    sections = []
    for title, field, words in [
        ("Start to `tools/list`", "start", time_text), ("Start to the first result", "ready", time_text),
        ("Round trip of `1 + 1`", "trip", time_text), ("A notebook of 10 MB opened and read", "read", time_text),
        ("100,000 lines printed", "lines", time_text),
    ]:
        lines = []
        for tool in tools:
            beside = "" if tool is ours else ratio_text(tool.ratio(ours, field))
            lines.append(f"| {name_text(tool)} | {words(tool.time(field))} | {beside} |")
        sections.append("\n".join([f"### {title}", "", rows("| | Time | Relative to Cellwright |", lines)]))
    lines = [f"| {name_text(tool)} | {tool.listed / 1000:.1f} KB | {tool.characters:,} | {size_text(tool.idle)} | {size_text(tool.after)} |"
             for tool in tools]
    head = "| | `tools/list` | Characters of 100,000 lines | Memory at first | Memory at the end |"
    sections.append("\n".join(["### Text for the model, and memory of the server", "", rows(head, lines)]))
    return "\n".join(sections)


def goals(tools):
    runner, jupyter, *peers = tools
    start = min(peer.ratio(runner, "start") for peer in peers)
    yield "`tools/list` 50× sooner than the best peer", ratio_text(start), start >= 50
    ready = min(peer.ratio(runner, "ready") for peer in peers)
    yield "First result 10× sooner than the best peer", ratio_text(ready), ready >= 10
    trip = runner.time("trip")
    yield "Round trip on the runner under 1 ms, median", micro_text(trip), trip < 1e-3
    beside = min(peer.ratio(jupyter, "trip") for peer in peers)
    yield "Round trip on ipykernel no slower than any peer", ratio_text(beside), beside >= 1
    yield "`tools/list` under 12 KB", f"{runner.listed / 1000:.1f} KB", runner.listed < 12_000
    yield "Idle server under 15 MB", size_text(runner.idle), runner.idle < 15e6


METHOD = """\
One client, which only implements the protocol over standard streams, starts each server: {rounds} rounds of all servers after one to
warm up. A round lists the tools, runs `1 + 1`, runs it {trips} times more ({slow} times if a call takes a second), opens and reads a
notebook of 10 MB, and prints 100,000 lines; then the client disconnects. Ratios compare the values of the same round.

jupyter-mcp-server needs a running JupyterLab (with real-time collaboration). It was started before (in {start}, with {lab} of memory)
and is not counted. mcp-jupyter-notebook starts its kernel before its first reply. Reading depends on the server: Cellwright returns the
beginning of the text and the offset of the rest, mcp-jupyter-notebook returns all text with outputs, jupyter-mcp-server every cell. The last
two must open the notebook first, which is counted. Memory is that of the server's process, without kernels.
"""
