"""matplotlib: open figures are shown after each cell and by plt.show(), then closed.

Loaded when matplotlib.pyplot is imported. MPLBACKEND is Agg (see main), which child processes can
use too; a backend module of ours they could not import.
"""

import sys
from io import BytesIO

from .state import S

FORMATS = {
    "png": "image/png",
    "png2x": "image/png",
    "retina": "image/png",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
}


class Options:
    """What `%config InlineBackend.…` sets."""

    def __init__(self):
        self.figure_formats = ["png"]
        self.print_figure_kwargs = {"bbox_inches": "tight"}
        self.close_figures = True
        self.others = {}


OPTIONS = Options()
_shown = set()  # ids of figures that were displayed explicitly in this cell


def connect(pyplot):
    """Called when matplotlib.pyplot has been imported."""
    S.figures = sys.modules[__name__]
    pyplot.show = show
    from matplotlib import backend_bases

    def show_one(self):
        _publish(self.canvas.figure)
        _shown.add(id(self.canvas.figure))

    backend_bases.FigureManagerBase.show = show_one


def connect_inline(module):
    """matplotlib_inline's way to set the format."""

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
        OPTIONS.others[name] = value


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
    """plt.show(): the open figures, here and now."""
    show_all()


def show_all():
    """Show and close the open figures; called after every cell, also a failed one."""
    managers = _managers()
    if not managers:
        _shown.clear()
        return
    try:
        for manager in managers:
            figure = manager.canvas.figure
            if id(figure) not in _shown:
                _publish(figure)
    finally:
        _shown.clear()
        if OPTIONS.close_figures:
            sys.modules["matplotlib.pyplot"].close("all")


def _publish(figure):
    from .display import complain, publish

    data, metadata = {}, {}
    try:
        add_formats(figure, data, metadata)
    except Exception as error:
        complain(figure, "savefig", error)
        return
    # Of an empty one there is no picture, but that it is there is said.
    data["text/plain"] = repr(figure)
    publish(data, metadata)


def shown(obj):
    """display() has shown the object: if it is a figure, the end of the cell does not show it
    again."""
    if _is_figure(obj):
        _shown.add(id(obj))


def _is_figure(obj):
    module = sys.modules.get("matplotlib.figure")
    return module is not None and isinstance(obj, module.Figure)


def add_formats(figure, data, metadata):
    """Put the images of a figure into a bundle (nothing for an empty figure)."""
    if not _is_figure(figure):
        return
    _shown.add(id(figure))
    if not figure.axes and not figure.lines and not getattr(figure, "subfigs", None):
        if not (figure.texts or figure.images or figure.patches or figure.artists):
            return
    for name in OPTIONS.figure_formats:
        mime = FORMATS[name]
        double = name in ("retina", "png2x")
        picture = _render(figure, "png" if double else name, 2 if double else 1)
        if mime == "image/svg+xml":
            picture = picture.decode("utf-8")
        data[mime] = picture
        if double and len(picture) > 24:
            metadata[mime] = {
                "width": int.from_bytes(picture[16:20], "big") // 2,
                "height": int.from_bytes(picture[20:24], "big") // 2,
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
