"""get_ipython().kernel: the part of ipykernel's kernel object that notebooks and libraries use.

Libraries such as pandas take the attribute as the sign of a notebook. Messages that have a meaning for
the runner's host are sent, others raise an error.
"""

import sys

from . import lazy


class Session:
    """kernel.session: sends messages."""

    def send(self, stream, msg_type, content=None, parent=None, **options):
        """Send an iopub message, given by its type and content."""
        _send(msg_type, content or {})


class Kernel:
    """The kernel object; one instance per shell."""

    implementation = "cellwright"
    iopub_socket = None
    _parent_header = {}

    def __init__(self, shell):
        self.shell = shell
        self.session = Session()

    @property
    def comm_manager(self):
        """The manager of the package `comm`. No front end opens or receives comms."""
        import comm

        return comm.get_comm_manager()

    def get_parent(self, channel=None):
        """Return the request of the cell, which is no Jupyter message: an empty dict."""
        return {}

    def send_response(self, stream, msg_or_type, content=None, **options):
        """Send an iopub message."""
        _send(msg_or_type, content or {})


def _send(msg_type, content):
    display = lazy.load("display")
    if msg_type in ("display_data", "update_display_data"):
        display.publish(
            content.get("data") or {},
            content.get("metadata"),
            (content.get("transient") or {}).get("display_id"),
            msg_type == "update_display_data",
        )
    elif msg_type == "execute_result":
        display.publish(content.get("data") or {}, content.get("metadata"))
    elif msg_type == "stream":
        getattr(sys, "stderr" if content.get("name") == "stderr" else "stdout").write(
            content.get("text", "")
        )
    elif msg_type == "clear_output":
        display.clear_output(bool(content.get("wait")))
    elif not msg_type.startswith("comm_"):
        raise NotImplementedError(
            "the runner cannot send the message `%s`; run this code on a Jupyter kernel" % msg_type
        )
