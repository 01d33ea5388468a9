"""Records what PyTorch does in one forward and backward of small transformers: every ATen op that launches a kernel,
with shapes, dtypes and the bytes alive after it. Needs PyTorch 2.7.1 and nothing else: tensors are fake, no memory is
allocated and nothing is computed. Where PyTorch finds no CUDA driver, autograd needs a device guard that does nothing.

    python3 record.py OUTPUT_FOLDER
"""
import contextlib
import math
import os
import sys
import weakref

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

for name in ("kaiming_uniform_", "uniform_", "normal_", "ones_", "zeros_"):
    setattr(nn.init, name, lambda tensor, *args, **kwargs: tensor)


class Config:
    def __init__(self, name, **kwargs):
        self.name = name
        self.layers, self.hidden, self.heads, self.kv_heads, self.ffn = 2, 768, 12, 12, 3072
        self.vocab, self.positions, self.sequence, self.batch = 50257, 2048, 512, 4
        self.dropout, self.fused, self.llama, self.dtype, self.amp = 0.1, False, False, torch.float32, None
        self.__dict__.update(kwargs)
        self.head_dim = self.hidden // self.heads


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        dtype = x.dtype
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * x.to(dtype)


def rotate_half(x):
    return torch.cat((-x[..., x.shape[-1] // 2:], x[..., : x.shape[-1] // 2]), dim=-1)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        bias = not c.llama
        kv = c.kv_heads * c.head_dim
        if c.fused:
            self.qkv = nn.Linear(c.hidden, c.hidden + 2 * kv, bias=bias)
        else:
            self.q, self.k, self.v = (nn.Linear(c.hidden, w, bias=bias) for w in (c.hidden, kv, kv))
        self.proj = nn.Linear(c.hidden, c.hidden, bias=bias)
        self.attention_dropout, self.residual_dropout = nn.Dropout(c.dropout), nn.Dropout(c.dropout)
        self.register_buffer("mask", torch.tril(torch.ones(c.positions, c.positions)).view(1, 1, c.positions, -1))

    def forward(self, x, rotary):
        c = self.c
        batch, length, width = x.shape
        q, k, v = self.qkv(x).split(width, dim=2) if c.fused else (self.q(x), self.k(x), self.v(x))
        q, k, v = (t.view(batch, length, -1, c.head_dim).transpose(1, 2) for t in (q, k, v))
        if rotary is not None:
            cos, sin = rotary
            q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        if c.kv_heads != c.heads:
            repeat = c.heads // c.kv_heads
            k, v = (t.unsqueeze(2).expand(batch, c.kv_heads, repeat, length, c.head_dim).reshape(
                batch, c.heads, length, c.head_dim) for t in (k, v))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(c.head_dim))
        scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
        scores = F.softmax(scores, dim=-1)
        scores = self.attention_dropout(scores)
        y = (scores @ v).transpose(1, 2).contiguous().view(batch, length, width)
        return self.residual_dropout(self.proj(y))


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        bias = not c.llama
        if c.llama:
            self.gate, self.up = nn.Linear(c.hidden, c.ffn, bias=bias), nn.Linear(c.hidden, c.ffn, bias=bias)
        else:
            self.fc1 = nn.Linear(c.hidden, c.ffn, bias=bias)
        self.down = nn.Linear(c.ffn, c.hidden, bias=bias)
        self.dropout = nn.Dropout(c.dropout)

    def forward(self, x):
        h = F.silu(self.gate(x)) * self.up(x) if self.c.llama else F.gelu(self.fc1(x))
        return self.dropout(self.down(h))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        norm = RMSNorm if c.llama else nn.LayerNorm
        self.norm1, self.attention, self.norm2, self.mlp = norm(c.hidden), Attention(c), norm(c.hidden), Mlp(c)

    def forward(self, x, rotary):
        x = x + self.attention(self.norm1(x), rotary)
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.token = nn.Embedding(c.vocab, c.hidden)
        if not c.llama:
            self.position = nn.Embedding(c.positions, c.hidden)
        self.dropout = nn.Dropout(c.dropout)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.layers))
        self.norm = (RMSNorm if c.llama else nn.LayerNorm)(c.hidden)
        self.head = nn.Linear(c.hidden, c.vocab, bias=False)
        if not c.llama:
            self.head.weight = self.token.weight

    def forward(self, tokens, targets, rotary):
        x = self.token(tokens)
        if not self.c.llama:
            x = x + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        x = self.dropout(x)
        for layer in self.layers:
            x = layer(x, rotary)
        logits = self.head(self.norm(x))
        if self.c.amp is None:
            logits = logits.float()
        return F.cross_entropy(logits.view(-1, self.c.vocab), targets.view(-1))


