"""A kernel of IPython's, driven with the requests that the host makes for its guest there."""

import json
import os
import shutil
import tempfile

from host import FOLDER

NAME = "cellwright"


def _text(name):
    with open(os.path.join(FOLDER, "guest", name), encoding="utf-8") as file:
        return file.read()


LOADER, REQUEST, EXPRESSION = map(_text, ("call.py", "request.txt", "expression.txt"))


def request(call, *arguments, folder=FOLDER, **options):
    """The code of a silent request that calls a function of guest.py."""
    return REQUEST.format(
        loader=ascii(LOADER),
        folder=ascii(folder),
        options=ascii(dict({"prelude": True, "front": True}, **options)),
        call=ascii(call),
        arguments=ascii(list(arguments)),
    )


def expression(call, *arguments):
    """An expression whose value is the answer of a function of guest.py."""
    return EXPRESSION.format(call=call, arguments=ascii(list(arguments))).strip()


class Reply:
    """What came of one request."""

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
        """What the expression beside the code came to."""
        assert self.error is None, self.error
        said = self.content["user_expressions"][NAME]
        assert said["status"] == "ok", said
        assert said["data"]["text/plain"].isascii()
        return json.loads(said["data"]["text/plain"])

    @property
    def text(self):
        """What it printed."""
        return "".join(c["text"] for kind, c in self.events if kind == "stream")

    def said(self, name):
        """What it printed on this stream."""
        streams = (c for kind, c in self.events if kind == "stream")
        return "".join(c["text"] for c in streams if c["name"] == name)

    @property
    def result(self):
        """text/plain of its value, or None."""
        for kind, content in self.events:
            if kind == "execute_result":
                return content["data"]["text/plain"]
        return None

    def displayed(self, mime):
        """What it displayed of this type."""
        shown = [c["data"] for kind, c in self.events if kind == "display_data"]
        return [data[mime] for data in shown if mime in data]


class Kernel:
    def __init__(self, python, cwd, env=None):
        from jupyter_client.kernelspec import KernelSpec
        from jupyter_client.manager import KernelManager

        # Paths of sockets must be short.
        self.folder = tempfile.mkdtemp()
        argv = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        self.manager = KernelManager(
            transport="ipc", connection_file=os.path.join(self.folder, "k.json")
        )
        self.manager._kernel_spec = KernelSpec(argv=argv, language="python", display_name="it")
        environment = dict(os.environ, IPYTHONDIR=self.folder)
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
            user_expressions={} if expression is None else {NAME: expression},
            allow_stdin=False,
            timeout=60,
            output_hook=lambda message: events.append((message["msg_type"], message["content"])),
        )
        return Reply(reply["content"], events)

    def call(self, call, *arguments, **options):
        """Have a function of guest.py called."""
        return self.run(request(call, *arguments, **options), silent=True)

    def ask(self, op, **wanted):
        """Have a question answered."""
        return self.run(request("ready"), True, expression("answer", op, wanted)).answer

    def value(self, code):
        """The value of an expression, without a trace."""
        wrapped = "type('', (), {'__repr__': lambda s, v=(%s): __import__('json').dumps(v)})()"
        return self.run("", True, wrapped % code).answer

    def is_settled(self):
        return self.run("", True, expression("settled")).answer

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        shutil.rmtree(self.folder, ignore_errors=True)
