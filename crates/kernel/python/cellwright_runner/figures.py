"""matplotlib: open figures are shown after each cell and by plt.show(), then closed.

Loaded when matplotlib.pyplot is imported. MPLBACKEND is Agg (see main), which child processes can
use too; they could not import a backend module of the runner.
"""

import sys
from io import BytesIO

from .state import STATE

FORMATS = {
    "png": "image/png",
    "png2x": "image/png",
    "retina": "image/png",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
}


class InlineOptions:
    """The options that `%config InlineBackend.…` sets."""

    def __init__(self):
        self.figure_formats = ["png"]
        self.print_figure_kwargs = {"bbox_inches": "tight"}
        self.close_figures = True
        self.other_options = {}


OPTIONS = InlineOptions()
_displayed = set()  # ids of figures that were displayed explicitly in this cell


def patch_pyplot(pyplot):
    """Replace pyplot's `show`; called when matplotlib.pyplot has been imported."""
    STATE.figures = sys.modules[__name__]
    pyplot.show = show
    from matplotlib import backend_bases

    def show_manager(self):
        _publish(self.canvas.figure)
        _displayed.add(id(self.canvas.figure))

    backend_bases.FigureManagerBase.show = show_manager


class Selection:
    """Whether %matplotlib has run. The one instance is `SELECTED`."""

    inline = False


SELECTED = Selection()


def select_inline():
    """%matplotlib: from now on `matplotlib.backends.backend` names the backend, as in a kernel that
    has loaded one."""
    SELECTED.inline = True
    if "matplotlib.backends" in sys.modules:
        patch_backends(sys.modules["matplotlib.backends"])


def patch_backends(module):
    """Set the name of the backend; called when matplotlib.backends has been imported."""
    if SELECTED.inline:
        module.backend = "inline"


def patch_inline_backend(module):
    """Replace matplotlib_inline's function that sets the format."""

    def set_matplotlib_formats(*formats, **kwargs):
        set_option("figure_formats", formats)
        OPTIONS.print_figure_kwargs.update(kwargs)

    module.set_matplotlib_formats = set_matplotlib_formats


def set_option(name, value):
    """`%config InlineBackend.name = value`"""
    if name in ("figure_format", "figure_formats"):
        formats = [value] if isinstance(value, str) else list(value)
        unknown = [f for f in formats if f not in FORMATS]
        if unknown:
            raise ValueError("figure formats are %s, not %r" % (", ".join(FORMATS), unknown[0]))
        OPTIONS.figure_formats = formats
    elif name == "print_figure_kwargs":
        OPTIONS.print_figure_kwargs = dict(value)
    elif name == "close_figures":
        OPTIONS.close_figures = bool(value)
    else:
        OPTIONS.other_options[name] = value


def options_text():
    """`%config InlineBackend`"""
    return (
        "InlineBackend.figure_formats = %r\nInlineBackend.print_figure_kwargs = %r\n"
        "InlineBackend.close_figures = %r"
        % (OPTIONS.figure_formats, OPTIONS.print_figure_kwargs, OPTIONS.close_figures)
    )


def _managers():
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    return helpers.Gcf.get_all_fig_managers() if helpers is not None else []


def show(*args, **kwargs):
    """plt.show(): show the open figures."""
    show_all()


def show_all():
    """Show and close the open figures; called after every cell, also after a failed one."""
    managers = _managers()
    if not managers:
        _displayed.clear()
        return
    try:
        for manager in managers:
            figure = manager.canvas.figure
            if id(figure) not in _displayed:
                _publish(figure)
    finally:
        _displayed.clear()
        if OPTIONS.close_figures:
            sys.modules["matplotlib.pyplot"].close("all")


def _publish(figure):
    from .display import publish, report_repr_failure

    data, metadata = {}, {}
    try:
        add_formats(figure, data, metadata)
    except Exception as error:
        report_repr_failure(figure, "savefig", error)
        return
    # An empty figure has no image and is shown by its repr only.
    data["text/plain"] = repr(figure)
    publish(data, metadata)


def mark_displayed(obj):
    """Mark a figure that display() has shown, so that the end of the cell does not show it again.
    Other objects are ignored."""
    if _is_figure(obj):
        _displayed.add(id(obj))


def _is_figure(obj):
    module = sys.modules.get("matplotlib.figure")
    return module is not None and isinstance(obj, module.Figure)


def add_formats(figure, data, metadata):
    """Add the images of a figure to a bundle; an empty figure has none."""
    if not _is_figure(figure):
        return
    _displayed.add(id(figure))
    if not figure.axes and not figure.lines and not getattr(figure, "subfigs", None):
        if not (figure.texts or figure.images or figure.patches or figure.artists):
            return
    for name in OPTIONS.figure_formats:
        mime = FORMATS[name]
        double = name in ("retina", "png2x")
        image = _render(figure, "png" if double else name, 2 if double else 1)
        if mime == "image/svg+xml":
            image = image.decode("utf-8")
        data[mime] = image
        if double and len(image) > 24:
            metadata[mime] = {
                "width": int.from_bytes(image[16:20], "big") // 2,
                "height": int.from_bytes(image[20:24], "big") // 2,
            }


def _render(figure, name, scale):
    canvas = figure.canvas
    if canvas is None or type(canvas).__name__ == "FigureCanvasBase":
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        canvas = FigureCanvasAgg(figure)
    arguments = {
        "format": name,
        "facecolor": figure.get_facecolor(),
        "edgecolor": figure.get_edgecolor(),
        "dpi": figure.dpi * scale,
    }
    arguments.update(OPTIONS.print_figure_kwargs)
    target = BytesIO()
    canvas.print_figure(target, **arguments)
    return target.getvalue()
