"""The suite `eval`: running code, beside jupyter_client with ipykernel, nbclient, and a bare pipe."""

import base64
import hashlib
import json
import random
import subprocess

import eval_cells as cells
from eval_tools import (ANSWER, LOST, Dying, Peer, Programs, Run, Trip, answer_of, check, clean_up,
                        our_times)
from measure import (BENCH, MOST_SECONDS, environment, goal_table, measure, micro_text, name_text,
                     part, ratio_text, rows, log, size_text, time_text)

MOST_MEMORY = 64e6
OURS_TRIPS, THEIR_TRIPS, DEATHS = 2000, 500, 20


def run(rounds, quick):
    """Runs the suite and returns its part of the document."""
    programs = Programs()
    start = Start(programs, rounds * 2)
    trips = Trips(programs, rounds)
    heavy = 1 if quick else rounds
    sections = [start, trips, Lines(programs, heavy), Flushes(programs, rounds, quick),
                Picture(programs, heavy), Death(programs),
                Flood(programs, 50_000_000 if quick else 1_000_000_000)]
    clean_up()
    ANSWER.unlink()
    start.round_trip = trips.pipe.time("trip")
    text = METHOD.format(rounds=rounds, starts=rounds * 2, most=MOST_SECONDS, ours=OURS_TRIPS,
                         theirs=THEIR_TRIPS, deaths=DEATHS)
    return part(
        "Running code",
        programs.versions(),
        goal_table(goal for section in sections for goal in section.goals()),
        (QUICK if quick else "") + text,
        *["\n".join([f"### {section.TITLE}", "", section.text()]) for section in sections],
    )


def run_table(tools, amount=None):
    """Time and memory; with an amount of bytes also how many of them in a second."""
    speed = (lambda tool: f" {amount / 1e6 / tool.time():,.0f} MB/s |") if amount else lambda _: ""
    lines = []
    for tool in tools:
        # The memory of a pipeline is not measured.
        memory = "" if tool.command[0] == "sh" else size_text(tool.memory())
        beside = "" if tool is tools[0] else ratio_text(tool.ratio(tools[0]))
        lost = tool.ended.count(LOST)
        name = name_text(tool) + (f", output lost in {lost} of {len(tool.ended)}" if lost else "")
        lines.append(f"| {name} | {time_text(tool.time())} |{speed(tool)} {beside} | "
                     f"{memory} | {len(tool.seconds)} |")
    head = "| | Time |" + (" Speed |" if amount else "") + " Relative to Cellwright | Own memory | Rounds |"
    return rows(head, lines)


# ---- Measurements --------------------------------------------------------------------------------

class Start:
    TITLE = "Start to first result"

    def __init__(self, programs, rounds):
        log("measuring the start")
        book = BENCH / "one.ipynb"
        book.write_text(json.dumps(cells.notebook(cells.ONE)), encoding="utf-8")
        self.tools = measure([
            Run(f"`cellwright eval '{cells.ONE}'`", programs.ours(cells.ONE), output="pipe", ours=True),
            Run(f"`python -c '{cells.ONE}'`", [programs.python, "-c", cells.ONE], output="pipe"),
            Run("bare pipe loop", programs.bare(1, cells.ONE), output="pipe"),
            Run("`jupyter_client`", programs.peer("client", cells.ONE, "text", 2), output="pipe"),
            Run("`nbclient`", programs.peer("nbclient", cells.ONE, "text", 2), output="pipe"),
            Run("`jupyter execute`", [programs.python.parent / "jupyter-execute", book], output="pipe"),
        ], rounds)
        self.round_trip = 0

    def text(self):
        ours = self.tools[0]
        lines = []
        for tool in self.tools:
            shown = tool.time("first") > 0
            first = time_text(tool.time("first")) if shown else ""
            both = [ratio_text(tool.ratio(ours, of)) if tool is not ours and is_shown else ""
                    for of, is_shown in [("first", shown), ("seconds", True)]]
            lines.append(f"| {name_text(tool)} | {first} | {both[0]} | {time_text(tool.time())} | "
                         f"{both[1]} | {size_text(tool.memory())} |")
        return rows("| | First output | Relative to Cellwright | Whole command | Relative to Cellwright | "
                    "Own memory |", lines)

    def goals(self):
        more = self.tools[0].difference(self.tools[1], "first")
        yield ("The first output comes at most 15 ms and a round trip through a pipe after that of "
               "`python -c`", f"{more * 1e3:.1f} ms", more <= 0.015 + self.round_trip)


