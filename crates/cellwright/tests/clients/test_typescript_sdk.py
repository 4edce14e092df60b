"""A complete session of the TypeScript SDK, over both transports."""

import pytest
from conftest import BINARY, HERE, PACKAGES, PNG, HttpServer, node


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_complete_session(project, transport):
    project.notebook("a.ipynb", "prices = [3, 1, 2]", "total = sum(price)\ntotal", PNG, "print('done', total)")
    server = HttpServer(project) if transport == "http" else None
    address = [server.url, server.token] if server else [BINARY, project.directory]
    env = {**project.env, "CLIENT_PACKAGES": str(PACKAGES)}
    try:
        result = node(HERE / "story.mjs", transport, *address, env=env)
    finally:
        if server:
            server.close()
    assert result.returncode == 0 and "the story is over" in result.stdout, result.stdout + result.stderr