class Recorder(TorchDispatchMode):
    # No kernel: they make views.
    VIEWS = {"view", "_unsafe_view", "detach", "transpose", "expand", "slice", "split", "unsqueeze", "squeeze", "t",
             "alias", "select", "prim.device"}

    def __init__(self):
        super().__init__()
        self.live, self.alive, self.rows, self.phase = {}, 0, [], None

    def gone(self, key):
        self.alive -= self.live.pop(key)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        flat = lambda xs: [t for x in xs for t in (x if isinstance(x, (list, tuple)) else [x]) if isinstance(t, torch.Tensor)]
        outputs = flat([result])
        for t in outputs:
            storage = t.untyped_storage()
            if storage._cdata not in self.live and t.device.type == "cuda":
                self.live[storage._cdata] = storage.nbytes()
                self.alive += storage.nbytes()
                weakref.finalize(storage, self.gone, storage._cdata)
        name = str(function).replace("aten.", "").rsplit(".", 1)[0]
        if self.phase and name not in self.VIEWS and "device" not in str(function):
            shape = lambda t: str(t.dtype)[6:] + "x".join([""] + [str(n) for n in t.shape])
            self.rows.append([self.phase, name, " ".join(map(shape, flat(args))), " ".join(map(shape, outputs)), self.alive])
        return result


def record(c, folder):
    with FakeTensorMode(), Recorder() as recorder:
        with torch.device("cuda"):
            model = Model(c).to(c.dtype)
            tokens, targets = (torch.zeros(c.batch, c.sequence, dtype=torch.long) for _ in range(2))
            rotary = None
            if c.llama:
                rotary = tuple(torch.zeros(1, 1, c.sequence, c.head_dim, dtype=c.amp or c.dtype) for _ in range(2))
        fixed = recorder.alive
        recorder.phase = "forward"
        with autocast(c.amp) if c.amp else contextlib.nullcontext():
            loss = model(tokens, targets, rotary)
        recorder.phase = "backward"
        (loss * 65536.0 if c.amp == torch.float16 else loss).backward()
        recorder.phase = None
    with open(os.path.join(folder, c.name + ".csv"), "w") as out:
        out.write("phase,op,inputs,outputs,alive_bytes\n")
        for phase, op, inputs, outputs, alive in recorder.rows:
            out.write(f"{phase},{op},{inputs},{outputs},{alive - fixed}\n")


@contextlib.contextmanager
def autocast(dtype):
    available = torch.cuda.is_available
    torch.cuda.is_available = lambda: True
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    supported, torch.cuda.is_bf16_supported = torch.cuda.is_bf16_supported, lambda *a, **k: True
    context = torch.autocast("cuda", dtype=dtype)
    torch.cuda.is_available, torch.cuda.is_bf16_supported = available, supported
    with context:
        yield


if __name__ == "__main__":
    small = dict(llama=True, hidden=512, heads=8, kv_heads=2, ffn=1376, vocab=8000, sequence=256, dropout=0.0)
    for config in (
        Config("reference_fp32"),
        Config("reference_fp16_amp", amp=torch.float16),
        Config("reference_bf16_amp", amp=torch.bfloat16),
        Config("gpt2_fp32", fused=True, positions=1024),
        Config("gpt2_fp16_amp", fused=True, positions=1024, amp=torch.float16),
        Config("gpt2_bf16", fused=True, positions=1024, dtype=torch.bfloat16),
        Config("llama_fp32", **small),
        Config("llama_bf16_amp", **small, amp=torch.bfloat16),
        Config("llama_bf16", **small, dtype=torch.bfloat16),
    ):
        record(config, sys.argv[1])
