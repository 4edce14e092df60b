"""Implements `run` of the prelude: runs a command in a new process group."""

import os
import signal
import subprocess

from .prelude import status
from .shell import shell_program

EXIT_GRACE = 2  # seconds between the interrupt and the kill of a command


class Result:
    """The output and exit code of a command; true if the code is 0."""

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
        """Show the output and a non-zero exit code, as in a terminal."""
        parts = [part.rstrip("\n") for part in (self.stdout, self.stderr) if part.strip("\n")]
        if self.returncode or not parts:
            parts.append("[exit code %d]" % self.returncode)
        printer.text("\n".join(parts))

    def check_returncode(self):
        """Raise CalledProcessError unless the exit code is 0."""
        if self.returncode:
            raise subprocess.CalledProcessError(
                self.returncode, self.args, self.stdout, self.stderr
            )


def run(cmd, cwd, timeout, check):
    """Run a command to its end. On a timeout or an exception its process group is killed."""
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
        _kill_group(process)
        out, err = _remaining_output(process)
        status({"op": "run", "cmd": _command_text(cmd), "timed_out": True})
        raise subprocess.TimeoutExpired(cmd, timeout, _decode(out), _decode(err)) from None
    except BaseException:
        _interrupt_and_kill(process)
        raise
    result = Result(cmd, _decode(out), _decode(err), process.returncode)
    status({"op": "run", "cmd": _command_text(cmd), "returncode": process.returncode})
    if check:
        result.check_returncode()
    return result


def _remaining_output(process):
    """Return the output of a killed command. The wait is limited, because a process that left the
    group may keep the pipes open."""
    try:
        return process.communicate(timeout=EXIT_GRACE)
    except subprocess.TimeoutExpired as expired:
        return expired.output, expired.stderr


def _decode(data):
    return (data or b"").decode("utf-8", "replace").replace("\r\n", "\n")


def _command_text(cmd):
    if isinstance(cmd, (str, bytes)):
        return cmd if isinstance(cmd, str) else os.fsdecode(cmd)
    return " ".join(os.fsdecode(os.fspath(part)) for part in cmd)


def _interrupt_and_kill(process):
    """Send SIGINT to the group, wait up to EXIT_GRACE for its exit, then kill the group."""
    try:
        _signal_group(process, signal.SIGINT)
        process.wait(EXIT_GRACE)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        pass
    finally:
        _kill_group(process)
        process.wait()
        for pipe in (process.stdout, process.stderr):
            pipe.close()


def _kill_group(process):
    _signal_group(process, signal.SIGKILL)


def _signal_group(process, number):
    try:
        # The group exists as long as any of its processes, also after the first one has exited.
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        pass
