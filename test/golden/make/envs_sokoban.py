"""Rooms, solutions and step transcripts of RAGEN's Sokoban, for test/golden/envs/sokoban.json, with gym-sokoban's
topology, moves and rewards. RAGEN's changes (seeds, reverse play, the final walk, the solver) are reimplemented
here. Needs numpy, gym and gym-sokoban:
python test/golden/make/envs_sokoban.py > test/golden/envs/sokoban.json
Row: seed, the room's rows of codes (6 = player on target), the solver's moves and the result of each, 20 random
moves and the result of each until the episode ends, the trace of the random moves with max_steps 15. A result is "!"
if the player moved, otherwise ".", followed by the reward if it is not -0.1. A row with only a seed means that the
seed generates no room."""
import random
import warnings
from collections import deque
import numpy as np
from envs_trace import Trace, dump

warnings.filterwarnings("ignore")
from gym_sokoban.envs import room_utils  # noqa: E402
from gym_sokoban.envs.sokoban_env import SokobanEnv  # noqa: E402

changes = [(-1, 0), (1, 0), (0, -1), (0, 1)]


def reverse_play(state, fixed, depth):
    """gym-sokoban's search with RAGEN's changes: it passes on the last pull, counts its own depth, and only pulls."""
    targets = [tuple(at) for at in np.argwhere(fixed == 2).tolist()]
    best = {"score": -1, "room": None, "mapping": {t: t for t in targets}}
    explored = set()

    def search(state, mapping, swaps, last, ttl):
        ttl -= 1
        if ttl <= 0 or len(explored) >= 300000:
            return
        key = state.tobytes()
        if key in explored:
            return
        explored.add(key)
        score = swaps * room_utils.box_displacement_score(mapping)
        if (state == 2).sum() != len(targets):
            score = 0
        if score > best["score"]:
            best.update(score=score, room=state, mapping=mapping)
        for action in range(4):
            after, moved, pulled = room_utils.reverse_move(state.copy(), fixed, mapping.copy(), last, action)
            search(after, moved, swaps + (pulled != last), pulled, ttl)

    search(state, {t: t for t in targets}, 0, (-1, -1), depth)
    return best["room"], best["score"], best["mapping"]


def wander(state, fixed, probability):
    if random.random() > probability:
        return
    player = tuple(np.argwhere(state == 5)[0].tolist())
    passed = [player]
    for taken in range(1, 4):
        near = [(player[0] + r, player[1] + c) for r, c in changes]
        near = [at for at in near if state[at] in (1, 2) and at not in passed]
        if not near:
            return
        state[player] = fixed[player]
        player = random.choice(near)
        state[player] = 5
        passed.append(player)
        if taken == 3 or random.random() > 0.5:
            return


def generate_room(dim, boxes, depth, seed):
    """The room of a seed; None if RAGEN rejects the seed."""
    random.seed(seed)
    np.random.seed(seed)
    for _ in range(4):
        room = room_utils.room_topology_generation(dim, 0.35, int(1.7 * sum(dim)))
        try:
            room = room_utils.place_boxes_and_player(room, boxes, second_player=False)
        except RuntimeError:
            return None
        fixed = room.copy()
        fixed[fixed == 5] = 1
        state = room.copy()
        state[state == 2] = 4
        state, score, mapping = reverse_play(state, fixed, depth)
        if score <= 0:
            continue
        state = state.copy()
        state[state == 3] = 4
        wander(state, fixed, 0.8 if room_utils.box_displacement_score(mapping) == 1 else 0.5)
        return fixed, state
    return None


def codes(env):
    shown = np.where((env.room_state == 5) & (env.room_fixed == 2), 6, env.room_state)
    return "/".join("".join(str(c) for c in row) for row in shown.tolist())


def placed(fixed, state, boxes, max_steps):
    env = SokobanEnv(dim_room=fixed.shape, max_steps=max_steps, num_boxes=boxes, reset=False)
    env.room_fixed, env.room_state = fixed.copy(), state.copy()
    env.player_position = np.argwhere(env.room_state == 5)[0]
    env.num_env_steps, env.reward_last, env.boxes_on_target = 0, 0, 0
    return env


def oracle(fixed, state, boxes):
    """The shortest solution by breadth-first search, in the order up, down, left, right."""
    queue, seen = deque([(state, "")]), {state.tobytes()}
    while queue:
        now, path = queue.popleft()
        if len(path) >= 100:
            continue
        for action in (1, 2, 3, 4):
            env = placed(fixed, now, boxes, 10**6)
            env._push(action)
            if env.room_state.tobytes() in seen:
                continue
            seen.add(env.room_state.tobytes())
            if env._check_if_all_boxes_on_target():
                return path + str(action)
            queue.append((env.room_state, path + str(action)))
    return ""


def play(fixed, state, boxes, actions, max_steps=10**6):
    env = placed(fixed, state, boxes, max_steps)
    env.get_image = lambda *_: None
    trace, log = Trace(codes(env)), []
    for action in actions:
        before = env.player_position
        _, reward, done, _ = env.step(int(action), observation_mode="tiny_rgb_array")
        log.append(("." if np.array_equal(before, env.player_position) else "!") + ("" if reward == -0.1 else repr(float(reward))))
        solved = env._check_if_all_boxes_on_target()
        trace.step(codes(env), reward, solved, done and not solved)
        if done:
            break
    return " ".join(log), trace.digest


def rows(dim, boxes, depth, seeds):
    for seed in seeds:
        room = generate_room(dim, boxes, depth, seed)
        if room is None:
            yield [seed]
            continue
        solution = oracle(*room, boxes)
        moves = "".join(map(str, random.Random(f"moves {seed}").choices([1, 2, 3, 4], k=20)))
        log, _ = play(*room, boxes, moves)
        yield [seed, codes(placed(*room, boxes, 1)), solution, play(*room, boxes, solution)[0], moves, log, play(*room, boxes, moves, 15)[1]]


if __name__ == "__main__":
    sets = [((6, 6), 1, 300, [*range(260), *range(10000, 10100)]), ((8, 8), 2, 10, range(100)), ((6, 6), 1, 30, range(40)),
            ((6, 6), 2, 100, range(10)), ((5, 9), 1, 300, range(20))]
    print(dump({"dim": d, "boxes": b, "depth": k, "rows": list(rows(d, b, k, s))} for d, b, k, s in sets))
