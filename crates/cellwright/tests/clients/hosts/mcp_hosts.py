"""The MCP hosts: how each of them starts, and how it packs tool results.

A host runs in the project's directory with a temporary home. It reaches no other machine: its proxy is a closed port.
"""

import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from conftest import BINARY, PACKAGES
from model import MODEL_NAME
from story import CALL_TIMEOUT

HERE = pathlib.Path(__file__).parent
HOST_TIMEOUT = 120
CLOSED_PORT = "http://127.0.0.1:9"


@dataclasses.dataclass(frozen=True)
class McpHost:
    """One MCP host."""

    # Returns the command line and the environment, from the URL of the model and a prompt.
    command: Callable[[str, str], tuple[list, dict]]
    # Text before the names of the server's tools.
    tool_prefix: str = ""
    # Whether a call that sends progress notifications may exceed the time limit of the host.
    extends_limit: bool = False
    # Returns the text of the server from the text of a tool result.
    unpack: Callable[[str], str] = str

    def run(self, project, model, prompt):
        """Runs the host until it ends."""
        command, env = self.command(model.url, prompt)
        temporary = project.home / "tmp"
        temporary.mkdir()
        full_env = {
            **project.env,
            "TMPDIR": str(temporary),
            "HTTP_PROXY": CLOSED_PORT,
            "HTTPS_PROXY": CLOSED_PORT,
            "NO_PROXY": "127.0.0.1",
            **env,
        }
        process = subprocess.Popen(
            list(map(str, command)),
            cwd=project.directory,
            env=full_env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            stdout, stderr = process.communicate(timeout=HOST_TIMEOUT)
        except subprocess.TimeoutExpired:
            # The server ends when its stdin closes, and its kernels end with it.
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            stderr += f"\nkilled after {HOST_TIMEOUT} s"
        return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def opencode(url, prompt):
    program = next(PACKAGES.glob("opencode-*/bin/opencode"), None)
    if program is None:
        pytest.skip("opencode has no package for this platform")
    limit = {"context": 200_000, "output": 4_096}
    modalities = {"input": ["text", "image"], "output": ["text"]}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": url, "apiKey": "none"},
        "models": {MODEL_NAME: {"attachment": True, "limit": limit, "modalities": modalities}},
    }
    config = {
        "model": f"tests/{MODEL_NAME}",
        "small_model": f"tests/{MODEL_NAME}",
        "autoupdate": False,
        "share": "disabled",
        "provider": {"tests": provider},
        "mcp": {"cellwright": {"type": "local", "command": [str(BINARY), "mcp"], "timeout": CALL_TIMEOUT * 1000}},
    }
    env = {
        "OPENCODE_CONFIG_CONTENT": json.dumps(config),
        "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        # It installs a package for plugins below its home, unless npm is offline.
        "NPM_CONFIG_OFFLINE": "true",
    }
    return [program, "run", prompt], env


def pydantic_ai(url, prompt):
    return [sys.executable, HERE / "pydantic_ai_host.py", url, MODEL_NAME, prompt, CALL_TIMEOUT, BINARY, "mcp"], {}


def unpack_pydantic_ai(text):
    """Several blocks are a JSON list, in which an image is a remark. An error is a JSON object."""
    try:
        packed = json.loads(text)
    except ValueError:
        return text
    match packed:
        case {"error": str(message), **others} if not others:
            return message
        case [*blocks] if all(isinstance(block, str) for block in blocks):
            return "\n".join(block for block in blocks if not re.fullmatch(r"See file \w+\.", block))
        case _:
            return text


def openai_agents(url, prompt):
    command = [sys.executable, HERE / "openai_agents_host.py", url, MODEL_NAME, prompt, CALL_TIMEOUT, BINARY, "mcp"]
    return command, {"OPENAI_AGENTS_DISABLE_TRACING": "1"}


MCP_HOSTS = {
    "opencode": McpHost(opencode, tool_prefix="cellwright_", extends_limit=True),
    "pydantic-ai": McpHost(pydantic_ai, unpack=unpack_pydantic_ai),
    "openai-agents": McpHost(openai_agents),
}