class Trips:
    TITLE = "Round trip"

    def __init__(self, programs, rounds):
        log("measuring round trips")
        cell = ["--cell", cells.TWO]
        self.ours = Trip("`cellwright eval --json`", programs.ours("--json", *cell * OURS_TRIPS),
                         OURS_TRIPS, our_times, ours=True)
        # One more, whose result is printed first: it waits for the start and is not timed.
        self.pipe = Trip("bare pipe loop", programs.bare(OURS_TRIPS + 1, cells.TWO), OURS_TRIPS,
                         lambda text: [int(line) / 1e9 for line in text.split()[1:]])
        self.client = Trip("`jupyter_client`", programs.peer("trips", THEIR_TRIPS, cells.TWO),
                           THEIR_TRIPS, lambda text: [int(line) / 1e9 for line in text.split()])
        one = Run("one cell", programs.ours("--json", *cell), output=str(ANSWER))
        measure([self.ours, self.pipe, self.client, one], rounds)
        # Cellwright reports the time of each cell. From outside: by how much a cell extends the command.
        self.outside = self.ours.difference(one) / (OURS_TRIPS - 1)

    def text(self):
        lines = []
        for tool in [self.ours, self.pipe, self.client]:
            beside = "" if tool is self.ours else ratio_text(tool.ratio(self.ours, "trip"))
            lines.append(f"| {name_text(tool)} | {micro_text(tool.time('trip'))} | {beside} | "
                         f"{micro_text(tool.time('slow'))} | {micro_text(tool.time('mean'))} |")
        found = rows("| | Median | Relative to Cellwright | 99 % take less than | Mean |", lines)
        return found + (
            f"\nMeasured from outside, each cell makes the whole command {micro_text(self.outside)} longer: "
            "its time, its capture and its part of the report.\n"
        )

    def goals(self):
        yield ("A round trip of `1+1` takes less than 100 µs, median",
               micro_text(self.ours.time("trip")), self.ours.time("trip") < 100e-6)
        faster = self.client.ratio(self.ours, "trip")
        yield "It is 20 times as fast as `jupyter_client`", ratio_text(faster), faster >= 20


class Lines:
    TITLE = "100 MB of lines"

    def __init__(self, programs, rounds):
        log("measuring 100 MB of lines")
        code, amount = cells.LINES, cells.LINES_BYTES
        ours = programs.ours("--json", code)
        cut = answer_of(ours)["cells"][0]["truncated"]
        check(cut["total_bytes"] == amount, "not all lines arrived")
        self.tools = measure([
            Run("`cellwright eval --json` to `/dev/null`", ours, ours=True, writes=True),
            Run("`cellwright eval --json` to a pipe", ours, output="pipe", ours=True, writes=True),
            Run("`python -c` to `cat`", programs.plain(code)),
            Peer("`jupyter_client`", programs.peer("client", code, "text", amount)),
            Peer("`nbclient`", programs.peer("nbclient", code, "text", amount)),
        ], rounds)

    def text(self):
        return run_table(self.tools, cells.LINES_BYTES)

    def goals(self):
        ours, piped, nbclient = self.tools[0], self.tools[1], self.tools[-1]
        faster = nbclient.ratio(ours)
        yield "100 MB of lines are 5 times as fast as with nbclient", ratio_text(faster), faster >= 5
        most = max(ours.memory(), piped.memory())
        yield "They need less than 64 MB of memory", size_text(most), most < MOST_MEMORY


class Flushes:
    TITLE = "100,000 flushed prints"

    def __init__(self, programs, rounds, quick):
        log("measuring flushed prints")
        code, amount = cells.FLUSHES, cells.FLUSHES_BYTES
        ours = programs.ours("--json", code)
        check(answer_of(ours)["cells"][0]["truncated"]["total_bytes"] == amount, "not all arrived")
        tools = [Run("`cellwright eval --json`", ours, ours=True, writes=True),
                 Run("`python -c` to `cat`", programs.plain(code))]
        if not quick:
            # Takes the better part of a minute.
            tools.append(Peer("`nbclient`", programs.peer("nbclient", code, "text", amount),
                              warm=False, most=1))
        self.tools = measure(tools, rounds)

    def text(self):
        return run_table(self.tools)

    def goals(self):
        time = self.tools[0].time()
        yield "100,000 flushed prints take less than 1 s", time_text(time), time < 1


class Picture:
    TITLE = "A picture of 50 MB"

    def __init__(self, programs, rounds):
        log("measuring a large picture")
        code, amount = cells.PICTURE, cells.PICTURE_BYTES
        ours = programs.ours("--json", code)
        [output] = answer_of(ours)["cells"][0]["outputs"]
        arrived = base64.b64decode("".join(output["data"]["image/png"]))
        noise = random.Random(cells.PICTURE_SEED).randbytes(1_000_000)
        check(arrived == cells.PNG + noise * 50, "the picture is another one")
        self.tools = measure([
            Run("`cellwright eval --json` to `/dev/null`", ours, ours=True, writes=True),
            Run("`cellwright eval --json` to a pipe", ours, output="pipe", ours=True, writes=True),
            Peer("`jupyter_client`", programs.peer("client", code, "png", amount)),
            Peer("`nbclient`", programs.peer("nbclient", code, "png", amount)),
        ], rounds)

    def text(self):
        return run_table(self.tools)

    def goals(self):
        return []


