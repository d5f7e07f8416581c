"""Sampling as most do it in PyTorch: `generate` of transformers with its key-value cache, on a Qwen2 with random weights in float32. Every
row has its prompt computed; a batch goes on until its longest row has ended."""
import torch

from rollout import until_stop


def generate(s, how):
    """`how`: `cache`, the implementation of the key-value cache. Units are sampled tokens."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(1)
    names = dict(vocab_size="vocab", hidden_size="hidden", intermediate_size="intermediate", num_hidden_layers="layers",
                 num_attention_heads="heads", num_key_value_heads="kv_heads", head_dim="head_size")
    config = Qwen2Config(**{name: s[key] for name, key in names.items()}, tie_word_embeddings=True, attn_implementation="sdpa",
                         rope_parameters=dict(rope_type="default", rope_theta=s["rope_theta"]))
    model = Qwen2ForCausalLM(config).float().eval()
    together = s["at_once"] // s["group_size"]
    ends = dict(eos_token_id=list(range(s["stop_ids"]))) if s["stop_ids"] else dict(eos_token_id=None)
    options = dict(do_sample=True, temperature=1.0, top_k=0, top_p=1.0, max_new_tokens=s["tokens"], pad_token_id=0, **ends)

    @torch.inference_mode()
    def run():
        sampled = 0
        for _ in range(s["groups"] // together):
            ids = torch.randint(s["vocab"], (together, s["prompt"])).repeat_interleave(s["group_size"], 0)
            out = model.generate(ids, attention_mask=torch.ones_like(ids), cache_implementation=how["cache"], **options)
            sampled += until_stop(out[:, s["prompt"] :], s["stop_ids"])
        return sampled

    return run
