"""The oracle of the tests: runs Python's Jupyter on a case. Reads JSON, writes JSON."""

import json
import os
import string
import sys


def paths(case):
    """Jupyter's directories in given interpreters."""
    import importlib
    import site

    from jupyter_core import paths

    answers = []
    for one in case["cases"]:
        os.environ.clear()
        os.environ.update(one["env"])
        sys.prefix = one["prefix"]
        sys.base_prefix = one["base_prefix"]
        site.ENABLE_USER_SITE = one["user_site"]
        site.USER_BASE = None
        # Some of the paths are computed on import.
        importlib.reload(paths)
        sys.platform = one["platform"]
        answers.append({"data": paths.jupyter_path(), "runtime": paths.jupyter_runtime_dir()})
        sys.platform = "linux"
    return answers


def own_paths(_):
    """Jupyter's directories in this interpreter."""
    from jupyter_core import paths

    return {
        "data": paths.jupyter_path(),
        "runtime": paths.jupyter_runtime_dir(),
        "prefix": sys.prefix,
    }


def flags(case):
    """The values of boolean environment variables."""
    from jupyter_core.paths import envset

    answers = []
    for value in case["values"]:
        os.environ["SOME_FLAG"] = value
        answers.append(envset("SOME_FLAG"))
    return answers


def specs(case):
    """The kernelspecs in given directories."""
    from jupyter_client.kernelspec import KernelSpecManager

    manager = KernelSpecManager(kernel_dirs=case["directories"], ensure_native_kernel=False)
    manager.log.disabled = True
    found = manager.find_kernel_specs()
    valid = {name: entry["spec"] for name, entry in manager.get_all_specs().items()}
    return {"found": found, "valid": valid}


def command(case):
    """The commands that start kernels."""
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import KernelManager

    sys.executable = case["python"]
    sys.prefix = case["prefix"]
    commands = []
    for directory in case["directories"]:
        manager = KernelManager(connection_file=case["connection_file"])
        manager._kernel_spec = KernelSpec.from_resource_dir(directory)
        commands.append(manager.format_kernel_cmd())
    return commands


def templates(case):
    """Texts with variables replaced."""
    return [string.Template(text).safe_substitute(case["env"]) for text in case["texts"]]


def write(case):
    """Writes a connection file."""
    from jupyter_client.connect import write_connection_file

    case["key"] = case["key"].encode()
    return write_connection_file(**case)[1]


def load(case):
    """The connection that a client reads from a connection file."""
    from jupyter_client import BlockingKernelClient

    client = BlockingKernelClient()
    client.load_connection_file(case["path"])
    info = client.get_connection_info()
    info["key"] = info["key"].decode()
    info["urls"] = {
        channel: client._make_url(channel)
        for channel in ("shell", "iopub", "stdin", "control", "hb")
    }
    return info


def evaluate(case):
    """The value of an expression in a running kernel, which is shut down afterwards."""
    from jupyter_client import BlockingKernelClient

    client = BlockingKernelClient()
    client.load_connection_file(case["path"])
    client.start_channels()
    client.wait_for_ready(timeout=60)
    reply = client.execute("", user_expressions={"x": case["code"]}, reply=True, timeout=60)
    client.shutdown(reply=True, timeout=60)
    client.stop_channels()
    return reply["content"]["user_expressions"]["x"]["data"]["text/plain"]


def bind(case):
    """Listens like a kernel until stdin is closed."""
    import zmq

    context = zmq.Context()
    sockets = [context.socket(zmq.ROUTER) for _ in case["urls"]]
    for socket, url in zip(sockets, case["urls"]):
        socket.linger = 0
        socket.bind(url)
    print(json.dumps("listening"), flush=True)
    sys.stdin.readline()
    for socket in sockets:
        socket.close()
    context.term()
    return "done"


if __name__ == "__main__":
    case = json.loads(sys.stdin.readline())
    print(json.dumps(globals()[sys.argv[1]](case)))
