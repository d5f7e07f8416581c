"""Golden values of GSPO's, CISPO's, SAPO's, GMPO's, Clip-Cov's and KL-Cov's losses over test/golden/qwen2 (made by decoders.py), in PyTorch and transformers.

Run: python test/golden/make/policy_losses.py  (needs torch, transformers, safetensors)
Writes test/golden/policy-losses/golden.safetensors: inputs, and for each loss its value, the share of clipped
tokens, the mean of old − new log-probs, and the gradient of every parameter. Stop-gradients are PyTorch's detach, as
in the papers' formulas; GSPO's, SAPO's and GMPO's tokens are averaged by sequence, the others' over the batch. GMPO has one advantage
per sequence ("sequence_advantage"). The formulas of SAPO, GMPO, Clip-Cov
and KL-Cov are those of verl 0.9.1 (core_algos.py). Clip-Cov leaves out every candidate, so its random choice does not matter.
"""
import pathlib
import torch
from safetensors.torch import save_file
from transformers import Qwen2ForCausalLM

here = pathlib.Path(__file__).resolve().parents[1]
torch.manual_seed(23)
model = Qwen2ForCausalLM.from_pretrained(here / "qwen2", attn_implementation="eager").float().eval()
b, t, low, high = 4, 12, 0.05, 0.08
ids = torch.randint(0, model.config.vocab_size, (b, t))
mask = (torch.rand(b, t - 1) < 0.6).float()
advantage = torch.randn(b, t - 1)
out = dict(ids=ids, mask=mask, advantage=advantage)


def logprobs():
    return torch.log_softmax(model(ids).logits[:, :-1], -1).gather(-1, ids[:, 1:, None])[..., 0]


old = logprobs().detach() + 0.3 * torch.randn(b, t - 1)
out["old"] = old


def gspo(lp):
    length = mask.sum(-1, keepdim=True)
    sequence = (((lp - old) * mask).sum(-1, keepdim=True) / length).detach()
    ratio = torch.exp((lp - lp.detach() + sequence).clamp(max=10))
    plain, held = -advantage * ratio, -advantage * ratio.clamp(1 - low, 1 + high)
    loss = (torch.maximum(plain, held) * mask / length).sum() / b
    return loss, held > plain


def cispo(lp):
    ratio = torch.exp((lp - old).clamp(-20, 20))
    weight = ratio.clamp(1 - low, 1 + high).detach()
    return (-weight * advantage * lp * mask).sum() / mask.sum(), weight != ratio


def sapo(lp, tau_pos=0.8, tau_neg=1.3):
    ratio = torch.exp((lp - old).clamp(-20, 20))
    tau = torch.where(advantage > 0, torch.tensor(tau_pos), torch.tensor(tau_neg))
    loss = -torch.sigmoid(tau * (ratio - 1)) * 4 / tau * advantage
    return ((loss * mask).sum(-1) / mask.sum(-1)).mean(), torch.zeros_like(mask)


sequence_advantage = torch.tensor([1.5, -0.7, 0.9, -1.2])
out["sequence_advantage"] = sequence_advantage


def geo_mean(lp):
    log_ratio = lp - old
    sign = torch.sign(sequence_advantage)[:, None]
    held = log_ratio.clamp(-low, high)
    kept = sign * torch.min(sign * log_ratio, sign * held)
    ratio = torch.exp((kept * mask).sum(-1) / mask.sum(-1))
    return (-sequence_advantage * ratio).mean(), (held != log_ratio) & (sign > 0)


def covariance(lp):
    on = mask > 0
    return (advantage - advantage[on].mean()) * (lp.detach() - lp.detach()[on].mean()), on


def clip_cov(lp, lower=0.05, upper=5.0):
    ratio = torch.exp(lp - old)
    plain, held = -advantage * ratio, -advantage * ratio.clamp(1 - low, 1 + high)
    cov, on = covariance(lp)
    left_out = on & ~(held > plain) & (cov > lower) & (cov < upper)
    loss = torch.maximum(plain, held) * ~left_out
    return (loss * mask).sum() / mask.sum(), left_out


def kl_cov(lp, share=0.15, coefficient=0.5):
    plain = -advantage * torch.exp(lp - old)
    cov, on = covariance(lp)
    count = max(1, int(on.sum() * share))
    smallest = cov[on].topk(count).values.min()
    penalized = on & (cov >= smallest)
    loss = plain + coefficient * (lp - old).abs() * penalized
    return (loss * mask).sum() / mask.sum(), penalized


losses = dict(gspo=gspo, cispo=cispo, sapo=sapo, geo_mean=geo_mean, clip_cov=clip_cov, kl_cov=kl_cov)
for name, make in losses.items():
    model.zero_grad()
    lp = logprobs()
    loss, clipped = make(lp)
    loss.backward()
    clipfrac = (clipped * mask).sum() / mask.sum()
    kl = ((old - lp.detach()) * mask).sum() / mask.sum()
    out[name] = torch.stack([loss.detach(), clipfrac, kl])
    for parameter, p in model.named_parameters():
        out[f"{name}.grad.{parameter}"] = p.grad.clone()
    print(name, out[name].tolist())
(here / "policy-losses").mkdir(exist_ok=True)
save_file({k: v.float().contiguous() for k, v in out.items()}, here / "policy-losses" / "golden.safetensors")
