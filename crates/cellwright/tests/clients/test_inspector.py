"""The command line of the MCP Inspector, over both transports."""

import json

import pytest
from conftest import BINARY, PACKAGES, PNG, node


@pytest.fixture(params=["stdio", "http"])
def inspect(request, place, tmp_path):
    """Calls the inspector with these arguments; gives what it printed."""
    from conftest import Listening

    home = tmp_path / "inspector"
    home.mkdir()
    server = Listening(place) if request.param == "http" else None
    if server:
        headers = {"Authorization": f"Bearer {server.token}"}
        entry = {"type": "streamable-http", "url": server.url, "headers": headers}
    else:
        entry = {"type": "stdio", "command": str(BINARY), "args": ["mcp", "--root", str(place.folder)], "env": place.env}
    config = home / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"cellwright": entry}}))

    def call(*arguments):
        program = PACKAGES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
        env = {**place.env, "HOME": str(home)}
        way = ["--cli", "--config", config, "--server", "cellwright"]
        ran = node(program, *way, *arguments, env=env, cwd=place.folder)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    yield call
    if server:
        server.close()


def test_tools_and_their_schemas(inspect):
    listed = json.loads(inspect("--strict", "--method", "tools/list"))
    names = [tool["name"] for tool in listed["tools"]]
    assert names == ["read", "edit", "notebook", "write", "run", "eval", "runs", "kernels", "artifact"]


def test_calls(inspect, place):
    place.notebook("a.ipynb", "x = 20", "x + 1")
    answer = json.loads(inspect("--method", "tools/call", "--tool-name", "run", "--tool-arg", "path=a.ipynb"))
    assert answer["structuredContent"]["cells"][1]["text"].strip() == "21"
    answer = json.loads(inspect("--method", "tools/call", "--tool-name", "eval", "--tool-arg", f"code={PNG}"))
    assert [block["type"] for block in answer["content"]] == ["text", "image"]
    listed = json.loads(inspect("--method", "resources/list"))
    uris = [resource["uri"] for resource in listed["resources"]]
    notebook = next(uri for uri in uris if uri.startswith("notebook://"))
    read = json.loads(inspect("--method", "resources/read", "--uri", notebook))
    assert "x = 20" in read["contents"][0]["text"]
    prompts = json.loads(inspect("--method", "prompts/list"))
    assert len(prompts["prompts"]) == 3
