"""The configuration of Cellwright's shared gateway, which `python -m kernel_gateway --config=THIS_FILE` loads.

`options.json` in the directory of this file has the values that differ between gateways.
"""

import json
import logging
import os
import resource
import uuid

import kernel_gateway.services.kernels.handlers as kernel_handlers
from jupyter_server.services.kernels.websocket import KernelWebsocketHandler
from jupyter_server.utils import url_path_join
from kernel_gateway.gatewayapp import KernelGatewayApp
from kernel_gateway.services.kernels.manager import SeedingMappingKernelManager
from tornado import httpserver, netutil, web

c = get_config()  # noqa: F821

DIRECTORY = os.path.dirname(os.path.abspath(__file__))

with open(os.path.join(DIRECTORY, "options.json"), encoding="utf-8") as options_file:
    OPTIONS = json.load(options_file)

# Inputs of one cell, and files that a client uploads in messages, can be large.
MESSAGE_LIMIT = 1 << 30

# Each kernel and each connection to it needs many sockets.
DESCRIPTORS_MAX = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS_MAX, DESCRIPTORS_MAX))

# The process that watches the gateway sends requests all the time.
logging.getLogger("tornado.access").setLevel(logging.WARNING)


class OwnedKernelManager(SeedingMappingKernelManager):
    """Remembers which process owns each kernel."""

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self.owners = {}

    def kernel_model(self, kernel_id):
        model = super().kernel_model(kernel_id)
        model["cellwright_owner"] = self.owners.get(kernel_id)
        return model

    def remove_kernel(self, kernel_id):
        self.owners.pop(kernel_id, None)
        return super().remove_kernel(kernel_id)


async def start_kernel(self):
    """Handles `POST /api/kernels`: a kernel with exactly the environment of the request.

    The handler of kernel_gateway drops variables that no list names, and mixes up the variables of two requests that
    arrive at the same time.
    """
    request = self.get_json_body() or {}
    env = request.get("env") or {}
    owner = env.pop("KERNEL_CELLWRIGHT_OWNER", None)
    manager = self.kernel_manager
    kernel_id = str(uuid.uuid4())
    if owner:
        manager.owners[kernel_id] = json.loads(owner)
    try:
        await manager.start_kernel(
            kernel_id=kernel_id,
            kernel_name=request.get("name") or manager.default_kernel_name,
            path=request.get("path"),
            # All processes that the kernel starts inherit its id, and end with it.
            env={**env, "CELLWRIGHT_KERNEL_ID": kernel_id},
        )
    except BaseException:
        manager.owners.pop(kernel_id, None)
        raise
    self.set_header("Location", url_path_join(self.base_url, "api", "kernels", kernel_id))
    self.set_status(201)
    self.finish(json.dumps(manager.kernel_model(kernel_id), default=str))


kernel_handlers.MainKernelHandler.post = start_kernel


def init_http_server(self):
    """Listens on a free port, and reports it."""
    self.web_app.settings["websocket_max_message_size"] = MESSAGE_LIMIT
    self.http_server = httpserver.HTTPServer(self.web_app, max_body_size=MESSAGE_LIMIT)
    sockets = netutil.bind_sockets(0, "127.0.0.1")
    self.port = sockets[0].getsockname()[1]
    self.http_server.add_sockets(sockets)
    path = os.path.join(DIRECTORY, "port")
    with open(path + ".new", "w", encoding="utf-8") as port_file:
        port_file.write(str(self.port))
    os.replace(path + ".new", path)


KernelGatewayApp.init_http_server = init_http_server


def open_without_delay(self, *arguments, **keywords):
    """Sends small messages at once."""
    self.set_nodelay(True)
    return original_open(self, *arguments, **keywords)


original_open = KernelWebsocketHandler.open
KernelWebsocketHandler.open = open_without_delay

c.JupyterApp.answer_yes = True
c.KernelGatewayApp.ip = "127.0.0.1"
c.KernelGatewayApp.auth_token = OPTIONS["token"]
c.KernelGatewayApp.allow_origin = ""
c.KernelGatewayApp.max_kernels = None
c.KernelGatewayApp.prespawn_count = None
c.KernelGatewayApp.seed_uri = None
c.KernelGatewayApp.force_kernel_name = ""
c.KernelGatewayApp.cookie_secret = os.urandom(32)
c.KernelGatewayApp.kernel_manager_class = OwnedKernelManager
c.JupyterWebsocketPersonality.list_kernels = True
c.ZMQChannelsWebsocketConnection.limit_rate = False
c.MappingKernelManager.root_dir = "/"
c.MappingKernelManager.cull_idle_timeout = 0
c.KernelManager.transport = OPTIONS["transport"]
