"""Golden values of the advantages of on-policy distillation, by tinker-cookbook's own function.

Run: python test/golden/make/distillation.py  (needs tinker-cookbook 0.6.1 with its dependencies, and torch)
Writes test/golden/distillation.json: log-probs of a policy and of a teacher, masks, and for each pair of coefficient and
discount the advantages that incorporate_kl_penalty adds to zeros, and the mean divergence.
"""
import asyncio
import json
import pathlib

import tinker
import torch
from tinker_cookbook.distillation.train_on_policy import incorporate_kl_penalty

here = pathlib.Path(__file__).resolve().parents[1]
torch.manual_seed(5)
lengths = [7, 1, 12, 5]
policy = [-3 * torch.rand(n) for n in lengths]
teacher = [-3 * torch.rand(n) for n in lengths]
mask = [(torch.rand(n) < 0.6).float() for n in lengths]
mask[3] = torch.zeros(5)


class Answer:
    def __init__(self, values):
        self.values = values

    async def coroutine(self):
        return self.values


class Teacher:
    """Answers like a sampling client: one log-prob per token, the first token's is None."""

    def __init__(self, values):
        self.values = values

    def compute_logprobs(self, _):
        return Answer([None, *self.values])


def advantages(coefficient, discount):
    data = [
        tinker.Datum(
            model_input=tinker.ModelInput.from_ints(list(range(n))),
            loss_fn_inputs={
                name: tinker.TensorData.from_torch(value)
                for name, value in dict(
                    target_tokens=torch.arange(1, n + 1),
                    logprobs=policy[i],
                    mask=mask[i],
                    advantages=torch.zeros(n),
                ).items()
            },
        )
        for i, n in enumerate(lengths)
    ]
    clients = [Teacher(row.tolist()) for row in teacher]
    metrics = asyncio.run(incorporate_kl_penalty(data, clients, [0] * len(data), coefficient, discount))
    return dict(
        kl_penalty_coef=coefficient,
        kl_discount_factor=discount,
        kl=float(metrics["teacher_kl"]),
        advantages=[(d.loss_fn_inputs["advantages"].to_torch() * m).tolist() for d, m in zip(data, mask)],
    )


golden = dict(
    policy=[row.tolist() for row in policy],
    teacher=[row.tolist() for row in teacher],
    mask=[[int(x) for x in row] for row in mask],
    cases=[advantages(1.0, 0.0), advantages(0.3, 0.0), advantages(1.0, 0.9), advantages(2.0, 1.0)],
)
(here / "distillation.json").write_text(json.dumps(golden) + "\n")
