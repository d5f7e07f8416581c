"""Rooms, solutions and step transcripts of RAGEN's Sokoban, for test/golden/envs/sokoban.json.
Needs numpy, gym, gym-sokoban and a checkout of RAGEN:
PYTHONPATH=RAGEN python test/golden/make/envs_sokoban.py > test/golden/envs/sokoban.json
A row: seed, the room's rows of codes (6 = player on target), the oracle's moves, 20 random moves, what each gave ("!" moved,
"." did not; a reward other than -0.1 behind it), the codes at the end. `null` room: the seed gives none."""
import json
import random
import warnings
import numpy as np

warnings.filterwarnings("ignore")
from gym_sokoban.envs.sokoban_env import SokobanEnv  # noqa: E402
from ragen.env.sokoban.utils import generate_room, get_shortest_action_path  # noqa: E402


def codes(env):
    shown = np.where((env.room_state == 5) & (env.room_fixed == 2), 6, env.room_state)
    return "/".join("".join(str(c) for c in row) for row in shown.tolist())


def play(fixed, state, boxes, actions):
    env = SokobanEnv(dim_room=fixed.shape, max_steps=10**6, num_boxes=boxes, reset=False)
    env.get_image = lambda *_: None
    env.room_fixed, env.room_state = fixed.copy(), state.copy()
    env.player_position = np.argwhere(env.room_state == 5)[0]
    env.num_env_steps, env.reward_last, env.boxes_on_target = 0, 0, 0
    log = []
    for action in actions:
        before = env.player_position
        _, reward, _, _ = env.step(action)
        moved = "." if np.array_equal(before, env.player_position) else "!"
        log.append(moved + ("" if reward == -0.1 else repr(float(reward))))
    return " ".join(log), codes(env)


def rows(dim, boxes, depth, seeds):
    for seed in seeds:
        random.seed(seed)
        np.random.seed(seed)
        try:
            fixed, state, _, _ = generate_room(dim=dim, num_steps=int(1.7 * sum(dim)), num_boxes=boxes, search_depth=depth)
        except (RuntimeError, RuntimeWarning):
            yield {"seed": seed, "room": None}
            continue
        solution = get_shortest_action_path(fixed, state)
        moves = random.Random(f"moves {seed}").choices([1, 2, 3, 4], k=20)
        solved, _ = play(fixed, state, boxes, solution)
        log, end = play(fixed, state, boxes, moves)
        env = SokobanEnv(dim_room=dim, num_boxes=boxes, reset=False)
        env.room_fixed, env.room_state = fixed, state
        yield {"seed": seed, "room": codes(env), "solution": "".join(map(str, solution)), "solved": solved,
               "moves": "".join(map(str, moves)), "log": log, "end": end}


sets = [((6, 6), 1, 300, [*range(150), *range(10000, 10050)]), ((8, 8), 2, 10, range(100)), ((6, 6), 1, 30, range(40)),
        ((6, 6), 2, 100, range(10)), ((5, 9), 1, 300, range(20))]
out = [{"dim": list(d), "boxes": b, "depth": k, "rows": list(rows(d, b, k, s))} for d, b, k, s in sets]
print("[" + ",\n".join(json.dumps({**o, "rows": 0})[:-2] + "[\n" + ",\n".join(json.dumps(r) for r in o["rows"]) + "]}" for o in out) + "]")
