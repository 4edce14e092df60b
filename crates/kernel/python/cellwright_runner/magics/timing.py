"""%time, %%time, %timeit, %%timeit"""

import resource
import time as clock
import timeit as standard

from .. import cell, lazy
from ..state import STATE
from . import options


def _format_duration(seconds, precision=3):
    """1.23 μs, 4 ms, 1min 3s"""
    if seconds >= 60:
        parts, rest = [], int(seconds)
        for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
            if rest >= size:
                parts.append("%d%s" % (rest // size, unit))
                rest %= size
        return " ".join(parts)
    for size, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "\u03bcs")):
        if seconds >= size:
            return "%.*g %s" % (precision, seconds / size, unit)
    return "%.*g ns" % (precision, seconds * 1e9)


def _run_timed(shell, text, lines_above):
    local_names = lazy.load("shell").caller_locals()
    before, start = resource.getrusage(resource.RUSAGE_SELF), clock.perf_counter()
    try:
        value = shell.run_body(
            text, lines_above=lines_above, value=True, local_names=local_names
        )
    finally:
        wall, after = clock.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
        user, system = after[0] - before[0], after[1] - before[1]
        print(
            "CPU times: user %s, sys: %s, total: %s"
            % (
                _format_duration(max(user, 0)),
                _format_duration(max(system, 0)),
                _format_duration(max(user + system, 0)),
            )
        )
        print("Wall time: %s" % _format_duration(wall))
    return value


def time(shell, line):
    """%time statement: run it once and print its duration."""
    return _run_timed(shell, line, 0)


def time_cell(shell, line, body):
    """%%time: run the cell once and print its duration."""
    if line.strip():
        body = line + "\n" + body
        return _run_timed(shell, body, 0)
    return _run_timed(shell, body, 1)


class TimeitResult:
    """The value that %timeit -o returns."""

    def __init__(self, loops, repeat, timings, precision=3):
        self.loops = loops
        self.repeat = repeat
        self.all_runs = [t * loops for t in timings]
        self.timings = timings
        self.best = min(timings)
        self.worst = max(timings)
        self.compile_time = 0.0
        self._precision = precision

    @property
    def average(self):
        return sum(self.timings) / len(self.timings)

    @property
    def stdev(self):
        mean = self.average
        return (sum((t - mean) ** 2 for t in self.timings) / len(self.timings)) ** 0.5

    def __str__(self):
        return "%s ± %s per loop (mean ± std. dev. of %d run%s, %s loop%s each)" % (
            _format_duration(self.average, self._precision),
            _format_duration(self.stdev, self._precision),
            self.repeat,
            "" if self.repeat == 1 else "s",
            format(self.loops, ","),
            "" if self.loops == 1 else "s",
        )

    def __repr__(self):
        return "<TimeitResult : %s>" % self

    def _repr_pretty_(self, printer, cycle):
        printer.text("<TimeitResult : %s>" % self)


def _timeit(shell, line, body):
    flags = ("q", "o", "t", "c", "no-raise-error")
    usage = "%timeit [-n N] [-r R] [-p P] [-q] [-o] [-v NAME] statement"
    found, rest = options(line, flags, ("n", "r", "p", "v"), usage)
    setup, statement = ("pass", rest) if body is None else (rest or "pass", body)
    transform = lazy.load("transform").transform_cell
    if cell.needs_transform(statement):
        statement = transform(statement, False)
    if cell.needs_transform(setup):
        setup = transform(setup, False)
    compile(statement.strip() or "pass", cell.cell_name(None, STATE.cell_count), "exec")
    local_names = lazy.load("shell").caller_locals()
    names = STATE.ns if local_names is None else dict(STATE.ns, **local_names)
    timer = standard.Timer(statement.strip("\n") or "pass", setup.strip() or "pass", globals=names)
    repeat = int(found.get("r", 7))
    number = int(found.get("n", 0))
    if not number:
        for exponent in range(10):
            number = 10**exponent
            if timer.timeit(number) >= 0.2:
                break
    timings = [run / number for run in timer.repeat(repeat, number)]
    result = TimeitResult(number, repeat, timings, int(found.get("p", 3)))
    if "q" not in found:
        if result.worst > 4 * result.best and result.best > 0 and result.worst > 1e-6:
            print(
                "The slowest run took %0.2f times longer than the fastest. "
                "This could mean that an intermediate result is being cached."
                % (result.worst / result.best)
            )
        print(result)
    if "v" in found:
        STATE.ns[found["v"]] = result
    return result if "o" in found else None


def timeit(shell, line):
    """%timeit [-n N] [-r R] [-p P] [-q] [-o] [-v NAME] statement"""
    return _timeit(shell, line, None)


def timeit_cell(shell, line, body):
    """%%timeit [-n N] [-r R] [-q] [-o] [setup], with the statements below"""
    return _timeit(shell, line, body)
