"""%pip, %uv, %conda: install into the environment that runs the cells."""

import importlib.util
import os
import shutil
import sys

from .. import shell as shells
from ..state import STATE
from . import UsageError, split


def _run(command):
    """Run a command. As in IPython a failure does not end the cell; `_exit_code` has the code."""
    STATE.ns["_exit_code"] = shells.call(command)
    importlib.invalidate_caches()


def pip(shell, line):
    """%pip …: pip of this interpreter, or `uv pip` if it has no pip."""
    words = split(line)
    if importlib.util.find_spec("pip") is not None:
        _run([sys.executable, "-m", "pip"] + words)
    elif shutil.which("uv"):
        uv_pip(words)
    else:
        raise UsageError(
            "this environment has no pip and `uv` is not on PATH; "
            "install one of them (`%s -m ensurepip`)" % sys.executable
        )
    print("Note: you may need to restart the kernel to use updated packages.")


def uv_pip(words):
    """`uv pip …` for this interpreter."""
    command = ["uv", "pip"] + words[:1] + ["--python", sys.executable] + words[1:]
    _run([word for word in command if word not in ("-y", "--yes")])


def uv(shell, line):
    """%uv …: run uv; `%uv pip …` works on this interpreter."""
    if not shutil.which("uv"):
        raise UsageError("`uv` is not on PATH")
    words = split(line)
    if words[:1] == ["pip"] and "--python" not in words:
        uv_pip(words[1:])
    else:
        _run(["uv"] + words)


def conda(shell, line):
    """%conda …: conda for this environment, if it is a conda environment."""
    if not os.path.isdir(os.path.join(sys.prefix, "conda-meta")):
        raise UsageError(
            "%s is not a conda environment; use `%%pip install …` instead" % sys.prefix
        )
    program = os.environ.get("CONDA_EXE") or shutil.which("conda") or shutil.which("mamba")
    program = program or shutil.which("micromamba")
    if not program:
        raise UsageError("`conda` is not on PATH; use `%pip install …` instead")
    words = split(line)
    extra = []
    if words and words[0] in ("install", "update", "upgrade", "remove", "uninstall", "create"):
        extra = [] if {"-y", "--yes"} & set(words) else ["--yes"]
    if words and words[0] in ("install", "update", "upgrade", "remove", "uninstall", "list"):
        if not {"-p", "--prefix", "-n", "--name"} & set(words):
            extra += ["--prefix", sys.prefix]
    _run([program] + words[:1] + extra + words[1:])
