"""%logstart and related magics: a file with the inputs of the session."""

import glob
import os
import time

from .. import cell
from . import UsageError, options
from .history import inputs

MODES = ("append", "backup", "global", "over", "rotate")


class SessionLog:
    """The open log file. The one instance is `LOG`."""

    def __init__(self):
        self.file = None
        self.path = "ipython_log.py"
        self.mode = "rotate"
        self.active = self.outputs = self.raw = self.times = False

    def before_cell(self, info):
        """Write the cell that starts."""
        self.write(info.raw_cell if self.raw else cell.transform(info.raw_cell), self.times)

    def write(self, text, with_time=False):
        """Write an input, with its time if `with_time`."""
        if self.file is None or not self.active or not text:
            return
        if with_time:
            self.file.write(time.strftime("# %a, %d %b %Y %H:%M:%S\n"))
        self.file.write(text if text.endswith("\n") else text + "\n")
        self.file.flush()

    def after_cell(self, result):
        """Write the value of the cell that ended."""
        if self.outputs and result.result is not None:
            self.write("\n".join("#[Out]# " + line for line in repr(result.result).splitlines()))


LOG = SessionLog()


def logstart(shell, line):
    """%logstart [-o] [-r] [-t] [-q] [file [append|backup|global|over|rotate]]: write the inputs so far
    and all later ones into a file; -o adds values, -t times, -r writes untransformed inputs."""
    found, rest = options(line, ("o", "r", "t", "q"), (), "%logstart [-o|-r|-t|-q] [file [mode]]")
    if LOG.file is not None:
        raise UsageError("Log file is already active: %s" % LOG.path)
    words = rest.split()
    if len(words) > 1 and words[1] not in MODES:
        raise UsageError("invalid log mode %s given" % words[1])
    if words:
        LOG.path, LOG.mode = os.path.expanduser(words[0]), (words + ["backup"])[1]
    LOG.file = _open(LOG.path, LOG.mode)
    LOG.active = True
    LOG.outputs, LOG.raw, LOG.times = "o" in found, "r" in found, "t" in found
    if LOG.mode != "append":
        LOG.write("# IPython log file\n\n")
    for number, text in inputs(LOG.raw):
        LOG.write(text)
        if LOG.outputs and number in cell.HISTORY.outputs:
            LOG.write("#[Out]# " + repr(cell.HISTORY.outputs[number]))
    shell.events.register("pre_run_cell", LOG.before_cell)
    shell.events.register("post_run_cell", LOG.after_cell)
    if "q" not in found:
        print("Activating auto-logging. Current session state plus future input saved.")
        logstate(shell, "")


def _open(path, mode):
    if mode == "global":
        path = os.path.join(os.path.expanduser("~"), path)
    if mode == "backup" and os.path.isfile(path):
        os.replace(path, path + "~")
    elif mode == "rotate" and os.path.isfile(path):
        for old in sorted(glob.glob(glob.escape(path) + ".[0-9][0-9][0-9]~"), reverse=True):
            os.replace(old, "%s.%03d~" % (path, int(old[-4:-1]) + 1))
        os.replace(path, path + ".001~")
    return open(path, "a" if mode in ("append", "global") else "w", encoding="utf-8")


def logstop(shell, line):
    """%logstop: close the log file."""
    if LOG.file is None:
        print("Logging hadn't been started.")
        return
    shell.events.unregister("pre_run_cell", LOG.before_cell)
    shell.events.unregister("post_run_cell", LOG.after_cell)
    LOG.file.close()
    LOG.file, LOG.active = None, False


def _switch(active):
    if LOG.file is None:
        raise UsageError("Logging hasn't been started yet (use %logstart for that).")
    word = "ON" if active else "OFF"
    print("Logging is already" if LOG.active == active else "Switching logging", word)
    LOG.active = active


def logon(shell, line):
    """%logon: write inputs again after %logoff."""
    _switch(True)


def logoff(shell, line):
    """%logoff: stop writing inputs until %logon."""
    _switch(False)


def logstate(shell, line):
    """%logstate: the state of the log."""
    if LOG.file is None:
        print("Logging has not been activated.")
        return
    print("Filename       :", LOG.path)
    print("Mode           :", LOG.mode)
    print("Output logging :", LOG.outputs)
    print("Raw input log  :", LOG.raw)
    print("Timestamping   :", LOG.times)
    print("State          :", "active" if LOG.active else "temporarily suspended")
