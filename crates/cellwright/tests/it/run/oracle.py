"""nbclient as the judge: what it makes of notebooks, and whether ours is the same.

    oracle.py NOTEBOOK --executed FILE
        runs the notebook with nbclient, in a copy, and prints as JSON what differs from FILE

    oracle.py FOLDER --binary CELLWRIGHT --backend jupyter|runner [--report FILE]
        does so with every notebook below a folder that nbclient can run without a network, after running
        it with `CELLWRIGHT run`; what nbclient made of them is kept, so that only the first time takes long

Needs nbclient and ipykernel, in an environment with the packages that notebooks use: numpy, pandas, matplotlib,
ipywidgets, tqdm. Compared is everything but times, ids, addresses in memory, how streams are cut, and what was
overwritten on a line. On the runner only text counts; the rest is told. What differs between two runs of nbclient
is no difference of ours.
"""

import argparse
import collections
import copy
import hashlib
import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import outputs  # noqa: E402

import nbformat  # noqa: E402

ROOT = Path(__file__).resolve().parents[5]
# Changes when the same notebook would be run in another way, so that it is asked for again.
LAYOUT = 2
SPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
PACKAGES = ["nbclient", "ipykernel", "ipython", "numpy", "pandas", "matplotlib", "ipywidgets", "tqdm"]


class Unfit(Exception):
    """A notebook that nbclient cannot run here, and why."""


# ---- Running ------------------------------------------------------------------------------------

def fenced(command):
    """A command without a network but its own, where that can be had."""
    probe = ["unshare", "--net", "sh", "-c", "ip link set lo up"]
    if fenced.works is None:
        fenced.works = shutil.which("unshare") and subprocess.run(probe, capture_output=True).returncode == 0
    if not fenced.works:
        return command
    return ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *command]


fenced.works = None


class Room:
    """A folder for one run: the notebook alone in a folder of its own, because some look around there; a home,
    and the result, elsewhere."""

    def __init__(self, folder, book):
        self.home, self.result = folder / "home", folder / "out.ipynb"
        self.work = folder / "work"
        self.book = self.work / "book.ipynb"
        self.home.mkdir()
        self.work.mkdir()
        write(book, self.book)


def run(command, room, seconds):
    """Runs a command in a room; gives its exit code, `None` if it took too long, and what it said. Everything it
    started ends with it."""
    home = room.home
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "JUPYTER", "IPYTHON"))}
    env |= {"HOME": str(home), "PIP_NO_INDEX": "1", "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1",
            "CELLWRIGHT_HOST_DIR": str(home / "host"), "PYTHONHASHSEED": "0"}
    with open(home / "said", "w+b") as said:
        process = subprocess.Popen(fenced([str(part) for part in command]), cwd=room.work, env=env,
                                   start_new_session=True, stdin=subprocess.DEVNULL, stdout=said,
                                   stderr=subprocess.STDOUT)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        said.seek(0)
        return code, said.read()[-4000:].decode(errors="replace")


def prepared(path):
    """A notebook as both are given it: nbformat 4, no outputs, on the kernel `python3`."""
    try:
        book = nbformat.read(path, as_version=4)
        nbformat.validate(book)
        # Half characters can be read, but not written.
        nbformat.writes(book).encode()
    except Exception as error:  # nbformat raises whatever comes up.
        raise Unfit(f"nbformat cannot read it: {type(error).__name__}") from error
    spec, info = book.metadata.get("kernelspec") or {}, book.metadata.get("language_info") or {}
    language = spec.get("language") or info.get("name") or "python"
    if language.lower() not in ("python", "ipython", "python3"):
        raise Unfit(f"it is in {language}")
    book.metadata["kernelspec"] = dict(SPEC)
    for number, cell in enumerate(book.cells):
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.metadata.pop("execution", None)
        if book.nbformat_minor >= 5:
            # Those that are missing nbformat makes up at random.
            cell["id"] = f"cell-{number}"
    if not any(cell.cell_type == "code" and cell.source.strip() for cell in book.cells):
        raise Unfit("it has no code")
    return book


def write(book, path):
    path.write_text(nbformat.writes(book), encoding="utf-8")


def execute(source, target, seconds):
    """What the process of its own does: runs a notebook with nbclient."""
    import nbclient

    book = nbformat.read(source, as_version=4)
    client = nbclient.NotebookClient(book, timeout=seconds, kernel_name="python3", record_timing=False,
                                     resources={"metadata": {"path": str(Path(source).parent)}})
    client.execute()
    write(book, Path(target))


def with_nbclient(book, options):
    """The notebook as nbclient runs it. On a busy machine it waits now and then for a message that never comes, so
    it may get several tries."""
    for left in reversed(range(options.tries)):
        try:
            return try_nbclient(book, options)
        except Unfit:
            if not left:
                raise
    raise AssertionError("it is tried at least once")


def try_nbclient(book, options):
    with tempfile.TemporaryDirectory() as folder:
        room = Room(Path(folder), book)
        command = [sys.executable, Path(__file__).resolve(), room.book, "--execute-to", room.result,
                   "--cell-seconds", options.cell_seconds]
        code, said = run(command, room, options.seconds)
        if code is None:
            raise Unfit(f"it takes more than {options.seconds} s")
        if code != 0:
            lines = [line for line in said.strip().splitlines() if line.strip()]
            raise Unfit(f"nbclient: {lines[-1][:200] if lines else code}")
        return json.loads(room.result.read_text(encoding="utf-8"))


