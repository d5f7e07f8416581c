"""Golden values of small random vision-language models, made with PyTorch and transformers.

Run: python test/golden/make/vision_models.py [family …]  (needs torch, torchvision, transformers, safetensors)
Writes test/golden/vision/{family}/: config.json and the weights (bfloat16) as saved by transformers, and
golden.safetensors with the pictures' patches or tiles, their image features, and three conversations of equal length:
two pictures of different sizes with text between them, one of these pictures, and no picture. For these: token ids,
positions (three axes, or none), logits, log-probs of the next tokens, and the gradient of a weighted sum of the
log-probs for every parameter, and some parameters after an AdamW step. conversations.json has the pictures of each
conversation, and three turns with their greedy tokens. All values are computed in single precision from the stored weights.
"""
import json
import pathlib
import sys
import torch
from safetensors.torch import save_file
from transformers import (Idefics3Config, Idefics3ForConditionalGeneration, Qwen2_5_VLConfig,
                          Qwen2_5_VLForConditionalGeneration, Qwen3VLConfig, Qwen3VLForConditionalGeneration,
                          SmolVLMConfig, SmolVLMForConditionalGeneration)

here = pathlib.Path(__file__).resolve().parents[1] / "vision"
image, length = 60, 34
text = dict(vocab_size=61, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=64, rms_norm_eps=1e-6)
qwen_vision = dict(depth=3, hidden_size=16, intermediate_size=20, num_heads=2, patch_size=4, spatial_merge_size=2,
                   temporal_patch_size=2, out_hidden_size=32)
ids_of = dict(image_token_id=image, video_token_id=59, vision_start_token_id=58, vision_end_token_id=57)
families = {
    "qwen2_5_vl": (Qwen2_5_VLForConditionalGeneration, lambda: Qwen2_5_VLConfig(
        text_config=dict(**text, rope_parameters=dict(rope_type="default", rope_theta=1e4, mrope_section=[1, 1, 2])),
        vision_config=dict(**qwen_vision, window_size=16, fullatt_block_indexes=[1]), tie_word_embeddings=True, **ids_of)),
}
families["qwen3_vl"] = (Qwen3VLForConditionalGeneration, lambda: Qwen3VLConfig(
    text_config=dict(text, num_hidden_layers=3, head_dim=12, rope_parameters=dict(rope_type="default", rope_theta=1e4, mrope_section=[2, 2, 2])),
    vision_config=dict(**qwen_vision, num_position_embeddings=25, deepstack_visual_indexes=[1, 0]),
    tie_word_embeddings=True, **ids_of))
siglip = dict(hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=2, patch_size=4)
llama = dict(model_type="llama", rope_theta=1e4, pad_token_id=59, **text)
families |= {
    "idefics3": (Idefics3ForConditionalGeneration, lambda: Idefics3Config(
        text_config=llama, vision_config=dict(**siglip, image_size=16), scale_factor=2, tie_word_embeddings=False,
        image_token_id=image)),
    # The pixels beyond the sixth patch of each side are not used.
    "smolvlm": (SmolVLMForConditionalGeneration, lambda: SmolVLMConfig(
        text_config=llama, vision_config=dict(**siglip, image_size=26), scale_factor=3, tie_word_embeddings=True,
        image_token_id=image)),
}
# Parameters whose values after a step are stored: some of the decoder, of the projection and of the encoder.
stepped = ["embed_tokens", "layers.1.self_attn.o_proj", "merger", "modality_projection", "patch_embed", "position_embedding"]
# Tiles of the pictures.
tiles = [3, 1]
# Patches along each side of the pictures; the sides are no multiples of the window's.
grids = [(6, 10), (8, 4)]


