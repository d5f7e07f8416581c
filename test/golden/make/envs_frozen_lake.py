"""Maps and walks of RAGEN's FrozenLake on Gymnasium's dynamics, for test/golden/envs/frozen-lake.json.
Needs numpy, gymnasium and a checkout of RAGEN:
PYTHONPATH=RAGEN python test/golden/make/envs_frozen_lake.py > test/golden/envs/frozen-lake.json
A row: seed, map, 16 random moves (0 left, 1 down, 2 right, 3 up), the cell after each up to the end, the last reward."""
import json
import random
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from ragen.env.frozen_lake.utils import generate_random_map


def rows(size, p, slippery, rate, seeds):
    for seed in seeds:
        lake = generate_random_map(size=size, p=p, seed=seed)
        env = FrozenLakeEnv(desc=lake, is_slippery=slippery, success_rate=rate)
        cells, reward = [int(env.reset(seed=seed)[0])], 0
        moves = random.Random(f"moves {seed}").choices(range(4), k=16)
        for move in moves:
            cell, reward, done, _, _ = env.step(move)
            cells.append(cell)
            if done:
                break
        yield {"seed": seed, "map": "/".join(lake), "moves": "".join(map(str, moves)), "cells": cells, "reward": reward}


sets = [(4, 0.9, True, 0.8, [*range(200), *range(10000, 10040)]), (4, 0.8, False, 0.8, range(60)),
        (8, 0.8, True, 1 / 3, range(40)), (3, 0.5, True, 0.98, range(30))]
out = [{"size": n, "p": p, "slippery": s, "rate": r, "rows": list(rows(n, p, s, r, seeds))} for n, p, s, r, seeds in sets]
print("[" + ",\n".join(json.dumps({**o, "rows": 0})[:-2] + "[\n" + ",\n".join(json.dumps(r) for r in o["rows"]) + "]}" for o in out) + "]")
