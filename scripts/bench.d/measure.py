"""Shared by all suites: programs, measuring, and text of the report."""

import datetime
import os
import platform
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HELPERS = ROOT / "scripts" / "bench.d"
BENCH = ROOT / "target" / "bench"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
DOCUMENT = ROOT / "docs" / "benchmarks.md"

# Total time after which a tool is not measured again: one takes minutes with many cells.
MOST_SECONDS = 60


# ---- Measuring ----------------------------------------------------------------------------------

class Tool:
    """A command that is measured. `{n}` in an argument becomes the number of the round, so that an
    edit changes something every time.

    `output` is where its output goes: "null", "pipe", or a file. `memory` is "all" or "own", see
    spawn.rs. `codes` are the exit codes it may end with. `warm` is whether it runs once unmeasured;
    `most` is how many rounds it runs at most.
    """

    # Environment variables of this tool, in addition to those of all tools.
    variables = {}

    def __init__(self, name, command, output="null", ours=False, writes=False, memory="all",
                 codes=(0,), warm=True, most=None):
        self.name = name
        self.command = [str(part) for part in command]
        self.output = output
        self.ours = ours
        self.writes = writes
        self.counts = memory
        self.codes = codes
        self.warm = warm
        self.most = most
        self.seconds = {}
        self.first = {}
        self.own_cpu = {}
        self.kilobytes = []
        self.ended = []

    def run(self, number, measured):
        if self.writes:
            # A tool must not wait for writes that another tool has left to the system.
            os.sync()
        command = [part.replace("{n}", str(number)) for part in self.command]
        answer = subprocess.run(
            [BENCH / "spawn", self.output, self.counts, *command],
            env={**environment(), **self.variables},
            stdout=subprocess.PIPE, text=True, check=True,
        ).stdout
        nanoseconds, kilobytes, code, first, ended, own_cpu = (int(part) for part in answer.split())
        if code not in self.codes:
            sys.exit(f"{self.name} failed with exit code {code}: {' '.join(command)[:1000]}")
        if measured:
            self.seconds[number] = nanoseconds / 1e9
            self.first[number] = first / 1e9
            self.own_cpu[number] = own_cpu / 1e9
            self.kilobytes.append(kilobytes)
            self.ended.append(code)
            self.look(number, ended)

    def look(self, number, ended):
        """Called after each measured run, for tools that report more than their time."""

    def is_done(self):
        return sum(self.seconds.values()) > MOST_SECONDS or len(self.seconds) == self.most

    def time(self, of="seconds"):
        return statistics.median(getattr(self, of).values())

    def memory(self):
        """The largest of all runs, in bytes."""
        return max(self.kilobytes) * 1024

    def pairs(self, other, of="seconds"):
        """What this one and `other` took in each round that both were in."""
        mine, theirs = getattr(self, of), getattr(other, of)
        return [(mine[n], theirs[n]) for n in sorted(mine.keys() & theirs.keys())]

    def ratio(self, other, of="seconds"):
        """How many times longer this takes than `other`: each round compared with itself, so that
        other load on the machine cancels out, and of these the median."""
        return statistics.median(mine / theirs for mine, theirs in self.pairs(other, of))

    def difference(self, other, of="seconds"):
        """How much longer, the same way."""
        return statistics.median(mine - theirs for mine, theirs in self.pairs(other, of))


def environment():
    """Caches and settings of the tools go to a separate directory. The caller's variables for Python
    are removed: with PYTHONUNBUFFERED every print would be two writes, without compiled modules every
    start would be slower than it is."""
    home = BENCH / "home"
    others = {name: value for name, value in os.environ.items()
              if not name.startswith(("PYTHON", "IPYTHON", "JUPYTER", "VIRTUAL_ENV"))}
    return {**others, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"),
            "XDG_CONFIG_HOME": str(home / "config"), "XDG_DATA_HOME": str(home / "data"),
            "CELLWRIGHT_ARTIFACTS_DIR": str(home / "artifacts"), "NO_COLOR": "1"}


def measure(tools, rounds):
    """Runs all tools once to warm up, then in turn, each round beginning with another one."""
    for tool in tools:
        if tool.warm:
            tool.run(0, measured=False)
    for number in range(1, rounds + 1):
        start = number % len(tools)
        for tool in tools[start:] + tools[:start]:
            if not tool.is_done():
                tool.run(number, measured=True)
    return tools


# ---- Programs -----------------------------------------------------------------------------------

def log(text):
    print(text, file=sys.stderr, flush=True)


class Cellwright:
    """The measured program: built here, or named by CELLWRIGHT_BENCH_BINARY."""

    def __init__(self):
        if named := os.environ.get("CELLWRIGHT_BENCH_BINARY"):
            self.path = Path(named).resolve()
            self.remark = ", a binary that was given"
            return
        # Before the build: the sources may change while the tools run.
        changed = subprocess.run(
            ["git", "diff", "--quiet", "HEAD", "--", "crates", "Cargo.lock"], cwd=ROOT, check=False,
        ).returncode != 0
        log("building Cellwright")
        subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=ROOT, check=True)
        self.path = TARGET / "release" / "cellwright"
        self.remark = ", with later changes" if changed else ""

    def version(self):
        return output_of(self.path, "--version") + self.remark


