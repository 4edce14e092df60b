"""Start: old interpreters, what is loaded, .pyc, speed of start and of printing (generous bounds, so
that a busy machine does not fail them)."""

import glob
import os
import subprocess
import time

import pytest
from host import BOOT, FOLDER, Host, result

OLD = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/[23].*/bin/python")))


@pytest.mark.parametrize("old", OLD)
def test_old_interpreters_say_so(old):
    version = old.split("/")[-3]
    if tuple(int(n) for n in version.split(".")[:2]) >= (3, 8):
        pytest.skip("new enough")
    process = subprocess.Popen(
        [old, "-c", BOOT, "/nowhere", "3"], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    said = process.communicate()[1].decode()
    assert process.returncode == 86
    assert said.startswith("cellwright: Python 3.8 or newer is needed; this is %s (/" % version)
    assert said.count("\n") == 1


def test_heavy_modules_are_not_loaded(host, python):
    plain = subprocess.run(
        [python, "-c", "import sys; print(' '.join(sys.modules))"], capture_output=True, text=True
    ).stdout.split()
    loaded = result(host.run("import sys; ' '.join(sys.modules)"))[1:-1].split()
    more = {m for m in loaded if m not in plain and not m.startswith("cellwright_runner")}
    # From 3.14 on `io` is not there from the beginning; it is small.
    assert more <= {"_ast", "_json", "fcntl", "io"}
    ours = {m for m in loaded if m.startswith("cellwright_runner.")}
    assert ours <= {
        "cellwright_runner." + name
        for name in (
            "state", "lazy", "interrupt", "channel", "streams", "hooks", "cell", "main",
            "sources", "thread_origin", "prelude",
        )
    }  # fmt: skip


def test_bytecode_is_kept_even_if_the_user_forbids_it(python, tmp_path):
    import shutil

    folder = tmp_path / "runner"
    shutil.copytree(
        os.path.join(FOLDER, "cellwright_runner"),
        folder / "cellwright_runner",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    import host as module

    kept, module.FOLDER = module.FOLDER, str(folder)
    try:
        made = Host(python, cwd=str(tmp_path), env={"PYTHONDONTWRITEBYTECODE": "1"})
        assert result(made.run("import sys; sys.dont_write_bytecode")) == "True"
        made.close()
    finally:
        module.FOLDER = kept
    assert list((folder / "cellwright_runner" / "__pycache__").iterdir())


def test_start_is_quick(python, tmp_path):
    def hello():
        start = time.perf_counter()
        made = Host(python, cwd=str(tmp_path))
        spent = time.perf_counter() - start
        made.close()
        return spent

    def nothing():
        start = time.perf_counter()
        subprocess.run([python, "-c", "pass"], stdin=subprocess.DEVNULL)
        return time.perf_counter() - start

    hello()
    ours, theirs = min(hello() for _ in range(5)), min(nothing() for _ in range(5))
    assert ours < theirs + 0.015


def test_prints_are_quick(host):
    start = time.monotonic()
    host.run("for i in range(200_000): print('x' * 99)", timeout=60)
    assert time.monotonic() - start < 5
    start = time.monotonic()
    host.run("for i in range(20_000): print('x', flush=True)", timeout=60)
    assert time.monotonic() - start < 5
