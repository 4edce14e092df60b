"""An agent of pydantic-ai with an MCP server. Arguments: URL and name of the model, prompt, command of the server."""

import asyncio
import os
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def main(url, model_name, prompt, command, *arguments):
    model = OpenAIChatModel(model_name, provider=OpenAIProvider(base_url=url, api_key="none"))
    server = MCPToolset(StdioTransport(command, list(arguments), env=dict(os.environ)))
    async with Agent(model, toolsets=[server]) as agent:
        print((await agent.run(prompt)).output)


asyncio.run(main(*sys.argv[1:]))
