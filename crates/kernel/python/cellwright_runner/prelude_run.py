"""What `run` of the prelude does: a command in a process group of its own."""

import os
import signal
import subprocess

from .prelude import status
from .shell import shell_program

GRACE = 2  # seconds that a command has after an interrupt


class Result:
    """What a command printed and how it ended; true if it ended well."""

    __slots__ = ("args", "stdout", "stderr", "returncode")

    def __init__(self, args, stdout, stderr, returncode):
        self.args = args
        self.stdout = stdout
        self.stderr = stderr
        self.returncode = returncode

    def __bool__(self):
        return self.returncode == 0

    def __str__(self):
        return self.stdout

    def __repr__(self):
        return "Result(args=%r, returncode=%r, stdout=%r, stderr=%r)" % (
            self.args,
            self.returncode,
            self.stdout,
            self.stderr,
        )

    def _repr_pretty_(self, printer, cycle):
        """As the value of a cell: what a person would have seen."""
        parts = [part.rstrip("\n") for part in (self.stdout, self.stderr) if part.strip("\n")]
        if self.returncode or not parts:
            parts.append("[exit code %d]" % self.returncode)
        printer.text("\n".join(parts))

    def check_returncode(self):
        """Raise CalledProcessError unless the command ended with 0."""
        if self.returncode:
            raise subprocess.CalledProcessError(
                self.returncode, self.args, self.stdout, self.stderr
            )


def run(cmd, cwd, timeout, check):
    """Run a command to its end, and everything it started, if it is given up."""
    is_text = isinstance(cmd, (str, bytes))
    command = cmd if is_text else [os.fspath(part) for part in cmd]
    process = subprocess.Popen(
        command,
        shell=is_text,
        executable=shell_program() if is_text else None,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _kill(process)
        out, err = _rest(process)
        status({"op": "run", "cmd": _words(cmd), "timed_out": True})
        raise subprocess.TimeoutExpired(cmd, timeout, _text(out), _text(err)) from None
    except BaseException:
        _give_up(process)
        raise
    result = Result(cmd, _text(out), _text(err), process.returncode)
    status({"op": "run", "cmd": _words(cmd), "returncode": process.returncode})
    if check:
        result.check_returncode()
    return result


def _rest(process):
    """What a command that was ended had printed; something that left its group may hold on to the
    pipes."""
    try:
        return process.communicate(timeout=GRACE)
    except subprocess.TimeoutExpired as late:
        return late.output, late.stderr


def _text(data):
    return (data or b"").decode("utf-8", "replace").replace("\r\n", "\n")


def _words(cmd):
    if isinstance(cmd, (str, bytes)):
        return cmd if isinstance(cmd, str) else os.fsdecode(cmd)
    return " ".join(os.fsdecode(os.fspath(part)) for part in cmd)


def _give_up(process):
    """The interrupt goes on to the whole group, which then has a moment to end by itself."""
    try:
        _signal(process, signal.SIGINT)
        process.wait(GRACE)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        pass
    finally:
        _kill(process)
        process.wait()
        for pipe in (process.stdout, process.stderr):
            pipe.close()


def _kill(process):
    _signal(process, signal.SIGKILL)


def _signal(process, number):
    try:
        # The group outlives its first process as long as something else is in it.
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        pass
