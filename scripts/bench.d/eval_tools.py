"""Programs of the suite `eval`, and how to run them and read their results."""

import json
import shutil
import statistics
import subprocess
import sys

import eval_cells as cells
from measure import (BENCH, HELPERS, Cellwright, Tool, build_helper, environment, find_python,
                     output_of, version_of)

PACKAGES = {"ipykernel": "7.4.0", "jupyter_client": "8.10.0", "nbclient": "0.11.0",
            "nbformat": "5.11.1"}
ANSWER = BENCH / "answer"
ARTIFACTS = BENCH / "home" / "artifacts"
# The exit code of a peer that did not get all output.
LOST = 3


class Programs:
    def __init__(self):
        self.built = Cellwright()
        build_helper("spawn")
        self.pipe = build_helper("pipe")
        self.python = find_python(PACKAGES)

    def versions(self):
        packages = [*PACKAGES, "ipython", "pyzmq"]
        return [
            self.built.version(),
            *[f"{name} {version_of(self.python, name)}" for name in packages],
            output_of(self.python, "--version"),
            " ".join(output_of("rustc", "--version").split()[:2]),
        ]

    def ours(self, *arguments):
        return [self.built.path, "eval", "--python", self.python, "--timeout", 0, *arguments]

    def peer(self, *arguments):
        return [self.python, HELPERS / "peers.py", *arguments]

    def bare(self, count, code):
        return [self.pipe, self.python, HELPERS / "loop.py", count, code]

    def plain(self, code):
        """Python without a reader of its output."""
        return ["sh", "-c", '"$1" -c "$2" | cat >/dev/null', "sh", self.python, code]


class Run(Tool):
    """A tool of this suite. Files that a run has stored are removed before the next run."""

    def __init__(self, name, command, **options):
        super().__init__(name, command, memory="own", **options)

    def run(self, number, measured):
        clean_up()
        super().run(number, measured)


class Peer(Run):
    """Another tool. If it loses output, the table shows it and the suite continues."""

    def __init__(self, name, command, **options):
        super().__init__(name, command, codes=(0, LOST), **options)


def clean_up():
    shutil.rmtree(ARTIFACTS, ignore_errors=True)
    for note in [cells.DEATH_NOTE, cells.FLOOD_NOTE]:
        note.unlink(missing_ok=True)


def answer_of(command):
    """The report of `eval --json`, outside of any measurement."""
    clean_up()
    answer = subprocess.run([str(part) for part in command], env=environment(), check=True,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return json.loads(answer)


def check(good, what):
    """A tool that is fast because it did nothing is not a result."""
    if not good:
        sys.exit(f"wrong: {what}")


class Trip(Run):
    """Many cells in one session, each timed by the tool itself."""

    def __init__(self, name, command, count, times, **options):
        super().__init__(name, command, output=str(ANSWER), **options)
        self.count = count
        self.times = times
        self.trip, self.slow, self.mean = {}, {}, {}

    def look(self, number, ended):
        times = self.times(ANSWER.read_text(encoding="utf-8"))
        check(len(times) == self.count, f"{self.name} ran {len(times)} cells")
        self.trip[number] = statistics.median(times)
        self.slow[number] = statistics.quantiles(times, n=100)[98]
        self.mean[number] = statistics.fmean(times)


def our_times(text):
    answer = json.loads(text)
    check(all(cell["text"] == "2\n" for cell in answer["cells"]), "a cell did not print 2")
    return [cell["duration_ms"] / 1e3 for cell in answer["cells"]]


class Dying(Run):
    """Kills its kernel, having noted when; measured until the command has ended."""

    def __init__(self, name, command, **options):
        super().__init__(name, command, output=str(ANSWER), **options)
        self.reported = {}

    def look(self, number, ended):
        self.reported[number] = (ended - int(cells.DEATH_NOTE.read_text())) / 1e9
        answer = ANSWER.read_text(encoding="utf-8")
        is_reported = json.loads(answer)["died"]["signal"] == 9 if self.ours else "died" in answer
        check(is_reported, f"{self.name} did not report the death")
