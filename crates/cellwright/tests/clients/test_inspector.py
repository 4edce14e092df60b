"""The command line of the MCP Inspector, over both transports."""

import json

import pytest
from conftest import BINARY, PACKAGES, PNG, node


@pytest.fixture(params=["stdio", "http"])
def inspect(request, project, tmp_path):
    """Returns a function that calls the inspector with arguments and returns its stdout."""
    from conftest import HttpServer

    home = tmp_path / "inspector"
    home.mkdir()
    server = HttpServer(project) if request.param == "http" else None
    if server:
        headers = {"Authorization": f"Bearer {server.token}"}
        entry = {"type": "streamable-http", "url": server.url, "headers": headers}
    else:
        entry = {"type": "stdio", "command": str(BINARY), "args": ["mcp", "--root", str(project.directory)], "env": project.env}
    config = home / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"cellwright": entry}}))

    def call(*arguments):
        program = PACKAGES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
        env = {**project.env, "HOME": str(home)}
        options = ["--cli", "--config", config, "--server", "cellwright"]
        result = node(program, *options, *arguments, env=env, cwd=project.directory)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    yield call
    if server:
        server.close()


def test_tools_and_their_schemas(inspect):
    listed = json.loads(inspect("--strict", "--method", "tools/list"))
    names = [tool["name"] for tool in listed["tools"]]
    assert names == ["read", "edit", "notebook", "write", "run", "eval", "runs", "kernels", "stop", "artifact"]


def test_tools_resources_and_prompts(inspect, project):
    project.notebook("a.ipynb", "x = 20", "x + 1")
    answer = json.loads(inspect("--method", "tools/call", "--tool-name", "run", "--tool-arg", "path=a.ipynb"))
    assert "\n21\n" in answer["content"][0]["text"]
    answer = json.loads(inspect("--method", "tools/call", "--tool-name", "eval", "--tool-arg", f"code={PNG}"))
    assert [block["type"] for block in answer["content"]] == ["text", "image"]
    listed = json.loads(inspect("--method", "resources/list"))
    uris = [resource["uri"] for resource in listed["resources"]]
    notebook = next(uri for uri in uris if uri.startswith("notebook://"))
    read = json.loads(inspect("--method", "resources/read", "--uri", notebook))
    assert "x = 20" in read["contents"][0]["text"]
    prompts = json.loads(inspect("--method", "prompts/list"))
    assert len(prompts["prompts"]) == 3
