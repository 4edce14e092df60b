"""The suite `notebook`: reading, editing and writing notebooks, beside nb-cli, jupytext, nbformat."""

import filecmp
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import notebooks
from measure import (BENCH, MOST_SECONDS, Cellwright, Tool, build_helper, environment, find_python,
                     goal_table, measure, output_of, part, log, table, time_text, version_of)

PACKAGES = {"jupytext": "1.19.6", "nbformat": "5.11.1"}
NB_CLI = "0.0.10"


def run(rounds, quick):
    """Runs the suite and returns its part of the document."""
    programs = Programs()
    starts = measure_starts(programs, rounds * 4)
    shapes = list(make_shapes(quick))
    for shape in shapes:
        shape.measure(programs, rounds)
    return part(
        "Notebooks",
        programs.versions(),
        None if quick else goals(shapes, starts),
        METHOD.format(rounds=rounds, most=MOST_SECONDS),
        *[shape_text(shape) for shape in shapes],
        "### Start-up",
        "",
        table(starts),
    )


def find_nb():
    if named := os.environ.get("CELLWRIGHT_BENCH_NB"):
        return Path(named)
    directory = BENCH / "nb-cli"
    if not (directory / "bin" / "nb").exists():
        log("installing nb-cli")
        subprocess.run(
            ["cargo", "install", "nb-cli", "--version", NB_CLI, "--locked", "--root", directory],
            check=True,
        )
    return directory / "bin" / "nb"


class Programs:
    def __init__(self):
        self.built = Cellwright()
        self.cellwright = self.built.path
        build_helper("spawn")
        self.python = find_python(PACKAGES)
        self.venv = self.python.parent
        self.nb = find_nb()

    def versions(self):
        return [
            self.built.version(),
            "jupytext " + output_of(self.venv / "jupytext", "--version").split()[-1],
            "nbformat " + version_of(self.python, "nbformat"),
            output_of(self.python, "--version"),
            output_of(self.nb, "--version").replace("nb ", "nb-cli "),
            output_of("cat", "--version"),
            " ".join(output_of("rustc", "--version").split()[:2]),
        ]


# ---- Measurements --------------------------------------------------------------------------------

class Shape:
    """A notebook and everything measured with it."""

    def __init__(self, name, path, cells):
        self.name = name
        self.path = path
        self.cells = cells
        self.size = path.stat().st_size
        # A code cell in both kinds of notebooks: every fourth one of the large kind is Markdown.
        self.middle = cells // 2 // 4 * 4

    def copy(self, name):
        """A copy for one tool to write to."""
        copy = self.path.parent / f"{self.path.stem}-{name}.ipynb"
        shutil.copyfile(self.path, copy)
        return copy

    def measure(self, programs, rounds):
        log(f"measuring {self.name}")
        self.read = measure(self.readers(programs), rounds)
        self.piped = measure(self.pipers(programs), rounds)
        self.edit = measure(self.editors(programs), rounds)
        self.write = measure(self.writers(programs), rounds)
        self.check_results(programs)

    def readers(self, programs):
        read = "import sys, nbformat; nbformat.read(sys.argv[1], 4)"
        return [
            Tool("`cellwright read`", [programs.cellwright, "read", self.path], ours=True),
            Tool("`cat`", ["cat", self.path]),
            Tool("`nb read --no-output`", [programs.nb, "read", "--no-output", self.path]),
            Tool("`jupytext --to py:percent`",
                 [programs.venv / "jupytext", "--to", "py:percent", "-o", "-", self.path]),
            Tool("`nbformat.read`", [programs.python, "-c", read, self.path]),
        ]

    def pipers(self, programs):
        return [
            Tool("`cellwright read`", [programs.cellwright, "read", self.path], "pipe", ours=True),
            Tool("`cat`", ["cat", self.path], "pipe"),
            Tool("`nb read --no-output`", [programs.nb, "read", "--no-output", self.path], "pipe"),
        ]

    def editors(self, programs):
        edit = (
            "import sys, nbformat; path, cell, source = sys.argv[1:]; "
            "book = nbformat.read(path, 4); book.cells[int(cell)].source = source; "
            "nbformat.write(book, path)"
        )
        self.edited = {name: self.copy(name) for name in ["cellwright", "nb", "nbformat"]}
        source = "edited = {n}"
        flushed = 'cp "$1" "$2" && sync "$2"'
        return [
            Tool("`cellwright notebook edit`",
                 [programs.cellwright, "notebook", "edit", self.edited["cellwright"], self.middle,
                  "--source", source], ours=True, writes=True),
            Tool("`nb cell update`",
                 [programs.nb, "cell", "update", self.edited["nb"], "--cell-index", self.middle,
                  "--source", source], writes=True),
            Tool("`nbformat.read`, change, `nbformat.write`",
                 [programs.python, "-c", edit, self.edited["nbformat"], self.middle, source],
                 writes=True),
            Tool("`cp`", ["cp", self.path, self.path.parent / "copied"], writes=True),
            Tool("`cp` and `sync` of the copy",
                 ["sh", "-c", flushed, "sh", self.path, self.path.parent / "copied"], writes=True),
        ]

    def writers(self, programs):
        rewrite = (
            "import sys, nbformat; nbformat.write(nbformat.read(sys.argv[1], 4), sys.argv[1])"
        )
        self.unchanged = self.copy("unchanged")
        text = self.path.with_suffix(".txt")
        with open(text, "wb") as file:
            subprocess.run([programs.cellwright, "read", self.unchanged], stdout=file,
                           stderr=subprocess.DEVNULL, env=environment(), check=True)
        return [
            Tool("`cellwright write`, nothing changed",
                 [programs.cellwright, "write", self.unchanged, text], ours=True, writes=True),
            Tool("`nbformat.read`, `nbformat.write`",
                 [programs.python, "-c", rewrite, self.copy("rewritten")], writes=True),
        ]

    def check_results(self, programs):
        """A tool that is fast because it did nothing is not a result."""
        if not filecmp.cmp(self.path, self.unchanged, shallow=False):
            sys.exit("`cellwright write` of unchanged text changed the file")
        for tool, (name, path) in zip(self.edit, self.edited.items()):
            with open(path, encoding="utf-8") as file:
                book = json.load(file)
            source = "".join(book["cells"][self.middle]["source"])
            if len(book["cells"]) != self.cells or source != f"edited = {max(tool.seconds)}":
                sys.exit(f"{name} did not edit cell {self.middle}")
        for program in [[programs.cellwright, "read"], [programs.nb, "read", "--no-output"]]:
            shown = subprocess.run([*program, self.edited["cellwright"]], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, env=environment(), check=True).stdout
            if f"edited = {max(self.edit[0].seconds)}".encode() not in shown:
                sys.exit(f"{program[0].name} read does not show the edited cell")


