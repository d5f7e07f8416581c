"""Writes test/golden/environment-server/openenv.json with OpenEnv's own package, in both directions, over real
connections:
* `client`: requests of OpenEnv's client to `ragen env serve`, the responses, the client's results, and the result of
  OpenEnv's validation of the server.
* `server`: requests of our client (env_type remote) to servers made with OpenEnv's package, the servers' responses,
  and the results of `ragen env play` and of OpenEnv's client.

Run: python test/golden/make/openenv_exchanges.py   (needs openenv-core 0.3.0, uvicorn, pillow; node; and npm run build)
"""
import asyncio
import base64
import io
import json
import subprocess
import threading
from pathlib import Path

import uvicorn
from openenv.cli._validation import validate_running_environment
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State
from openenv.core.generic_client import GenericEnvClient
from PIL import Image

from websocket_tape import Tape

root = Path(__file__).parent.parent.parent.parent
cli = ["node", str(root / "dist/cli.cjs")]


class Recorded(GenericEnvClient):
    """OpenEnv's client, which records all messages that it sends and receives."""

    def __init__(self, url):
        super().__init__(url)
        self.frames = []

    async def _send(self, message):
        self.frames.append({"sent": message})
        await super()._send(message)

    async def _receive(self):
        answer = await super()._receive()
        self.frames[-1]["answered"] = answer
        return answer


def result(step):
    return {"observation": step.observation, "reward": step.reward, "done": step.done}


async def conversation(url, acts):
    """Frames of a session, and the client's results; for an error, the error message."""
    made = []
    async with Recorded(url) as client:
        for name, given in acts:
            try:
                if name == "reset":
                    made.append(result(await client.reset(**given)))
                elif name == "step":
                    made.append(result(await client.step(given)))
                else:
                    made.append(await client.state())
            except RuntimeError as error:
                made.append({"error": str(error)})
    return {"frames": client.frames, "results": made}


async def our_server():
    serve = subprocess.Popen(
        [*cli, "env", "serve", "frozen_lake", "sokoban", "bandit", "countdown", "--port", "0", "--max-sessions", "2", "--json"],
        cwd=root, stdout=subprocess.PIPE, text=True,
    )
    try:
        url = json.loads(serve.stdout.readline())["url"]
        walk = [("step", {"action": name}) for name in ["Right", "down", 3, "Down", "Right"]]
        push = [("step", {"action": name, "metadata": {}}) for name in ["Up", "Right", "Down", "Left"]]
        conversations = [
            {"environment": None, **await conversation(url, [("reset", {"seed": 10000}), ("state", None), *walk, ("state", None)])},
            {"environment": "sokoban", **await conversation(f"{url}/sokoban", [("reset", {"seed": 7, "episode_id": "mine"}), *push])},
            {"environment": "bandit", **await conversation(f"{url}/bandit", [("reset", {"seed": 3}), ("step", {"action": 1}), ("step", {"action": 2})])},
            {"environment": "countdown", **await conversation(f"{url}/countdown", [("reset", {"seed": 1}), ("step", {"action": "1 + 1"})])},
            {"environment": "sokoban", **await conversation(f"{url}/sokoban", [
                ("step", {"action": "Up"}), ("reset", {"seed": -1}), ("reset", {"seed": 1}), ("step", {"action": "Fly"}), ("step", {"move": "Up"}), ("step", {"action": "Up"}),
            ])},
        ]
        async with Recorded(url) as one, Recorded(url) as two:
            await one.reset(seed=1)
            await two.reset(seed=2)
            full = await conversation(url, [("reset", {"seed": 3})])
        validation = validate_running_environment(url)
        criteria = {criterion["id"]: criterion["passed"] for criterion in validation["criteria"]}
        return {"conversations": conversations, "full": full, "validation": {"passed": validation["passed"], "criteria": criteria}}
    finally:
        serve.terminate()


class Walk(Action):
    direction: str


class Place(Observation):
    text: str
    images: list[str] = []


class Corridor(Environment):
    """A corridor of five cells with an image; the goal is at the east end, and the seed determines the start."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self.at, self.steps = 0, 0

    def seen(self, reward=None):
        picture = Image.new("RGB", (5, 1))
        picture.putpixel((self.at, 0), (255, 0, 0))
        png = io.BytesIO()
        picture.save(png, "PNG")
        text = f"<image>\nYou are in cell {self.at} of 4."
        return Place(text=text, images=[base64.b64encode(png.getvalue()).decode()], reward=reward, done=self.at == 4)

    def reset(self, seed=None, episode_id=None, **kwargs):
        self.at, self.steps = (seed or 0) % 4, 0
        return self.seen()

    def step(self, action, timeout_s=None, **kwargs):
        self.steps += 1
        if action.direction not in ("east", "west"):
            raise ValueError(f"there is no way {action.direction}")
        self.at = max(0, min(4, self.at + (1 if action.direction == "east" else -1)))
        return self.seen(1.0 if self.at == 4 else -0.1)

    @property
    def state(self):
        return State(episode_id="corridor", step_count=self.steps)


class Say(Action):
    message: str


class Heard(Observation):
    echoed_message: str
    message_length: int


class Echo(Environment):
    """OpenEnv's first example: repeats its input."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def reset(self):
        return Heard(echoed_message="ready", message_length=0, reward=0.0)

    def step(self, action):
        return Heard(echoed_message=action.message, message_length=len(action.message), reward=len(action.message) * 0.1)

    @property
    def state(self):
        return State()


def served(environment, action, observation):
    tape = Tape(create_fastapi_app(environment, action, observation, max_concurrent_envs=4))
    server = uvicorn.Server(uvicorn.Config(tape, port=0, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        threading.Event().wait(0.05)
    return f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", tape


async def their_server(environment, action, observation, config, cases, theirs):
    url, tape = served(environment, action, observation)
    documents = {path: json.loads(subprocess.check_output(["curl", "-s", f"{url}/{path}"])) for path in ["health", "metadata", "schema"]}
    played = []
    for seed, actions in cases:
        case = {"env": "remote", "config": {"url": url, **config}, "seed": seed, "actions": actions}
        tape.frames.clear()
        out = subprocess.run([*cli, "env", "play", "--input", "-", "--json"], input=json.dumps([case]), stdout=subprocess.PIPE, text=True, cwd=root, check=True)
        [transcript] = json.loads(out.stdout.replace(f"{root}/", "").replace(url, "http://server"))
        frames = list(tape.frames)
        session = await conversation(url, [("reset", {"seed": seed}), *[("step", theirs(each)) for each in actions]])
        played.append({"seed": seed, "actions": actions, "frames": frames, "transcript": transcript, "theirs": session["results"]})
    return {"config": config, "documents": documents, "played": played}


async def main():
    golden = {
        "client": await our_server(),
        "server": {
            "corridor": await their_server(
                Corridor, Walk, Place, {"action_fields": {"direction": "{action}"}, "instruction": "Go east."},
                [(2, ["east", "west", "east", "east"]), (0, ["west", "east"]), (1, ["up"])], lambda way: {"direction": way},
            ),
            "echo": await their_server(
                Echo, Say, Heard, {"action_fields": {"message": "{action}"}, "observation_field": "echoed_message"},
                [(5, ["Hello", "\u00fc\u4e16\U0001f600"])], lambda words: {"message": words},
            ),
        },
    }
    file = root / "test/golden/environment-server/openenv.json"
    file.write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n")


asyncio.run(main())
