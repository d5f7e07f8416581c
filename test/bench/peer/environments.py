"""Environments of Gymnasium and gym-sokoban, played as in environment-benchmarks.ts: levels are generated, and no
images are drawn. These environments render no text, while ours do. Units are steps, or levels if there are no actions."""
import os
import random

os.environ.setdefault("GYM_DISABLE_WARNINGS", "1")


def play(s, make):
    """`make(seed)` resets the environment and returns its step function, which returns whether the episode ended."""
    state = {"seed": 10000}

    def run():
        steps = 0
        dice = random.Random(state["seed"])
        for episode in range(s["episodes"]):
            step = make(state["seed"] + episode)
            for _ in range(s["actions"]):
                steps += 1
                if step(dice.randrange(4)):
                    break
        state["seed"] += s["episodes"]
        return steps if s["actions"] > 0 else s["episodes"]

    return run


def frozen_lake(s, how):
    from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv, generate_random_map

    def build(seed):
        lake = generate_random_map(size=s["size"], p=s["p"], seed=seed)
        return FrozenLakeEnv(desc=lake, is_slippery=s["is_slippery"], success_rate=s["success_rate"])

    fixed = build(1)

    def make(seed):
        env = build(seed) if s["new_map"] else fixed
        env.reset(seed=seed)
        return lambda action: env.step(action)[2]

    return play(s, make)


def sokoban(s, how):
    import numpy as np
    from gym_sokoban.envs.sokoban_env import SokobanEnv

    env = SokobanEnv(dim_room=(s["rows"], s["columns"]), max_steps=100, num_boxes=s["boxes"], reset=False)
    env.get_image = env.render = lambda *_, **__: None  # neither side draws images

    def make(seed):
        random.seed(seed)
        np.random.seed(seed % 2**32)
        env.reset()
        return lambda action: env.step(1 + action)[2]

    return play(s, make)
