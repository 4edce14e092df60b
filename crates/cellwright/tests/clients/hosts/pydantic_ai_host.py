"""An agent of pydantic-ai with an MCP server. Arguments: URL and name of the model, prompt, time limit of a
call in seconds, command of the server."""

import asyncio
import os
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def main(url, model_name, prompt, call_timeout, command, *arguments):
    model = OpenAIChatModel(model_name, provider=OpenAIProvider(base_url=url, api_key="none"))
    transport = StdioTransport(command, list(arguments), env=dict(os.environ))
    server = MCPToolset(transport, read_timeout=float(call_timeout))
    async with Agent(model, toolsets=[server]) as agent:
        print((await agent.run(prompt)).output)


asyncio.run(main(*sys.argv[1:]))
