"""The benchmarks' peer: the same work in PyTorch and in Gymnasium. Started by main.ts, one JSON line in and out for each run.

The decoder is written by hand for speed rather than taken from transformers, whose general code is slower at this size: fused scaled
dot-product attention with grouped heads, one matrix for q, k and v and one for gate and up, a key-value cache allocated once, AdamW
fused. It computes no entropy and no KL, which ours does. Environments make levels but render no text, which ours do.
"""
import json
import os
import random
import sys
import time

os.environ.setdefault("GYM_DISABLE_WARNINGS", "1")


def torch_model(s):
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.set_num_threads(int(s["threads"]))
    hidden, heads, kv, layers = s["hidden"], s["heads"], s["kv_heads"], s["layers"]
    size = hidden // heads
    angle = torch.arange(512)[:, None] * 10000.0 ** (-torch.arange(size // 2) / (size // 2))
    cos, sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)

    def rotary(x, start):
        c, n = cos[start:start + x.shape[2]], sin[start:start + x.shape[2]]
        half = x.shape[-1] // 2
        return x * c + torch.cat((-x[..., half:], x[..., :half]), -1) * n

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.RMSNorm(hidden, 1e-6), nn.RMSNorm(hidden, 1e-6)
            self.qkv = nn.Linear(hidden, (heads + 2 * kv) * size)
            self.out = nn.Linear(hidden, hidden, bias=False)
            self.gate_up = nn.Linear(hidden, 2 * s["intermediate"], bias=False)
            self.down = nn.Linear(s["intermediate"], hidden, bias=False)

        def forward(self, x, cache=None, start=0):
            b, t, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(b, t, heads + 2 * kv, size).transpose(1, 2).split((heads, kv, kv), 1)
            q, k = rotary(q, start), rotary(k, start)
            if cache is not None:
                cache[0][:, :, start:start + t], cache[1][:, :, start:start + t] = k, v
                k, v = cache[0][:, :, :start + t], cache[1][:, :, :start + t]
            y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1, enable_gqa=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, hidden))
            gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
            return x + self.down(F.silu(gate) * up)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(s["vocab"], hidden)
            self.layers = nn.ModuleList(Layer() for _ in range(layers))
            self.norm = nn.RMSNorm(hidden, 1e-6)
            nn.init.normal_(self.embed.weight, std=0.02)

        def forward(self, ids, caches=None, start=0):
            x = self.embed(ids)
            for i, layer in enumerate(self.layers):
                x = layer(x, caches and caches[i], start)
            return self.norm(x)

        def logits(self, x):
            return F.linear(x, self.embed.weight)

    torch.manual_seed(1)
    return Model()


def training(s):
    import torch

    model = torch_model(s)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.01, fused=True)
    ids = torch.randint(0, s["vocab"], (s["rows"], s["length"]))
    advantage = torch.randn(s["rows"], s["length"] - 1)

    def logprobs():
        logits = model.logits(model(ids[:, :-1]))
        return logits.gather(-1, ids[:, 1:, None])[..., 0] - logits.logsumexp(-1)

    with torch.no_grad():
        old = logprobs()

    def run():
        for _ in range(s["steps"]):
            ratio = (logprobs() - old).clamp(-20, 20).exp()
            plain, clipped = -advantage * ratio, -advantage * ratio.clamp(0.8, 1.28)
            worst = torch.maximum(plain, clipped)
            loss = torch.where(advantage < 0, torch.minimum(worst, -advantage * 3.0), worst).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
            optimizer.step()
        return s["steps"] * s["rows"] * s["length"]

    return run


def generation(s):
    import torch

    model = torch_model(s)
    rows, prompt, tokens = s["rows"], s["prompt"], s["tokens"]
    shape = (rows, s["kv_heads"], prompt + tokens, s["hidden"] // s["heads"])
    caches = [(torch.empty(shape), torch.empty(shape)) for _ in range(s["layers"])]

    @torch.inference_mode()
    def run():
        ids = torch.randint(0, s["vocab"], (rows, prompt))
        drawn, logprobs = [], []
        x = model(ids, caches)[:, -1]
        for i in range(tokens):
            logp = model.logits(x).log_softmax(-1)
            token = torch.multinomial(logp.exp(), 1)
            drawn.append(token)
            logprobs.append(logp.gather(1, token))
            if i + 1 < tokens:
                x = model(token, caches, prompt + i)[:, -1]
        torch.cat(drawn, 1).tolist(), torch.cat(logprobs, 1).tolist()
        return rows * tokens

    return run


def episodes(s, make):
    """Plays as environment-benchmarks.ts does; `make(seed)` resets and returns a step function that says whether it ended."""
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
        return steps

    return run


def frozen_lake(s):
    from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv, generate_random_map

    def build(seed):
        lake = generate_random_map(size=s["size"], p=s["p"], seed=seed)
        return FrozenLakeEnv(desc=lake, is_slippery=s["is_slippery"], success_rate=s["success_rate"])

    fixed = build(1)

    def make(seed):
        env = build(seed) if s["new_map"] else fixed
        env.reset(seed=seed)
        return lambda action: env.step(action)[2]

    return episodes(s, make)


def sokoban(s):
    import numpy as np
    from gym_sokoban.envs.sokoban_env import SokobanEnv

    env = SokobanEnv(dim_room=(s["rows"], s["columns"]), max_steps=100, num_boxes=s["boxes"], reset=False)
    env.get_image = env.render = lambda *_, **__: None  # no pictures: neither side paints

    def make(seed):
        random.seed(seed)
        np.random.seed(seed % 2**32)
        env.reset()
        return lambda action: env.step(1 + action)[2]

    return episodes(s, make)


def builder(name):
    for prefix, build in (("training", training), ("generation", generation), ("FrozenLake", frozen_lake), ("Sokoban", sokoban)):
        if name.startswith(prefix):
            return build
    raise KeyError(name)


def about(threads):
    parts = [f"Python {sys.version.split()[0]}"]
    for name in ("torch", "gymnasium", "gym_sokoban"):
        try:
            module = __import__(name)
            parts.append(f"{name} {getattr(module, '__version__', '')}".strip())
        except ImportError:
            parts.append(f"no {name}")
    return f"{', '.join(parts)}; eager, {threads} threads, OMP_WAIT_POLICY {os.environ.get('OMP_WAIT_POLICY', 'unset')}"


def main():
    # What libraries print must not get between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    runs = {}
    for line in sys.stdin:
        question = json.loads(line)
        try:
            if "about" in question:
                answer = {"about": about(question["threads"])}
            else:
                name = question["name"]
                run = runs[name] = runs.get(name) or builder(name)(question["settings"])
                start = time.perf_counter()
                units = run()
                answer = {"rate": units / (time.perf_counter() - start)}
        except ImportError as error:
            answer = {"missing": str(error)}
        except Exception as error:  # the other side prints it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


main()
