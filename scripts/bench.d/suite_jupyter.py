"""The suite `jupyter`: Cellwright's client of Jupyter kernels and jupyter_client, on the same ipykernel."""

import hmac
import json
import statistics
import subprocess
import time

import eval_cells as cells
from eval_tools import ANSWER, LOST, Programs, Run, check, clean_up
from measure import (BENCH, HELPERS, MOST_SECONDS, ROOT, TARGET, Tool, goal_table, measure, name_text,
                     part, ratio_text, rows, log, size_text, time_text)

TRIPS = 500
# Rounds of long measurements, which are compared by processor time: it varies less than wall time.
HEAVY_ROUNDS = 5
# Random share of the time of a kernel that is busy for seconds.
CHANCE = 0.05
LESS_CPU = 3


def run(rounds, quick):
    """Runs the suite and returns its part of the document."""
    clients = Clients()
    heavy = 1 if quick else min(rounds, HEAVY_ROUNDS)
    sections = [Start(clients, rounds * 2), Trips(clients, rounds)]
    sections += [Amount(clients, heavy, *amount) for amount in AMOUNTS]
    sections.append(Command(clients.programs, rounds))
    clean_up()
    ANSWER.unlink()
    signing = signing_time()
    text = METHOD.format(rounds=rounds, starts=rounds * 2, heavy=heavy, most=MOST_SECONDS, trips=TRIPS,
                         signing=signing * 1e3, signing_picture=signing * 1e3 * 2 / 3)
    return part(
        "Jupyter kernels",
        clients.programs.versions(),
        goal_table(goal for section in sections for goal in section.goals()),
        (QUICK if quick else "") + text,
        *["\n".join([f"### {section.title}", "", section.text()]) for section in sections],
    )


def signing_time():
    """Time of the signature of 100 MB, in messages of a typical size."""
    piece, key, times = bytes(1_000_000), b"key", []
    for _ in range(9):
        began = time.process_time()
        for _ in range(100):
            hmac.digest(key, piece, "sha256")
        times.append(time.process_time() - began)
    return statistics.median(times)


# ---- Tools --------------------------------------------------------------------------------------

class Clients:
    """Cellwright's client and jupyter_client, in each way of using it."""

    def __init__(self):
        self.programs = Programs()
        log("building the measuring client")
        subprocess.run(["cargo", "build", "--release", "--quiet", "--package", "cellwright-kernel",
                        "--example", "jupyter", "--bin", "cellwright-supervisor"], cwd=ROOT, check=True)

    def all(self, prepare, code, count, expected=None):
        release = TARGET / "release"
        ours = [release / "examples" / "jupyter", self.programs.python, release / "cellwright-supervisor"]
        theirs = [self.programs.python, HELPERS / "jupyter_peer.py"]
        work = [prepare, code, count]
        return [
            Client("ours", [*ours, "ipc", *work], expected, ours=True),
            Client("ours, over TCP", [*ours, "tcp", *work], expected, ours=True),
            Client("`jupyter_client`, blocking", [*theirs, "blocking", "tcp", *work], expected),
            Client("`jupyter_client`, `execute_interactive`", [*theirs, "interactive", "tcp", *work],
                   expected),
            Client("`jupyter_client`, async", [*theirs, "async", "tcp", *work], expected),
            Client("`jupyter_client`, blocking, over IPC", [*theirs, "blocking", "ipc", *work], expected),
        ]


class Client(Tool):
    """A client, which reports the time of each step. `expected` is the number of bytes that must
    arrive: if they do not, Cellwright fails, and the table shows it for other clients."""

    def __init__(self, name, command, expected, **options):
        codes = (0,) if options.get("ours") else (0, LOST)
        super().__init__(name, command, output=str(ANSWER), codes=codes, **options)
        self.expected = expected
        self.lost = 0
        self.held = []
        self.ready, self.start, self.start_cpu = {}, {}, {}
        self.trip, self.slow = {}, {}
        self.wall, self.cpu = {}, {}
        self.shutdown = {}

    def is_done(self):
        return sum(self.seconds.values()) > MOST_SECONDS

    def look(self, number, ended):
        if self.ended[-1] == LOST:
            self.lost += 1
            return
        report = json.loads(ANSWER.read_text(encoding="utf-8"))
        if self.expected:
            what, amount = self.expected
            if report[what] != amount:
                check(not self.ours, f"{self.name}: {report[what]} of {amount} bytes arrived")
                self.lost += 1
        self.held.append(report["memory"])
        self.ready[number] = report["ready"]["wall"]
        self.start[number], self.start_cpu[number] = report["first"]["wall"], report["first"]["cpu"]
        self.wall[number], self.cpu[number] = report["running"]["wall"], report["running"]["cpu"]
        self.shutdown[number] = report["shutdown"]["wall"]
        if len(report["times"]) > 1:
            self.trip[number] = statistics.median(report["times"])
            self.slow[number] = statistics.quantiles(report["times"], n=100)[98]

    def memory(self):
        return max(self.held)

    def label(self):
        lost = f", output lost in {self.lost} of {len(self.ended)}" if self.lost else ""
        return name_text(self) + lost


