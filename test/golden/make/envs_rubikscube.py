"""Cubes and turns of RAGEN's 2 x 2 Rubik's Cube by its procedure on numpy's generator, for
test/golden/envs/rubikscube.json. Needs numpy.
python test/golden/make/envs_rubikscube.py > test/golden/envs/rubikscube.json
Row: seed, the scrambled cube, random moves (letters a to l for the actions 1 to 12), the cube after each move
until the episode ends, whether the last cube is solved, the trace with the number of moves as max_steps. A cube
is written as the letters of its 24 stickers' colours, faces in the order U L F R B D."""
import json
import random
import numpy as np
from envs_trace import Trace

# Stickers that a clockwise turn moves: each group takes the colours of the following group.
rings = {
    1: (0, [(8, 9), (12, 13), (16, 17), (4, 5)]),
    3: (5, [(10, 11), (6, 7), (18, 19), (14, 15)]),
    5: (1, [(0, 2), (19, 17), (20, 22), (8, 10)]),
    7: (3, [(1, 3), (9, 11), (21, 23), (18, 16)]),
    9: (2, [(2, 3), (7, 5), (21, 20), (12, 14)]),
    11: (4, [(0, 1), (13, 15), (22, 23), (6, 4)]),
}


def turn(cube, action):
    for _ in range(3 if action % 2 == 0 else 1):
        face, ring = rings[action - (action % 2 == 0)]
        old = cube.copy()
        cube[4 * face:4 * face + 4] = old[[4 * face + i for i in (2, 0, 3, 1)]]
        for to, source in zip(ring, ring[1:] + ring[:1]):
            cube[list(to)] = old[list(source)]


def solved(cube):
    return bool((cube.reshape(6, 4) == cube.reshape(6, 4)[:, :1]).all())


def code(cube):
    return "".join("WOGRBY"[c] for c in cube)


def rows(depth, count, seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        cube = np.repeat(np.arange(6), 4)
        for _ in range(depth):
            turn(cube, int(rng.integers(1, 13)))
        start, after, taken = code(cube), [], ""
        trace = Trace(start)
        moves = random.Random(f"moves {seed}")
        while len(taken) < count:
            action = moves.randint(1, 12)
            turn(cube, action)
            taken += "abcdefghijkl"[action - 1]
            after.append(code(cube))
            trace.step(code(cube), solved(cube), solved(cube), len(taken) == count and not solved(cube))
            if solved(cube):
                break
        yield [seed, start, taken, " ".join(after) if seed % 20 == 0 else after[-1], solved(cube), trace.digest]


sets = [(1, 4, [*range(120), *range(10000, 10100)]), (5, 8, [*range(250), *range(10000, 10050)]), (20, 20, range(40))]
out = [{"depth": d, "count": n, "rows": list(rows(d, n, s))} for d, n, s in sets]
print("[" + ",\n".join(json.dumps({**o, "rows": 0})[:-2] + "[\n" + ",\n".join(json.dumps(r) for r in o["rows"]) + "]}" for o in out) + "]")
