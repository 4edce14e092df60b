"""The session's history: the code of each counted cell and the text of its value."""

from .cell import HISTORY
from .state import STATE


def history(request):
    """Return the reply to `history`: the latest `last` cells, oldest first."""
    last = int(request.get("last") or 0)
    if last <= 0:
        return []
    return [
        {
            "count": count,
            "code": code,
            "output": HISTORY.output_texts.get(count) if count in HISTORY.outputs else None,
        }
        for count, code in list(HISTORY.raw_inputs.items())[-last:]
    ]


class HistoryManager:
    """get_ipython().history_manager: this session's inputs, which are never written to a file."""

    enabled = True
    hist_file = ":memory:"
    session_number = 1

    @property
    def input_hist_parsed(self):
        return list(HISTORY.inputs)

    @property
    def input_hist_raw(self):
        return [HISTORY.raw_inputs.get(number, "") for number in range(len(HISTORY.inputs))]

    @property
    def output_hist(self):
        return STATE.ns.get("Out", {})

    @property
    def dir_hist(self):
        return STATE.ns.get("_dh", [])

    def get_range(self, session=0, start=1, stop=None, raw=True, output=False):
        """Yield (session, number, input) or, with `output`, (session, number, (input, output))."""
        inputs = self.input_hist_raw if raw else HISTORY.inputs
        count = len(inputs)
        stop = count if stop is None else stop + count if stop < 0 else min(stop, count)
        for number in range(max(0, start + count if start < 0 else start), stop):
            text = inputs[number]
            yield 0, number, (text, HISTORY.output_texts.get(number)) if output else text

    def get_tail(self, n=10, raw=True, output=False, include_latest=False):
        """Return the last `n` entries; without the calling cell unless `include_latest`."""
        stop = len(HISTORY.inputs) - (0 if include_latest else 1)
        return list(self.get_range(0, max(1, stop - n), max(1, stop), raw, output))