def beside(tool, ours, of):
    return "" if tool is ours else ratio_text(tool.ratio(ours, of))


def best(tools, of):
    """Time of the fastest other client relative to Cellwright."""
    return min(tool.ratio(tools[0], of) for tool in tools if not tool.ours)


def not_slower(what, tools, of):
    ratio = best(tools, of)
    return f"{what}: not slower than any `jupyter_client`", ratio_text(ratio), ratio > 1 - CHANCE


def less_cpu(what, tools, of):
    ratio = best(tools, of)
    return (f"{what}: at most a third of the client CPU of any `jupyter_client`", ratio_text(ratio),
            ratio >= LESS_CPU)


# ---- Measurements --------------------------------------------------------------------------------

class Start:
    title = "Start and shutdown"

    def __init__(self, clients, rounds):
        log("measuring the start")
        self.tools = measure(clients.all("pass", "pass", 0), rounds)

    def text(self):
        ours = self.tools[0]
        lines = []
        for tool in self.tools:
            cells_of = [f"{time_text(tool.time(of))} | {beside(tool, ours, of)}"
                        for of in ("ready", "start", "start_cpu", "shutdown")]
            lines.append(f"| {tool.label()} | {' | '.join(cells_of)} | {size_text(tool.memory())} |")
        return rows("| | Ready | Relative to Cellwright | First result | Relative to Cellwright | Client CPU | "
                    "Relative to Cellwright | Shutdown | Relative to Cellwright | Client memory |", lines)

    def goals(self):
        yield not_slower("Start to ready", self.tools, "ready")
        yield not_slower("Start to first result", self.tools, "start")
        yield less_cpu("Start to first result", self.tools, "start_cpu")
        yield not_slower("Shutdown", self.tools, "shutdown")


class Trips:
    title = "Round trip"

    def __init__(self, clients, rounds):
        log("measuring round trips")
        self.tools = measure(clients.all("pass", cells.TWO, TRIPS, ("shown", TRIPS)), rounds)

    def text(self):
        ours = self.tools[0]
        lines = [
            f"| {tool.label()} | {time_text(tool.time('trip'))} | {beside(tool, ours, 'trip')} | "
            f"{time_text(tool.time('slow'))} | {tool.time('cpu') / TRIPS * 1e6:,.0f} µs | "
            f"{beside(tool, ours, 'cpu')} | {size_text(tool.memory())} |" for tool in self.tools
        ]
        return rows("| | Median | Relative to Cellwright | 99 % take less than | Client CPU for each | "
                    "Relative to Cellwright | Client memory |", lines)

    def goals(self):
        yield not_slower("A round trip", self.tools, "trip")
        yield less_cpu("A round trip", self.tools, "cpu")


LONG_LINES = """\
line = "x" * 1023
for _ in range(100_000):
    print(line)
"""
FLUSHES = """\
for _ in range(10_000):
    print("x" * 99, flush=True)
"""
PICTURE = """\
import base64, os
picture = base64.b64encode(os.urandom(50_000_000)).decode()
"""
SHOW = 'display({"image/png": picture}, raw=True)'

# Title, preparation, code, expected output.
AMOUNTS = [
    ("100 MB in lines of 100 bytes", "pass", cells.LINES, ("text", cells.LINES_BYTES)),
    ("100 MB in lines of 1 KiB", "pass", LONG_LINES, ("text", 102_400_000)),
    ("10,000 flushed prints", "pass", FLUSHES, ("text", 1_000_000)),
    ("A picture of 50 MB", PICTURE, SHOW, ("shown", 66_666_668)),
]


