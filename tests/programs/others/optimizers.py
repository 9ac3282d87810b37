"""Optimisers as they are written for PyTorch: sharpness-aware minimisation, Lion, and one that looks ahead."""

from collections import defaultdict

import torch
import torch.nn as nn
from torch.optim.optimizer import Optimizer

from tests.support.numbers import filled, normal


class SAM(torch.optim.Optimizer):
    """Foret et al., 2020."""

    def __init__(self, params, base_optimizer, rho=0.05, adaptive=False, **kwargs):
        defaults = dict(rho=rho, adaptive=adaptive, **kwargs)
        super().__init__(params, defaults)
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups
        self.defaults.update(self.base_optimizer.defaults)

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        grad_norm = self._grad_norm()
        for group in self.param_groups:
            scale = group["rho"] / (grad_norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old_p"] = p.data.clone()
                e_w = (torch.pow(p, 2) if group["adaptive"] else 1.0) * p.grad * scale.to(p)
                p.add_(e_w)
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()

    def _grad_norm(self):
        return torch.norm(
            torch.stack(
                [p.grad.norm(p=2) for group in self.param_groups for p in group["params"] if p.grad is not None]
            ),
            p=2,
        )


class Lion(Optimizer):
    """Chen et al., 2023."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        defaults = dict(lr=lr, betas=betas, weight_decay=weight_decay)
        super().__init__(params, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                grad = p.grad
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                exp_avg = state["exp_avg"]
                beta1, beta2 = group["betas"]
                update = exp_avg * beta1 + grad * (1 - beta1)
                p.add_(update.sign_(), alpha=-group["lr"])
                exp_avg.mul_(beta2).add_(grad, alpha=1 - beta2)
        return loss


class Lookahead:
    """Zhang et al., 2019, around another optimiser."""

    def __init__(self, optimizer, k=2, alpha=0.5):
        self.optimizer = optimizer
        self.param_groups = self.optimizer.param_groups
        self.k = k
        self.alpha = alpha
        self.state = defaultdict(dict)
        self.counter = 0

    def step(self):
        self.optimizer.step()
        self.counter += 1
        if self.counter >= self.k:
            self.counter = 0
            for group in self.param_groups:
                for p in group["params"]:
                    slow = self.state[p].setdefault("slow_param", p.data.clone())
                    slow += (p.data - slow) * self.alpha
                    p.data.copy_(slow)


def main(compiled):
    x = torch.from_numpy(normal(12, 4))
    y = (x[:, :1] * x[:, 1:2]).sin()

    def network():
        return filled(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))

    criterion = nn.MSELoss()
    models = network(), network(), network()
    sam = SAM(models[0].parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    lion = Lion(models[1].parameters(), lr=1e-2, weight_decay=0.1)
    sgd = torch.optim.SGD(models[2].parameters(), lr=0.2)
    lookahead = Lookahead(sgd)

    @compiled
    def sam_step(x, y):
        loss = criterion(models[0](x), y)
        loss.backward()
        sam.first_step(zero_grad=True)
        criterion(models[0](x), y).backward()
        sam.second_step(zero_grad=True)
        return loss

    @compiled
    def lion_step(x, y):
        def closure():
            lion.zero_grad()
            loss = criterion(models[1](x), y)
            loss.backward()
            return loss

        return lion.step(closure)

    @compiled
    def loss_and_gradients(x, y):
        sgd.zero_grad()
        loss = criterion(models[2](x), y)
        loss.backward()
        return loss

    def lookahead_step(x, y):
        loss = loss_and_gradients(x, y)
        lookahead.step()
        return loss

    losses = []
    for epoch in range(4):
        lion.param_groups[0]["lr"] = 1e-2 / (1 + epoch)
        for start in (0, 6):
            batch = x[start : start + 6], y[start : start + 6]
            losses += [step(*batch).item() for step in (sam_step, lion_step, lookahead_step)]
    return losses, {"models": models, "lion": lion, "momentum": sam.base_optimizer}
