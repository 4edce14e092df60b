"""ipywidgets without a front end: output that an `Output` widget captures is not shown in the
cell."""

from .display import redirect_output


def patch_output_widget(module):
    """Redirect output while an `Output` widget is entered, as a front end does; called when the
    class is imported."""
    output = module.Output
    original_enter, original_exit = output.__enter__, output.__exit__

    def __enter__(self):
        entered = original_enter(self)
        redirect_output(True)
        return entered

    def __exit__(self, *error):
        try:
            return original_exit(self, *error)
        finally:
            redirect_output(False)

    output.__enter__, output.__exit__ = __enter__, __exit__
