"""The suite `run`: whole notebooks, beside nbclient, papermill, nbconvert and nb-cli."""

import json
import os
import shutil
import sys

import run_books
from eval_tools import clean_up
from measure import (BENCH, MOST_SECONDS, Cellwright, Tool, build_helper, environment, find_python, goal_table,
                     measure, name_text, output_of, part, ratio_text, rows, log, size_text, time_text, version_of)
from suite_notebook import find_nb

PACKAGES = {"ipykernel": "7.4.0", "jupyter_client": "8.10.0", "nbclient": "0.11.0", "nbformat": "5.11.1",
            "papermill": "2.7.0", "nbconvert": "7.17.2"}
FOLDER = BENCH / "run"
# Rounds of notebooks that take long.
HEAVY_ROUNDS = 5
# Time limit of one run, in seconds.
RUN_TIMEOUT = 600
# Random share of the time of a kernel that is busy for seconds.
CHANCE = 0.05
MOST_MEMORY = 64e6
PYTHON_TOOLS = ["nbclient", "papermill", "nbconvert"]


def run(rounds, quick):
    """Runs the suite and returns its part of the document."""
    programs = Programs()
    FOLDER.mkdir(parents=True, exist_ok=True)
    sections = [First(programs, rounds * 2)]
    for book in run_books.books(quick):
        sections.append(Section(programs, book, rounds if book.light else min(rounds, HEAVY_ROUNDS)))
    shutil.rmtree(FOLDER)
    text = METHOD.format(rounds=rounds, starts=rounds * 2, heavy=min(rounds, HEAVY_ROUNDS), most=MOST_SECONDS,
                         minutes=RUN_TIMEOUT // 60)
    return part(
        "Running notebooks",
        programs.versions(),
        goal_table(goals(sections)),
        (QUICK if quick else "") + text,
        *["\n".join([f"### {section.title}", "", section.text()]) for section in sections],
    )


# ---- Tools --------------------------------------------------------------------------------------

class Programs:
    def __init__(self):
        self.built = Cellwright()
        build_helper("spawn")
        self.python = find_python(PACKAGES)
        self.nb = find_nb()

    def versions(self):
        return [
            self.built.version(),
            *[f"{name} {version_of(self.python, name)}" for name in PACKAGES],
            output_of(self.nb, "--version").replace("nb ", "nb-cli "),
            output_of(self.python, "--version"),
        ]

    def tools(self, book):
        """All tools, each with its notebook and its output file."""
        directory = self.python.parent
        ours = [self.built.path, "run", "{in}", "-o", "{out}", "--quiet", "--python", self.python]
        all_tools = [
            Runner("Cellwright, on the runner", book, "runner", [*ours, "--backend", "runner"], ours=True),
            Runner("Cellwright, on ipykernel", book, "jupyter", [*ours, "--backend", "jupyter"], ours=True),
            Runner("`jupyter execute` (nbclient)", book, "nbclient",
                   [directory / "jupyter-execute", "--output={stem}", "{in}"]),
            Runner("`papermill`", book, "papermill",
                   [directory / "papermill", "--no-progress-bar", "{in}", "{out}"]),
            Runner("`jupyter nbconvert --execute`", book, "nbconvert",
                   [directory / "jupyter-nbconvert", "--to", "notebook", "--execute", "--output", "{stem}", "{in}"]),
            Runner("`nb execute`", book, "nb",
                   [self.nb, "execute", "--timeout", RUN_TIMEOUT, "{out}"], in_place=True),
        ]
        for tool in all_tools:
            # As in an active environment: some tools find the kernel through PATH.
            tool.variables["PATH"] = f"{directory}{os.pathsep}{environment()['PATH']}"
        return all_tools


class Runner(Tool):
    """A tool that runs a notebook. `{in}` in its command is the notebook, `{out}` the file it writes, `{stem}` the
    name of that file without its ending. Another tool that fails, or whose result is wrong, is reported and not run again."""

    def __init__(self, name, book, key, command, in_place=False, **options):
        self.book = book
        self.key = key
        self.in_place = in_place
        self.source, self.result = FOLDER / f"{book.name}.ipynb", FOLDER / f"{book.name}-{key}.ipynb"
        for mark, meant in [("{in}", self.source), ("{out}", self.result), ("{stem}", self.result.stem)]:
            command = [str(part).replace(mark, str(meant)) for part in command]
        super().__init__(name, command, memory="own", writes=True, codes=range(256), warm=book.light, **options)
        self.variables = {"SPAWN_SECONDS": str(RUN_TIMEOUT)}
        self.stored = 0
        self.failed = None

    def run(self, number, measured):
        clean_up()
        self.result.unlink(missing_ok=True)
        if self.in_place:
            shutil.copyfile(self.source, self.result)
        super().run(number, measured)

    def look(self, number, ended):
        code = self.ended[-1]
        if self.seconds[number] >= RUN_TIMEOUT:
            self.failed = f"takes more than {RUN_TIMEOUT // 60} minutes"
        elif code != 0:
            self.failed = f"fails with exit code {code}"
        else:
            self.stored = self.result.stat().st_size
            self.failed = self.wrong()
        if self.failed and self.ours:
            sys.exit(f"{self.name}, {self.book.title}: {self.failed}")

    def wrong(self):
        """The first fault of the outputs: a tool that is fast because it lost some is not a result."""
        try:
            with open(self.result, encoding="utf-8") as file:
                wrong = self.book.wrong(json.load(file)["cells"])
        except (KeyError, ValueError, IndexError) as error:
            wrong = f"{type(error).__name__}: {error}"
        return wrong and f"stores other outputs: {wrong}"

    def is_done(self):
        return self.failed or super().is_done()


def beside(tool, ours, of):
    return "" if tool is ours or ours.failed else ratio_text(tool.ratio(ours, of))


# ---- Measurements --------------------------------------------------------------------------------

class Section:
    """One notebook, run by all tools."""

    def __init__(self, programs, book, rounds):
        log(f"measuring: {book.title}")
        self.title = book.title
        self.name = book.name
        self.tools = programs.tools(book)
        book.write(self.tools[0].source)
        self.size = self.tools[0].source.stat().st_size
        self.prepare()
        measure(self.tools, rounds)
        for tool in self.tools:
            tool.result.unlink(missing_ok=True)
        self.tools[0].source.unlink()

    def prepare(self):
        """Sets variables before the tools run."""

    @property
    def on_runner(self):
        return self.tools[0]

    @property
    def on_ipykernel(self):
        return self.tools[1]

    def peers(self, keys=None):
        """The other tools that succeeded."""
        return [tool for tool in self.tools
                if not tool.ours and not tool.failed and (keys is None or tool.key in keys)]

    def text(self):
        lines = []
        for tool in self.tools:
            if tool.failed:
                lines.append(f"| {tool.name}: {tool.failed} |" + " |" * 8)
                continue
            lines.append(
                f"| {name_text(tool)} | {time_text(tool.time())} | {beside(tool, self.on_runner, 'seconds')} | "
                f"{beside(tool, self.on_ipykernel, 'seconds')} | {time_text(tool.time('own_cpu'))} | "
                f"{beside_cpu(tool, self.on_ipykernel)} | {size_text(tool.memory())} | "
                f"{stored_text(tool.stored)} | {len(tool.seconds)} |")
        head = ("| | Time | Relative to Cellwright on the runner | Relative to Cellwright on ipykernel | Client CPU | "
                "Relative to Cellwright on ipykernel | Client memory | Stored | Rounds |")
        return rows(head, lines)


class First(Section):
    """A notebook of one cell, until its output is in the file."""

    def __init__(self, programs, rounds):
        super().__init__(programs, run_books.trivial(1), rounds)
        self.title = "First result"

    def prepare(self):
        for tool in self.tools:
            tool.variables["SPAWN_RESULT"] = str(tool.result)

    def text(self):
        lines = [f"| {tool.name}: {tool.failed} |" + " |" * 3 if tool.failed else
                 f"| {name_text(tool)} | {time_text(tool.time('first'))} | "
                 f"{beside(tool, self.on_runner, 'first')} | {beside(tool, self.on_ipykernel, 'first')} |"
                 for tool in self.tools]
        return rows("| | First result | Relative to Cellwright on the runner | Relative to Cellwright on ipykernel |", lines)


def beside_cpu(tool, ours):
    """Processor time has a resolution of a hundredth of a second, so that of Cellwright may be zero."""
    return beside(tool, ours, "own_cpu") if all(ours.own_cpu.values()) else ""


def stored_text(size):
    return size_text(size) if size >= 1e5 else f"{size / 1e3:.1f} kB"


# ---- Goals --------------------------------------------------------------------------------------

def goals(sections):
    first, *others = sections
    by_name = {section.name: section for section in others}
    many = [section for section in others if section.name.startswith("trivial")][-1]
    yield from least("First result on the runner: 10 times as soon as any other",
                     [tool.ratio(first.on_runner, "first") for tool in first.peers()], 10)
    yield from least(f"{many.title} on the runner: 20 times as fast as any other",
                     [tool.ratio(many.on_runner) for tool in many.peers()], 20)
    for section in others:
        yield from least(f"{section.title} on the same ipykernel: not slower than any other",
                         [tool.ratio(section.on_ipykernel) for tool in section.peers()], 1 - CHANCE)
    for section in others:
        # Times below the resolution of a hundredth of a second are zero.
        ours = max(section.on_ipykernel.time("own_cpu"), 0.01)
        yield from least(f"{section.title} on the same ipykernel: half the client CPU of those in Python",
                         [tool.time("own_cpu") / ours for tool in section.peers(PYTHON_TOOLS)], 2)
    memory = {section.title: max(section.on_runner.memory(), section.on_ipykernel.memory())
              for section in others}
    worst = max(memory, key=memory.get)
    yield (f"Client memory under 64 MB everywhere; maximum with: {worst}", size_text(memory[worst]),
           memory[worst] < MOST_MEMORY)
    flushed = by_name["flushes"].on_runner.time()
    yield "100,000 flushed prints on the runner: under a second", time_text(flushed), flushed < 1
    stored = max(tool.stored for tool in by_name["updates"].tools[:2])
    yield "20,000 updates of a line are stored as that line", stored_text(stored), stored < 2000


def least(what, ratios, wanted):
    """A goal that compares all tools; none if no other tool succeeded."""
    if ratios:
        yield what, ratio_text(min(ratios)), min(ratios) >= wanted


# ---- Report -------------------------------------------------------------------------------------

QUICK = """\
**This was a quick run**: small notebooks, few rounds, and perhaps other work on the machine. Its figures only show
that the suite works; the goals apply to the full suite.

"""

METHOD = """\
`scripts/bench run` creates the notebooks, runs the tools and writes this part. Every tool runs the same notebook from
the same file and writes the result to a separate file; `nb execute` writes into the notebook, so it gets a copy. All
tools start a kernel, run every cell and end the kernel. The kernel is the same ipykernel for all, and Cellwright's runner
on the same interpreter for the first row. After each run the suite checks every output in the result. A tool that
fails, stores other outputs or takes more than {minutes} minutes is reported and not run again; if Cellwright does, the suite
fails.

Each table is one session: {rounds} rounds ({starts} for the first result, {heavy} for large outputs) of all tools, each
round starting with a different tool; notebooks without large outputs run once before to warm up. A tool stops after
{most} seconds in total. Times are medians of the rounds. "Relative to Cellwright" is the value divided by that of the
named row in the same round, median of the rounds. All data is flushed to disk before each run.

- Time: wall time of the whole command.
- First result: from the start of the command until the file contains the output of the only cell, `print(1)`.
- Client CPU: user and system time of the command's process, without the kernel (and without Cellwright's supervisor,
  which sleeps), in hundredths of a second.
- Client memory: peak of the command's process (`VmHWM`).
- Stored: size of the written notebook.
- papermill saves the notebook after each cell, its default; Cellwright does too, but at most about once a second.
- In the ipykernel that Cellwright starts, `print(…, flush=True)` waits for the sending thread at most a hundred times a
  second (decision 20); in that of the other tools, every time.
"""
