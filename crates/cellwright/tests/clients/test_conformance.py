"""The official conformance suite against the server, over both transports and with both versions of the protocol."""

import json
import re

import pytest
from adapter import Adapter
from conftest import PACKAGES, PNG, HttpServer, node
from stdio_server import StdioServer

# Scenarios that apply to HTTP only.
HTTP = ["server-sse-multiple-streams", "dns-rebinding-protection", "http-header-validation"]

# Without scenarios for features that the server does not have: sampling, audio, embedded resources, forms with
# choices, logging (not in the newer version), and tools that request several inputs together.
OLDER = [
    "server-initialize",
    "ping",
    "completion-complete",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-elicitation",
    "server-sse-multiple-streams",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "resources-subscribe",
    "resources-unsubscribe",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "dns-rebinding-protection",
]
NEWER = [
    "completion-complete",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-error",
    "tools-call-with-progress",
    "server-sse-multiple-streams",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "sep-2164-resource-not-found",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "dns-rebinding-protection",
    "caching",
    "input-required-result-basic-elicitation",
    "input-required-result-request-state",
    "input-required-result-result-type",
    "input-required-result-multi-round",
    "input-required-result-missing-input-response",
    "input-required-result-unsupported-methods",
    "input-required-result-tampered-state",
    "input-required-result-ignore-extra-params",
    "input-required-result-validate-input",
    "http-header-validation",
]


@pytest.fixture(params=["http", "stdio"])
def adapter(request, project):
    scenario = request.node.callspec.params.get("scenario")
    if request.param == "stdio" and scenario in HTTP:
        pytest.skip("the scenario applies to HTTP only")
    project.notebook("static.ipynb", "static = 'text'")
    project.notebook("123.ipynb", "number = 123")
    server = HttpServer(project) if request.param == "http" else StdioServer(project)
    adapter = Adapter(server, resources(project, server))
    yield adapter
    adapter.close()
    server.close()


def resources(project, server):
    """The resources that the suite reads, and the resources of the server that replace them."""
    directory = project.directory
    return {
        "test://static-text": f"notebook://{directory}/static.ipynb",
        "test://watched-resource": f"notebook://{directory}/static.ipynb",
        "test://template/123/data": f"notebook://{directory}/123.ipynb",
        "test://static-binary": figure(server),
    }


def figure(server):
    """The address of the artifact of a figure."""
    import http.client
    from urllib.parse import urlsplit

    target = urlsplit(server.url)
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "eval", "arguments": {"code": PNG}, "_meta": meta}
    headers = {
        "Authorization": f"Bearer {server.token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "eval",
    }
    connection = http.client.HTTPConnection(target.hostname, target.port)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    connection.request("POST", target.path, body, headers)
    text = connection.getresponse().read().decode()
    found = re.search(r"artifact://\d+", text)
    assert found, text
    return found.group()


def run_scenario(package, adapter, scenario, *more):
    program = PACKAGES / package / "dist" / "index.js"
    result = node(program, "server", "--url", adapter.url, "--scenario", scenario, *more)
    output = result.stdout + result.stderr
    results = re.search(r"Passed: (\d+)/(\d+), (\d+) failed", output)
    assert results, output[-2000:]
    passed, of, failed = map(int, results.groups())
    assert passed > 0 and failed == 0 and passed == of, output[-3000:]
    assert result.returncode == 0, output[-2000:]


@pytest.mark.parametrize("scenario", OLDER)
def test_the_older_version(adapter, scenario):
    run_scenario("@modelcontextprotocol/conformance", adapter, scenario)


@pytest.mark.parametrize("scenario", NEWER)
def test_the_newer_version(adapter, scenario):
    run_scenario("conformance-newer", adapter, scenario, "--spec-version", "2026-07-28")


@pytest.mark.parametrize("adapter", ["http"], indirect=True)
def test_requests_do_not_depend_on_sessions(adapter):
    """Ignores the checks of `server-stateless` that need special tools."""
    program = PACKAGES / "conformance-newer" / "dist" / "index.js"
    result = node(
        program, "server", "--url", adapter.url, "--scenario", "server-stateless", "--spec-version", "2026-07-28", "--verbose"
    )
    checks = json.loads(result.stdout[result.stdout.index("[\n") : result.stdout.rindex("\n]") + 2])
    passed = [check for check in checks if check["status"] == "SUCCESS"]
    failed = [check for check in checks if check["status"] == "FAILURE"]
    relevant = [check for check in failed if "Not testable" not in check.get("errorMessage", "")]
    assert not relevant, relevant
    assert len(passed) >= 20, [check["id"] for check in passed]
