"""A small language model of the Llama family over bytes: RMSNorm, rotary positions, SwiGLU."""

import dataclasses
import hashlib
import math

import torch
from torch import nn
from torch.nn import functional

VOCABULARY = 256  # a token is a byte


@dataclasses.dataclass(frozen=True)
class Shape:
    width: int
    layers: int
    heads: int
    hidden: int
    context: int

    @staticmethod
    def from_dict(fields):
        return Shape(**{field.name: int(fields[field.name])
                        for field in dataclasses.fields(Shape)})


SHAPES = {  # parameters: 34 k, 0.2 M, 0.87 M, 3.3 M
    "tiny": Shape(width=32, layers=2, heads=2, hidden=88, context=64),
    "small": Shape(width=64, layers=4, heads=4, hidden=176, context=128),
    "medium": Shape(width=128, layers=4, heads=4, hidden=352, context=128),
    "large": Shape(width=256, layers=4, heads=8, hidden=704, context=256),
}


class Block(nn.Module):
    def __init__(self, shape, dropout):
        super().__init__()
        self.heads = shape.heads
        self.norm_attention = nn.Parameter(torch.ones(shape.width))
        self.qkv = nn.Linear(shape.width, 3 * shape.width, bias=False)
        self.out = nn.Linear(shape.width, shape.width, bias=False)
        self.norm_hidden = nn.Parameter(torch.ones(shape.width))
        self.gate_up = nn.Linear(shape.width, 2 * shape.hidden, bias=False)
        self.down = nn.Linear(shape.hidden, shape.width, bias=False)
        self.dropout = dropout

    def project(self, x, cos, sin):
        """Queries, keys and values as [batch, heads, time, head width], positions applied."""
        batch, time, width = x.shape
        qkv = self.qkv(rms_norm(x, self.norm_attention))
        q, k, v = qkv.view(batch, time, 3, self.heads, width // self.heads).unbind(2)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        return rotate(q, cos, sin), rotate(k, cos, sin), v

    def finish(self, x, attended):
        """The rest of the block once attention has been computed."""
        batch, time, width = x.shape
        attended = self.out(attended.transpose(1, 2).reshape(batch, time, width))
        x = x + functional.dropout(attended, self.dropout, self.training)
        gate, up = self.gate_up(rms_norm(x, self.norm_hidden)).chunk(2, dim=-1)
        hidden = self.down(functional.silu(gate) * up)
        return x + functional.dropout(hidden, self.dropout, self.training)


class Model(nn.Module):
    def __init__(self, shape, dropout=0.0):
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(VOCABULARY, shape.width)
        self.blocks = nn.ModuleList(Block(shape, dropout) for _ in range(shape.layers))
        self.norm = nn.Parameter(torch.ones(shape.width))
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens):
        """Logits of the next token at every position; tokens is [batch, time]."""
        return self.run(tokens)[0]

    def run(self, tokens):
        """Logits, and each layer's keys and values, to go on from."""
        time = tokens.shape[1]
        cos, sin = rotation(self.shape, torch.arange(time))
        mask = torch.full((time, time), -math.inf).triu(1)
        x = self.embedding(tokens)
        caches = []
        for block in self.blocks:
            q, k, v = block.project(x, cos, sin)
            x = block.finish(x, attend(q, k, v, mask))
            caches.append((k, v))
        return self.logits(x), caches

    def logits(self, x):
        return rms_norm(x, self.norm) @ self.embedding.weight.T


def attend(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) + mask
    return scores.softmax(dim=-1) @ v


def rms_norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * weight


def rotation(shape, positions):
    """cos and sin of the rotary angles: [len(positions), head width / 2]."""
    half = shape.width // shape.heads // 2
    rates = 10000.0 ** (-torch.arange(half, dtype=torch.float32) / half)
    angles = positions.to(torch.float32)[:, None] * rates
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    left, right = x.chunk(2, dim=-1)
    return torch.cat((left * cos - right * sin, left * sin + right * cos), dim=-1)


def weights_hash(model):
    """SHA-256 over every weight's name and bytes: equal only when all bits are."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode() + b"\0" + tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()
