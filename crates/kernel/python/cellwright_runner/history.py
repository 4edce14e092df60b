"""What ran so far: the code of each cell that counts, and what its value looked like."""

from .cell import H


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
