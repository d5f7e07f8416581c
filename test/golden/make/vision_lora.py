"""Golden LoRA adapters of vision-language models, made with peft on the random models of test/golden/vision.

Run: python test/golden/make/vision_lora.py  (needs torch, torchvision, transformers, peft, safetensors)
Writes test/golden/vision-lora/{family}/: the adapter as saved by peft, on all linear layers of decoder, encoder and
projection; golden.safetensors with the adapted log-probs of the conversations of vision_models.py, the gradient of a
weighted sum of these log-probs for every factor (grad.*), their norm, and the factors after one AdamW step (stepped.*);
and modules.json with the layers that peft adapts for some values of target_modules and exclude_modules.

Run: python test/golden/make/vision_lora.py FAMILY FOLDER
Checks that the log-probs of a model exported with the adapter of the family, loaded by transformers, or of the adapter
as written by the trainer, loaded by peft, equal the golden ones. Exits with an error if they differ.
"""
import json
import pathlib
import sys
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForImageTextToText

here = pathlib.Path(__file__).resolve().parents[1]
families = ["qwen2_5_vl", "qwen3_vl", "idefics3"]
choices = [
    dict(target_modules=["q_proj", "v_proj"]),
    dict(target_modules="all-linear", exclude_modules=r".*(visual|vision_model|connector).*"),
    dict(target_modules=r".*(language_model|text_model).*\.(q_proj|up_proj)"),
    dict(target_modules=r".*(merger|connector).*(mlp\.2|linear_fc1|modality_projection\.proj)"),
]
listed = {"qwen2_5_vl": ["qkv", "down_proj"], "qwen3_vl": ["qkv", "down_proj", "linear_fc2"], "idefics3": ["fc1", "down_proj"]}
excluded = ["blocks.0.attn.qkv", "layers.0.mlp.down_proj", "merger.linear_fc2"]


def load(folder):
    return AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def conversations(family, model):
    """Returns the log-probs of the conversations, and the sum weighted as in vision_models.py."""
    folder = here / "vision" / family
    given = load_file(folder / "golden.safetensors")
    image = model.config.image_token_id
    logprobs, total = [], 0
    for row, of in enumerate(json.loads((folder / "conversations.json").read_text())["shown"]):
        tokens = given[f"ids.{row}"].long()[None]
        inputs = {}
        if of and "grid.0" in given:
            grids = [[1, *given[f"grid.{i}"].long().tolist()] for i in of]
            inputs = dict(pixel_values=torch.cat([given[f"pixels.{i}"] for i in of]), image_grid_thw=torch.tensor(grids),
                          mm_token_type_ids=(tokens == image).int())
        elif of:
            inputs = dict(pixel_values=torch.cat([given[f"pixels.{i}"] for i in of])[None])
        logits = model(input_ids=tokens, **inputs).logits
        lp = torch.log_softmax(logits[0, :-1] / 0.7, -1).gather(-1, tokens[0, 1:, None])[:, 0]
        total = total + (given[f"weight.{row}"] * lp).sum()
        logprobs.append(lp)
    return logprobs, total


if sys.argv[1:]:
    family, folder = sys.argv[1:]
    expected = load_file(here / "vision-lora" / family / "golden.safetensors")
    is_adapter = (pathlib.Path(folder) / "adapter_config.json").exists()
    model = PeftModel.from_pretrained(load(here / "vision" / family), folder) if is_adapter else load(folder)
    with torch.no_grad():
        found, _ = conversations(family, model)
    error = max((lp - expected[f"logprobs.{row}"]).abs().max().item() for row, lp in enumerate(found))
    print(family, "largest difference of a log-prob:", error)
    sys.exit(error > 1e-4)

plain = lambda name: name.removeprefix("base_model.model.").replace(".default", "")
for family in families:
    folder = here / "vision-lora" / family
    chosen = []
    for choice in [*choices, dict(target_modules=listed[family], exclude_modules=excluded)]:
        adapted = get_peft_model(load(here / "vision" / family), LoraConfig(r=2, **choice))
        names = {plain(n).split(".lora_")[0] for n, p in adapted.named_parameters() if p.requires_grad}
        chosen.append(dict(**choice, modules=sorted(names)))
    torch.manual_seed(13)
    model = get_peft_model(load(here / "vision" / family), LoraConfig(r=2, lora_alpha=3, target_modules="all-linear", task_type="CAUSAL_LM")).eval()
    factors = {plain(n): p for n, p in model.named_parameters() if p.requires_grad}
    for p in factors.values():
        p.data = (0.2 * torch.randn_like(p)).bfloat16().float()
    model.peft_config["default"].base_model_name_or_path = family
    model.save_pretrained(folder)
    (folder / "README.md").unlink()
    config = json.loads((folder / "adapter_config.json").read_text())
    config["target_modules"] = sorted(config["target_modules"])  # peft writes a set in arbitrary order
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    (folder / "modules.json").write_text(json.dumps(chosen, indent=1) + "\n")
    logprobs, total = conversations(family, model)
    total.backward()
    out = {f"logprobs.{row}": lp.detach() for row, lp in enumerate(logprobs)}
    out |= {"grad." + name: p.grad.clone() for name, p in factors.items()}
    optimizer = torch.optim.AdamW(factors.values(), lr=0.01, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    out["norm"] = torch.nn.utils.clip_grad_norm_(factors.values(), 0.05).reshape(1)
    optimizer.step()
    out |= {"stepped." + name: p.detach().clone() for name, p in factors.items()}
    save_file({key: value.contiguous() for key, value in out.items()}, folder / "golden.safetensors")
    print(family, len(factors), total.item(), out["norm"].item())
