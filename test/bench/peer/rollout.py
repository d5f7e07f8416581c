"""Sampling in PyTorch: a decoder for inference only, with a static KV cache that persists between turns. Adapters are
merged into the weights, and weights are packed for oneDNN once (about twice as fast as MKL's product at 32 rows).
Prompts are computed once per group. Sampling inverts the distribution function in two levels, which is exact;
torch.multinomial draws a random number for every token of the vocabulary and takes ten times as long at 151,936."""
import torch
import torch.nn.functional as F

from decoder import EPS, decoder, rotary, rotary_tables

BLOCK = 128


class Sampler:
    """All rows have the same length at all times."""

    def __init__(self, model, s, rows, positions, compiled=False, packed=True):
        self.s, self.rows, self.packed = s, rows, packed
        self.head = self.lay_out(model.embed.detach())
        self.cos, self.sin = rotary_tables(s["head_size"], s["rope_theta"], positions, model.embed.dtype)
        shape = (s["layers"], 2, rows, s["kv_heads"], positions, s["head_size"])
        self.cache = torch.zeros(shape, dtype=model.embed.dtype)
        self.model = model
        self.length = 0
        self.refresh()
        self.next = self.step
        if compiled:
            torch.fx.experimental._config.use_duck_shape = False  # otherwise a position that equals a width counts as the same symbol
            self.next = torch.compile(self.step, dynamic=True)

    def refresh(self):
        """Copies the model's weights after training."""
        model_dtype = self.model.embed.dtype
        pack = lambda linear: (self.lay_out(linear.merged().to(model_dtype)), None if linear.bias is None else linear.bias.detach())
        self.layers = [
            (l.norm1.weight.detach(), pack(l.qkv), pack(l.out), l.norm2.weight.detach(), pack(l.gate_up), pack(l.down))
            for l in self.model.layers
        ]

    def lay_out(self, weight):
        return torch.ops.mkldnn._reorder_linear_weight(weight, self.rows) if self.packed else weight

    def product(self, x, weight, bias=None):
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], None) if self.packed else F.linear(x, weight, bias)

    def advance(self, ids, start, cache):
        """Hidden states [rows, hidden] at the last position of `ids` [rows, t]; `start` is the position of the first
        ids in the cache, which has the same rows."""
        s = self.s
        (rows, t), size, kv = ids.shape, s["head_size"], s["kv_heads"]
        group, end = s["heads"] // kv, start + t
        cos, sin = self.cos[start:end], self.sin[start:end]
        x = F.embedding(ids, self.model.embed)
        # The heads of a group become additional queries of their key-value head, so keys and values are not repeated.
        seen = torch.ones(t, end, dtype=torch.bool).tril(start).repeat(group, 1) if t > 1 else None
        for (norm1, qkv, out, norm2, gate_up, down), (keys, values) in zip(self.layers, cache):
            y = self.product(F.rms_norm(x, (s["hidden"],), norm1, EPS), *qkv).view(rows, t, -1, size).transpose(1, 2)
            q, k, v = y.split((s["heads"], kv, kv), 1)
            keys[:, :, start:end], values[:, :, start:end] = rotary(k, cos, sin), v
            q = rotary(q, cos, sin).reshape(rows, kv, group * t, size)
            y = F.scaled_dot_product_attention(q, keys[:, :, :end], values[:, :, :end], attn_mask=seen)
            y = y.reshape(rows, s["heads"], t, size).transpose(1, 2).reshape(rows, t, -1)
            x = x + self.product(y, *out)
            gate, up = self.product(F.rms_norm(x, (s["hidden"],), norm2, EPS), *gate_up).chunk(2, -1)
            x = x + self.product(F.silu(gate) * up, *down)
        return F.rms_norm(x[:, -1], (s["hidden"],), self.model.norm.weight, EPS)

    def draw(self, x, uniform):
        """Tokens [rows, 1] and their log-probs at temperature 1, from hidden states [rows, hidden] and uniforms
        [rows, 1]."""
        logp = self.product(x, self.head).float().log_softmax(-1)
        p = logp.exp().view(self.rows, -1, BLOCK)
        blocks = p.sum(-1)
        until = blocks.cumsum(-1)
        aim = uniform * until[:, -1:]
        block = torch.searchsorted(until, aim).clamp_max(blocks.shape[1] - 1)
        within = p.gather(1, block[..., None].expand(-1, 1, BLOCK))[:, 0].cumsum(-1)
        token = torch.searchsorted(within, aim - until.gather(1, block) + blocks.gather(1, block)).clamp_max(BLOCK - 1)
        token = block * BLOCK + token
        return token, logp.gather(1, token)

    def step(self, ids, start, uniform):
        return self.draw(self.advance(ids, start, self.cache), uniform)

    @torch.inference_mode()
    def prompt(self, prompts):
        """Resets the cache with prompts [groups, t]; all groups have equally many rows. Returns the hidden states to
        sample from."""
        groups, self.length = prompts.shape
        copies = self.rows // groups
        x = self.advance(prompts, 0, self.cache[:, :, :groups])
        if copies > 1:
            shared = self.cache[:, :, :groups, :, : self.length].repeat_interleave(copies, 2)
            self.cache[:, :, :, :, : self.length] = shared
        return x.repeat_interleave(copies, 0)

    @torch.inference_mode()
    def turn(self, first, tokens, stop_ids=0):
        """Samples `tokens` per row, or fewer if every row has sampled an id below `stop_ids`. `first` are hidden states,
        or ids [rows, t] to append before sampling. Returns ids and log-probs, [rows, sampled]."""
        uniform = lambda: torch.rand(self.rows, 1)
        if first.is_floating_point():
            drawn = [self.draw(first, uniform())]
        else:
            drawn = [self.step(first, self.length, uniform())]
            self.length += first.shape[1]
        going = drawn[0][0] >= stop_ids
        for _ in range(tokens - 1):
            if stop_ids and not going.any():
                break
            drawn.append(self.next(drawn[-1][0], self.length, uniform()))
            going &= drawn[-1][0] >= stop_ids
            self.length += 1
        ids, logp = zip(*drawn)
        return torch.cat(ids, 1), torch.cat(logp, 1)


def rollout(s, how):
    """`how`: the keyword arguments of Sampler. Batches contain complete groups and end with their longest row. Units
    are sampled tokens."""
    rows, together = s["at_once"], s["at_once"] // s["group_size"]
    model = decoder(s)
    sampler = Sampler(model, s, rows, s["prompt"] + s["tokens"], **how)

    def run():
        if not s["frozen"]:
            sampler.refresh()
        sampled = 0
        for _ in range(s["groups"] // together):
            first = sampler.prompt(torch.randint(s["vocab"], (together, s["prompt"])))
            ids, logp = sampler.turn(first, s["tokens"], s["stop_ids"])
            ids.tolist(), logp.tolist()
            sampled += until_stop(ids, s["stop_ids"])
        return sampled

    return run


def until_stop(ids, stop_ids):
    """Number of tokens in ids [rows, t] up to and including the first id of each row below `stop_ids`."""
    return int((((ids < stop_ids).cumsum(1) - (ids < stop_ids).int()) == 0).sum())
