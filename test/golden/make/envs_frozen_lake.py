"""Maps and walks of RAGEN's FrozenLake on Gymnasium's dynamics, for test/golden/envs/frozen-lake.json. RAGEN's map
generation is reimplemented here. Needs numpy and gymnasium:
python test/golden/make/envs_frozen_lake.py > test/golden/envs/frozen-lake.json
Row: seed, map, 16 random moves (0 left, 1 down, 2 right, 3 up), the cell after each move until the episode ends,
the trace (states are cells)."""
import random
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.utils import seeding
from envs_trace import Trace, dump


def reaches(board, start):
    frontier, seen = [start], set()
    while frontier:
        row, column = frontier.pop()
        if (row, column) in seen or not (0 <= row < len(board) and 0 <= column < len(board)) or board[row][column] == "H":
            continue
        if board[row][column] == "G":
            return True
        seen.add((row, column))
        frontier += [(row + 1, column), (row, column + 1), (row - 1, column), (row, column - 1)]
    return False


def random_map(size, p, seed):
    rng, _ = seeding.np_random(seed)
    while True:
        board = rng.choice(["F", "H"], (size, size), p=[p, 1 - p])
        start = (int(rng.integers(0, size)), int(rng.integers(0, size)))
        goal = (int(rng.integers(0, size)), int(rng.integers(0, size)))
        if start == goal:
            continue
        board[start], board[goal] = "S", "G"
        if reaches(board, start):
            return ["".join(row) for row in board]


def rows(size, p, slippery, rate, seeds):
    for seed in seeds:
        lake = random_map(size, p, seed)
        env = FrozenLakeEnv(desc=lake, is_slippery=slippery, success_rate=rate)
        cells = [int(env.reset(seed=seed)[0])]
        trace = Trace(cells[0])
        moves = random.Random(f"moves {seed}").choices(range(4), k=16)
        for move in moves:
            cell, reward, terminated, truncated, _ = env.step(move)
            cells.append(int(cell))
            trace.step(int(cell), reward, terminated, truncated)
            if terminated:
                break
        yield [seed, "/".join(lake), "".join(map(str, moves)), cells, trace.digest]


if __name__ == "__main__":
    sets = [(4, 0.9, True, 0.8, [*range(260), *range(10000, 10120)]), (4, 0.8, False, 0.8, range(60)),
            (8, 0.8, True, 1 / 3, range(40)), (3, 0.5, True, 0.98, range(30))]
    print(dump({"size": n, "p": p, "slippery": s, "rate": r, "rows": list(rows(n, p, s, r, seeds))} for n, p, s, r, seeds in sets))