class Amount:
    """Output that takes a while."""

    def __init__(self, clients, rounds, title, prepare, code, expected):
        log(f"measuring: {title}")
        self.title = title
        self.tools = measure(clients.all(prepare, code, 1, expected), rounds)

    def text(self):
        ours = self.tools[0]
        lines = [
            f"| {tool.label()} | {time_text(tool.time('wall'))} | {beside(tool, ours, 'wall')} | "
            f"{time_text(tool.time('cpu'))} | {beside(tool, ours, 'cpu')} | {size_text(tool.memory())} | "
            f"{len(tool.wall)} |" for tool in self.tools
        ]
        return rows("| | Time | Relative to Cellwright | Client CPU | Relative to Cellwright | Client memory | "
                    "Rounds |", lines)

    def goals(self):
        yield not_slower(self.title, self.tools, "wall")
        yield less_cpu(self.title, self.tools, "cpu")


class Command:
    title = "A whole command"

    def __init__(self, programs, rounds):
        log("measuring whole commands")
        book, script = BENCH / "two.ipynb", BENCH / "two.py"
        book.write_text(json.dumps(cells.notebook(cells.TWO)), encoding="utf-8")
        script.write_text(cells.TWO, encoding="utf-8")
        directory = programs.python.parent
        self.tools = measure([
            Run(f"`cellwright eval --backend jupyter '{cells.TWO}'`",
                programs.ours("--backend", "jupyter", cells.TWO), ours=True),
            Run("a script with `jupyter_client`", programs.peer("client", cells.TWO)),
            Run("`jupyter run`", [directory / "jupyter-run", "--kernel", "python3", script]),
            Run("`jupyter execute`", [directory / "jupyter-execute", book]),
        ], rounds)

    def text(self):
        ours = self.tools[0]
        lines = [f"| {name_text(tool)} | {time_text(tool.time())} | {beside(tool, ours, 'seconds')} | "
                 f"{size_text(tool.memory())} |" for tool in self.tools]
        return rows("| | Time | Relative to Cellwright | Own memory |", lines)

    def goals(self):
        ratio = min(tool.ratio(self.tools[0]) for tool in self.tools[1:])
        yield "A whole command is quicker than any other", ratio_text(ratio), ratio > 1


# ---- Report -------------------------------------------------------------------------------------

QUICK = """\
**This was a quick run**: few rounds, and perhaps other work on the machine. Its figures only show that the
suite works.

"""

METHOD = """\
`scripts/bench jupyter` runs the clients and writes this part. Cellwright's client is a program
(`crates/kernel/examples/jupyter.rs`) that uses the crate's `Kernel`, as the command line does. The other client
(`jupyter_peer.py`) does the same with `jupyter_client` in three ways: with the blocking client, with its
`execute_interactive`, and with the async client. It runs over TCP, its default, and the blocking one also over IPC;
Cellwright runs over IPC, its default, and over TCP. Both start the same ipykernel of the same environment, run `1+1`, then
the measured code, and shut the kernel down. A cell ends when its reply and the kernel's idle message have arrived. Both
count the received bytes and keep none; Cellwright fails if a byte is missing, and the table shows where `jupyter_client`
lost some.

Each table is one session: all clients run once to warm up, then {rounds} rounds ({starts} for the start, {heavy} for large
outputs) of all clients, each round starting with a different client. A client stops after {most} seconds in total. Times
are medians of the rounds. "Relative to Cellwright" is the value divided by that of the first row in the same round,
median of the rounds. The goals use the smallest of these ratios.

- The client measures the times: Python's imports are only part of the times of whole commands.
- Client CPU: user and system time of the client's process, without the kernel (and without Cellwright's supervisor,
  which sleeps). For the start: until the first result.
- Client memory: peak of the client's process (`VmHWM`).
- Round trips: {trips} times `1+1` in each round.
- Lines and prints: the kernel takes most of the time; a client can only keep up with it.
- Cellwright installs hooks in a kernel that it starts. `print` does not compute a set of the cell's header for each call,
  not every call in a flood of flushed prints waits for the kernel's sending thread, and printed text is sent after 20 ms
  (in a flood after up to 100 ms) instead of 200 ms, in pieces if it is large.
- The kernel signs every byte, and every client checks the signature. With OpenSSL's SHA-256, which Python uses, this
  takes {signing:.0f} ms for 100 MB (66.7 MB: {signing_picture:.0f} ms). It is a lower bound for every client, most of Cellwright's
  time, and a smaller part of the time of `jupyter_client`.
- The picture is 66.7 MB of base64, which the kernel has encoded before.
"""
