"""Games of RAGEN's 2048 by its procedure on numpy's generator, for test/golden/envs/game-2048.json. Needs numpy.
python test/golden/make/envs_game_2048.py > test/golden/envs/game-2048.json
Row: seed, the first grid, random moves, the result of each (sum of the merged tiles, "x" for a move that changed
nothing), the last grid, whether the game was over then, the trace (states are grids, rewards are raw). A grid is
a string with one character per cell: 0 for an empty cell, otherwise the exponent of two in base 36."""
import json
import random
import numpy as np
from envs_trace import Trace


def merge(line):
    """The line after its tiles moved to its start, and the sum of the merged tiles."""
    tiles, made, gained = [int(t) for t in line if t], [], 0
    while tiles:
        tile = tiles.pop(0)
        if tiles and tiles[0] == tile:
            tile += tiles.pop(0)
            gained += tile
        made.append(tile)
    return made + [0] * (len(line) - len(made)), gained


def moved(grid, move):
    """Move 0 up, 1 right, 2 down, 3 left: rotates so that the move goes left, merges each row, rotates back."""
    turns = {3: 0, 0: 1, 1: 2, 2: 3}[move]
    rows = [merge(row) for row in np.rot90(grid, turns)]
    return np.rot90(np.array([row for row, _ in rows]), -turns), sum(gained for _, gained in rows)


def play(size, two_prob, seed, count):
    rng = np.random.default_rng(seed)
    grid = np.zeros((size, size), dtype=np.int64)

    def spawn():
        empty = np.argwhere(grid == 0)
        row, column = empty[rng.integers(0, len(empty))]
        grid[row, column] = 2 if rng.random() < two_prob else 4

    def code():
        return "".join("0" if t == 0 else np.base_repr(int(t).bit_length() - 1, 36) for t in grid.ravel())

    def over():
        return all(np.array_equal(moved(grid, move)[0], grid) for move in range(4))

    spawn()
    spawn()
    start, log, taken = code(), [], ""
    trace = Trace(start)
    moves = random.Random(f"moves {seed}")
    for _ in range(count):
        move = moves.randrange(4)
        after, gained = moved(grid, move)
        taken += str(move)
        if np.array_equal(after, grid):
            log.append("x")
        else:
            grid[:] = after
            spawn()
            log.append(str(gained))
        trace.step(code(), -0.1 if log[-1] == "x" else gained, over(), False)
        if over():
            break
    return [seed, start, taken, " ".join(log), code(), over(), trace.digest]


sets = [(4, 0.9, 30, [*range(400), *range(10000, 10100)]), (3, 0.5, 60, range(80)), (5, 0.9, 20, range(30)), (4, 0.9, 400, range(12))]
out = [{"size": n, "two_prob": p, "rows": [play(n, p, s, count) for s in seeds]} for n, p, count, seeds in sets]
raws = [*range(0, 2048, 4), *range(2048, 70000, 2044)]
rewards = [[raw, float(np.log2(raw + 1.0)) * 0.1] for raw in raws]
body = ",\n".join(json.dumps({**o, "rows": 0})[:-2] + "[\n" + ",\n".join(json.dumps(r) for r in o["rows"]) + "]}" for o in out)
print('{"sets": [' + body + '],\n"rewards": ' + json.dumps(rewards) + "}")
