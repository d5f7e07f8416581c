"""Golden values of the advantage estimators and losses on random batches, in PyTorch float32, by verl's formulas.

Run: python test/golden/make/algorithms.py  (needs torch)
Writes test/golden/algorithms.json: for each name of `ragen algo` its cases and results. Batches are rectangular with
gaps in their masks; a turn ends at the last of consecutive sampled tokens. Values at tokens with mask 0 are compared only if
all implementations agree on them.
"""
import json
import pathlib
import random
import torch

torch.manual_seed(5)
random.seed(5)
here = pathlib.Path(__file__).resolve().parents[1]


def numbers(x):
    return [numbers(y) for y in x] if x.dim() > 0 else float(f"{x.item():.9g}")


def masked_mean(x, mask):
    return (x * mask).sum() / mask.sum()


def whiten(x, mask):
    mean = masked_mean(x, mask)
    variance = masked_mean((x - mean) ** 2, mask) * mask.sum() / (mask.sum() - 1)
    return (x - mean) * torch.rsqrt(variance + 1e-8) * mask


def batch(rows, length):
    """Masks with turns of 1 to 4 sampled tokens and gaps of 1 to 3, rewards at the ends of turns (some are 0), and
    values."""
    mask, rewards, ends = torch.zeros(rows, length), torch.zeros(rows, length), []
    for row in range(rows):
        at, found = random.randint(0, 2), []
        while at < length:
            end = min(at + random.randint(1, 4), length)
            mask[row, at:end] = 1
            rewards[row, end - 1] = random.choice([0.0, 0.0, 1.0, -0.1, 10.9])
            found.append(end - 1)
            at = end + random.randint(1, 3)
        ends.append(found)
    return mask, rewards, ends, torch.randn(rows, length)


def gae(rewards, values, mask, gamma, lam):
    out, last, following = torch.zeros_like(values), torch.zeros(len(values)), torch.zeros(len(values))
    for t in reversed(range(values.shape[1])):
        delta = rewards[:, t] + gamma * following - values[:, t]
        last = torch.where(mask[:, t] > 0, delta + gamma * lam * last, last)
        following = torch.where(mask[:, t] > 0, values[:, t], following)
        out[:, t] = last
    return out


def bi_level(rewards, values, mask, ends, gamma, lam, high):
    out, paid = torch.zeros_like(values), rewards.clone()
    for row, own in enumerate(ends):
        last = torch.tensor(0.0)
        for i in reversed(range(len(own))):
            following = values[row, own[i + 1]] if i + 1 < len(own) else 0.0
            delta = rewards[row, own[i]] + high * following - values[row, own[i]]
            last = delta + high * lam * last
            paid[row, own[i]] = last + values[row, own[i]]
        last, following = torch.tensor(0.0), torch.tensor(0.0)
        for t in reversed(mask[row].nonzero()[:, 0].tolist()):
            if t in own:
                last, following = torch.tensor(0.0), torch.tensor(0.0)
            last = paid[row, t] + gamma * following - values[row, t] + gamma * lam * last
            following = values[row, t]
            out[row, t] = last
    return out


def by_group(scores, groups, relate):
    out = torch.zeros_like(scores)
    for group in set(groups):
        index = [i for i, other in enumerate(groups) if other == group]
        out[index] = scores[index] if len(index) == 1 else relate(scores[index])
    return out


def opo(scores, lengths, groups):
    """Score minus the group's mean score weighted by length (verl 0.9.1, compute_opo_outcome_advantage)."""
    out = scores.clone()
    for group in set(groups):
        index = [i for i, other in enumerate(groups) if other == group]
        if len(index) > 1:
            out[index] = scores[index] - (lengths[index] * scores[index]).sum() / lengths[index].sum()
    return out


def tir_optimal_token_baseline(rewards, mask, groups, logprob, squares):
    """Return minus the baseline of each sampled token (verl 0.9.1, compute_multi_turn_optimal_token_baseline_advantage)."""
    ends = (rewards * mask).flip(-1).cumsum(-1).flip(-1)
    noise = ((1 - 2 * logprob.exp() + squares) * mask).cumsum(-1)
    on, out = mask.bool(), torch.zeros_like(rewards)
    for group in set(groups):
        index = [i for i, other in enumerate(groups) if other == group and on[i].any()]
        lengths = sorted(int(on[i].sum()) for i in index)
        for i in index:
            for k, t in enumerate(on[i].nonzero()[:, 0].tolist()):
                at = [(j, on[j].nonzero()[k, 0]) for j in index if on[j].sum() > k]
                weights = sum(noise[j, s] for j, s in at) + 1e-8
                tail = len(index) == 1 or (k >= lengths[-2] and int(on[i].sum()) == lengths[-1])
                out[i, t] = ends[i, t] - (0 if tail else sum(ends[j, s] * noise[j, s] for j, s in at) / weights)
    return out


cases, results = {"advantage": [], "policy-loss": [], "value-loss": []}, {"advantage": [], "policy-loss": [], "value-loss": []}


def add(name, case, result):
    cases[name].append({k: numbers(v) if torch.is_tensor(v) else v for k, v in case.items()})
    results[name].append({k: numbers(v) if torch.is_tensor(v) else v for k, v in result.items()})


