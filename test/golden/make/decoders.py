"""Golden values of small random decoders, made with PyTorch and transformers.

Run: python test/golden/make/decoders.py  (needs torch, transformers, safetensors)
Writes test/golden/{qwen2,llama,qwen3,llama3,qwen2-yarn}/: config.json and the weights as saved by transformers (in
half precision or shards according to `storage`), and golden.safetensors with inputs, logits, log-probs of the next
tokens, the gradient of a weighted policy loss for every parameter, and the parameters after one AdamW step. All
values are computed in single precision from the stored weights.
"""
import pathlib
import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

here = pathlib.Path(__file__).resolve().parents[1]
common = dict(num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64, rms_norm_eps=1e-6, use_cache=False,
              attn_implementation="eager")
shape = dict(vocab_size=61, hidden_size=24, intermediate_size=40, **common)
larger = dict(vocab_size=97, hidden_size=32, intermediate_size=48, **common)
# The wavelengths of 10000^(-2i/16) are 6, 20, 63, 199, ... positions: the scaling keeps some, blends some and stretches some.
llama3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
yarn = dict(type="yarn", factor=4.0, original_max_position_embeddings=16)
families = {
    "qwen2": (Qwen2ForCausalLM, Qwen2Config(**shape, num_key_value_heads=2, tie_word_embeddings=True)),
    "llama": (LlamaForCausalLM, LlamaConfig(**shape, num_key_value_heads=1, tie_word_embeddings=False)),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config(**larger, num_key_value_heads=2, head_dim=16, tie_word_embeddings=True)),
    "llama3": (LlamaForCausalLM, LlamaConfig(**larger, num_key_value_heads=2, head_dim=16, tie_word_embeddings=False,
                                             attention_bias=True, mlp_bias=True, rope_scaling=llama3)),
    "qwen2-yarn": (Qwen2ForCausalLM, Qwen2Config(**larger, num_key_value_heads=1, tie_word_embeddings=True, rope_theta=1e4,
                                                 rope_scaling=yarn)),
}
storage = {"qwen3": (torch.bfloat16, "20KB"), "llama3": (torch.bfloat16, "1GB"), "qwen2-yarn": (torch.float16, "1GB")}
length = {"qwen2": 11, "llama": 11, "qwen3": 16, "llama3": 32, "qwen2-yarn": 32}
for name, (cls, config) in families.items():
    torch.manual_seed(7)
    config.initializer_range = 0.2
    model = cls(config).float().eval()
    for parameter_name, p in model.named_parameters():
        if "norm" in parameter_name or parameter_name.endswith("bias"):
            p.data += 0.3 * torch.randn_like(p)
    folder = here / name
    dtype, shard = storage.get(name, (torch.float32, "1GB"))
    model.to(dtype).save_pretrained(folder, max_shard_size=shard)
    if dtype != torch.float32:  # read back, because .to() rounds the rotary frequencies too
        model = cls.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    b, t = 3, length[name]
    ids = torch.randint(0, config.vocab_size, (b, t))
    logits = model(ids).logits
    logprobs = torch.log_softmax(logits[:, :-1] / 0.7, -1)
    lp = logprobs.gather(-1, ids[:, 1:, None])[..., 0]
    entropy = -(logprobs.exp() * logprobs).sum(-1)
    old = lp.detach() + 0.3 * torch.randn_like(lp)
    ref = lp.detach() + 0.3 * torch.randn_like(lp)
    advantage = torch.randn_like(lp)
    weight = torch.rand_like(lp) / (b * (t - 1))
    ratio = (lp - old).clamp(-20, 20).exp()
    l1, l2 = -advantage * ratio, -advantage * ratio.clamp(1 - 0.2, 1 + 0.28)
    m = torch.maximum(l1, l2)
    pg = torch.where(advantage < 0, torch.minimum(m, -advantage * 3.0), m)
    d = ref - lp
    kl = (d.clamp(-20, 20).exp() - d - 1).clamp(-10, 10)
    loss = (weight * pg).sum() - 0.01 * (weight * entropy).sum() + 0.05 * (weight * kl).sum()
    loss.backward()
    out = dict(ids=ids, logits=logits, logprobs=lp, entropy=entropy, old=old, ref=ref, advantage=advantage, weight=weight,
               loss=torch.stack([(weight * pg).sum(), (weight * entropy).sum(), (weight * kl).sum()]))
    out = {k: v.detach().clone().float().contiguous() for k, v in out.items()}
    for parameter_name, p in model.named_parameters():
        out["grad." + parameter_name] = p.grad.clone()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05)
    optimizer.step()
    out["norm"] = norm.reshape(1)
    for parameter_name, p in model.named_parameters():
        out["stepped." + parameter_name] = p.detach().clone()
    save_file(out, folder / "golden.safetensors")
    print(name, loss.item(), norm.item())
