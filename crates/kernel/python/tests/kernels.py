"""An IPython kernel, driven with the requests that the host sends to `ipykernel_support`."""

import json
import os
import shutil
import tempfile

from host import RUNNER_DIRECTORY

EXPRESSION_NAME = "cellwright"


def _text(name):
    with open(os.path.join(RUNNER_DIRECTORY, "injected", name), encoding="utf-8") as file:
        return file.read()


LOADER, REQUEST, EXPRESSION = map(_text, ("loader.py", "request.txt", "expression.txt"))


def request(call, *arguments, directory=RUNNER_DIRECTORY, **options):
    """Return the code of a silent request that calls a function of ipykernel_support.py."""
    return REQUEST.format(
        loader=ascii(LOADER),
        directory=ascii(directory),
        options=ascii(dict({"prelude": True, "owned": True}, **options)),
        call=ascii(call),
        arguments=ascii(list(arguments)),
    )


def expression(call, *arguments):
    """Return an expression whose value is the result of a function of ipykernel_support.py."""
    return EXPRESSION.format(call=call, arguments=ascii(list(arguments))).strip()


class Reply:
    """The reply to one request and the events before it."""

    def __init__(self, content, events):
        self.content = content
        self.events = events

    @property
    def error(self):
        """`Name: value`, or None."""
        if self.content["status"] == "ok":
            return None
        return "%s: %s" % (self.content["ename"], self.content["evalue"])

    @property
    def answer(self):
        """The value of the user expression."""
        assert self.error is None, self.error
        expression = self.content["user_expressions"][EXPRESSION_NAME]
        assert expression["status"] == "ok", expression
        assert expression["data"]["text/plain"].isascii()
        return json.loads(expression["data"]["text/plain"])

    @property
    def text(self):
        """The text of both streams."""
        return "".join(c["text"] for kind, c in self.events if kind == "stream")

    def stream_text(self, name):
        """Return the text of one stream."""
        streams = (c for kind, c in self.events if kind == "stream")
        return "".join(c["text"] for c in streams if c["name"] == name)

    @property
    def result(self):
        """text/plain of the result, or None."""
        for kind, content in self.events:
            if kind == "execute_result":
                return content["data"]["text/plain"]
        return None

    def displayed(self, mime):
        """Return the displayed values of one MIME type."""
        shown = [c["data"] for kind, c in self.events if kind == "display_data"]
        return [data[mime] for data in shown if mime in data]


class Kernel:
    """An IPython kernel process and its client."""

    def __init__(self, python, cwd, env=None):
        from jupyter_client.kernelspec import KernelSpec
        from jupyter_client.manager import KernelManager

        # Socket paths have a length limit.
        self.directory = tempfile.mkdtemp()
        argv = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        self.manager = KernelManager(
            transport="ipc", connection_file=os.path.join(self.directory, "k.json")
        )
        self.manager._kernel_spec = KernelSpec(argv=argv, language="python", display_name="it")
        environment = dict(os.environ, IPYTHONDIR=self.directory)
        environment.update(env or {})
        self.manager.start_kernel(cwd=str(cwd), env=environment)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    def run(self, code, silent=False, expression=None):
        events = []
        reply = self.client.execute_interactive(
            code,
            silent=silent,
            store_history=not silent,
            user_expressions={} if expression is None else {EXPRESSION_NAME: expression},
            allow_stdin=False,
            timeout=60,
            output_hook=lambda message: events.append((message["msg_type"], message["content"])),
        )
        return Reply(reply["content"], events)

    def call(self, call, *arguments, **options):
        """Call a function of ipykernel_support.py by a silent request."""
        return self.run(request(call, *arguments, **options), silent=True)

    def query(self, op, **fields):
        """Return the reply to a request such as `variables`."""
        return self.run(request("ensure_installed"), True, expression("query", op, fields)).answer

    def evaluate(self, code):
        """Return the value of an expression, by a silent request."""
        wrapped = "type('', (), {'__repr__': lambda s, v=(%s): __import__('json').dumps(v)})()"
        return self.run("", True, wrapped % code).answer

    def is_context_applied(self):
        return self.run("", True, expression("context_applied")).answer

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        shutil.rmtree(self.directory, ignore_errors=True)
