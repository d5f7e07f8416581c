"""Records WebSocket messages between a server and its clients, for the exchanges stored as golden files."""
import json


class Tape:
    """An ASGI application that records the WebSocket messages of another."""

    def __init__(self, app):
        self.app, self.frames = app, []

    async def __call__(self, scope, receive, send):
        if scope["type"] != "websocket":
            return await self.app(scope, receive, send)

        async def heard():
            message = await receive()
            if message["type"] == "websocket.receive":
                self.frames.append({"sent": json.loads(message["text"])})
            return message

        async def said(message):
            if message["type"] == "websocket.send":
                self.frames[-1]["answered"] = json.loads(message["text"])
            await send(message)

        await self.app(scope, heard, said)
