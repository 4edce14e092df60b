"""What ran so far: the code of each cell that counts, and what its value looked like."""

from .cell import H
from .state import S


def history(request):
    """The reply to `history`: the latest `last` cells, oldest first."""
    last = int(request.get("last") or 0)
    if last <= 0:
        return []
    return [
        {
            "count": count,
            "code": code,
            "output": H.shown.get(count) if count in H.outputs else None,
        }
        for count, code in list(H.cells.items())[-last:]
    ]


class Manager:
    """get_ipython().history_manager: this session's inputs, which are never written to a file."""

    enabled = True
    hist_file = ":memory:"
    session_number = 1

    @property
    def input_hist_parsed(self):
        return list(H.inputs)

    @property
    def input_hist_raw(self):
        return [H.cells.get(number, "") for number in range(len(H.inputs))]

    @property
    def output_hist(self):
        return S.ns.get("Out", {})

    @property
    def dir_hist(self):
        return S.ns.get("_dh", [])

    def get_range(self, session=0, start=1, stop=None, raw=True, output=False):
        """(session, number, input) or, with `output`, (session, number, (input, output))."""
        inputs = self.input_hist_raw if raw else H.inputs
        count = len(inputs)
        stop = count if stop is None else stop + count if stop < 0 else min(stop, count)
        for number in range(max(0, start + count if start < 0 else start), stop):
            text = inputs[number]
            yield 0, number, (text, H.shown.get(number)) if output else text

    def get_tail(self, n=10, raw=True, output=False, include_latest=False):
        """The last `n`; without the cell that asks unless `include_latest`."""
        stop = len(H.inputs) - (0 if include_latest else 1)
        return list(self.get_range(0, max(1, stop - n), max(1, stop), raw, output))
