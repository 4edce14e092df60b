"""%%html, %%markdown, %%latex, %%svg, %%javascript: show the cell's text with that MIME type."""

from ..display import publish


def _publish(mime, body, name, metadata=None):
    """Publish the text as IPython's display object `name` does."""
    data = {mime: body, "text/plain": "<IPython.core.display.%s object>" % name}
    publish(data, metadata or {})


def html(shell, line, body):
    """%%html [--isolated]"""
    isolated = {"text/html": {"isolated": True}} if "--isolated" in line else None
    _publish("text/html", body, "HTML", isolated)


def markdown(shell, line, body):
    """%%markdown"""
    _publish("text/markdown", body, "Markdown")


def latex(shell, line, body):
    """%%latex"""
    _publish("text/latex", body, "Latex")


def svg(shell, line, body):
    """%%svg"""
    _publish("image/svg+xml", body, "SVG")


def javascript(shell, line, body):
    """%%javascript"""
    _publish("application/javascript", body, "Javascript")
