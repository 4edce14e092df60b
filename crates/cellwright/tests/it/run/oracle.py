"""Compares the outputs of Cellwright with the outputs of nbclient.

    oracle.py NOTEBOOK --executed FILE
        runs a copy of the notebook with nbclient, and prints the differences from FILE as JSON

    oracle.py DIRECTORY --binary CELLWRIGHT --backend jupyter|runner [--report FILE]
        does so with every notebook below a directory that nbclient can run without a network, after running
        it with `CELLWRIGHT run`; the outputs of nbclient are cached, so that only the first call takes long

Needs nbclient and ipykernel, in an environment with the packages that notebooks use: numpy, pandas, matplotlib,
ipywidgets, tqdm. Ignores times, ids, addresses in memory, the division of streams into outputs, and overwritten
text of a line. On the runner only differences of text count, and with `--strict` those of rich outputs; the others
are printed. Differences between two runs of nbclient do not count.
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
# A part of the keys of the cache. It changes when this script runs notebooks in another way.
LAYOUT = 2
SPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
PACKAGES = ["nbclient", "ipykernel", "ipython", "numpy", "pandas", "matplotlib", "ipywidgets", "tqdm", "polars",
            "plotly", "altair", "bokeh", "holoviews", "rich", "seaborn", "sympy"]


class NotExecutable(Exception):
    """The reason why nbclient cannot run a notebook here."""


# ---- Running ------------------------------------------------------------------------------------

def without_network(command):
    """A command in a separate network namespace, if the system permits that."""
    probe = ["unshare", "--net", "sh", "-c", "ip link set lo up"]
    if without_network.works is None:
        without_network.works = shutil.which("unshare") and subprocess.run(probe, capture_output=True).returncode == 0
    if not without_network.works:
        return command
    return ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *command]


without_network.works = None


class Workspace:
    """The directories of one run. The notebook is alone in its directory, because some notebooks list it."""

    def __init__(self, directory, book):
        self.home, self.result = directory / "home", directory / "out.ipynb"
        self.work = directory / "work"
        self.book = self.work / "book.ipynb"
        self.home.mkdir()
        self.work.mkdir()
        write(book, self.book)


def run(command, workspace, seconds):
    """Runs a command in a workspace. Returns its exit code (`None` after a timeout) and the end of its output. Kills
    all processes that it started."""
    home = workspace.home
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "JUPYTER", "IPYTHON"))}
    env |= {"HOME": str(home), "PIP_NO_INDEX": "1", "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1",
            "CELLWRIGHT_HOST_DIR": str(home / "host"), "PYTHONHASHSEED": "0"}
    with open(home / "output", "w+b") as output:
        process = subprocess.Popen(without_network([str(part) for part in command]), cwd=workspace.work, env=env,
                                   start_new_session=True, stdin=subprocess.DEVNULL, stdout=output,
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
        output.seek(0)
        return code, output.read()[-4000:].decode(errors="replace")


def prepare(path):
    """The notebook that both programs run: nbformat 4, no outputs, kernel `python3`."""
    try:
        book = nbformat.read(path, as_version=4)
        nbformat.validate(book)
        # nbformat reads lone surrogates, but cannot write them.
        nbformat.writes(book).encode()
    except Exception as error:  # nbformat raises exceptions of many types.
        raise NotExecutable(f"nbformat cannot read it: {type(error).__name__}") from error
    spec, info = book.metadata.get("kernelspec") or {}, book.metadata.get("language_info") or {}
    language = spec.get("language") or info.get("name") or "python"
    if language.lower() not in ("python", "ipython", "python3"):
        raise NotExecutable(f"its language is {language}")
    book.metadata["kernelspec"] = dict(SPEC)
    for number, cell in enumerate(book.cells):
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.metadata.pop("execution", None)
        if book.nbformat_minor >= 5:
            # nbformat creates random ids for cells without an id.
            cell["id"] = f"cell-{number}"
    if not any(cell.cell_type == "code" and cell.source.strip() for cell in book.cells):
        raise NotExecutable("it has no code")
    return book


def write(book, path):
    path.write_text(nbformat.writes(book), encoding="utf-8")


def execute(source, target, seconds):
    """Runs a notebook with nbclient. The child process for `--execute-to` calls it."""
    import nbclient

    book = nbformat.read(source, as_version=4)
    client = nbclient.NotebookClient(book, timeout=seconds, kernel_name="python3", record_timing=False,
                                     resources={"metadata": {"path": str(Path(source).parent)}})
    client.execute()
    write(book, Path(target))


def run_nbclient(book, options):
    """The notebook after a run with nbclient. On a busy machine nbclient sometimes waits for a message that does not
    arrive, so there can be several attempts."""
    for left in reversed(range(options.tries)):
        try:
            return run_nbclient_once(book, options)
        except NotExecutable:
            if not left:
                raise
    raise AssertionError("there is at least one attempt")


def run_nbclient_once(book, options):
    with tempfile.TemporaryDirectory() as directory:
        workspace = Workspace(Path(directory), book)
        command = [sys.executable, Path(__file__).resolve(), workspace.book, "--execute-to", workspace.result,
                   "--cell-seconds", options.cell_seconds]
        code, output = run(command, workspace, options.seconds)
        if code is None:
            raise NotExecutable(f"it takes more than {options.seconds} s")
        if code != 0:
            lines = [line for line in output.strip().splitlines() if line.strip()]
            raise NotExecutable(f"nbclient: {lines[-1][:200] if lines else code}")
        return json.loads(workspace.result.read_text(encoding="utf-8"))


def run_cellwright(book, options):
    """The notebook after a run with Cellwright, or the reason of a failure."""
    with tempfile.TemporaryDirectory() as directory:
        workspace = Workspace(Path(directory), book)
        command = [options.binary, "run", workspace.book, "-o", workspace.result, "--quiet", "--backend", options.backend,
                   "--python", options.python]
        code, output = run(command, workspace, options.seconds)
        if code is None:
            return None, "it took too long"
        if code != 0:
            return None, f"exit code {code}: {output.strip()[-1000:]}"
        return json.loads(workspace.result.read_text(encoding="utf-8")), None


# ---- Cache of nbclient --------------------------------------------------------------------------

def versions():
    found = [sys.version.split()[0]]
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def cached_runs(path, options):
    """Two runs of a notebook with nbclient, from the cache if possible."""
    key = hashlib.sha256(f"{LAYOUT} {versions()}".encode() + path.read_bytes()).hexdigest()[:32]
    cache_file = options.cache / f"{key}.json"
    if cache_file.exists():
        return json.loads(cache_file.read_text(encoding="utf-8"))
    try:
        book = prepare(path)
        runs = [run_nbclient(copy.deepcopy(book), options) for _ in range(2)]
        result = {"runs": runs}
    except NotExecutable as error:
        result = {"unfit": str(error)}
    options.cache.mkdir(parents=True, exist_ok=True)
    temporary = cache_file.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(result), encoding="utf-8")
    temporary.rename(cache_file)
    return result


def location(difference):
    """The cell and the kind of a difference."""
    return difference["cell"], difference["kind"]


def new_differences(theirs, ours):
    """The differences from nbclient, without those that also occur between two runs of nbclient."""
    unstable = {location(difference) for difference in outputs.differences(*theirs)}
    found = outputs.differences(theirs[0], ours)
    return [difference for difference in found if location(difference) not in unstable], len(unstable)


# ---- Commands -----------------------------------------------------------------------------------

def compare_executed(options):
    theirs = run_nbclient(prepare(options.path), options)
    ours = json.loads(options.executed.read_text(encoding="utf-8"))
    found = outputs.differences(theirs, ours)
    print(json.dumps(found, indent=1, ensure_ascii=False))
    return 1 if found else 0


def compare_notebook(path, options):
    result = cached_runs(path, options)
    if "unfit" in result:
        return {"status": "not run by nbclient", "why": result["unfit"]}
    if options.binary is None:
        return {"status": "run by nbclient"}
    ours, failed = run_cellwright(prepare(path), options)
    if failed:
        return {"status": "failed", "why": failed}
    found, unstable = new_differences(result["runs"], ours)
    counted = outputs.TEXT + (outputs.RICH if options.strict else ())
    relevant = [difference for difference in found
                if options.backend == "jupyter" or difference["kind"] in counted]
    status = "different" if relevant else "equal"
    return {"status": status, "differences": found, "unsteady": unstable}


def compare_directory(options):
    paths = sorted(options.path.rglob("*.ipynb"))
    if options.only:
        paths = [path for path in paths if options.only in path.name]
    report, totals = [], collections.Counter()
    for number, path in enumerate(paths):
        try:
            result = compare_notebook(path, options)
        except OSError as error:
            result = {"status": "not run by nbclient", "why": str(error)}
        report.append({"notebook": str(path.relative_to(options.path)), **result})
        totals[result["status"]] += 1
        print(f"{number + 1}/{len(paths)} {result['status']}: {path.name} {result.get('why', '')[:150]}", flush=True)
        for difference in result.get("differences", [])[: options.shown]:
            print("    " + json.dumps(difference, ensure_ascii=False), flush=True)
    if options.report:
        options.report.write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")
    kinds = collections.Counter(difference["kind"] for result in report for difference in result.get("differences", []))
    print(json.dumps({"notebooks": totals, "differences": kinds}))
    return 1 if totals["different"] or totals["failed"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path, help="a notebook, or a directory of notebooks")
    parser.add_argument("--executed", type=Path, help="the same notebook after a run with another program")
    parser.add_argument("--binary", type=Path, help="the Cellwright to compare; without it only nbclient runs")
    parser.add_argument("--backend", choices=["jupyter", "runner"], default="jupyter")
    parser.add_argument("--python", default=sys.executable, help="the interpreter for Cellwright; this one by default")
    parser.add_argument("--cache", type=Path, default=ROOT / "target" / "oracle")
    parser.add_argument("--report", type=Path, help="a file for all results as JSON")
    parser.add_argument("--only", help="only notebooks whose name contains this")
    parser.add_argument("--shown", type=int, default=5, help="differences shown for each notebook")
    parser.add_argument("--seconds", type=int, default=120, help="for a whole notebook")
    parser.add_argument("--cell-seconds", type=int, default=60)
    parser.add_argument("--strict", action="store_true", help="rich outputs of the runner count as well")
    parser.add_argument("--tries", type=int, default=1, help="for nbclient")
    parser.add_argument("--execute-to", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.execute_to:
        return execute(options.path, options.execute_to, options.cell_seconds)
    if options.binary:
        options.binary = options.binary.resolve()
    if options.path.is_dir():
        return compare_directory(options)
    if options.executed:
        return compare_executed(options)
    parser.error("a notebook needs --executed, a directory may have --binary")


if __name__ == "__main__":
    sys.exit(main())