class Death:
    TITLE = "A kernel that dies"

    def __init__(self, programs):
        log("measuring deaths")
        self.tools = measure([
            Dying("`cellwright eval --json`", programs.ours("--json", cells.DEATH), ours=True,
                  codes=(2,)),
            Dying("`nbclient`", programs.peer("death", cells.DEATH), most=3),
        ], DEATHS)

    def text(self):
        lines = [
            f"| {name_text(tool)} | {time_text(tool.time('reported'))} | "
            f"{time_text(max(tool.reported.values()))} | {len(tool.reported)} |" for tool in self.tools
        ]
        return rows("| | Median | Longest | Times |", lines)

    def goals(self):
        longest = max(self.tools[0].reported.values())
        yield "A death is reported within 250 ms, maximum", time_text(longest), longest < 0.25


class Flood:
    TITLE = "Floods"

    def __init__(self, programs, amount):
        log("measuring floods")
        self.amount = amount
        self.ways = []
        for name, pieces in cells.FLOODS.items():
            code = cells.flood(pieces, amount)
            ours = Run(name, programs.ours("--json", code), output=str(ANSWER), ours=True,
                       writes=True, warm=False)
            # The peer runs first: the artifact of Cellwright is read below.
            plain = Run("`python -c` to `cat`", programs.plain(code), warm=False)
            for tool in [plain, ours]:
                tool.run(1, measured=True)
            self.ways.append((ours, plain, self.is_right(programs)))

    def is_right(self, programs):
        """Whether the artifact is what the cell wrote."""
        [cell] = json.loads(ANSWER.read_text(encoding="utf-8"))["cells"]
        command = [programs.built.path, "artifact", "path", cell["truncated"]["artifact"]]
        path = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, text=True,
                              check=True).stdout.rstrip("\n")
        found = hashlib.sha256()
        with open(path, "rb") as file:
            while piece := file.read(1 << 20):
                found.update(piece)
        return found.hexdigest() == cells.FLOOD_NOTE.read_text()

    def text(self):
        lines = [
            f"| {ours.name} | {time_text(ours.time())} | {self.amount / 1e6 / ours.time():,.0f} MB/s | "
            f"{time_text(plain.time())} | {size_text(ours.memory())} | "
            f"{'right' if right else '**wrong**'} |"
            for ours, plain, right in self.ways
        ]
        return f"{self.amount / 1e6:,.0f} MB each, once.\n\n" + rows(
            "| | Cellwright | | `python -c` to `cat` | Own memory | Hash of the artifact |", lines)

    def goals(self):
        most = max(ours.memory() for ours, _, _ in self.ways)
        size = f"{self.amount / 1e6:,.0f} MB"
        yield (f"{size} need less than 64 MB of memory, in each of {len(self.ways)} ways",
               size_text(most), most < MOST_MEMORY)
        right = sum(right for _, _, right in self.ways)
        yield (f"The artifact of {size} equals the output", f"{right} of {len(self.ways)}",
               right == len(self.ways))


# ---- Report -------------------------------------------------------------------------------------

QUICK = """\
**This was a quick run**: few rounds, small floods, no flushed prints with nbclient, and perhaps other
work on the machine. Its figures only show that the suite works.

"""

METHOD = """\
`scripts/bench eval` runs the tools and writes this part. The same interpreter runs all code. Each table is one
session: all tools run once to warm up, then {rounds} rounds ({starts} for the start) of all tools, each round starting
with a different tool. A tool stops after {most} seconds in total. Times are wall time of the whole process, medians of the
rounds. "Relative to Cellwright" is the time of a tool divided by that of the first row in the same round, median of
the rounds, so that other load affects both sides equally. "Own memory" is the peak of the command without its kernel
(`VmHWM`, sampled every two milliseconds), the largest of all rounds. Stored files of a run are removed before the next
run, and all data is flushed to disk before each run of Cellwright that stores files.

- `jupyter_client`: one Python process that starts ipykernel, runs the cell, receives all messages until the kernel is
  idle, keeps none, and shuts the kernel down. `nbclient`: the same with a notebook of one cell. Both check that all output
  has arrived; the tables show where it has not. Their imports are part of their time, as for every user.
- The bare pipe loop is the lower bound: a driver in Rust (`pipe.rs`) sends the code to 20 lines of Python
  (`loop.py`), which call `eval` and send the result. It has no statements, errors, interrupts or order of outputs.
- First output: when the first byte arrives through a pipe. `jupyter execute` prints none.
- Round trips: {ours} cells in one session (`jupyter_client`: {theirs}, until the reply and the idle message have
  arrived). Cellwright's times are `duration_ms`; the drivers of the other tools measure theirs.
- Lines, prints, floods: nbclient holds all text in memory. Cellwright stores all of it in an artifact, and returns
  50 KiB of text and at most 4 MiB of outputs.
- The picture: 50 MB that begin like a PNG, from `_repr_png_`. Cellwright stores it as an artifact and also returns all of
  it in base64; the suite compares it once, byte for byte. The other tools keep it in memory.
- Deaths: the cell records the time and sends itself SIGKILL; measured until the command has exited with its report,
  {deaths} times.
- Floods: the cell hashes its output, and the artifact must have the same SHA-256. The hashing is part of the time. The
  table also has the same code with only `cat` as reader.
"""
