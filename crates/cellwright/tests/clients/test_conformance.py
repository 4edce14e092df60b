"""The official conformance suite against the server, over both transports and in both generations."""

import json
import re

import pytest
from adapter import Adapter
from conftest import PACKAGES, PNG, Listening, node
from over_stdio import OverStdio

# What is about HTTP alone.
HTTP = ["server-sse-multiple-streams", "dns-rebinding-protection", "http-header-validation"]

# What a server of notebooks has nothing for: sampling, audio, embedded resources, forms with choices, logging
# (gone from the newer revision), and tools that ask for several things at once.
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
def adapter(request, place):
    scenario = request.node.callspec.params.get("scenario")
    if request.param == "stdio" and scenario in HTTP:
        pytest.skip("it is about HTTP")
    place.notebook("static.ipynb", "static = 'text'")
    place.notebook("123.ipynb", "number = 123")
    server = Listening(place) if request.param == "http" else OverStdio(place)
    adapter = Adapter(server, resources(place, server))
    yield adapter
    adapter.close()
    server.close()


def resources(place, listening):
    """What the suite wants to read, and where that is with us."""
    folder = place.folder
    return {
        "test://static-text": f"notebook://{folder}/static.ipynb",
        "test://watched-resource": f"notebook://{folder}/static.ipynb",
        "test://template/123/data": f"notebook://{folder}/123.ipynb",
        "test://static-binary": figure(listening),
    }


def figure(listening):
    """The address of a figure that was drawn."""
    import http.client
    from urllib.parse import urlsplit

    target = urlsplit(listening.url)
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "eval", "arguments": {"code": PNG}, "_meta": meta}
    headers = {
        "Authorization": f"Bearer {listening.token}",
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


def judged(package, adapter, scenario, *more):
    program = PACKAGES / package / "dist" / "index.js"
    ran = node(program, "server", "--url", adapter.url, "--scenario", scenario, *more)
    said = ran.stdout + ran.stderr
    results = re.search(r"Passed: (\d+)/(\d+), (\d+) failed", said)
    assert results, said[-2000:]
    passed, of, failed = map(int, results.groups())
    assert passed > 0 and failed == 0 and passed == of, said[-3000:]
    assert ran.returncode == 0, said[-2000:]


@pytest.mark.parametrize("scenario", OLDER)
def test_the_older_generation(adapter, scenario):
    judged("@modelcontextprotocol/conformance", adapter, scenario)


@pytest.mark.parametrize("scenario", NEWER)
def test_the_newer_generation(adapter, scenario):
    judged("conformance-newer", adapter, scenario, "--spec-version", "2026-07-28")


@pytest.mark.parametrize("adapter", ["http"], indirect=True)
def test_every_request_stands_for_itself(adapter):
    """Of `server-stateless` those checks are left out that need tools made for the suite."""
    program = PACKAGES / "conformance-newer" / "dist" / "index.js"
    ran = node(
        program, "server", "--url", adapter.url, "--scenario", "server-stateless", "--spec-version", "2026-07-28", "--verbose"
    )
    checks = json.loads(ran.stdout[ran.stdout.index("[\n") : ran.stdout.rindex("\n]") + 2])
    passed = [check for check in checks if check["status"] == "SUCCESS"]
    failed = [check for check in checks if check["status"] == "FAILURE"]
    unfit = [check for check in failed if "Not testable" not in check.get("errorMessage", "")]
    assert not unfit, unfit
    assert len(passed) >= 20, [check["id"] for check in passed]
