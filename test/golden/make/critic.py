"""Golden values of a critic: the trunk of test/golden/qwen2 (made by decoders.py) with a value head, in PyTorch and
transformers.

Run: python test/golden/make/critic.py  (needs torch, transformers, safetensors)
Writes test/golden/critic/golden.safetensors: inputs, the head, values at the positions that predict tokens 1…t−1,
the clipped value loss of verl's compute_value_loss, the gradient of every parameter, and the parameters after one
AdamW step.
"""
import pathlib
import torch
from safetensors.torch import save_file
from transformers import Qwen2ForCausalLM

here = pathlib.Path(__file__).resolve().parents[1]
torch.manual_seed(11)
trunk = Qwen2ForCausalLM.from_pretrained(here / "qwen2", attn_implementation="eager").float().eval().model
head = torch.nn.Linear(trunk.config.hidden_size, 1, bias=False)
b, t, clip = 3, 10, 0.5
ids = torch.randint(0, trunk.config.vocab_size, (b, t))
values = head(trunk(input_ids=ids, use_cache=False).last_hidden_state)[:, :-1, 0]
old = values.detach() + torch.randn_like(values)
returns = values.detach() + 2 * torch.randn_like(values)
mask = (torch.rand_like(values) < 0.7).float()
held = torch.clamp(values, old - clip, old + clip)
plain, clipped = (values - returns) ** 2, (held - returns) ** 2
loss = 0.5 * (torch.maximum(plain, clipped) * mask).sum() / mask.sum()
clipfrac = ((clipped > plain).float() * mask).sum() / mask.sum()
loss.backward()
out = dict(ids=ids, mask=mask, values=values, old=old, returns=returns, loss=loss, clipfrac=clipfrac)
out = {k: v.detach().clone().float().reshape(v.shape or (1,)).contiguous() for k, v in out.items()}
parameters = {"model." + name: p for name, p in trunk.named_parameters()} | {"value_head.weight": head.weight}
out["head"] = head.weight.detach().clone()
for name, p in parameters.items():
    out["grad." + name] = p.grad.clone()
optimizer = torch.optim.AdamW(parameters.values(), lr=0.01, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
out["norm"] = torch.nn.utils.clip_grad_norm_(list(parameters.values()), 0.05).reshape(1)
optimizer.step()
for name, p in parameters.items():
    out["stepped." + name] = p.detach().clone()
(here / "critic").mkdir(exist_ok=True)
save_file(out, here / "critic" / "golden.safetensors")
print(loss.item(), clipfrac.item(), out["norm"].item())
