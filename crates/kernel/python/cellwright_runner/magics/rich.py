"""%%html, %%markdown, %%latex, %%svg, %%javascript: show the cell's text as that."""

from ..display import publish


def html(shell, line, body):
    """%%html [--isolated]"""
    publish({"text/html": body}, {"text/html": {"isolated": True}} if "--isolated" in line else {})


def markdown(shell, line, body):
    """%%markdown"""
    publish({"text/markdown": body})


def latex(shell, line, body):
    """%%latex"""
    publish({"text/latex": body})


def svg(shell, line, body):
    """%%svg"""
    publish({"image/svg+xml": body})


def javascript(shell, line, body):
    """%%javascript"""
    publish({"application/javascript": body})
