# Runs inside an ipykernel on a Jupyter server, in a separate namespace with `client`, the session id of
# the client that sends it.
#
# A server loses the messages that are on their way when a connection breaks. This code numbers the
# messages that answer the client's requests and keeps the latest ones. After it has connected again,
# the client sends `cellwright_delivery_request` on the control channel, which is answered also while a
# cell runs: without `numbers` the reply contains the last number, with `numbers` the kernel publishes
# those messages again.
import collections
import threading

from IPython import get_ipython

SIZE_LIMIT = 64_000_000
COUNT_LIMIT = 50_000
NUMBER = "cellwright_number"
CHANNEL = "cellwright_channel"


class DeliveryLog:
    def __init__(self, kernel, client):
        self.kernel = kernel
        self.client = client
        self.lock = threading.Lock()
        self.last = 0
        self.size = 0
        self.messages = collections.OrderedDict()
        self.requests = collections.deque(maxlen=1000)
        self.send = kernel.session.send

    def install(self):
        self.kernel.session.send = self.send_numbered
        self.kernel.control_handlers["cellwright_delivery_request"] = self.answer

    def send_numbered(
        self,
        stream,
        msg_or_type,
        content=None,
        parent=None,
        ident=None,
        buffers=None,
        track=False,
        header=None,
        metadata=None,
    ):
        is_message = isinstance(msg_or_type, dict)
        source = msg_or_type if is_message else {"parent_header": parent}
        request = source.get("parent_header") or {}
        request = request.get("header", request)
        if request.get("session") == self.client:
            metadata = dict((source.get("metadata") if is_message else metadata) or {})
            kind = msg_or_type["msg_type"] if is_message else msg_or_type
            channel = (
                "stdin"
                if kind == "input_request"
                else "shell"
                if kind.endswith("_reply")
                else "iopub"
            )
            sent = source.get("content") if is_message else content
            sent_buffers = buffers or (source.get("buffers") if is_message else None)
            with self.lock:
                self.last += 1
                metadata[NUMBER] = self.last
                self.store(self.last, (kind, sent, request, metadata, sent_buffers, channel))
            if is_message:
                msg_or_type = dict(msg_or_type, metadata=metadata)
                metadata = None
        return self.send(
            stream, msg_or_type, content, parent, ident, buffers, track, header, metadata
        )

    def store(self, number, message):
        size = measure(message)
        self.messages[number] = (message, size)
        self.size += size
        while self.size > SIZE_LIMIT or len(self.messages) > COUNT_LIMIT:
            self.size -= self.messages.popitem(last=False)[1][1]
        request = message[2].get("msg_id")
        if not self.requests or self.requests[-1] != request:
            self.requests.append(request)

    def answer(self, stream, ident, request):
        content = request["content"]
        with self.lock:
            known = set(self.requests)
            reply = {
                "status": "ok",
                "last": self.last,
                "unknown": [name for name in content.get("requests", ()) if name not in known],
            }
            numbers = content.get("numbers", ())
            messages = [(number, self.messages.get(number)) for number in numbers]
        reply["missing"] = [number for number, message in messages if message is None]
        for _, message in messages:
            if message is not None:
                self.publish(message[0])
        self.send(stream, "cellwright_delivery_reply", reply, request, ident)

    def publish(self, message):
        kind, content, request, metadata, buffers, channel = message
        metadata = dict(metadata, **{CHANNEL: channel})
        self.send(
            self.kernel.iopub_socket,
            kind,
            content,
            parent={"header": request},
            buffers=buffers,
            metadata=metadata,
        )


def measure(message):
    """Return about how many bytes a message occupies."""
    content = message[1] or {}
    size = 500
    for value in list(content.values()) + list((content.get("data") or {}).values()):
        size += len(value) if isinstance(value, (str, bytes)) else 100
    for buffer in message[4] or ():
        size += getattr(buffer, "nbytes", None) or len(buffer)
    return size


def install():
    kernel = get_ipython().kernel
    installed = getattr(kernel.session.send, "__self__", None)
    if getattr(installed, "client", None) != client:  # noqa: F821
        DeliveryLog(kernel, client).install()  # noqa: F821


install()