def with_ours(book, options):
    """The notebook as ours runs it; the reason if it does not."""
    with tempfile.TemporaryDirectory() as folder:
        room = Room(Path(folder), book)
        command = [options.binary, "run", room.book, "-o", room.result, "--quiet", "--backend", options.backend,
                   "--python", options.python]
        code, said = run(command, room, options.seconds)
        if code is None:
            return None, "it took too long"
        if code != 0:
            return None, f"exit code {code}: {said.strip()[-1000:]}"
        return json.loads(room.result.read_text(encoding="utf-8")), None


# ---- What nbclient made, kept -------------------------------------------------------------------

def versions():
    found = [sys.version.split()[0]]
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def judged(path, options):
    """What nbclient makes of a notebook, twice; from the cache if it was asked before."""
    key = hashlib.sha256(f"{LAYOUT} {versions()}".encode() + path.read_bytes()).hexdigest()[:32]
    kept = options.cache / f"{key}.json"
    if kept.exists():
        return json.loads(kept.read_text(encoding="utf-8"))
    try:
        book = prepared(path)
        runs = [with_nbclient(copy.deepcopy(book), options) for _ in range(2)]
        told = {"runs": runs}
    except Unfit as error:
        told = {"unfit": str(error)}
    options.cache.mkdir(parents=True, exist_ok=True)
    beside = kept.with_suffix(f".{os.getpid()}")
    beside.write_text(json.dumps(told), encoding="utf-8")
    beside.rename(kept)
    return told


def place(difference):
    """Where a difference is, so that one between two runs of nbclient excuses one of ours."""
    return difference["cell"], difference["kind"]


def compared(theirs, ours):
    """Differences of ours, without those where nbclient does not agree with itself."""
    unsteady = {place(difference) for difference in outputs.differences(*theirs)}
    found = outputs.differences(theirs[0], ours)
    return [difference for difference in found if place(difference) not in unsteady], len(unsteady)


# ---- Commands -----------------------------------------------------------------------------------

def judge_one(options):
    theirs = with_nbclient(prepared(options.path), options)
    ours = json.loads(options.executed.read_text(encoding="utf-8"))
    found = outputs.differences(theirs, ours)
    print(json.dumps(found, indent=1, ensure_ascii=False))
    return 1 if found else 0


def judge_notebook(path, options):
    told = judged(path, options)
    if "unfit" in told:
        return {"status": "not run by nbclient", "why": told["unfit"]}
    if options.binary is None:
        return {"status": "run by nbclient"}
    ours, failed = with_ours(prepared(path), options)
    if failed:
        return {"status": "failed", "why": failed}
    found, unsteady = compared(told["runs"], ours)
    counts = [difference for difference in found
              if options.backend == "jupyter" or difference["kind"] in outputs.TEXT]
    status = "different" if counts else "equal"
    return {"status": status, "differences": found, "unsteady": unsteady}


def judge_folder(options):
    paths = sorted(options.path.rglob("*.ipynb"))
    if options.only:
        paths = [path for path in paths if options.only in path.name]
    report, totals = [], collections.Counter()
    for number, path in enumerate(paths):
        try:
            told = judge_notebook(path, options)
        except OSError as error:
            told = {"status": "not run by nbclient", "why": str(error)}
        report.append({"notebook": str(path.relative_to(options.path)), **told})
        totals[told["status"]] += 1
        print(f"{number + 1}/{len(paths)} {told['status']}: {path.name} {told.get('why', '')[:150]}", flush=True)
        for difference in told.get("differences", [])[: options.shown]:
            print("    " + json.dumps(difference, ensure_ascii=False), flush=True)
    if options.report:
        options.report.write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")
    kinds = collections.Counter(difference["kind"] for told in report for difference in told.get("differences", []))
    print(json.dumps({"notebooks": totals, "differences": kinds}))
    return 1 if totals["different"] or totals["failed"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, help="a notebook, or a folder of them")
    parser.add_argument("--executed", type=Path, help="the same notebook, run by others")
    parser.add_argument("--binary", type=Path, help="the Cellwright to judge; without it nbclient alone is asked")
    parser.add_argument("--backend", choices=["jupyter", "runner"], default="jupyter")
    parser.add_argument("--python", default=sys.executable, help="the interpreter for ours; this one by default")
    parser.add_argument("--cache", type=Path, default=ROOT / "target" / "oracle")
    parser.add_argument("--report", type=Path, help="where everything is written as JSON")
    parser.add_argument("--only", help="notebooks with this in their name")
    parser.add_argument("--shown", type=int, default=5, help="differences shown for each notebook")
    parser.add_argument("--seconds", type=int, default=120, help="for a whole notebook")
    parser.add_argument("--cell-seconds", type=int, default=60)
    parser.add_argument("--tries", type=int, default=1, help="for nbclient")
    parser.add_argument("--execute-to", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.execute_to:
        return execute(options.path, options.execute_to, options.cell_seconds)
    if options.binary:
        options.binary = options.binary.resolve()
    if options.path.is_dir():
        return judge_folder(options)
    if options.executed:
        return judge_one(options)
    parser.error("a notebook needs --executed, a folder may do with --binary")


if __name__ == "__main__":
    sys.exit(main())
