"""Pixels of Sokoban rooms in gym-sokoban's tiny world, for test/golden/envs/sokoban-pictures.json. Needs the same
packages as envs_sokoban.py:
python test/golden/make/envs_sokoban_pictures.py > test/golden/envs/sokoban-pictures.json
For some rooms: random moves, rows and columns of the image at 16 pixels per cell, the colours of the first
state's cells, and the sha256 of each state's RGB bytes."""
import hashlib
import json
import random
from envs_sokoban import generate_room, oracle, placed
from gym_sokoban.envs.render_utils import room_to_tiny_world_rgb


def row(dim, boxes, seed, solve):
    fixed, state = generate_room(dim, boxes, 300, seed)
    moves = oracle(fixed, state, boxes) if solve else "".join(map(str, random.Random(f"moves {seed}").choices([1, 2, 3, 4], k=12)))
    env = placed(fixed, state, boxes, 10**6)
    picture = lambda: room_to_tiny_world_rgb(env.room_state, env.room_fixed, scale=16)  # noqa: E731
    tiny = room_to_tiny_world_rgb(env.room_state, env.room_fixed).tolist()
    pictures = [picture()]
    for move in moves:
        env._push(int(move))
        pictures.append(picture())
    return {"dim": dim, "boxes": boxes, "seed": seed, "moves": moves, "size": pictures[0].shape[:2], "tiny": tiny,
            "hashes": [hashlib.sha256(p.tobytes()).hexdigest() for p in pictures]}


picked = [((6, 6), 1, 10000, True), ((6, 6), 1, 10001, False), ((8, 8), 2, 3, True), ((5, 9), 1, 2, False)]
print("[" + ",\n".join(json.dumps(row(*p), separators=(",", ":")) for p in picked) + "]")
