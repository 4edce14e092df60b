"""An agent of openai-agents with an MCP server. Arguments: URL and name of the model, prompt, time limit of
a call in seconds, command of the server."""

import asyncio
import os
import sys

from agents import Agent, OpenAIResponsesModel, Runner
from agents.mcp import MCPServerStdio
from openai import AsyncOpenAI


async def main(url, model_name, prompt, call_timeout, command, *arguments):
    model = OpenAIResponsesModel(model_name, openai_client=AsyncOpenAI(base_url=url, api_key="none"))
    params = {"command": command, "args": list(arguments), "env": dict(os.environ)}
    async with MCPServerStdio(params, name="cellwright", client_session_timeout_seconds=float(call_timeout)) as server:
        agent = Agent("tests", model=model, mcp_servers=[server])
        print((await Runner.run(agent, prompt, max_turns=40)).final_output)


asyncio.run(main(*sys.argv[1:]))