def patched(model, i):
    """Returns a picture's inputs, its tensors for the golden file, and the numbers of tokens of its parts."""
    if hasattr(model.config.vision_config, "image_size"):
        side = model.config.vision_config.image_size
        pixels = torch.randn(1, tiles[i], 3, side, side)
        count = (side // 4 // model.config.scale_factor) ** 2
        return dict(pixel_values=pixels), {f"pixels.{i}": pixels[0]}, [count] * tiles[i]
    rows, columns = grids[i]
    patches = torch.randn(rows * columns, 3 * 2 * 4 * 4)
    inputs = dict(pixel_values=patches, image_grid_thw=torch.tensor([[1, rows, columns]]))
    return inputs, {f"pixels.{i}": patches, f"grid.{i}": torch.tensor([rows, columns])}, [rows * columns // 4]


for name in sys.argv[1:] or families:
    cls, config = families[name]
    torch.manual_seed(7)
    config = config()
    for part in (config, config.text_config, config.vision_config):
        part.initializer_range = 0.2
    model = cls(config).float().eval()
    for parameter_name, p in model.named_parameters():
        if "norm" in parameter_name or "ln_q" in parameter_name or "position" in parameter_name or parameter_name.endswith("bias"):
            p.data += 0.3 * torch.randn_like(p)
    folder = here / name
    model.to(torch.bfloat16).save_pretrained(folder)
    model = cls.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    out = {}
    pictures = []
    for i in range(2):
        inputs, tensors, counts = patched(model, i)
        pictures.append((inputs, counts))
        out |= tensors
        found = model.model.get_image_features(**inputs)
        deep = [level[0] for level in getattr(found, "deepstack_features", [])]
        out[f"features.{i}"] = torch.cat([found.pooler_output[0], *deep], -1)
    word = lambda n: torch.randint(0, 57, (n,)).tolist()
    shown = [[0, 1], [0], []]
    total = 0
    for row, of in enumerate(shown):
        ids = word(3)
        for i in of:
            ids += sum(([58] + [image] * count for count in pictures[i][1]), []) + [57] + word(2)
        ids = (ids + word(length))[:length]
        tokens = torch.tensor([ids])
        kinds = (tokens == image).int()
        inputs = {}
        positions = torch.arange(length).expand(3, 1, -1)
        if of:
            axis = 0 if "image_grid_thw" in pictures[0][0] else 1
            inputs = {key: torch.cat([pictures[i][0][key] for i in of], axis) for key in pictures[0][0]}
            if axis == 0:
                positions, _ = model.model.get_rope_index(tokens, kinds, inputs["image_grid_thw"])
                inputs["mm_token_type_ids"] = kinds
        logits = model(input_ids=tokens, **inputs).logits
        lp = torch.log_softmax(logits[0, :-1] / 0.7, -1).gather(-1, tokens[0, 1:, None])[:, 0]
        weight = torch.randn_like(lp)
        total = total + (weight * lp).sum()
        out |= {f"ids.{row}": tokens[0], f"positions.{row}": positions[:, 0], f"logits.{row}": logits[0],
                f"logprobs.{row}": lp, f"weight.{row}": weight}
    total.backward()
    out = {k: v.detach().clone().float().contiguous() for k, v in out.items()}
    for parameter_name, p in model.named_parameters():
        out["grad." + parameter_name] = p.grad.clone()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    out["norm"] = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05).reshape(1)
    optimizer.step()
    for parameter_name, p in model.named_parameters():
        if any(part in parameter_name for part in stepped):
            out["stepped." + parameter_name] = p.detach().clone()
    save_file(out, folder / "golden.safetensors")
    # Greedy tokens of three turns: a picture, the other picture, and text only. The stored weights are read again,
    # because the model has made a step.
    model = cls.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    ids, seen, turns = [], [], []
    for of in [[0], [1], []]:
        append = word(3)
        for i in of:
            append += sum(([58] + [image] * count for count in pictures[i][1]), []) + [57]
        append += word(2)
        ids, seen, tokens, logprobs = ids + append, seen + of, [], []
        axis = 0 if "image_grid_thw" in pictures[0][0] else 1
        inputs = {key: torch.cat([pictures[i][0][key] for i in seen], axis) for key in pictures[0][0]}
        for _ in range(4):
            kinds = dict(mm_token_type_ids=(torch.tensor([ids]) == image).int()) if axis == 0 else {}
            with torch.no_grad():
                scores = model(input_ids=torch.tensor([ids]), **kinds, **inputs).logits[0, -1].log_softmax(-1).topk(2)
            assert scores.values[0] - scores.values[1] > 1e-3 and scores.indices[0] != image
            tokens.append(scores.indices[0].item())
            logprobs.append(round(scores.values[0].item(), 7))
            ids.append(tokens[-1])
        turns.append(dict(append=append, pictures=of, tokens=tokens, logprobs=logprobs))
    (folder / "conversations.json").write_text(json.dumps(dict(shown=shown, turns=turns)) + "\n")
    print(name, total.item())
