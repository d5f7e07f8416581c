"""Rotary frequencies of long-context models by transformers, with the cosines at a few positions.

Run: python test/golden/make/rotary.py  (needs torch, transformers)
Writes test/golden/rotary/frequencies.json: for each case theta and scaling as in config.json, the inverse frequencies
[32], the scale, and cosines and sines at `positions`.
"""
import json
import pathlib
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

folder = pathlib.Path(__file__).resolve().parents[1] / "rotary"
shape = dict(hidden_size=256, num_attention_heads=4, max_position_embeddings=131072)
positions = [0, 1, 17, 4000, 32000]
llama3 = dict(rope_type="llama3", low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)
yarn = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32768)
cases = [
    (1e6, dict(rope_type="default")), (1e4, dict(rope_type="linear", factor=2.5)),
    (5e5, dict(**llama3, factor=8.0)), (5e5, dict(**llama3, factor=32.0)),
    (1e6, yarn), (1e6, dict(**yarn, attention_factor=0.7, truncate=False, beta_fast=16.0, beta_slow=2.0)),
    (1e4, dict(rope_type="yarn", factor=32.0, original_max_position_embeddings=4096, mscale=0.7, mscale_all_dim=1.0)),
]
golden = []
for theta, scaling in cases:
    rotary = LlamaRotaryEmbedding(LlamaConfig(**shape, rope_theta=theta, rope_scaling=dict(scaling)))
    cos, sin = rotary(torch.zeros(1), torch.tensor([positions]))
    golden.append({"theta": theta, "scaling": scaling, "inverse": rotary.inv_freq.tolist(), "scale": rotary.attention_scaling,
                   "cos": cos[0, :, :32].tolist(), "sin": sin[0, :, :32].tolist()})
folder.mkdir(exist_ok=True)
rows = ",\n".join(json.dumps(case) for case in golden)
(folder / "frequencies.json").write_text(f'{{"positions": {positions}, "cases": [\n{rows}\n]}}\n')
