"""Writes test/golden/environment-server/vagen.json with the client and the server of VAGEN's GymService
(vagen/envs_remote), over real connections:
* `client`: the exact requests of VAGEN's client to `ragen env serve`, and the client's results from the responses.
* `server`: the exact responses of a GymService to our client (env_type remote), the client's requests, and the
  results of `ragen env play`.

VAGEN is not on PyPI (the package of that name is unrelated), so the path of its source is set as PYTHONPATH.
Run: PYTHONPATH=<VAGEN> python test/golden/make/vagen_exchanges.py   (needs httpx, fastapi, uvicorn, pillow; node; npm run build)
"""
import asyncio
import base64
import json
import os
import subprocess
import threading
from pathlib import Path

import httpx
import uvicorn
from PIL import Image
from vagen.envs_remote.gym_image_env_client import GymImageEnvClient
from vagen.envs_remote.handler import BaseGymHandler
from vagen.envs_remote.multipart_codec import decode_multipart
from vagen.envs_remote.service import GymService

root = Path(__file__).parent.parent.parent.parent
cli = ["node", str(root / "dist/cli.cjs")]
frames = []


def text(body):
    return base64.b64encode(body).decode()


plain_post = httpx.AsyncClient.post


async def noted_post(self, url, *, content, headers):
    answer = await plain_post(self, url, content=content, headers=headers)
    path = "/" + url.split("/")[-1]
    frames.append({"path": path, "type": headers["Content-Type"], "body": text(content), "status": answer.status_code})
    return answer


def made(obs, *more):
    images = obs.get("multi_modal_input", {}).get("<image>", [])
    return [obs["obs_str"], [list(image.size) for image in images], *more]


async def our_server(arguments, seed, answers, token):
    serve = subprocess.Popen(
        [*cli, "env", "serve", *arguments, "--port", "0", "--json", "--api-key-env", "GYM_API_KEY"],
        cwd=root, stdout=subprocess.PIPE, text=True, env={**os.environ, "GYM_API_KEY": token},
    )
    httpx.AsyncClient.post = noted_post
    try:
        frames.clear()
        url = json.loads(serve.stdout.readline())["url"]
        client = GymImageEnvClient({"base_urls": url, "token": token, "retries": 0})
        results = [made(*await client.reset(seed))]
        session = client._session_id
        results.append(made(await client.system_prompt()))
        results += [made(*await client.step(answer)) for answer in answers]
        results.append(made(*await client.reset(seed + 1)))
        await client.close()
        return {"arguments": arguments, "token": token, "session": session, "frames": list(frames), "results": results}
    finally:
        httpx.AsyncClient.post = plain_post
        serve.terminate()


class Corridor:
    """A corridor of five cells with an image, in the style of VAGEN's environments."""

    def __init__(self, config):
        self.length = config.get("length", 5)

    def seen(self):
        picture = Image.new("RGB", (self.length, 1))
        picture.putpixel((self.at, 0), (255, 0, 0))
        return {"obs_str": f"<image>\nYou are in cell {self.at} of {self.length - 1}.", "multi_modal_input": {"<image>": [picture]}}

    async def system_prompt(self):
        return {"obs_str": "Go east. Answer with <answer>east</answer>."}

    async def reset(self, seed):
        self.at = seed % (self.length - 1)
        return self.seen(), {}

    async def step(self, answer):
        self.at = max(0, self.at + (1 if "<answer>east</answer>" in answer else -1))
        done = self.at == self.length - 1
        info = {"metrics": {"turn_metrics": {"action_is_valid": "<answer>" in answer}, "traj_metrics": {"success": done}}}
        return self.seen(), 1.0 if done else -0.1, done, info

    async def close(self):
        pass


class Handler(BaseGymHandler):
    async def create_env(self, env_config):
        return Corridor(env_config)


class Tape:
    """An ASGI application that records the requests and responses of another."""

    def __init__(self, app):
        self.app, self.frames = app, []

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or scope["method"] != "POST":
            return await self.app(scope, receive, send)
        heard, said, start = bytearray(), bytearray(), {}

        async def hear():
            message = await receive()
            heard.extend(message.get("body", b""))
            return message

        async def say(message):
            if message["type"] == "http.response.start":
                start.update(status=message["status"], type=dict(message["headers"])[b"content-type"].decode())
            said.extend(message.get("body", b""))
            await send(message)

        await self.app(scope, hear, say)
        headers = dict(scope["headers"])
        data, _ = decode_multipart(headers[b"content-type"].decode(), bytes(heard))
        key = headers.get(b"x-api-key", b"").decode()
        self.frames.append({"path": scope["path"], "key": key, "data": data, **start, "body": text(bytes(said))})


def their_server(cases):
    tape = Tape(GymService(Handler(), api_key="secret").build())
    server = uvicorn.Server(uvicorn.Config(tape, port=0, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        threading.Event().wait(0.05)
    url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    config = {"protocol": "gym_service", "api_key_env": "VAGEN_KEY", "env_config": {"length": 4}, "action_template": "<answer>{action}</answer>"}
    played = []
    for seed, actions in cases:
        tape.frames.clear()
        case = {"env": "remote", "config": {"url": url, **config}, "seed": seed, "actions": actions}
        out = subprocess.run(
            [*cli, "env", "play", "--input", "-", "--json"], input=json.dumps([case]), stdout=subprocess.PIPE, text=True, cwd=root,
            check=True, env={**os.environ, "VAGEN_KEY": "secret"},
        )
        [transcript] = json.loads(out.stdout.replace(f"{root}/", "").replace(url, "http://server"))
        played.append({"seed": seed, "actions": actions, "frames": list(tape.frames), "transcript": transcript})
    return {"config": config, "played": played}


async def main():
    answers = ["<think>The goal is east.</think><answer>Right || Down</answer>", "I do not know", "<answer>fly || left</answer>", "<answer></answer>"]
    golden = {
        "client": [
            await our_server(["frozen_lake"], 10000, answers, "secret"),
            await our_server(["sokoban", "--set", "render_mode=rgb_array", "--set", "dim_room=[5,5]"], 3, ["<answer>Up||Right</answer>", "Down"], "k"),
        ],
        "server": their_server([(0, ["east", "west", "east", "east", "east"]), (2, ["east"])]),
    }
    file = root / "test/golden/environment-server/vagen.json"
    file.write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n")


asyncio.run(main())
