"""Writes test/golden/environment-server/alfworld.json with ALFWorld itself (alfworld and textworld from PyPI) behind
the server of docs/environments/alfworld.md, on handwritten houses in ALFWorld's planning language (PDDL). The
file contains the messages between `ragen env play` (env_type alfworld) and that server, the transcripts, and the
results of the same actions played in ALFWorld without a server, in RAGEN's format.

Run: python test/golden/make/alfworld_exchanges.py   (needs alfworld 0.4.2, openenv-core 0.3.0, uvicorn; node; and npm run build)
"""
import json
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import alfworld
import uvicorn
import yaml

from websocket_tape import Tape

root = Path(__file__).parent.parent.parent.parent
cli = ["node", str(root / "dist/cli.cjs")]
data = Path(alfworld.__file__).parent / "data"


def write_game(folder, kind, task, mug):
    """Writes a house with a cabinet, a countertop and a sink, and a mug to be moved."""
    problem = f"""(define (problem house)
 (:domain alfred)
 (:objects agent1 - agent start cabinetplace counterplace sinkplace - location
   Cabinet_bar_1 CounterTop_bar_1 Sink_bar_1 - receptacle Mug_bar_1 - object
   CabinetType CounterTopType SinkType - rtype MugType - otype)
 (:init (atLocation agent1 start) (receptacleAtLocation Cabinet_bar_1 cabinetplace)
   (receptacleAtLocation CounterTop_bar_1 counterplace) (receptacleAtLocation Sink_bar_1 sinkplace)
   (receptacleType Cabinet_bar_1 CabinetType) (receptacleType CounterTop_bar_1 CounterTopType) (receptacleType Sink_bar_1 SinkType)
   (openable Cabinet_bar_1) (canContain CabinetType MugType) (canContain CounterTopType MugType) (canContain SinkType MugType)
   (objectType Mug_bar_1 MugType) (pickupable Mug_bar_1) (inReceptacle Mug_bar_1 {mug}) (= (total-cost) 0))
 (:goal (exists (?r - receptacle) (exists (?o - object) (and (inReceptacle ?o ?r) (objectType ?o MugType) (receptacleType ?r {kind}))))))"""
    grammar = (data / "alfred.twl2").read_text().replace("UNKNOWN GOAL", task)
    domain = (data / "alfred.pddl").read_text()
    folder.mkdir(parents=True)
    game = {"pddl_domain": domain, "grammar": grammar, "pddl_problem": problem, "solvable": True, "walkthrough": []}
    (folder / "game.tw-pddl").write_text(json.dumps(game))
    (folder / "traj_data.json").write_text(json.dumps({"task_type": "pick_and_place_simple"}))


def documented(config_file):
    """Loads the server's code from the documentation."""
    [code] = re.findall(r"```python\n(.*?)```", (root / "docs/environments/alfworld.md").read_text(), re.S)
    sys.argv = ["alfworld_server.py", str(config_file), "0"]
    module = {"__name__": "alfworld_server"}
    exec(code, module)
    return module


def directly(module, seed, actions):
    """Plays the same actions in ALFWorld directly, with results in RAGEN's format."""
    game = module["Household"]()
    scene = game.reset(seed=seed)
    form = lambda scene: f"{scene.text}\n\nAdmissible actions: [{', '.join(scene.info['admissible_commands'])}]"
    first, steps = form(scene), []
    for action in actions:
        valid = action in scene.info["admissible_commands"]
        scene = game.step(module["Command"](action=action))
        won = scene.info["won"]
        steps.append([form(scene), 10.0 * won, scene.done, {"action_is_effective": True, "action_is_valid": valid, "success": won}])
    return {"observation": first, "steps": steps}


with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    write_game(folder / "train/one", "CabinetType", "put some mug on cabinet", "CounterTop_bar_1")
    write_game(folder / "train/two", "SinkType", "put some mug on sinkbasin", "CounterTop_bar_1")
    write_game(folder / "seen/three", "CounterTopType", "put some mug on countertop", "Sink_bar_1")
    paths = {"data_path": str(folder / "train"), "eval_id_data_path": str(folder / "seen"), "eval_ood_data_path": str(folder / "seen")}
    config = {
        "env": {"goal_desc_human_anns_prob": 0, "task_types": [1, 2, 3, 4, 5, 6]},
        "dataset": {**paths, "num_train_games": 0, "num_eval_games": 0},
        "rl": {"training": {"max_nb_steps_per_episode": 5}},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    module = documented(folder / "config.yaml")
    app = module["create_fastapi_app"](module["Household"], module["Command"], module["Scene"], max_concurrent_envs=4)
    tape = Tape(app)
    server = uvicorn.Server(uvicorn.Config(tape, port=0, log_level="critical"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        threading.Event().wait(0.05)
    url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    played = []
    for seed, actions in [
        (0, ["go to countertop 1", "take mug 1 from countertop 1", "go to cabinet 1", "open cabinet 1", "move mug 1 to cabinet 1"]),
        (3, ["fly to the moon", "go to sink 1", "look", "inventory", "go to countertop 1"]),
    ]:
        tape.frames.clear()
        case = {"env": "alfworld", "config": {"url": url}, "seed": seed, "actions": actions}
        out = subprocess.run([*cli, "env", "play", "--input", "-", "--json"], input=json.dumps([case]), stdout=subprocess.PIPE, text=True, cwd=root, check=True)
        [transcript] = json.loads(out.stdout)
        played.append({"seed": seed, "actions": actions, "frames": list(tape.frames), "transcript": transcript, "direct": directly(module, seed, actions)})
    (root / "test/golden/environment-server/alfworld.json").write_text(json.dumps({"played": played}, ensure_ascii=False, indent=1) + "\n")
