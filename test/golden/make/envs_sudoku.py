"""Puzzles and step transcripts of RAGEN's Sudoku by its procedure on CPython's generator, for
test/golden/envs/sudoku.json.
python test/golden/make/envs_sudoku.py > test/golden/envs/sudoku.json
Row: seed, the full grid, the puzzle with 0 in empty cells (both row by row in base 36), whether the puzzle has
exactly one solution (null if not counted), then random placements as text, the reward of each, and the trace of at
most ten steps (states are grids). The tenth step truncates the episode whatever its answer is, as in the product and
unlike in RAGEN."""
import json
import math
import random
from envs_trace import Trace


def allowed(grid, n, cell, value):
    row, column, box = cell // n, cell % n, math.isqrt(n)
    if value in grid[row * n:(row + 1) * n] or value in grid[column::n]:
        return False
    top, left = row // box * box, column // box * box
    return all(grid[(top + i) * n + left + k] != value for i in range(box) for k in range(box))


def fill(grid, n):
    if 0 not in grid:
        return True
    cell = grid.index(0)
    values = list(range(1, n + 1))
    random.shuffle(values)
    for value in values:
        if allowed(grid, n, cell, value):
            grid[cell] = value
            if fill(grid, n):
                return True
            grid[cell] = 0
    return False


def solutions(grid, n, limit=2):
    best = None
    for cell in (i for i, v in enumerate(grid) if v == 0):
        values = [v for v in range(1, n + 1) if allowed(grid, n, cell, v)]
        if best is None or len(values) < len(best[1]):
            best = (cell, values)
    if best is None:
        return 1
    count = 0
    for value in best[1]:
        grid[best[0]] = value
        count += solutions(grid, n, limit - count)
        grid[best[0]] = 0
        if count >= limit:
            break
    return count


def row(n, difficulty, seed, counted):
    random.seed(seed)
    full = [0] * (n * n)
    fill(full, n)
    cells = list(range(n * n))
    random.shuffle(cells)
    puzzle = full[:]
    for cell in cells[:int(n * n * {"easy": 0.4, "medium": 0.5, "hard": 0.6}[difficulty])]:
        puzzle[cell] = 0
    one = solutions(puzzle[:], n) == 1 if counted else None
    digits = "0123456789abcdefg"
    code = lambda cells: "".join(digits[v] for v in cells)  # noqa: E731
    grid, log, moves = puzzle[:], [], random.Random(f"moves {seed}")
    trace = Trace(code(grid))
    for taken in range(1, 11):
        # Half of the placements put the solution's number into an empty cell; the other half are arbitrary.
        cell = moves.choice([c for c in range(n * n) if grid[c] == 0] or [0]) if moves.random() < 0.7 else moves.randrange(n * n)
        value = full[cell] if moves.random() < 0.5 else moves.randint(0, n + 1)
        r, c = cell // n + 1, cell % n + 1
        text = moves.choice([f"place {value} at row {r} col {c}", f"Place {value} at ({r}, {c})", f"{value} at {r},{c}", f"({r},{c},{value})", f"{r}, {c}, {value}", f"{r} {c} {value}"])
        if text == f"{r} {c} {value}" or not 1 <= value <= n or puzzle[cell] or not allowed(grid, n, cell, value):
            reward = -0.1
        else:
            grid[cell] = value
            reward = (1.0 if value == full[cell] else 0.5) + (10 if 0 not in grid else 0)
        log.append([text, reward])
        trace.step(code(grid), reward, 0 not in grid, taken == 10 and 0 in grid)
        if 0 not in grid:
            break
    return [seed, code(full), code(puzzle), one, log, trace.digest]


sets = [(9, "easy", [*range(150), *range(10000, 10050)], True), (9, "medium", [*range(120), *range(10000, 10030)], True),
        (9, "hard", range(60), True), (4, "hard", range(100), True), (16, "easy", (0, 4, 6, 11), False)]
out = [{"n": n, "difficulty": d, "rows": [row(n, d, s, c) for s in seeds]} for n, d, seeds, c in sets]
print("[" + ",\n".join(json.dumps({**o, "rows": 0})[:-2] + "[\n" + ",\n".join(json.dumps(r, separators=(",", ":")) for r in o["rows"]) + "]}" for o in out) + "]")
