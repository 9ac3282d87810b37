"""Schedules that go up and down: cosine annealing, with restarts, and one cycle of rate and momentum."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...functional.options import real, whole
from ..optimizer import Optimizer
from .scheduler import LRScheduler, checked


class CosineAnnealingLR(LRScheduler):
    """Cosine annealing to `eta_min` in `T_max` epochs, and up again (Loshchilov and Hutter, arXiv:1608.03983).

    Example:
        >>> import minitorch as mt
        >>> optimizer = mt.optim.SGD([mt.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = mt.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
        >>> scheduler.step()
        >>> [round(rate, 3) for rate in scheduler.get_last_lr()]
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if not real("CosineAnnealingLR: T_max", T_max) > 0:
            raise ValueError(f"CosineAnnealingLR: T_max is a number of epochs, more than 0, not {T_max}")
        self.T_max, self.eta_min = T_max, real("CosineAnnealingLR: eta_min", eta_min)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the next point of half a cosine; at its end, where no factor leads up again, by a sum."""
        if self._is_initial:
            return self.rates()
        now, before = (1 + math.cos(math.pi * epoch / self.T_max) for epoch in (self.last_epoch, self.last_epoch - 1))
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            up = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * up for rate, base in zip(self.rates(), self.base_lrs, strict=True)]
        return [now / before * (rate - self.eta_min) + self.eta_min for rate in self.rates()]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing that begins again after `T_0` epochs, then after `T_mult` times as many (arXiv:1608.03983).

    Example:
        >>> import minitorch as mt
        >>> optimizer = mt.optim.SGD([mt.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = mt.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates += scheduler.get_last_lr()
        ...     scheduler.step()
        >>> [round(rate, 3) for rate in rates]
        [1.0, 0.5, 1.0, 0.5]
    """

    kept = ("T_cur", "T_i")

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        name = type(self).__name__
        if whole(f"{name}: T_0", T_0) < 1 or whole(f"{name}: T_mult", T_mult) < 1:
            raise ValueError(f"{name}: T_0 and T_mult are at least 1, not {T_0} and {T_mult}")
        self.T_0 = self.T_i = T_0
        self.T_mult, self.T_cur, self.eta_min = T_mult, float(last_epoch), real(f"{name}: eta_min", eta_min)
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: float | None = None) -> None:
        """Go on to the next epoch, or to a given one, which may be a fraction of batches into it."""
        if epoch is None:
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        else:
            if real(f"{type(self).__name__}: epoch", epoch) < 0:
                raise ValueError(f"{type(self).__name__}: epoch cannot be negative: {epoch}")
            self.T_cur, self.T_i = epoch, self.T_0
            while self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
            self.last_epoch = math.floor(epoch) - 1
        super().step()

    def get_lr(self) -> list[float]:
        """Return the point of half a cosine."""
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]


class OneCycleLR(LRScheduler):
    """One cycle: up to `max_lr` in a share `pct_start` of the steps, then down to almost 0 (Smith, arXiv:1708.07120).

    Meanwhile the momentum, or the first of Adam's `betas`, goes down to `base_momentum` and up again.

    Args:
        optimizer: the optimiser whose groups are changed.
        max_lr: the highest rate, or one for each group.
        total_steps: the number of steps, unless `epochs` and `steps_per_epoch` are given.
        epochs: the number of epochs.
        steps_per_epoch: the steps of each.
        pct_start: the share of the steps in which the rate rises.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        cycle_momentum: whether the momentum changes.
        base_momentum: the lowest momentum.
        max_momentum: the highest.
        div_factor: the highest rate, divided by the first one.
        final_div_factor: the first rate, divided by the last one.
        three_phase: whether the rate comes down to the first one as fast as it rose.
        last_epoch: the number of past steps, minus one, for going on after a break.

    Example:
        >>> import minitorch as mt
        >>> optimizer = mt.optim.SGD([mt.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
        >>> scheduler = mt.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=10)
        >>> rates = []
        >>> for step in range(9):
        ...     rates += scheduler.get_last_lr()
        ...     scheduler.step()
        >>> [round(rate, 3) for rate in rates]
        [0.02, 0.26, 0.5, 0.475, 0.406, 0.306, 0.194, 0.094, 0.025]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        groups = checked(optimizer, "OneCycleLR").param_groups
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR: give total_steps, or both epochs and steps_per_epoch")
            total_steps = whole("OneCycleLR: epochs", epochs) * whole("OneCycleLR: steps_per_epoch", steps_per_epoch)
        if whole("OneCycleLR: total_steps", total_steps) < 1:
            raise ValueError(f"OneCycleLR: the number of steps is at least 1, not {total_steps}")
        if not 0 <= real("OneCycleLR: pct_start", pct_start) <= 1:
            raise ValueError(f"OneCycleLR: pct_start is a share, from 0 to 1, not {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"OneCycleLR: anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
        if cycle_momentum and not {"momentum", "betas"} & groups[0].keys():
            raise ValueError("OneCycleLR: the optimiser has neither momentum nor betas; pass cycle_momentum=False")
        self.total_steps, self.anneal_strategy, self.cycle_momentum = total_steps, anneal_strategy, cycle_momentum
        # The ends of the phases, with the names of the rates there, and of the momenta.
        top, end = float(pct_start * total_steps) - 1, float(total_steps - 1)
        rates, momenta = ["initial_lr", "max_lr", "min_lr"], ["max_momentum", "base_momentum", "max_momentum"]
        ends = [0.0, top, end]
        if three_phase:
            ends, rates = [0.0, top, 2 * top, end], ["initial_lr", "max_lr", "initial_lr", "min_lr"]
            momenta.append("max_momentum")
        self.phases = list(zip(ends, rates, momenta, strict=True))
        if last_epoch == -1:
            for number, group in enumerate(groups):
                group["max_lr"] = _of_group("max_lr", max_lr, number, len(groups))
                group["initial_lr"] = group["max_lr"] / div_factor
                group["min_lr"] = group["initial_lr"] / final_div_factor
                if cycle_momentum:
                    group["max_momentum"] = _of_group("max_momentum", max_momentum, number, len(groups))
                    group["base_momentum"] = _of_group("base_momentum", base_momentum, number, len(groups))
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the rates on the way from one end of the phase to the other; the momenta are set."""
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"OneCycleLR: step {step} of {self.total_steps}: the cycle is over")
        phase = next((at for at in range(1, len(self.phases)) if step <= self.phases[at][0]), len(self.phases) - 1)
        (begin, low, first), (end, high, second) = self.phases[phase - 1 : phase + 1]
        share = (step - begin) / (end - begin)
        if self.anneal_strategy == "cos":
            share = (1 - math.cos(math.pi * share)) / 2
        found = []
        for group in self.optimizer.param_groups:
            found.append(group[low] + (group[high] - group[low]) * share)
            if self.cycle_momentum:
                momentum = group[first] + (group[second] - group[first]) * share
                if "betas" in group:
                    group["betas"] = (momentum, *group["betas"][1:])
                else:
                    group["momentum"] = momentum
        return found


def _of_group(name: str, value: float | Sequence[float], number: int, count: int) -> float:
    """Return a group's value of an option that is a number, or one for each group."""
    if isinstance(value, Sequence):
        if len(value) != count:
            raise ValueError(f"OneCycleLR: {name} is a number, or {count} of them, one for each group")
        value = value[number]
    return real(f"OneCycleLR: {name}", value)
