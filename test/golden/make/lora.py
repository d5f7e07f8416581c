"""Golden LoRA adapters, made with peft on the random decoder of test/golden/qwen2 (inputs and loss as in decoders.py).

Run: python test/golden/make/lora.py  (needs torch, transformers, peft, safetensors)
Writes test/golden/lora/{all-linear,q-v}/: the adapter as saved by peft, and golden.safetensors with the adapted
model's logits, log-probs and entropies, the three parts of the loss, the gradient of every factor (grad.*), the factors
after one AdamW step (stepped.*), the norm of the gradients, and the base weights with the merged adapter (merged.*).
"""
import json
import pathlib
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

here = pathlib.Path(__file__).resolve().parents[1]
adapters = {
    "all-linear": dict(r=4, lora_alpha=8, target_modules="all-linear"),
    "q-v": dict(r=4, lora_alpha=6, target_modules=["q_proj", "v_proj"]),
}
given = load_file(here / "qwen2" / "golden.safetensors")
ids, old, ref, advantage, weight = (given[key] for key in ("ids", "old", "ref", "advantage", "weight"))
ids = ids.long()
for name, options in adapters.items():
    torch.manual_seed(11)
    base = AutoModelForCausalLM.from_pretrained(here / "qwen2", dtype=torch.float32, attn_implementation="eager")
    model = get_peft_model(base, LoraConfig(**options, lora_dropout=0.0, bias="none", task_type="CAUSAL_LM")).eval()
    factors = {n.removeprefix("base_model.model.").replace(".default", ""): p for n, p in model.named_parameters() if p.requires_grad}
    for factor_name, p in factors.items():
        p.data = 0.2 * torch.randn_like(p)
    folder = here / "lora" / name
    model.peft_config["default"].base_model_name_or_path = "qwen2"
    model.save_pretrained(folder)
    (folder / "README.md").unlink()
    config = json.loads((folder / "adapter_config.json").read_text())
    config["target_modules"].sort()  # peft writes a set in arbitrary order
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True))

    logits = model(ids).logits
    logprobs = torch.log_softmax(logits[:, :-1] / 0.7, -1)
    lp = logprobs.gather(-1, ids[:, 1:, None])[..., 0]
    entropy = -(logprobs.exp() * logprobs).sum(-1)
    ratio = (lp - old).clamp(-20, 20).exp()
    l1, l2 = -advantage * ratio, -advantage * ratio.clamp(1 - 0.2, 1 + 0.28)
    m = torch.maximum(l1, l2)
    pg = torch.where(advantage < 0, torch.minimum(m, -advantage * 3.0), m)
    d = ref - lp
    kl = (d.clamp(-20, 20).exp() - d - 1).clamp(-10, 10)
    parts = [(weight * pg).sum(), (weight * entropy).sum(), (weight * kl).sum()]
    loss = parts[0] - 0.01 * parts[1] + 0.05 * parts[2]
    loss.backward()
    out = dict(logits=logits, logprobs=lp, entropy=entropy, loss=torch.stack(parts))
    out = {key: value.detach().clone().contiguous() for key, value in out.items()}
    for factor_name, p in factors.items():
        out["grad." + factor_name] = p.grad.clone()
    before = {n: p.detach().clone() for n, p in factors.items()}
    optimizer = torch.optim.AdamW(factors.values(), lr=0.01, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    out["norm"] = torch.nn.utils.clip_grad_norm_(factors.values(), 0.05).reshape(1)
    optimizer.step()
    for factor_name, p in factors.items():
        out["stepped." + factor_name] = p.detach().clone()
        p.data = before[factor_name]
    for parameter_name, p in model.merge_and_unload().named_parameters():
        if parameter_name.removesuffix("weight") + "lora_A.weight" in factors:
            out["merged." + parameter_name] = p.detach().clone()
    save_file(out, folder / "golden.safetensors")
    print(name, len(factors), loss.item(), out["norm"].item())
