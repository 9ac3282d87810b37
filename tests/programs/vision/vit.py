"""A vision transformer: patches by `unfold`, a class token, a moving average of its weights, label smoothing."""

import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

from tests.support.numbers import filled, integers, normal


class FeedForward(nn.Module):
    """Normalisation, two linear layers."""

    def __init__(self, dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.net = nn.Sequential(
            nn.LayerNorm(dim),
            nn.Linear(dim, hidden_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_dim, dim),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return self.net(x)


class Attention(nn.Module):
    """Attention of several heads."""

    def __init__(self, dim, heads=2):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.norm = nn.LayerNorm(dim)
        self.attend = nn.Softmax(dim=-1)
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x):
        x = self.norm(x)
        b, n, d = x.shape
        qkv = self.to_qkv(x).chunk(3, dim=-1)
        q, k, v = map(lambda t: t.view(b, n, self.heads, -1).transpose(1, 2), qkv)
        dots = torch.matmul(q, k.transpose(-1, -2)) * self.scale
        attn = self.attend(dots)
        out = torch.matmul(attn, v)
        out = out.transpose(1, 2).contiguous().view(b, n, d)
        return self.to_out(out)


class ViT(nn.Module):
    """Patches, two blocks, and a head on the class token."""

    def __init__(self, image_size, patch_size, num_classes, dim, depth, heads, mlp_dim):
        super().__init__()
        num_patches = (image_size // patch_size) ** 2
        self.patch_size = patch_size
        self.to_patch_embedding = nn.Linear(3 * patch_size**2, dim)
        self.pos_embedding = nn.Parameter(torch.randn(1, num_patches + 1, dim))
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.layers = nn.ModuleList([])
        for _ in range(depth):
            self.layers.append(nn.ModuleList([Attention(dim, heads), FeedForward(dim, mlp_dim)]))
        self.mlp_head = nn.Linear(dim, num_classes)

    def forward(self, img):
        patches = img.unfold(2, self.patch_size, self.patch_size).unfold(3, self.patch_size, self.patch_size)
        patches = patches.permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2)
        x = self.to_patch_embedding(patches)
        b, n, _ = x.shape
        cls_tokens = self.cls_token.repeat(b, 1, 1)
        x = torch.cat((cls_tokens, x), dim=1)
        x += self.pos_embedding[:, : (n + 1)]
        for attn, ff in self.layers:
            x = attn(x) + x
            x = ff(x) + x
        return self.mlp_head(x[:, 0])


@torch.no_grad()
def update_ema(ema_model, model, decay=0.9):
    ema_params = dict(ema_model.named_parameters())
    for name, param in model.named_parameters():
        ema_params[name].mul_(decay).add_(param.data, alpha=1 - decay)


def main(compiled):
    model = filled(ViT(image_size=8, patch_size=4, num_classes=4, dim=16, depth=1, heads=2, mlp_dim=24))
    ema = copy.deepcopy(model)
    for param in ema.parameters():
        param.requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05, betas=(0.9, 0.95))
    warmup, total = 2, 5
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda t: (t + 1) / warmup if t < warmup else 0.5 * (1 + math.cos(math.pi * t / total))
    )
    img, label = torch.tensor(normal(6, 3, 8, 8)), torch.tensor(integers(4, 6))

    @compiled
    def train_step(img, label):
        loss = F.cross_entropy(model(img), label, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update_ema(ema, model)
        return loss.detach()

    losses = []
    for _ in range(total):
        losses.append(float(train_step(img, label)))
        scheduler.step()
        losses.append(scheduler.get_last_lr()[0])
    ema.eval()
    with torch.no_grad():
        losses.append(F.cross_entropy(ema(img), label).item())
    return losses, {"model": model, "ema": ema, "optimizer": optimizer}