def build_helper(name):
    """Compiles a program of bench.d."""
    subprocess.run(
        ["rustc", "--edition", "2024", "-O", HELPERS / f"{name}.rs", "-o", BENCH / name], check=True,
    )
    return BENCH / name


def find_python(packages):
    """An interpreter that has the packages: the one of the environment that CELLWRIGHT_BENCH_VENV
    names, which stays unchanged, or of a new environment, into which they are installed."""
    named = os.environ.get("CELLWRIGHT_BENCH_VENV")
    python = Path(named or BENCH / "venv").absolute() / "bin" / "python"
    if not named and not python.exists():
        subprocess.run([sys.executable, "-m", "venv", BENCH / "venv"], check=True)
    found = {name: version_of(python, name) for name in packages}
    if named:
        if missing := [name for name, version in found.items() if not version]:
            sys.exit(f"CELLWRIGHT_BENCH_VENV has no {', '.join(missing)}")
    elif found != packages:
        log(f"installing {', '.join(packages)}")
        wanted = [f"{name}=={version}" for name, version in packages.items()]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    return python


def version_of(python, package):
    """The version of an installed package, or the empty string."""
    ask = ("import sys, importlib.metadata as m\ntry: print(m.version(sys.argv[1]))\n"
           "except m.PackageNotFoundError: print()")
    return output_of(python, "-c", ask, package)


def output_of(*command):
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return "".join(answer.stdout.strip().splitlines()[:1])


# ---- Report -------------------------------------------------------------------------------------

def time_text(seconds):
    if seconds >= 10:
        return f"{seconds:.0f} s"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    milliseconds = seconds * 1000
    return f"{milliseconds:.0f} ms" if milliseconds >= 100 else f"{milliseconds:.1f} ms"


def micro_text(seconds):
    return f"{seconds * 1e6:,.0f} µs"


def size_text(size):
    return f"{size / 1e6:.1f} MB" if size < 1e8 else f"{size / 1e6:.0f} MB"


def ratio_text(ratio):
    digits = 2 if ratio < 1 else 1 if ratio < 100 else 0
    return f"{ratio:.{digits}f}×"


def rows(head, lines):
    """A table: names in the first column, numbers in the others."""
    columns = head.count("|") - 2
    return "\n".join([head, "|---|" + "---:|" * columns, *lines]) + "\n"


def table(tools, size=None):
    ours = tools[0]
    lines = []
    for tool in tools:
        beside = "" if tool is ours else ratio_text(tool.ratio(ours))
        row = f"| {name_text(tool)} | {time_text(tool.time())} | {beside} | {size_text(tool.memory())} |"
        lines.append(row + (f" {tool.memory() / size:.2f}× |" if size else ""))
    head = "| | Time | Relative to Cellwright | Peak memory |" + (" Of the file |" if size else "")
    return rows(head, lines)


def name_text(tool):
    return f"**{tool.name}**" if tool.ours else tool.name


def goal_table(goals):
    """Each goal, what was measured, and whether that meets it."""
    lines = [f"| {what} | {found} | {'met' if met else '**not met**'} |" for what, found, met in goals]
    return "\n".join(["| Goal | Measured | |", "|---|---:|---|", *lines]) + "\n"


def machine():
    """A short description of the machine."""
    info = Path("/proc/cpuinfo").read_text()
    model = next((line.split(":")[1].strip() for line in info.splitlines()
                  if line.startswith("model name")), "unknown processor")
    virtual = ", a virtual machine" if " hypervisor" in info else ""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kind = output_of("findmnt", "--noheadings", "--output", "FSTYPE", "--target", BENCH)
    return (f"{os.cpu_count()} cores, {model} ({platform.machine()}){virtual}, {memory:.0f} GiB "
            f"memory, Linux {platform.release().split('-')[0]}, files on {kind}")


def part(title, versions, goals, method, *sections):
    """The part of the document that one suite writes."""
    return "\n".join([
        f"## {title}",
        "",
        f"- Date: {datetime.date.today().isoformat()}",
        f"- Machine: {machine()}",
        f"- Versions: {', '.join(versions)}",
        "",
        *(["### Goals", "", goals] if goals else []),
        "### Method",
        "",
        method,
        *sections,
    ]).rstrip() + "\n"


def publish(suite, text):
    """Puts the part of a suite into the document, in place of the one that was there."""
    begin, end = f"<!-- begin {suite} -->\n", f"<!-- end {suite} -->\n"
    document = DOCUMENT.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    marked = f"{begin}\n{text}\n{end}"
    changed, count = pattern.subn(lambda _: marked, document)
    DOCUMENT.write_text(changed if count else f"{document}\n{marked}", encoding="utf-8")
    log(f"written: {DOCUMENT.relative_to(ROOT)}")
