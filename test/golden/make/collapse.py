"""Golden values of the collapse metrics: random cross-scoring matrices, measured in PyTorch float32.

Run: python test/golden/make/collapse.py  (needs torch)
Writes test/golden/collapse/cases.json: a list of {log_probs_per_token, lengths, column, signatures, metrics} with
RAGEN's suffixes. Running averages continue from case to case.
"""
import json
import math
import pathlib
import torch

torch.manual_seed(5)
eps, decay = 1e-3, 0.9


def measured(per_token, lengths, column, signatures, averages):
    rows, width = per_token.shape
    sums = per_token * lengths.clamp(min=1).unsqueeze(1)
    own = torch.arange(rows)
    out = {"mi_upper_bound": math.log(width)}
    for matrix, seq in ((per_token, False), (sums, True)):
        matched = matrix[own, column]
        marginal = torch.logsumexp(matrix, dim=1) - math.log(width)
        std = marginal.std(unbiased=False).item()
        averages[seq] = std if seq not in averages else decay * averages[seq] + (1 - decay) * std
        middle, end = ("seq_", "_seq") if seq else ("", "")
        out[f"mi_{middle}estimate"] = (matched.mean() - marginal.mean()).item()
        out[f"conditional_entropy_{middle}est"] = -matched.mean().item()
        out[f"reasoning_entropy_{middle}est"] = -marginal.mean().item()
        out[f"marginal_std{end}"] = std
        out[f"mi_zscore{end}"] = ((matched - marginal) / (std + eps)).mean().item()
        out[f"marginal_std_ema{end}"] = averages[seq]
        out[f"mi_zscore_ema{end}"] = ((matched - marginal) / (averages[seq] + eps)).mean().item()
        if not seq:
            out["matched_log_prob_mean"] = matched.mean().item()
            out["marginal_log_prob_mean"] = marginal.mean().item()
    same = torch.tensor([[signatures[j] == signatures[c] for j in range(width)] for c in column.tolist()])
    chance = (same.sum(1).float() / width).mean().item()
    for k, suffix in ((1, ""), (2, "@2"), (4, "@4"), (8, "@8")):
        depth = min(k, min(8, width))
        best = per_token.topk(depth, dim=1).indices
        accuracy = same.gather(1, best).any(1).float().mean().item()
        by_chance = min(1.0, chance * depth)
        out["retrieval_accuracy" + suffix] = accuracy
        out["retrieval_chance_level" + suffix] = by_chance
        out["retrieval_above_chance" + suffix] = accuracy - by_chance
    return out


cases, averages = [], {}
for rows, width, prompts, gain in ((6, 3, 3, 1.0), (24, 8, 8, 0.5), (40, 12, 7, 2.0), (64, 64, 20, 0.2)):
    signatures = torch.randint(0, prompts, (width,)).tolist() if prompts < width else list(range(width))
    column = torch.arange(rows) % width
    per_token = -2 * torch.rand(rows, width) - 0.3
    per_token[torch.arange(rows), column] += 0.3 * gain * torch.rand(rows)
    per_token = per_token.half().float()
    lengths = torch.randint(1, 30, (rows,))
    case = dict(log_probs_per_token=per_token.tolist(), lengths=lengths.tolist(), column=column.tolist(), signatures=signatures)
    cases.append(case | dict(metrics=measured(per_token, lengths, column, signatures, averages)))
folder = pathlib.Path(__file__).resolve().parents[1] / "collapse"
folder.mkdir(exist_ok=True)
(folder / "cases.json").write_text(json.dumps(cases) + "\n")
print([round(case["metrics"]["mi_estimate"], 4) for case in cases])