for gamma, lam, high in [(1.0, 1.0, 0.95), (0.99, 0.95, 0.9), (0.9, 0.5, 1.0)]:
    mask, rewards, ends, values = batch(6, 24)
    given = dict(rewards=rewards, values=values, mask=mask.int(), gamma=gamma, lam=lam)
    for whitens in (True, False):
        raw = gae(rewards, values, mask, gamma, lam)
        add("advantage", dict(estimator="gae", whiten=whitens, **given),
            dict(advantages=whiten(raw, mask) if whitens else raw * mask, returns=(raw + values) * mask))
        for explicit in (True, False):
            # Without explicit turn ends, turns end at rewards. The last sampled token then gets a reward, because the
            # original requires a reward there.
            if not explicit:
                for row, own in enumerate(ends):
                    rewards[row, own[-1]] = rewards[row, own[-1]] + 0.5
            own = ends if explicit else [row.nonzero()[:, 0].tolist() for row in rewards]
            raw = bi_level(rewards, values, mask, own, gamma, lam, high)
            extra = dict(turn_ends=ends) if explicit else {}
            case = dict(estimator="gae", bi_level_gae=True, high_level_gamma=high, whiten=whitens, **{**given, "rewards": rewards.clone()}, **extra)
            add("advantage", case, dict(advantages=whiten(raw, mask) if whitens else raw, returns=(raw + values) * mask))

mask, rewards, ends, values = batch(13, 16)
groups = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3]
scores = rewards.sum(-1)
otb_mask = mask
grpo = lambda x: (x - x.mean()) / (x.std() + 1e-6)
given = dict(rewards=rewards, mask=mask.int(), group=groups)
for estimator, extra, own in [
    ("grpo", {}, by_group(scores, groups, grpo)),
    ("grpo", dict(norm_adv_by_std_in_grpo=False), by_group(scores, groups, lambda x: x - x.mean())),
    ("rloo", {}, by_group(scores, groups, lambda x: x * len(x) / (len(x) - 1) - x.mean() * len(x) / (len(x) - 1))),
    ("brpo", {}, grpo(scores)),
    ("arpo", {}, scores),
    ("opo", {}, opo(scores, mask.sum(-1), groups)),
]:
    spread = own[:, None] * mask
    add("advantage", dict(estimator=estimator, **given, **extra), dict(advantages=spread, returns=spread))
centred = by_group(scores, groups, lambda x: x - x.mean())[:, None] * mask
white = whiten(centred, mask)
add("advantage", dict(estimator="reinforce_plus_plus_baseline", **given), dict(advantages=white, returns=white))
for gamma in (1.0, 0.9):
    returns, running = torch.zeros_like(rewards), torch.zeros(len(rewards))
    for t in reversed(range(rewards.shape[1])):
        running = rewards[:, t] + gamma * running
        returns[:, t] = running
        running = running * mask[:, t]
    case = dict(estimator="reinforce_plus_plus", compat="ragen", gamma=gamma, **given)
    add("advantage", case, dict(advantages=whiten(returns, mask), returns=returns * mask))


def aggregate(loss, mask, mode):
    if mode == "token-mean":
        return masked_mean(loss, mask)
    sums = (loss * mask).sum(-1)
    if mode == "seq-mean-token-mean":
        return (sums / mask.sum(-1)).mean()
    return sums.mean() if mode == "seq-mean-token-sum" else sums.sum() / mask.shape[-1]


modes = ["token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"]
for mode, (low, high, dual) in zip(modes, [(0.2, 0.28, 3.0), (0.1, 0.1, 1.5), (0.2, 0.2, 3.0), (0.05, 0.3, 2.0)]):
    mask, _, _, advantages = batch(5, 12)
    lp = -torch.rand(5, 12) * 3
    old = lp + 0.6 * torch.randn(5, 12)
    ratio = (lp - old).clamp(-20, 20).exp()
    plain, held = -advantages * ratio, -advantages * ratio.clamp(1 - low, 1 + high)
    worse = torch.maximum(plain, held)
    loss = torch.where(advantages < 0, torch.minimum(worse, -advantages * dual), worse)
    case = dict(logprob=lp, old_logprob=old, advantages=advantages, mask=mask.int(), clip_low=low, clip_high=high, dual_clip=dual, loss_agg_mode=mode)
    add("policy-loss", case, dict(per_token=loss, loss=aggregate(loss, mask, mode), clipfrac=masked_mean((held > plain).float(), mask),
                                  ppo_kl=masked_mean(old - lp, mask)))
    vpreds, returns = torch.randn(5, 12), 2 * torch.randn(5, 12)
    before = vpreds + 0.8 * torch.randn(5, 12)
    one, two = (vpreds - returns) ** 2, (torch.clamp(vpreds, before - 0.5, before + 0.5) - returns) ** 2
    add("value-loss", dict(vpreds=vpreds, returns=returns, old_values=before, mask=mask.int(), clip=0.5),
        dict(loss=0.5 * masked_mean(torch.maximum(one, two), mask), clipfrac=masked_mean((two > one).float(), mask)))

lp = -torch.rand(13, 16) * 3
squares = lp.exp() ** 2 + (1 - lp.exp()) ** 2 / 7  # of seven equally likely other tokens
otb = tir_optimal_token_baseline(rewards, otb_mask, groups, lp, squares)
add("advantage", dict(estimator="tir_optimal_token_baseline", rewards=rewards, mask=otb_mask.int(), group=groups, logprob=lp, squares=squares),
    dict(advantages=otb, returns=otb))

document = {name: [dict(case=case, result=result) for case, result in zip(cases[name], results[name])] for name in cases}
(here / "algorithms.json").write_text(json.dumps(document) + "\n")
print({name: len(own) for name, own in cases.items()})
