"""A Qwen2 decoder for training in PyTorch, handwritten because the model-independent code of transformers does more
work per token. It has one product for q, k and v, one product for gate and up, and fused attention with grouped
heads. With adapters, every linear layer has its own pair of rank `lora_rank` (alpha twice the rank) as in PEFT's
all-linear. The first factors of a joined product form one matrix, and all other weights are frozen. Shapes:
ids [rows, length] -> hidden states [rows, length, hidden]."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

LORA_SCALE = 2.0
EPS = 1e-6


class Linear(nn.Module):
    """One product for several layers with the same input; `outs` are the layers' output widths."""

    def __init__(self, width, outs, bias, rank, dtype):
        super().__init__()
        self.outs, self.rank = list(outs), rank
        self.weight = nn.Parameter(torch.empty(sum(outs), width, dtype=dtype).normal_(std=0.02), requires_grad=not rank)
        self.bias = nn.Parameter(torch.zeros(sum(outs), dtype=dtype), requires_grad=not rank) if bias else None
        if rank:
            self.a = nn.Parameter(torch.randn(len(outs) * rank, width) * width**-0.5)
            self.b = nn.ParameterList(nn.Parameter(torch.randn(out, rank) * 1e-3) for out in outs)

    def forward(self, x):
        y = F.linear(x, self.weight, self.bias)
        if not self.rank:
            return y
        parts = F.linear(x, self.a.to(x.dtype)).split(self.rank, -1)
        wide = [F.linear(part, b.to(x.dtype)) for part, b in zip(parts, self.b)]
        return torch.add(y, wide[0] if len(wide) == 1 else torch.cat(wide, -1), alpha=LORA_SCALE)

    @torch.no_grad()
    def merged(self):
        """A copy of the weight merged with its adapters, [out, in]."""
        if not self.rank:
            return self.weight.detach().clone()
        parts = zip(self.a.split(self.rank), self.b)
        return self.weight + LORA_SCALE * torch.cat([b @ a for a, b in parts])


class Layer(nn.Module):
    def __init__(self, s, dtype):
        super().__init__()
        hidden, inner, rank = s["hidden"], s["intermediate"], s["lora_rank"]
        self.heads, self.kv_heads, self.size = s["heads"], s["kv_heads"], s["head_size"]
        wide, narrow = self.heads * self.size, self.kv_heads * self.size
        self.norm1, self.norm2 = (nn.RMSNorm(hidden, EPS, dtype=dtype).requires_grad_(not rank) for _ in range(2))
        self.qkv = Linear(hidden, (wide, narrow, narrow), True, rank, dtype)
        self.out = Linear(wide, (hidden,), False, rank, dtype)
        self.gate_up = Linear(hidden, (inner, inner), False, rank, dtype)
        self.down = Linear(inner, (hidden,), False, rank, dtype)

    def forward(self, x, cos, sin):
        rows, length, _ = x.shape
        heads = self.qkv(self.norm1(x)).view(rows, length, -1, self.size).transpose(1, 2)
        q, k, v = heads.split((self.heads, self.kv_heads, self.kv_heads), 1)
        y = F.scaled_dot_product_attention(rotary(q, cos, sin), rotary(k, cos, sin), v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).reshape(rows, length, -1))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Decoder(nn.Module):
    def __init__(self, s):
        super().__init__()
        dtype = getattr(torch, s["base_dtype"])
        rank = s["lora_rank"]
        self.checkpointing = False
        self.embed = nn.Parameter(
            torch.empty(s["vocab"], s["hidden"], dtype=dtype).normal_(std=0.02), requires_grad=not rank
        )
        self.layers = nn.ModuleList(Layer(s, dtype) for _ in range(s["layers"]))
        self.norm = nn.RMSNorm(s["hidden"], EPS, dtype=dtype).requires_grad_(not rank)
        cos, sin = rotary_tables(s["head_size"], s["rope_theta"], 1024, dtype)
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)

    def forward(self, ids):
        x = F.embedding(ids, self.embed)
        cos, sin = self.cos[: ids.shape[1]], self.sin[: ids.shape[1]]
        for layer in self.layers:
            x = checkpoint(layer, x, cos, sin, use_reentrant=False) if self.checkpointing else layer(x, cos, sin)
        return self.norm(x)

    def trained(self):
        return [p for p in self.parameters() if p.requires_grad]


def rotary_tables(size, theta, positions, dtype=torch.float32):
    angle = torch.arange(positions)[:, None] * theta ** (-torch.arange(size // 2) / (size // 2))
    return angle.cos().repeat(1, 2).to(dtype), angle.sin().repeat(1, 2).to(dtype)


def rotary(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


def decoder(s):
    """A decoder with random weights and the sizes in the settings."""
    torch.manual_seed(1)
    return Decoder(s)
