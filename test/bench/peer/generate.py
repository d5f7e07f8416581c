"""Sampling with `generate` of transformers and its KV cache, on a Qwen2 in float32. The prompt is computed for every
row, and again in each turn; a batch ends with its longest row."""
import torch

from rollout import until_stop


def qwen2(s):
    from transformers import Qwen2Config, Qwen2ForCausalLM

    names = dict(vocab_size="vocab", hidden_size="hidden", intermediate_size="intermediate", num_hidden_layers="layers",
                 num_attention_heads="heads", num_key_value_heads="kv_heads", head_dim="head_size")
    rope = dict(rope_type="default", rope_theta=s["rope_theta"])
    config = Qwen2Config(**{name: s[key] for name, key in names.items()}, tie_word_embeddings=True,
                         attn_implementation="sdpa", rope_parameters=rope)
    return Qwen2ForCausalLM(config).float().eval()


class GenerateSampler:
    """Samples with a copy of the trained model's weights, in which adapters are merged. `ids` are [rows, length]."""

    def __init__(self, model, s, rows, positions, cache="dynamic"):
        self.s, self.rows, self.cache, self.model = s, rows, cache, model
        self.copy = qwen2(s)
        self.refresh()

    @torch.no_grad()
    def refresh(self):
        own = self.copy.model
        own.embed_tokens.weight.copy_(self.model.embed)
        own.norm.weight.copy_(self.model.norm.weight)
        for to, source in zip(own.layers, self.model.layers):
            to.input_layernorm.weight.copy_(source.norm1.weight)
            to.post_attention_layernorm.weight.copy_(source.norm2.weight)
            attention, mlp = to.self_attn, to.mlp
            for layers, joined in (
                ((attention.q_proj, attention.k_proj, attention.v_proj), source.qkv),
                ((attention.o_proj,), source.out),
                ((mlp.gate_proj, mlp.up_proj), source.gate_up),
                ((mlp.down_proj,), source.down),
            ):
                for layer, weight in zip(layers, joined.merged().split(joined.outs)):
                    layer.weight.copy_(weight)
                if joined.bias is not None:
                    for layer, bias in zip(layers, joined.bias.split(joined.outs)):
                        layer.bias.copy_(bias)

    def prompt(self, prompts):
        self.ids = prompts.repeat_interleave(self.rows // prompts.shape[0], 0)
        return None

    @torch.inference_mode()
    def turn(self, first, tokens):
        """`first`: None, or ids [rows, t]; all except the first column are appended before sampling. Returns ids and
        log-probs, [rows, tokens]."""
        if first is not None:
            self.ids = torch.cat((self.ids, first[:, 1:]), 1)
        start = self.ids.shape[1]
        said = self.copy.generate(
            self.ids, attention_mask=torch.ones_like(self.ids), max_new_tokens=tokens, return_dict_in_generate=True,
            output_logits=True, cache_implementation=self.cache, **options(0),
        )
        self.ids = said.sequences
        drawn = self.ids[:, start:]
        chosen = [x.log_softmax(-1).gather(1, drawn[:, t : t + 1]) for t, x in enumerate(said.logits)]
        return drawn, torch.cat(chosen, 1)


def options(stop_ids):
    ends = list(range(stop_ids)) if stop_ids else None
    return dict(do_sample=True, temperature=1.0, top_k=0, top_p=1.0, pad_token_id=0, eos_token_id=ends)


def generate(s, how):
    """`how`: `cache`, the KV cache implementation. Units are sampled tokens."""
    torch.manual_seed(1)
    model = qwen2(s)
    together = s["at_once"] // s["group_size"]

    @torch.inference_mode()
    def run():
        sampled = 0
        for _ in range(s["groups"] // together):
            ids = torch.randint(s["vocab"], (together, s["prompt"])).repeat_interleave(s["group_size"], 0)
            out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=s["tokens"],
                                 cache_implementation=how["cache"], **options(s["stop_ids"]))
            sampled += until_stop(out[:, s["prompt"] :], s["stop_ids"])
        return sampled

    return run
