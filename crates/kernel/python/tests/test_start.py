"""Start: old interpreters, loaded modules, .pyc files, time to start and to print (with generous
limits for busy machines)."""

import glob
import os
import subprocess
import time

import pytest
from host import BOOT, RUNNER_DIRECTORY, Host, result

PYTHONS = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/[23].*/bin/python")))


def version_of(python):
    """Return the version in the path of a pyenv interpreter."""
    return python.split("/")[-3]


OLD_PYTHONS = [p for p in PYTHONS if tuple(map(int, version_of(p).split(".")[:2])) < (3, 8)]


@pytest.mark.parametrize("old", OLD_PYTHONS)
def test_old_interpreters_report_their_version(old):
    version = version_of(old)
    process = subprocess.Popen(
        [old, "-c", BOOT, "/nowhere", "3"], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    message = process.communicate()[1].decode()
    assert process.returncode == 86
    assert message.startswith("cellwright: Python 3.8 or newer is needed; this is %s (/" % version)
    assert message.count("\n") == 1


def test_start_loads_few_modules(host, python):
    plain = subprocess.run(
        [python, "-c", "import sys; print(' '.join(sys.modules))"], capture_output=True, text=True
    ).stdout.split()
    loaded = result(host.run("import sys; ' '.join(sys.modules)"))[1:-1].split()
    more = {m for m in loaded if m not in plain and not m.startswith("cellwright_runner")}
    # From 3.14 on Python does not load `io` at start; it is small.
    assert more <= {"_ast", "_json", "fcntl", "io"}
    own_modules = {m for m in loaded if m.startswith("cellwright_runner.")}
    assert own_modules <= {
        "cellwright_runner." + name
        for name in (
            "state", "lazy", "interrupt", "channel", "streams", "hooks", "cell", "main",
            "linecache_hook", "thread_cells", "prelude",
        )
    }  # fmt: skip


def test_bytecode_is_written_even_if_the_user_disables_it(python, tmp_path):
    import shutil

    directory = tmp_path / "runner"
    shutil.copytree(
        os.path.join(RUNNER_DIRECTORY, "cellwright_runner"),
        directory / "cellwright_runner",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    import host as module

    saved, module.RUNNER_DIRECTORY = module.RUNNER_DIRECTORY, str(directory)
    try:
        host = Host(python, cwd=str(tmp_path), env={"PYTHONDONTWRITEBYTECODE": "1"})
        assert result(host.run("import sys; sys.dont_write_bytecode")) == "True"
        host.close()
    finally:
        module.RUNNER_DIRECTORY = saved
    assert list((directory / "cellwright_runner" / "__pycache__").iterdir())


def test_start_is_quick(python, tmp_path):
    def start_runner():
        start = time.perf_counter()
        host = Host(python, cwd=str(tmp_path))
        seconds = time.perf_counter() - start
        host.close()
        return seconds

    def start_python():
        start = time.perf_counter()
        subprocess.run([python, "-c", "pass"], stdin=subprocess.DEVNULL)
        return time.perf_counter() - start

    start_runner()
    runner, bare = min(start_runner() for _ in range(5)), min(start_python() for _ in range(5))
    assert runner < bare + 0.015


def test_prints_are_quick(host):
    # CPU time of the runner: other tests run at the same time.
    measured = "import time\nstart = time.process_time()\n%s\ntime.process_time() - start"
    for code in (
        "for i in range(200_000): print('x' * 99)",
        "for i in range(20_000): print('x', flush=True)",
    ):
        assert float(result(host.run(measured % code, timeout=60))) < 5
