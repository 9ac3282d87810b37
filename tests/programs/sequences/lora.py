"""Low-rank adaptation of a frozen classifier of sentences: subclasses of layers, merged weights, one-cycle schedule."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.support.numbers import filled, integers


class LoRALayer:
    """What layers with an adapter have in common."""

    def __init__(self, r, lora_alpha, lora_dropout, merge_weights):
        self.r = r
        self.lora_alpha = lora_alpha
        if lora_dropout > 0.0:
            self.lora_dropout = nn.Dropout(p=lora_dropout)
        else:
            self.lora_dropout = lambda x: x
        self.merged = False
        self.merge_weights = merge_weights


class Linear(nn.Linear, LoRALayer):
    """A linear layer with an adapter."""

    def __init__(self, in_features, out_features, r=0, lora_alpha=1, lora_dropout=0.0, merge_weights=True, **kwargs):
        nn.Linear.__init__(self, in_features, out_features, **kwargs)
        LoRALayer.__init__(self, r=r, lora_alpha=lora_alpha, lora_dropout=lora_dropout, merge_weights=merge_weights)
        if r > 0:
            self.lora_A = nn.Parameter(self.weight.new_zeros((r, in_features)))
            self.lora_B = nn.Parameter(self.weight.new_zeros((out_features, r)))
            self.scaling = self.lora_alpha / self.r
            self.weight.requires_grad = False
        self.reset_parameters()

    def reset_parameters(self):
        nn.Linear.reset_parameters(self)
        if hasattr(self, "lora_A"):
            nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
            nn.init.zeros_(self.lora_B)

    def train(self, mode=True):
        nn.Linear.train(self, mode)
        if mode:
            if self.merge_weights and self.merged:
                if self.r > 0:
                    self.weight.data -= self.lora_B @ self.lora_A * self.scaling
                self.merged = False
        elif self.merge_weights and not self.merged:
            if self.r > 0:
                self.weight.data += self.lora_B @ self.lora_A * self.scaling
            self.merged = True
        return self

    def forward(self, x):
        if self.r > 0 and not self.merged:
            result = F.linear(x, self.weight, bias=self.bias)
            result += (self.lora_dropout(x) @ self.lora_A.transpose(0, 1) @ self.lora_B.transpose(0, 1)) * self.scaling
            return result
        return F.linear(x, self.weight, bias=self.bias)


class Classifier(nn.Module):
    """A bag of embeddings, pooled under a mask."""

    def __init__(self, vocab_size, dim, num_classes):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.query = Linear(dim, dim, r=2, lora_alpha=4)
        self.value = Linear(dim, dim, r=2, lora_alpha=4)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, ids):
        x = self.embed(ids)
        mask = ids.ne(0)
        scores = self.query(x).tanh().sum(-1).masked_fill(~mask, torch.finfo(x.dtype).min)
        weights = scores.softmax(-1).unsqueeze(-1)
        return self.head(self.norm((weights * self.value(x)).sum(1)))


def mark_only_lora_as_trainable(model):
    for n, p in model.named_parameters():
        if "lora_" not in n:
            p.requires_grad = False


def lora_state_dict(model):
    my_state_dict = model.state_dict()
    return {k: my_state_dict[k] for k in my_state_dict if "lora_" in k}


def main(compiled):
    model = filled(Classifier(vocab_size=12, dim=8, num_classes=3))
    mark_only_lora_as_trainable(model)
    for p in model.head.parameters():
        p.requires_grad = True
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    params = list(filter(lambda p: p.requires_grad, model.parameters()))
    optimizer = torch.optim.AdamW(params, lr=1e-2, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=8)
    ids, labels = torch.from_numpy(integers(12, 6, 5)), torch.from_numpy(integers(3, 6, seed=1))

    @compiled
    def train_step(ids, labels):
        logits = model(ids)
        loss = F.cross_entropy(logits, labels)
        loss.backward()
        nn.utils.clip_grad_value_(params, 0.1)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    @compiled
    @torch.no_grad()
    def evaluate(ids):
        return F.softmax(model(ids), dim=-1)

    losses = []
    for step in range(8):
        model.train()
        losses.append(train_step(ids, labels).item())
        scheduler.step()
        if step % 3 == 2:
            model.eval()
            losses.append(evaluate(ids).max(-1).values.mean().item())
    model.train()
    changed = [name for name, p in model.named_parameters() if not torch.allclose(p, before[name], atol=1e-6)]
    losses.append(len(changed))
    return losses, {"model": model, "adapters": lora_state_dict(model), "optimizer": optimizer}
