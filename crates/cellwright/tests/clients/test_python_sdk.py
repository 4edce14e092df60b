"""A complete session of the Python SDK, over both transports and with both versions of the protocol."""

import re

import anyio
import httpx2
import pytest
from conftest import BINARY, PNG, HttpServer
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult


@pytest.fixture(params=["stdio", "http"])
def connect(request, project):
    """A function that returns the transport of the SDK to a server."""
    if request.param == "stdio":
        yield lambda: StdioServerParameters(
            command=str(BINARY), args=["mcp"], cwd=str(project.directory), env=project.env
        )
        return
    server = HttpServer(project)
    headers = {"Authorization": f"Bearer {server.token}"}
    yield lambda: streamable_http_client(server.url, http_client=httpx2.AsyncClient(headers=headers, timeout=60))
    server.close()


def text_of(result):
    return "\n".join(block.text for block in result.content if block.type == "text")


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28", "auto"])
def test_a_complete_session(connect, project, mode):
    project.notebook("a.ipynb", "prices = [3, 1, 2]", "total = sum(price)\ntotal", PNG, "print('done', total)")

    async def answer_input(context, params):
        assert "Who?" in params.message
        return ElicitResult(action="accept", content={"answer": "World"})

    async def scenario():
        async with Client(connect(), mode=mode, elicitation_callback=answer_input) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert len(tools) == 10 and tools["read"].annotations.read_only_hint

            # Open it, read it, edit two cells.
            listed = await client.call_tool("read", {"path": "."})
            assert "a.ipynb" in text_of(listed)
            read = await client.call_tool("read", {"path": "a.ipynb"})
            revision = re.search(r"revision (\w{32})", text_of(read))[1]
            edit = {"path": "a.ipynb", "old": "[3, 1, 2]", "new": "[3, 1, 2, 4]", "revision": revision}
            edited = await client.call_tool("edit", edit)
            assert "Replaced cell 0" in text_of(edited)
            source = "print('finished', total)"
            change = {"action": "edit", "path": "a.ipynb", "cell": "id:cell-3", "source": source}
            changed = await client.call_tool("notebook", change)
            assert "+print('finished', total)" in text_of(changed)

            # Run it, correct the error, run the stale cells, receive the figure.
            failed = await client.call_tool("run", {"path": "a.ipynb"})
            assert not failed.is_error and text_of(failed).startswith("error: cell 1 "), text_of(failed)
            assert "NameError" in text_of(failed) and failed.structured_content is None
            fixed = {"path": "a.ipynb", "old": "sum(price)", "new": "sum(prices)"}
            assert not (await client.call_tool("edit", fixed)).is_error
            ran = await client.call_tool("run", {"path": "a.ipynb", "stale": True})
            assert not ran.is_error, text_of(ran)
            assert "finished 10" in text_of(ran)
            images = [block for block in ran.content if block.type == "image"]
            assert len(images) == 1 and images[0].mime_type == "image/png"

            # Cancel a long call; the kernel keeps its variables.
            messages = []

            async def progress(done, total, message):
                messages.append(message)

            with anyio.move_on_after(3) as scope:
                long = {"code": "import time\nprint('begun')\ntime.sleep(600)", "timeout": 0, "session": "a.ipynb"}
                await client.call_tool("eval", long, progress_callback=progress)
            assert scope.cancelled_caught
            assert messages and "begun" in messages[0]
            after = await client.call_tool("eval", {"code": "total", "session": "a.ipynb"})
            assert "\n10\n" in text_of(after)
            assert "notice (call_cancelled)" in text_of(after), text_of(after)

            # The user answers an input request of the code.
            asked = await client.call_tool("eval", {"code": "print('Hello', input('Who?'))"})
            assert "Hello World" in text_of(asked)

            # Full outputs by address.
            printed = await client.call_tool("eval", {"code": "for i in range(50_000): print(i)"})
            artifact = re.search(r"artifact://\d+", text_of(printed))[0]
            lines = await client.read_resource(f"{artifact}:40001-40002")
            assert lines.contents[0].text == "40000\n40001\n"
            prompt = await client.get_prompt("fix-notebook", {"path": "a.ipynb"})
            assert "a.ipynb" in prompt.messages[0].content.text

    anyio.run(scenario)
