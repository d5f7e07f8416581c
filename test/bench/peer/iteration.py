"""A complete StarPO iteration in PyTorch: rollouts of several turns with one KV cache, seeded random rewards, GRPO
advantages, and one optimizer step per mini-batch on the sampled tokens with the rollout's log-probs. Units are
iterations."""
import torch

from decoder import decoder
from generate import GenerateSampler
from rollout import Sampler
from training import Step, micro_batches


def iteration(s, how):
    """`how`: the keyword arguments `sampler` of Sampler and `step` of Step."""
    rows, turns, sampled, observed = s["groups"] * s["group_size"], s["turns"], s["sampled"], s["observed"]
    length = s["prompt"] + turns * sampled + (turns - 1) * observed
    model = decoder(s)
    step = Step(model, **how["step"])
    kind = GenerateSampler if s["peer"] == "transformers" else Sampler
    sampler = kind(model, s, rows, length, **how["sampler"])
    trained = torch.tensor([s["prompt"] + t * (sampled + observed) + i for t in range(turns) for i in range(sampled)])

    def roll_out():
        prompts = torch.randint(s["vocab"], (s["groups"], s["prompt"]))
        parts, logprobs = [prompts.repeat_interleave(s["group_size"], 0)], []
        first = sampler.prompt(prompts)
        for turn in range(turns):
            ids, logp = sampler.turn(first, sampled)
            parts.append(ids)
            logprobs.append(logp)
            if turn + 1 < turns:
                observation = torch.randint(s["vocab"], (rows, observed))
                parts.append(observation)
                first = torch.cat((ids[:, -1:], observation), 1)  # the last sampled token is not in the cache yet
        return torch.cat(parts, 1), torch.cat(logprobs, 1)

    def run():
        for _ in range(s["iterations"]):
            sampler.refresh()
            ids, old = (x.clone() for x in roll_out())
            rewards = torch.rand(s["groups"], s["group_size"])
            advantages = (rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1e-6)
            for batch in torch.randperm(rows).split(s["mini_batch"]):
                batches = micro_batches([(ids[row], trained) for row in batch], step.micro)
                advantage = advantages.flatten()[batch, None].expand(-1, len(trained)).flatten()
                step(list(batches), old[batch].flatten(), advantage)
        return s["iterations"]

    return run
