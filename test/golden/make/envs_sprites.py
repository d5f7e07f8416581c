"""Pictures of Sokoban and FrozenLake as VAGEN shows them, by the libraries' own code, for test/golden/envs/sprites.json.
Needs numpy 1.26.4, gym 0.26.2, gym-sokoban 0.0.6, imageio 2.37.0, setuptools 80.9.0, pillow 13.0.0, pygame 2.6.1 and
gymnasium. Run it once with gymnasium 1.4.0 and once with gymnasium 1.3.0, the last version with the older images:
python test/golden/make/envs_sprites.py
A run writes the file's parts that depend on its version. A row: what determines the map, the moves, and the first 16 hex
digits of the sha256 of the RGB bytes of the first picture and of that after each move. VAGEN passes the arrays to PIL
unchanged. The images of gymnasium 1.3.0 are not part of this repository, so its renderer also draws stand-ins of the
same form (palettes, alpha of 0, 100 and 255), which the script writes. sokoban.png, frozen-lake.png and stand-ins.png
are the last pictures of their parts."""
import hashlib
import json
import os
import random
from pathlib import Path

os.environ["SDL_VIDEODRIVER"] = os.environ["SDL_AUDIODRIVER"] = "dummy"
import gymnasium  # noqa: E402
import numpy as np  # noqa: E402
import pygame  # noqa: E402
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv  # noqa: E402
from PIL import Image  # noqa: E402
from envs_frozen_lake import random_map  # noqa: E402
from envs_sokoban import generate_room, oracle, placed  # noqa: E402

golden = Path(__file__).resolve().parents[1] / "envs"
stand_ins = golden / "sprites" / "stand-ins"
new = gymnasium.__version__ == "1.4.0"
digest = lambda picture: hashlib.sha256(np.ascontiguousarray(picture).tobytes()).hexdigest()[:16]  # noqa: E731


def rooms():
    """Rooms by seed and moves, and one room with every content of a cell, given as gym-sokoban's arrays."""
    for dim, boxes, seed, solve in [((6, 6), 1, 10000, True), ((6, 6), 1, 10001, False), ((8, 8), 2, 3, True), ((5, 9), 1, 2, False)]:
        fixed, state = generate_room(dim, boxes, 300, seed)
        moves = oracle(fixed, state, boxes) if solve else "".join(map(str, random.Random(f"moves {seed}").choices([1, 2, 3, 4], k=12)))
        env = placed(fixed, state, boxes, 10**6)
        hashes = [digest(env.render(mode="rgb_array"))]
        for move in moves:
            env._push(int(move))
            hashes.append(digest(env.render(mode="rgb_array")))
        yield {"dim": dim, "boxes": boxes, "seed": seed, "moves": moves, "hashes": hashes}
    fixed = np.array([[0, 0, 0, 0], [0, 1, 2, 0], [0, 2, 1, 1], [0, 1, 2, 0]])
    for state in ([[0, 0, 0, 0], [0, 1, 2, 0], [0, 3, 4, 1], [0, 1, 5, 0]], [[0, 0, 0, 0], [0, 5, 3, 0], [0, 2, 4, 4], [0, 1, 3, 0]]):
        env = placed(fixed, np.array(state), 3, 10**6)
        picture = env.render(mode="rgb_array")
        Image.fromarray(picture).save(golden / "sprites" / "sokoban.png")
        shown = np.where((np.array(state) == 5) & (fixed == 2), 6, state)
        yield {"cells": shown.tolist(), "hashes": [digest(picture)]}


lake_seeds = [(4, seed) for seed in range(12)] + [(2, 1), (3, 5), (8, 2), (9, 2), (11, 4), (13, 1), (20, 3), (37, 1), (64, 6)]


def lakes(name):
    ends = set()
    for size, seed in lake_seeds:
        lake = random_map(size, 0.8, seed)
        env = FrozenLakeEnv(desc=lake, is_slippery=False, render_mode="rgb_array")
        env.reset(seed=seed)
        moves, hashes = "", [digest(env.render())]
        for move in random.Random(f"moves {seed}").choices(range(4), k=16 if size < 8 else 1):
            _, reward, ended, _, _ = env.step(move)
            moves += str(move)
            hashes.append(digest(env.render()))
            if ended:
                ends.add("goal" if reward else "hole")
                break
        if name is not None and size == 4:
            Image.fromarray(env.render()).save(golden / "sprites" / f"{name}.png")
        yield {"size": size, "p": 0.8, "seed": seed, "moves": moves, "hashes": hashes}
    assert ends == {"goal", "hole"}, ends


def write_stand_ins():
    """Images of the form of gymnasium 1.3.0's: 32 × 32, with palettes or with alpha, different from each other."""
    stand_ins.mkdir(parents=True, exist_ok=True)
    y, x = np.mgrid[0:32, 0:32]
    for i, name in enumerate(["ice", "hole", "cracked_hole", "goal", "stool", "elf_left", "elf_down", "elf_right", "elf_up"]):
        alpha = np.array([0, 100, 255])[(x // 4 + y // 8 + i) % 3]
        colours = [(7 * x + 40 * i) % 256, (7 * y + 90 * i) % 256, (3 * x + 5 * y + 20 * i) % 256]
        image = Image.fromarray(np.stack([*colours, alpha], -1).astype(np.uint8), "RGBA")
        if name in ("ice", "hole", "cracked_hole"):
            image = image.convert("RGB").quantize(16)
        if name == "goal":
            image = image.convert("RGB").quantize(16)
            image.info["transparency"] = 3
        image.save(stand_ins / f"{name}.png")


file = golden / "sprites.json"
parts = json.loads(file.read_text()) if file.exists() else {}
parts["sokoban"] = list(rooms())
if new:
    parts["gymnasium-1.4"] = list(lakes("frozen-lake"))
else:
    assert gymnasium.__version__ == "1.3.0", gymnasium.__version__
    parts["gymnasium-1.3"] = list(lakes(None))
    write_stand_ins()
    load = pygame.image.load
    pygame.image.load = lambda path: load(stand_ins / Path(path).name)
    parts["stand-ins"] = list(lakes("stand-ins"))
rows = lambda part: "[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in part) + "]"  # noqa: E731
file.write_text("{" + ",\n".join(f"{json.dumps(name)}: {rows(part)}" for name, part in sorted(parts.items())) + "}\n")
