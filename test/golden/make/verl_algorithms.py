"""Golden values of advantage estimators and policy losses from verl's own code (verl.trainer.ppo.core_algos of verl 0.9.1).

Run: python test/golden/make/verl_algorithms.py  (needs torch, transformers, safetensors, numpy, verl==0.9.1 and its ray)
Reads test/golden/policy-losses/golden.safetensors (policy_losses.py) and the model test/golden/qwen2; writes
test/golden/verl-algorithms.json. The script ends with an error if the gradients of verl's losses with respect to the
log-probs differ from those of the formulas in policy_losses.py, whose gradients of all parameters the tests compare.
"""
import json
import pathlib
import numpy as np
import torch
from omegaconf import OmegaConf
from safetensors.torch import load_file
from transformers import Qwen2ForCausalLM
from verl.trainer.ppo import core_algos
from verl.workers.config import ActorConfig, PolicyLossConfig

here = pathlib.Path(__file__).resolve().parents[1]
golden = load_file(here / "policy-losses" / "golden.safetensors")
model = Qwen2ForCausalLM.from_pretrained(here / "qwen2", attn_implementation="eager").float().eval()
ids = golden["ids"].long()
covariance = dict(clip_cov_ratio=0.5, clip_cov_lb=0.05, clip_cov_ub=5.0, kl_cov_ratio=0.15, ppo_kl_coef=0.5)
modes = dict(
    gspo="seq-mean-token-mean", cispo="token-mean", sapo="seq-mean-token-mean", geo_mean="seq-mean-token-mean",
    clip_cov="token-mean", kl_cov="token-mean",
)
losses = {}
for name, mode in modes.items():
    config = ActorConfig(
        strategy="fsdp", rollout_n=1, ppo_micro_batch_size_per_gpu=1, clip_ratio_low=0.05, clip_ratio_high=0.08,
        tau_pos=0.8, tau_neg=1.3, policy_loss=PolicyLossConfig(loss_mode=name, **covariance),
    )
    advantage = golden["advantage"] if name != "geo_mean" else golden["sequence_advantage"][:, None].expand_as(golden["advantage"])
    model.zero_grad()
    lp = torch.log_softmax(model(ids).logits[:, :-1], -1).gather(-1, ids[:, 1:, None])[..., 0]
    loss, metrics = core_algos.get_policy_loss_fn(name)(
        old_log_prob=golden["old"], log_prob=lp, advantages=advantage, response_mask=golden["mask"],
        loss_agg_mode=mode, config=config,
    )
    loss.backward()
    for parameter, p in model.named_parameters():
        expected = golden[f"{name}.grad.{parameter}"]
        assert torch.allclose(p.grad, expected, rtol=1e-4, atol=1e-6 * expected.abs().max()), (name, parameter)
    losses[name] = dict(loss=loss.item(), clipfrac=metrics.get("actor/pg_clipfrac"))
    print(name, losses[name], golden[name].tolist())

random = np.random.default_rng(31)
rows, length = 8, 10
groups = [0, 0, 0, 1, 1, 1, 1, 2]
spans = random.integers(4, length + 1, rows)
mask = torch.tensor([[float(t < n) for t in range(length)] for n in spans])
outcome = torch.zeros(rows, length)
for row, n in enumerate(spans):
    outcome[row, n - 1] = float(np.round(random.normal(), 3))
gapped = mask * torch.tensor(random.random((rows, length)) < 0.7).float()
gapped[:, 0] = 1
dense = torch.tensor(np.round(random.normal(size=(rows, length)), 3)).float() * gapped
baselines = torch.tensor(np.round(random.normal(size=rows), 3)).float()
logprobs = torch.tensor(np.round(-random.exponential(0.7, (rows, length)), 3)).float()
squares = torch.tensor(np.round(random.random((rows, length)), 3)).float()
index = np.array(groups)


def advantages(estimator, rewards, response_mask, **more):
    given = dict(token_level_rewards=rewards, response_mask=response_mask, **more)
    return core_algos.get_adv_estimator_fn(estimator)(**given)[0].tolist()


config = OmegaConf.create(dict(gamma=1.0, norm_adv_by_std_in_grpo=True))
discounted = OmegaConf.create(dict(gamma=0.9))
estimators = dict(
    grpo=advantages("grpo", outcome, mask, index=index),
    dr_grpo=advantages("grpo", outcome, mask, index=index, norm_adv_by_std_in_grpo=False),
    rloo=advantages("rloo", outcome, mask, index=index),
    opo=advantages("opo", outcome, mask, index=index),
    reinforce_plus_plus=advantages("reinforce_plus_plus", outcome, mask, config=discounted),
    reinforce_plus_plus_baseline=advantages("reinforce_plus_plus_baseline", outcome, mask, index=index, config=config),
    remax=advantages("remax", dense, gapped, reward_baselines=baselines),
    tir_optimal_token_baseline=advantages(
        "tir_optimal_token_baseline", dense, gapped, index=index, old_log_probs=logprobs, sum_pi_squared=squares
    ),
)
data = dict(
    groups=groups, outcome=outcome.tolist(), mask=mask.int().tolist(), dense=dense.tolist(), gapped=gapped.int().tolist(),
    baselines=baselines.tolist(), logprobs=logprobs.tolist(), squares=squares.tolist(), losses=losses, estimators=estimators,
)
rounded = json.loads(json.dumps(data), parse_float=lambda text: float(f"{float(text):.9g}"))
(here / "verl-algorithms.json").write_text(json.dumps(rounded) + "\n")
