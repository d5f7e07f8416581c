"""What a server and its clients say to each other over WebSockets, for the exchanges that are kept as golden files."""
import json


class Tape:
    """An ASGI application that notes the WebSocket messages of another."""

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
