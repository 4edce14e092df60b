"""The TypeScript SDK drives a whole story, over both transports."""

import pytest
from conftest import BINARY, HERE, PACKAGES, PNG, Listening, node


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_whole_story(place, transport):
    place.notebook("a.ipynb", "prices = [3, 1, 2]", "total = sum(price)\ntotal", PNG, "print('done', total)")
    server = Listening(place) if transport == "http" else None
    way = [server.url, server.token] if server else [BINARY, place.folder]
    env = {**place.env, "CLIENT_PACKAGES": str(PACKAGES)}
    try:
        ran = node(HERE / "story.mjs", transport, *way, env=env)
    finally:
        if server:
            server.close()
    assert ran.returncode == 0 and "the story is over" in ran.stdout, ran.stdout + ran.stderr
