"""A page of JupyterLab, as the server sees it. Reads commands from stdin, one line each, and prints a line for each.

join PATH   joins the collaboration room of the notebook
type TEXT   types at the end of the second cell, in the room
text        prints the second cell, as the room has it
open PATH   opens the notebook without collaboration: a session with a kernel, and its content
overwrite   saves the content that the page has: "Overwrite" in its dialog
close       closes the page; the kernel stays
"""

import asyncio
import glob
import json
import os
import sys
import urllib.request

import websockets
from jupyter_ydoc import YNotebook
from pycrdt import YMessageType, create_sync_message, create_update_message, handle_sync_message


class Page:
    def __init__(self, record):
        self.url = record["url"]
        self.headers = {"Authorization": "token " + record["token"]}
        self.socket = None

    def rest(self, method, target, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + target, method=method, data=data, headers=self.headers)
        return json.load(urllib.request.urlopen(request))

    def connect(self, target):
        url = self.url.replace("http", "ws", 1) + target
        return websockets.connect(url, additional_headers=self.headers, max_size=None)

    async def join(self, path):
        session = self.rest("PUT", "api/collaboration/session/" + path, {"format": "json", "type": "notebook"})
        room = f"json:notebook:{session['fileId']}?sessionId={session['sessionId']}"
        self.notebook = YNotebook()
        self.socket = await self.connect("api/collaboration/room/" + room)
        self.updates = []
        synced = asyncio.Event()
        document = self.notebook.ydoc
        await self.socket.send(create_sync_message(document))

        async def receive():
            async for message in self.socket:
                if message[0] == YMessageType.SYNC:
                    reply = handle_sync_message(message[1:], document)
                    if message[1] == 1:
                        synced.set()
                    if reply:
                        await self.socket.send(reply)

        self.receiver = asyncio.create_task(receive())
        await synced.wait()
        self.subscription = document.observe(lambda event: self.updates.append(event.update))
        return "joined"

    async def type(self, text):
        source = self.notebook.ycells[1]["source"]
        self.updates.clear()
        source += text
        for update in list(self.updates):
            await self.socket.send(create_update_message(update))
        return "typed"

    async def text(self, _):
        return str(self.notebook.ycells[1]["source"])

    async def open(self, path):
        if self.socket:
            await self.socket.close()
        self.path = path
        self.content = self.rest("GET", f"api/contents/{path}?type=notebook")["content"]
        body = {"path": path, "type": "notebook", "name": path, "kernel": {"name": "python3"}}
        session = self.rest("POST", "api/sessions", body)
        self.socket = await self.connect(f"api/kernels/{session['kernel']['id']}/channels")
        return session["kernel"]["id"]

    async def overwrite(self, _):
        self.rest("PUT", "api/contents/" + self.path, {"type": "notebook", "format": "json", "content": self.content})
        return "saved"

    async def close(self, _):
        await self.socket.close()
        while any(session["kernel"]["connections"] for session in self.rest("GET", "api/sessions")):
            await asyncio.sleep(0.02)
        return "closed"


async def main():
    directory = os.environ["JUPYTER_RUNTIME_DIR"]
    while not (records := glob.glob(directory + "/jpserver-*.json")):
        await asyncio.sleep(0.02)
    while True:
        try:
            with open(records[0]) as file:
                page = Page(json.load(file))
            page.rest("GET", "api")
            break
        except (OSError, ValueError):
            await asyncio.sleep(0.02)
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command, _, argument = line.rstrip("\n").partition(" ")
        print(await getattr(page, command)(argument), flush=True)


asyncio.run(main())
