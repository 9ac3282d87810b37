"""A selective state-space model: a causal convolution, a scan as a Python loop, and steps with a cache in place."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.support.numbers import filled, integers


class RMSNorm(nn.Module):
    """Normalise by the root of the mean of squares."""

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class MambaBlock(nn.Module):
    """Gu and Dao, 2023, section 3.4."""

    def __init__(self, d_model, d_state=3, d_conv=3, expand=2, dt_min=0.01, dt_max=0.1):
        super().__init__()
        self.d_inner, self.d_state, self.dt_rank, self.d_conv = expand * d_model, d_state, 2, d_conv
        self.in_proj = nn.Linear(d_model, self.d_inner * 2, bias=False)
        self.conv1d = nn.Conv1d(
            self.d_inner, self.d_inner, bias=True, kernel_size=d_conv, groups=self.d_inner, padding=d_conv - 1
        )
        self.x_proj = nn.Linear(self.d_inner, self.dt_rank + self.d_state * 2, bias=False)
        self.dt_proj = nn.Linear(self.dt_rank, self.d_inner, bias=True)
        self.out_proj = nn.Linear(self.d_inner, d_model, bias=False)
        filled(self)
        A = torch.arange(1, self.d_state + 1, dtype=torch.float32).repeat(self.d_inner, 1)
        self.A_log = nn.Parameter(torch.log(A))
        self.A_log._no_weight_decay = True
        self.D = nn.Parameter(torch.ones(self.d_inner))
        self.D._no_weight_decay = True
        dt = torch.exp(torch.linspace(0, 1, self.d_inner) * (math.log(dt_max) - math.log(dt_min)) + math.log(dt_min))
        inv_dt = dt + torch.log(-torch.expm1(-dt))
        with torch.no_grad():
            self.dt_proj.bias.copy_(inv_dt)

    def forward(self, x):
        (_b, l, _d) = x.shape
        x_and_res = self.in_proj(x)
        (x, res) = x_and_res.split(split_size=[self.d_inner, self.d_inner], dim=-1)
        x = x.transpose(1, 2)
        x = self.conv1d(x)[:, :, :l]
        x = F.silu(x.transpose(1, 2))
        y = self.ssm(x)
        return self.out_proj(y * F.silu(res))

    def ssm(self, x):
        A = -torch.exp(self.A_log.float())
        x_dbl = self.x_proj(x)
        (delta, B, C) = x_dbl.split(split_size=[self.dt_rank, self.d_state, self.d_state], dim=-1)
        delta = F.softplus(self.dt_proj(delta))
        return self.selective_scan(x, delta, A, B, C, self.D.float())

    def selective_scan(self, u, delta, A, B, C, D):
        (b, l, d_in) = u.shape
        n = A.shape[1]
        deltaA = torch.exp(torch.einsum("bld,dn->bldn", delta, A))
        deltaB_u = torch.einsum("bld,bln,bld->bldn", delta, B, u)
        x = torch.zeros((b, d_in, n), device=deltaA.device)
        ys = []
        for i in range(l):
            x = deltaA[:, i] * x + deltaB_u[:, i]
            y = torch.einsum("bdn,bn->bd", x, C[:, i, :])
            ys.append(y)
        y = torch.stack(ys, dim=1)
        return y + u * D

    def step(self, x, conv_state, ssm_state):
        x, z = self.in_proj(x).chunk(2, dim=-1)
        conv_state.copy_(torch.roll(conv_state, shifts=-1, dims=-1))
        conv_state[:, :, -1] = x
        x = F.silu(torch.sum(conv_state * self.conv1d.weight.squeeze(1), dim=-1) + self.conv1d.bias)
        dt, B, C = torch.split(self.x_proj(x), [self.dt_rank, self.d_state, self.d_state], dim=-1)
        dt = F.softplus(F.linear(dt, self.dt_proj.weight, self.dt_proj.bias))
        dA = torch.exp(torch.einsum("bd,dn->bdn", dt, -torch.exp(self.A_log)))
        dB = torch.einsum("bd,bn->bdn", dt, B)
        ssm_state.copy_(ssm_state * dA + x.unsqueeze(-1) * dB)
        y = torch.einsum("bdn,bn->bd", ssm_state, C) + self.D * x
        return self.out_proj(y * F.silu(z))


class Mamba(nn.Module):
    """An embedding, blocks, and a head with the embedding's weights."""

    def __init__(self, vocab_size, d_model, n_layer):
        super().__init__()
        self.embedding = filled(nn.Embedding(vocab_size, d_model))
        self.layers = nn.ModuleList(
            nn.ModuleDict({"norm": RMSNorm(d_model), "mixer": MambaBlock(d_model)}) for _ in range(n_layer)
        )
        self.norm_f = RMSNorm(d_model)

    def forward(self, input_ids):
        x = self.embedding(input_ids)
        for layer in self.layers:
            x = layer["mixer"](layer["norm"](x)) + x
        return self.norm_f(x) @ self.embedding.weight.t()

    def step(self, token, cache):
        x = self.embedding(token)
        for layer, (conv_state, ssm_state) in zip(self.layers, cache):
            x = layer["mixer"].step(layer["norm"](x), conv_state, ssm_state) + x
        return self.norm_f(x) @ self.embedding.weight.t()


def main(compiled):
    model = Mamba(vocab_size=9, d_model=6, n_layer=1)
    decay = [p for p in model.parameters() if not getattr(p, "_no_weight_decay", False)]
    no_decay = [p for p in model.parameters() if getattr(p, "_no_weight_decay", False)]
    optimizer = torch.optim.AdamW([{"params": decay}, {"params": no_decay, "weight_decay": 0.0}], lr=1e-2)
    tokens = torch.from_numpy(integers(9, 3, 7))

    @compiled
    def train_step(tokens):
        optimizer.zero_grad(set_to_none=True)
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        return loss

    losses = [train_step(tokens).item() for _ in range(6)]
    blocks = [layer["mixer"] for layer in model.layers]
    cache = [(torch.zeros(1, b.d_inner, b.d_conv), torch.zeros(1, b.d_inner, b.d_state)) for b in blocks]

    @compiled
    def decode(token):
        with torch.no_grad():
            return model.step(token, cache).argmax(-1)

    token, generated = torch.zeros(1, dtype=torch.long), []
    for _ in range(6):
        token = decode(token)
        generated.append(token)
    return losses, {"model": model, "optimizer": optimizer, "generated": torch.cat(generated), "cache": cache}
