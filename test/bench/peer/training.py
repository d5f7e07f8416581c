"""Optimizer steps with the clipped policy loss over a mini-batch of episodes: rows sorted by length and padded
within micro-batches, logits only at the loss's positions, gradients clipped, fused AdamW. Episodes of a group
share their prompt, but the prompt is computed for each episode, as usual for padded batches. Computes no entropy
and no KL."""
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from decoder import decoder


def episodes(s):
    """Yields each episode's ids [length] and the positions trained on. After the prompt, turns of `sampled` trained
    tokens alternate with `observed` tokens that are not trained on."""
    dice = torch.Generator(torch.get_default_device()).manual_seed(2)
    lengths, turn = iter(s["lengths"]), s["sampled"] + s["observed"]
    for _ in range(s["groups"]):
        prompt = torch.randint(s["vocab"], (s["prompt"],), generator=dice)
        for _ in range(s["group_size"]):
            further = torch.randint(s["vocab"], (next(lengths),), generator=dice)
            trained = [s["prompt"] + i for i in range(len(further)) if i % turn < s["sampled"]]
            yield torch.cat((prompt, further)), torch.tensor(trained)


def micro_batches(rows, size):
    """Yields padded batches of rows of similar length: ids, flat positions whose logits are used, targets, and their
    indices among all trained tokens."""
    starts = [0]
    for _, trained in rows:
        starts.append(starts[-1] + len(trained))
    order = sorted(range(len(rows)), key=lambda row: len(rows[row][0]))
    for first in range(0, len(order), size):
        taken = order[first : first + size]
        width = max(len(rows[row][0]) for row in taken)
        ids = torch.zeros(len(taken), width, dtype=torch.long)
        places, targets, numbers = [], [], []
        for i, row in enumerate(taken):
            tokens, trained = rows[row]
            ids[i, : len(tokens)] = tokens
            places.append(i * width + trained - 1)
            targets.append(tokens[trained])
            numbers.append(torch.arange(starts[row], starts[row + 1]))
        yield ids, torch.cat(places), torch.cat(targets), torch.cat(numbers)


def logprobs(model, ids, places, targets, chunk=0):
    """Log-probs of the targets [tokens]. The head processes `chunk` tokens at a time and recomputes them in the
    backward pass; 0 processes all tokens at once."""
    hidden = model(ids).flatten(0, 1)[places]

    def head(x, t):
        return -F.cross_entropy(F.linear(x, model.embed).float(), t, reduction="none")

    if not chunk:
        return head(hidden, targets)
    parts = zip(hidden.split(chunk), targets.split(chunk))
    return torch.cat([checkpoint(head, x, t, use_reentrant=False) for x, t in parts])


def policy_loss(logp, old, advantage):
    """Clipped surrogate loss with dual clip, summed over tokens."""
    ratio = (logp - old).clamp(-20, 20).exp()
    worst = torch.maximum(-advantage * ratio, -advantage * ratio.clamp(0.8, 1.28))
    return torch.where(advantage < 0, torch.minimum(worst, -advantage * 3.0), worst).sum()


class Step:
    """One optimizer step on a mini-batch, with the settings of a candidate."""

    def __init__(self, model, micro, compiled=False, checkpointing=False, chunk=0):
        self.model, self.micro = model, micro
        model.checkpointing = checkpointing
        self.optimizer = torch.optim.AdamW(model.trained(), lr=1e-6, weight_decay=0.01, fused=True)

        def loss(ids, places, targets, old, advantage):
            return policy_loss(logprobs(model, ids, places, targets, chunk), old, advantage)

        self.loss = torch.compile(loss, dynamic=True) if compiled else loss

    def __call__(self, batches, old, advantage):
        """`batches` are from micro_batches; `old` and `advantage` have an entry per trained token."""
        self.optimizer.zero_grad(set_to_none=True)
        for ids, places, targets, numbers in batches:
            (self.loss(ids, places, targets, old[numbers], advantage[numbers]) / len(old)).backward()
        torch.nn.utils.clip_grad_norm_(self.model.trained(), 1.0, foreach=True)
        self.optimizer.step()


def training(s, how):
    """`how`: the keyword arguments of Step. Units are tokens without padding; the prompt counts in every episode."""
    model = decoder(s)
    step = Step(model, **how)
    rows = list(episodes(s))
    batches = list(micro_batches(rows, step.micro))
    old = torch.empty(sum(len(trained) for _, trained in rows))
    with torch.no_grad():
        for ids, places, targets, numbers in batches:
            old[numbers] = logprobs(model, ids, places, targets)
    advantage = torch.randn(len(old))

    def run():
        for _ in range(s["steps"]):
            step(batches, old, advantage)
        return s["steps"] * sum(len(ids) for ids, _ in rows)

    return run
