"""The suite `host`: sessions in a host, compared with kernels of one command and jupyter_client."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import eval_cells as cells
from eval_tools import Programs, Run, Trip, check, our_times
from host_client import recorded
from measure import (BENCH, HELPERS, MOST_SECONDS, environment, goal_table, measure, micro_text,
                     name_text, part, ratio_text, rows, log, size_text, time_text)

TRIPS, THEIR_TRIPS, NEW, AT_ONCE, EACH = 2000, 500, 8, 16, 200
# Some milliseconds of work, so that the client is not what is measured.
WORK = "sum(range(200_000)) and 2"
MOST_MEMORY = 20e6


def run(rounds, quick):
    """Runs the suite and returns its part of the document."""
    programs = Programs()
    with Host(programs, "with") as host, Host(programs, "without", spare=False) as plain:
        fresh = memory_of(host.pid)
        # The commands of this suite find the host through this variable.
        os.environ["CELLWRIGHT_HOST_DIR"] = str(host.directory)
        sections = [New(programs, host, plain, rounds), Trips(programs, host, rounds),
                    Command(programs, host, rounds * 2), AtOnce(programs, host, rounds),
                    Memory(programs, host, fresh)]
    text = METHOD.format(rounds=rounds, starts=rounds * 2, most=MOST_SECONDS, trips=TRIPS,
                         theirs=THEIR_TRIPS, new=NEW)
    return part(
        "Sessions in the host",
        programs.versions(),
        goal_table(goal for section in sections for goal in section.goals()),
        (QUICK if quick else "") + text,
        *["\n".join([f"### {section.TITLE}", "", section.text()]) for section in sections],
    )


class Host:
    """A separate host, until the end of the block."""

    def __init__(self, programs, name, spare=True):
        self.binary = str(programs.built.path)
        self.directory = BENCH / "home" / name
        self.request = BENCH / "home" / f"{name}.json"
        self.env = {**environment(), "CELLWRIGHT_HOST_DIR": str(self.directory),
                    "CELLWRIGHT_SESSIONS_MAX": "64", "CELLWRIGHT_HOST_IDLE_EXIT": "0",
                    "CELLWRIGHT_KERNEL_SPARE": "true" if spare else "false"}
        self.python = programs.python

    def __enter__(self):
        self.verb("host", "start")
        self.pid = json.loads(self.verb("host", "status", "--json"))["pid"]
        beside = BENCH / "home" / "recorded"
        shutil.rmtree(beside, ignore_errors=True)
        before = dict(os.environ)
        os.environ.update(self.env)
        recorded([self.binary, "eval", "--python", str(self.python), "--timeout", "0", "--json",
                  "--session", "s", "1"], self.directory, beside, self.request)
        os.environ.clear()
        os.environ.update(before)
        return self

    def __exit__(self, *_):
        self.verb("host", "stop")

    def verb(self, *arguments):
        return subprocess.run([self.binary, *arguments], env=self.env, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.DEVNULL, check=True).stdout

    def client(self, way, *arguments):
        return [self.python, HELPERS / "host_client.py", way, self.directory, self.request, *arguments]


def nanoseconds(text):
    return [int(line) / 1e9 for line in text.split()]


class NewTrip(Trip):
    """Leaves no session for the next round."""

    def __init__(self, host, name, command, **options):
        super().__init__(name, command, NEW, nanoseconds, **options)
        self.host = host

    def run(self, number, measured):
        super().run(number, measured)
        self.host.verb("kernels", "stop", "--all")


# ---- Measurements --------------------------------------------------------------------------------

class New:
    TITLE = "New session to first result"

    def __init__(self, programs, host, plain, rounds):
        log("measuring new sessions")
        starts = [programs.python, HELPERS / "host_client.py", "starts", 2, cells.TWO]
        self.tools = measure([
            NewTrip(host, "a spare is ready", host.client("new", NEW, cells.TWO), ours=True),
            NewTrip(plain, "without spares", plain.client("new", NEW, cells.TWO), ours=True),
            Trip("`jupyter_client`", starts, 2, nanoseconds),
        ], rounds)

    def text(self):
        return trip_table(self.tools, time_text)

    def goals(self):
        return []


class Trips:
    TITLE = "Round trip"

    def __init__(self, programs, host, rounds):
        log("measuring round trips")
        alone = programs.ours("--json", *["--cell", cells.TWO] * TRIPS)
        theirs = programs.peer("trips", THEIR_TRIPS, cells.TWO)
        self.tools = measure([
            Trip("through the host, one connection", host.client("trips", TRIPS, cells.TWO), TRIPS,
                 nanoseconds, ours=True),
            Trip("`cellwright eval --json`, no host", alone, TRIPS, our_times, ours=True),
            Trip("`jupyter_client`", theirs, THEIR_TRIPS, nanoseconds),
        ], rounds)

    def text(self):
        return trip_table(self.tools, micro_text)

    def goals(self):
        median = self.tools[0].time("trip")
        yield ("A round trip of `1+1` through the host takes less than 300 µs, median",
               micro_text(median), median < 300e-6)


def trip_table(tools, words):
    lines = []
    for tool in tools:
        beside = "" if tool is tools[0] else ratio_text(tool.ratio(tools[0], "trip"))
        lines.append(f"| {name_text(tool)} | {words(tool.time('trip'))} | {beside} | "
                     f"{words(tool.time('slow'))} |")
    return rows("| | Median | Relative to Cellwright | 99 % take less than |", lines)


class Command:
    TITLE = "A whole command"

    def __init__(self, programs, host, rounds):
        log("measuring commands")
        self.tools = measure([
            Run("`cellwright eval --session s '1+1'`",
                programs.ours("--session", "s", cells.TWO), output="pipe", ours=True),
            Run("`cellwright eval '1+1'`", programs.ours(cells.TWO), output="pipe", ours=True),
            Run("`python -c 'print(1+1)'`", [programs.python, "-c", f"print({cells.TWO})"], output="pipe"),
        ], rounds)

    def text(self):
        ours = self.tools[0]
        lines = [
            f"| {name_text(tool)} | {time_text(tool.time())} | "
            f"{'' if tool is ours else ratio_text(tool.ratio(ours))} | {size_text(tool.memory())} |"
            for tool in self.tools
        ]
        return rows("| | Time | Relative to Cellwright | Own memory |", lines)

    def goals(self):
        return []


class AtOnce:
    TITLE = f"{AT_ONCE} sessions at once"

    def __init__(self, programs, host, rounds):
        log("measuring sessions at once")
        self.pairs = []
        for name, code, each in [("`1+1`", cells.TWO, EACH), ("some milliseconds of work", WORK, EACH // 5)]:
            tools = measure([
                Whole(f"{name}, {sessions} session{'s' * (sessions > 1)}",
                      host.client("many", sessions, each * AT_ONCE // sessions, code), ours=True)
                for sessions in (1, AT_ONCE)
            ], rounds)
            self.pairs.append((each * AT_ONCE, tools))

    def text(self):
        lines = []
        for count, (one, several) in self.pairs:
            for tool in (one, several):
                beside = "" if tool is one else ratio_text(one.ratio(several, "whole"))
                lines.append(f"| {tool.name} | {count / tool.time('whole'):,.0f} | {beside} |")
        return rows("| | Cells in a second | Compared with one |", lines)

    def goals(self):
        return []


class Whole(Run):
    """Prints the total time."""

    def __init__(self, name, command, **options):
        super().__init__(name, command, output=str(BENCH / "answer"), **options)
        self.whole = {}

    def look(self, number, ended):
        [self.whole[number]] = nanoseconds((BENCH / "answer").read_text())


class Memory:
    TITLE = "Memory"

    def __init__(self, programs, host, fresh):
        log("measuring memory")
        kernels = json.loads(host.verb("kernels", "list", "--json"))["kernels"]
        mine = [memory_of(kernel["pid"]) for kernel in kernels]
        check(len(mine) > AT_ONCE, "the sessions are gone")
        supervisors = [parent_of(kernel["pid"]) for kernel in kernels]
        watchers = [memory_of(parent_of(pid)) for pid in supervisors]
        supervisors = [memory_of(pid) for pid in supervisors]
        idle = subprocess.Popen([programs.python, HELPERS / "host_client.py", "idle", cells.TWO],
                                env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        pid = int(idle.stdout.readline())
        time.sleep(1)
        theirs = memory_of(pid)
        idle.communicate()
        self.fresh = fresh
        self.used = memory_of(host.pid)
        middle = lambda all_of_them: sorted(all_of_them, key=lambda one: one["Pss"])[len(all_of_them) // 2]
        self.lines = [
            ("**the host, just started**", fresh),
            (f"**the host, after this suite, with {len(kernels)} sessions**", self.used),
            ("**an idle kernel of a session**", middle(mine)),
            ("**its supervisor**", middle(supervisors)),
            ("**its watcher**", middle(watchers)),
            ("an idle ipykernel", theirs),
        ]

    def text(self):
        return rows("| | RSS | PSS | Its own (USS) |", [
            f"| {name} | {size_text(one['Rss'])} | {size_text(one['Pss'])} | {size_text(one['Uss'])} |"
            for name, one in self.lines
        ])

    def goals(self):
        for when, one in [("just started", self.fresh), ("after this suite", self.used)]:
            yield (f"An idle host needs less than 20 MB (RSS), {when}", size_text(one["Rss"]),
                   one["Rss"] < MOST_MEMORY)


def memory_of(pid):
    """Memory of a process, in bytes."""
    found = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, value = line.split(":")
        found[name] = int(value.split()[0]) * 1024
    return {**found, "Uss": found["Private_Clean"] + found["Private_Dirty"]}


def parent_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()[1]


# ---- Report -------------------------------------------------------------------------------------

QUICK = """\
**This was a quick run**: few rounds, and perhaps other work on the machine. Its figures only show that the
suite works.

"""

METHOD = """\
`scripts/bench host` runs the tools and writes this part. The same interpreter runs all code. Each table is one
session of measuring: all tools run once to warm up, then {rounds} rounds ({starts} for commands) of all tools, each round
starting with a different tool. A tool stops after {most} seconds in total. "Relative to Cellwright" is the time of a tool
divided by that of the first row in the same round, median of the rounds.

- Through the host: a short Python program (`host_client.py`) that connects to the host's socket once and sends the
  requests of the command line. It measures the times, including its JSON.
- New sessions: {new} in a row in each round, with a pause in which the host starts the next spare kernel;
  `jupyter_client` starts a kernel and shuts it down again, measured until the result.
- Round trips: {trips} cells in one session (`jupyter_client`: {theirs}). Without a host the times are `duration_ms`.
- Concurrent sessions: one thread of that program per session; the same total number of cells.
- Memory: from `smaps_rollup`; of many kernels, the median. Shared pages count fully in RSS, in part in PSS, and not at
  all in private memory.
"""
