"""%%bash, %%script and related magics, %%writefile"""

import os
import shlex
import subprocess
import sys

from .. import shell as shells
from .. import temporary
from ..state import STATE
from . import UsageError, options, split

_ARGUMENT_LIMIT = 100_000  # bytes; Linux allows 128 KiB for one argument
_FLAGS = ("no-raise-error", "bg")
_VALUED = ("out", "err", "proc")
_USAGE = "%%script [--out NAME] [--err NAME] [--bg] [--no-raise-error] program [args]"


def _run(command, body, found, with_stdin=True):
    """Run a program on the text of the cell; a failure raises CalledProcessError."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    captured = "out" in found or "err" in found or "bg" in found
    piped = captured or STATE.captured_displays is not None or not shells.streams_are_original()
    source = subprocess.DEVNULL
    if with_stdin:
        source = temporary.unnamed_file()
        source.write(body.encode("utf-8", "surrogateescape"))
        source.seek(0)
    try:
        process = subprocess.Popen(command, stdin=source, **(pipes if piped else {}))
    except FileNotFoundError:
        raise UsageError("Couldn't find program: %r" % command[0]) from None
    if "bg" in found:
        for name, pipe in (("out", process.stdout), ("err", process.stderr)):
            if name in found:
                STATE.ns[found[name]] = pipe
        if "proc" in found:
            STATE.ns[found["proc"]] = process
        return
    if captured:
        _collect(process, found)
    elif piped:
        shells.copy_output(process)
    code = shells.wait(process)
    STATE.ns["_exit_code"] = code
    if code and "no-raise-error" not in found:
        # Bytes, because IPython has bytes here and the message contains their repr.
        raise subprocess.CalledProcessError(code, body.encode("utf-8", "surrogateescape"))


def _collect(process, found):
    try:
        texts = process.communicate()
    except BaseException:
        shells.terminate_after_grace(process)
        raise
    for name, stream, data in (("out", sys.stdout, texts[0]), ("err", sys.stderr, texts[1])):
        text = data.decode("utf-8", "replace")
        if name in found:
            STATE.ns[found[name]] = text
        else:
            stream.write(text)


def script(shell, line, body):
    """%%script [options] program [args]: run a program with the cell as its stdin."""
    found, rest = options(line, _FLAGS, _VALUED, _USAGE)
    command = split(rest)
    if not command:
        raise UsageError("%%script needs a program; " + _USAGE)
    _run(command, body, found)


def bash(shell, line, body):
    """%%bash: run the cell with bash (%%sh too); a failure fails the cell."""
    found, rest = options(line, _FLAGS, _VALUED, _USAGE.replace("program ", ""))
    words = split(rest)
    if len(body.encode("utf-8", "surrogateescape")) < _ARGUMENT_LIMIT and "\0" not in body:
        # As an argument, so that commands of the script cannot read the script's lines from stdin.
        _run(["bash", "-c", body, "bash"] + words, body, found, False)
    else:
        _run(["bash", "-s", "--"] + words, body, found)


def program(shell, name, line, body):
    """%%python, %%perl, %%ruby: run the program of that name with the cell as its stdin."""
    found, rest = options(line, _FLAGS, _VALUED, _USAGE.replace("program ", ""))
    command = [sys.executable] if name in ("python", "python3") else [name]
    _run(
        command + (["-"] + split(rest) if name.startswith("py") else split(rest)),
        body,
        found,
    )


def system_cell(shell, line, body):
    """%%system: run the cell in a shell and return the lines of its output."""
    return shell.getoutput("\n".join(part for part in (line, body) if part))


def getoutput_cell(shell, line, body):
    """%%!: like %%system."""
    return system_cell(shell, line, body)


def writefile(shell, line, body):
    """%%writefile [-a] file: write the cell into a file."""
    found, rest = options(line, ("a", "append"), (), "%%writefile [-a] file")
    words = shlex.split(rest, posix=False)
    if len(words) > 1 and words[-1] in ("-a", "--append"):
        found["a"] = True
        words.pop()
    if len(words) != 1:
        raise UsageError("the following arguments are required: filename")
    name = words[0]
    if len(name) > 1 and name[0] == name[-1] and name[0] in "\"'":
        name = name[1:-1]  # quotes inside a name belong to it
    path = os.path.expanduser(name)
    append = "a" in found or "append" in found
    if os.path.exists(path):
        print("%s %s" % ("Appending to" if append else "Overwriting", path))
    else:
        print("Writing %s" % path)
    with open(path, "a" if append else "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(body)
