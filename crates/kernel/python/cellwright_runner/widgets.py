"""ipywidgets without a page: what an `Output` captures is not shown in the cell."""

from .display import aside


def connect(module):
    """Called when ipywidgets' `Output` is imported: as on a page, what comes while one is entered is
    its own."""
    output = module.Output
    enter, leave = output.__enter__, output.__exit__

    def __enter__(self):
        entered = enter(self)
        aside(True)
        return entered

    def __exit__(self, *error):
        try:
            return leave(self, *error)
        finally:
            aside(False)

    output.__enter__, output.__exit__ = __enter__, __exit__
