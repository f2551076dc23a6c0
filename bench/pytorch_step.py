"""Updates of a LLaMA in eager PyTorch, timed: what bench/compare_pytorch.sh compares zeroth bench with.

    python3 bench/pytorch_step.py CONFIG.json --mode lora|full --dtype bf16|fp32 --rows 4 --tokens 256

Written as a careful user of PyTorch would: weights in the type that computes, fused loss over the flattened
logits, AdamW over the trained tensors, gradients set to None. Prints one JSON object.
"""
import argparse
import json
import math
import os
import resource
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


class Linear(nn.Module):
    """x W^T, and with a rank the adapter's scale * x A^T B^T beside it."""

    def __init__(self, inputs, outputs, rank, dtype):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, dtype=torch.float32).mul_(0.02).to(dtype),
                                   requires_grad=rank == 0)
        self.rank = rank
        if rank > 0:
            self.a = nn.Parameter(torch.empty(rank, inputs).uniform_(-inputs**-0.5, inputs**-0.5).to(dtype))
            self.b = nn.Parameter(torch.zeros(outputs, rank, dtype=dtype))

    def forward(self, x):
        y = F.linear(x, self.weight)
        return y if self.rank == 0 else y + F.linear(F.linear(x, self.a), self.b) * 2.0


class Norm(nn.Module):
    def __init__(self, size, epsilon, dtype, trains):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size, dtype=dtype), requires_grad=trains)
        self.epsilon = epsilon

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.epsilon)
        return self.weight * wide.to(x.dtype)


def turned(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


def builtin_attention():
    """PyTorch's own, where this release has one."""
    return getattr(F, "scaled_dot_product_attention", None)


class Block(nn.Module):
    def __init__(self, c, rank, dtype, attention):
        super().__init__()
        size, heads = c["hidden_size"], c["num_attention_heads"]
        self.heads, self.key_heads = heads, c.get("num_key_value_heads", heads)
        self.head_dim = c.get("head_dim") or size // heads
        self.attention = attention
        trains = rank == 0
        make = lambda i, o: Linear(i, o, rank, dtype)
        self.before = Norm(size, c["rms_norm_eps"], dtype, trains)
        self.q = make(size, heads * self.head_dim)
        self.k = make(size, self.key_heads * self.head_dim)
        self.v = make(size, self.key_heads * self.head_dim)
        self.o = make(heads * self.head_dim, size)
        self.behind = Norm(size, c["rms_norm_eps"], dtype, trains)
        self.gate = make(size, c["intermediate_size"])
        self.up = make(size, c["intermediate_size"])
        self.down = make(c["intermediate_size"], size)

    def attend(self, q, k, v, mask):
        groups = self.heads // self.key_heads
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        if self.attention == "builtin":
            return builtin_attention()(q, k, v, is_causal=True)
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.head_dim) + mask
        return torch.softmax(scores.float(), -1).to(q.dtype) @ v

    def forward(self, x, cos, sin, mask):
        rows, tokens, _ = x.shape
        y = self.before(x)
        split = lambda t, n: t.view(rows, tokens, n, self.head_dim).transpose(1, 2)
        q = turned(split(self.q(y), self.heads), cos, sin)
        k = turned(split(self.k(y), self.key_heads), cos, sin)
        v = split(self.v(y), self.key_heads)
        x = x + self.o(self.attend(q, k, v, mask).transpose(1, 2).reshape(rows, tokens, -1))
        y = self.behind(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, c, rank, dtype, attention):
        super().__init__()
        trains = rank == 0
        self.embedding = nn.Embedding(c["vocab_size"], c["hidden_size"], dtype=dtype)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.embedding.weight.requires_grad_(trains)
        self.blocks = nn.ModuleList(Block(c, rank, dtype, attention) for _ in range(c["num_hidden_layers"]))
        self.norm = Norm(c["hidden_size"], c["rms_norm_eps"], dtype, trains)
        self.head = None
        if not c.get("tie_word_embeddings", False):
            self.head = nn.Parameter(torch.randn(c["vocab_size"], c["hidden_size"]).mul_(0.02).to(dtype),
                                     requires_grad=trains)
        self.theta = c.get("rope_theta", 10000.0)

    def forward(self, ids):
        x = self.embedding(ids)
        dim = self.blocks[0].head_dim
        speeds = self.theta ** (-torch.arange(0, dim, 2).float() / dim)
        angles = torch.outer(torch.arange(ids.shape[1]).float(), speeds).repeat(1, 2)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        mask = torch.full((ids.shape[1],) * 2, float("-inf"), dtype=x.dtype).triu(1)
        for block in self.blocks:
            x = block(x, cos, sin, mask)
        head = self.embedding.weight if self.head is None else self.head
        logits = F.linear(self.norm(x)[:, :-1], head)
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]).float(), ids[:, 1:].reshape(-1))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("config")
    options.add_argument("--mode", choices=["lora", "full"], default="lora")
    options.add_argument("--dtype", choices=["bf16", "fp32"], default="bf16")
    options.add_argument("--rank", type=int, default=16)
    options.add_argument("--rows", type=int, default=4)
    options.add_argument("--tokens", type=int, default=256)
    options.add_argument("--updates", type=int, default=3)
    options.add_argument("--attention", choices=["naive", "builtin"], default="naive")
    options.add_argument("--threads", type=int, default=0)
    given = options.parse_args()
    if given.attention == "builtin" and builtin_attention() is None:
        print(json.dumps({"error": f"PyTorch {torch.__version__} has no attention of its own"}))
        return
    torch.set_num_threads(given.threads or os.cpu_count())
    torch.manual_seed(1)
    with open(given.config) as file:
        config = json.load(file)
    dtype = torch.bfloat16 if given.dtype == "bf16" else torch.float32
    model = Llama(config, given.rank if given.mode == "lora" else 0, dtype, given.attention)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    ids = torch.randint(0, config["vocab_size"], (given.rows, given.tokens))

    def update():
        begin = time.perf_counter()
        loss = model(ids)
        loss.backward()
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return time.perf_counter() - begin

    update()  # warm-up
    seconds = statistics.median(update() for _ in range(given.updates))
    print(json.dumps({"tokens_per_second": given.rows * given.tokens / seconds, "seconds_per_update": seconds,
                      "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                      "torch": torch.__version__, "threads": torch.get_num_threads()}))


main()