def measure_starts(programs, rounds):
    log("measuring start-up")
    return measure([
        Tool("`cellwright --version`", [programs.cellwright, "--version"], ours=True),
        Tool("`/bin/true`", ["/bin/true"]),
        Tool("`nb --version`", [programs.nb, "--version"]),
        Tool("`python -c pass`", [programs.python, "-c", "pass"]),
        Tool("`jupytext --version`", [programs.venv / "jupytext", "--version"]),
    ], rounds)


def make_shapes(quick):
    data = BENCH / "data"
    data.mkdir(parents=True, exist_ok=True)
    plans = [(f"{n} MB", data / f"{n}mb.ipynb", notebooks.write_large, n) for n in (1, 10, 100)]
    plans.append(("100,000 small cells", data / "small.ipynb", notebooks.write_many, 100_000))
    for name, path, write, argument in plans[: 1 if quick else None]:
        log(f"making {name}")
        yield Shape(name, path, write(path, argument))


# ---- Report -------------------------------------------------------------------------------------

def shape_text(shape):
    return "\n".join([
        f"### {shape.name}",
        "",
        f"{shape.size / 1e6:.1f} MB, {shape.cells:,} cells.",
        "",
        "Reading, output to `/dev/null`:",
        "",
        table(shape.read, shape.size),
        "Reading, output through a pipe:",
        "",
        table(shape.piped, shape.size),
        "Changing one cell in the middle. Cellwright flushes the new file to disk before it replaces "
        "the old one, and reads it back; of the other tools only `cp` with `sync` flushes, to show "
        "the cost of that.",
        "",
        table(shape.edit, shape.size),
        "Writing back what was read:",
        "",
        table(shape.write, shape.size),
    ])


def goals(shapes, starts):
    """Each goal, what was measured, and whether that meets it."""
    large = next(shape for shape in shapes if shape.name == "100 MB")
    ours, cat, nb, jupytext, _ = large.read
    edit, nb_edit = large.edit[:2]
    rows = []

    def goal(*row):
        rows.append(row)

    slower = 1 / cat.ratio(ours)
    goal("Reading 100 MB takes at most 3 times as long as `cat`, to `/dev/null`",
         f"{slower:.2f}×", slower <= 3)
    slower = 1 / large.piped[1].ratio(large.piped[0])
    goal("The same through a pipe: `cat` writes the whole file, Cellwright only the sources",
         f"{slower:.2f}×", slower <= 3)
    goal("Reading 100 MB is 30 times as fast as jupytext", f"{jupytext.ratio(ours):.2f}×",
         jupytext.ratio(ours) >= 30)
    goal("Reading 100 MB is 3 times as fast as nb-cli", f"{nb.ratio(ours):.2f}×",
         nb.ratio(ours) >= 3)
    goal("Editing 100 MB is 3 times as fast as nb-cli", f"{nb_edit.ratio(edit):.2f}×",
         nb_edit.ratio(edit) >= 3)
    for what, tool in [("Reading", ours), ("Editing", edit), ("Writing", large.write[0])]:
        share = tool.memory() / large.size
        goal(f"{what} 100 MB needs less than 1.3 times the file in memory", f"{share:.2f}×",
             share < 1.3)
    more = starts[0].time() - starts[1].time()
    goal("Start-up takes less than 5 ms more than `/bin/true`", time_text(more), more < 0.005)
    return goal_table(rows)


METHOD = """\
`scripts/bench notebook` creates the notebooks, runs the tools and writes this part. Each table is one session: all
tools run once to warm up, then {rounds} rounds of all tools, each round starting with a different tool. A tool stops after
{most} seconds in total. Times are wall time of the whole process, medians of the rounds. "Relative to Cellwright" is the
time of a tool divided by the time of Cellwright in the same round, median of the rounds, so that other load affects both
sides equally. Memory is the peak of the process (`ru_maxrss`), the largest of all rounds. The files are in the page
cache. All data is flushed to disk before each run that writes, so that no tool waits for the writes of another. After the
rounds the suite checks the edited files: the edit must be there, and writing unchanged text must not change the file.

The large notebooks contain images, HTML tables, logs, code and Markdown in the layout that Jupyter writes. The tools
print different text: `cellwright read`, `nb read --no-output` and jupytext print the sources, `cat` prints the whole file,
`nbformat.read` prints nothing.
"""
