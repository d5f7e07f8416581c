"""Gradients of log-probs for image features, made with PyTorch and transformers from the checkpoints of vision_models.py.

Run: python test/golden/make/vision_attributions.py  (needs torch, torchvision, transformers, safetensors)
Writes test/golden/vision/{family}/feature-gradients.safetensors. For the two conversations with pictures of the family's
golden.safetensors, at temperature 0.7: logprob.{row}, the sum of the log-probs of the last eight tokens, and
gradient.{row}, its gradient for the features of the conversation's pictures, [features, width], DeepStack's features
after those that replace embeddings.
"""
import pathlib
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForImageTextToText

here = pathlib.Path(__file__).resolve().parents[1] / "vision"
scored = 8

for folder in sorted(here.iterdir()):
    if not (folder / "golden.safetensors").exists():
        continue
    golden = load_file(folder / "golden.safetensors")
    model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    encode, kept = model.model.get_image_features, []

    def remembered(*args, **kwargs):
        found = encode(*args, **kwargs)
        levels = [found.pooler_output, *(getattr(found, "deepstack_features", None) or [])]
        kept.append([[level] if torch.is_tensor(level) else level for level in levels])
        for tensor in sum(map(list, kept[-1]), []):
            tensor.retain_grad()
        return found

    model.model.get_image_features = remembered
    out = {}
    for row, of in enumerate([[0, 1], [0]]):
        tokens = golden[f"ids.{row}"].long()[None]
        pixels = [golden[f"pixels.{i}"] for i in of]
        if "grid.0" in golden:
            grids = torch.stack([torch.cat([torch.ones(1), golden[f"grid.{i}"]]) for i in of]).long()
            kinds = (tokens == model.config.image_token_id).int()
            inputs = dict(pixel_values=torch.cat(pixels), image_grid_thw=grids, mm_token_type_ids=kinds)
        else:
            inputs = dict(pixel_values=torch.cat(pixels)[None])
        logits = model(input_ids=tokens, **inputs).logits
        logprobs = torch.log_softmax(logits[0, :-1] / 0.7, -1).gather(-1, tokens[0, 1:, None])[:, 0]
        assert (logprobs.detach() - golden[f"logprobs.{row}"]).abs().max() < 1e-4
        total = logprobs[-scored:].sum()
        total.backward()
        levels = [torch.cat([each.grad.flatten(0, -2) for each in level]) for level in kept[-1]]
        out[f"gradient.{row}"] = torch.cat(levels, -1).contiguous()
        out[f"logprob.{row}"] = total.detach().reshape(1)
    save_file(out, folder / "feature-gradients.safetensors")
    print(folder.name, {name: list(value.shape) for name, value in out.items()})
