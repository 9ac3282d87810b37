"""Schedules by what was measured, and of other schedules: a plateau, one after the other, all at once."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from ...functional.options import real, whole
from ..optimizer import Optimizer
from .scheduler import LRScheduler, outside_of_recordings


class ReduceLROnPlateau(LRScheduler):
    """Multiplication by `factor` once a measured number has not become better for `patience` epochs.

    Args:
        optimizer: the optimiser whose groups are changed.
        mode: ``"min"`` if lower is better, or ``"max"``.
        factor: what rates are multiplied by.
        patience: the number of epochs without improvement that is accepted.
        threshold: the least improvement that counts.
        threshold_mode: whether that is a share (``"rel"``) or a difference (``"abs"``).
        cooldown: the number of epochs after a reduction that do not count.
        min_lr: the least rate, or one for each group.
        eps: the least change of a rate that is made.

    Example:
        >>> import minitorch as mt
        >>> optimizer = mt.optim.SGD([mt.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = mt.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
        >>> for loss in (3.0, 2.0, 2.0, 2.0):
        ...     scheduler.step(loss)
        >>> scheduler.get_last_lr()
        [0.5]
    """

    kept = ("best", "num_bad_epochs", "cooldown_counter")

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        name = type(self).__name__
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"{name}: mode is 'min' or 'max', threshold_mode 'rel' or 'abs', not {mode!r} and {threshold_mode!r}"
            )
        if real(f"{name}: factor", factor) >= 1:
            raise ValueError(f"{name}: factor is less than 1, not {factor}")
        self.mode, self.factor, self.threshold, self.threshold_mode = mode, factor, threshold, threshold_mode
        self.patience, self.cooldown, self.eps = whole(f"{name}: patience", patience), cooldown, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0
        super().__init__(optimizer)
        self.min_lrs = list(min_lr) if isinstance(min_lr, Sequence) else [min_lr] * len(self.base_lrs)
        if len(self.min_lrs) != len(self.base_lrs):
            raise ValueError(f"{name}: min_lr is a number, or {len(self.base_lrs)} of them, one for each group")

    def begin(self) -> None:
        """Leave the rates as they are."""
        self.last_epoch, self._last_lr = 0, self.rates()

    def _is_better(self, value: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        share = self.threshold_mode == "rel"
        bar = self.best * (1 + sign * self.threshold) if share else self.best + sign * self.threshold
        return value > bar if self.mode == "max" else value < bar

    def step(self, metrics: Any) -> None:  # type: ignore[override]
        """Go on to the next epoch, by a number that was measured in this one."""
        outside_of_recordings()
        value = float(metrics)
        self.last_epoch += 1
        self.num_bad_epochs += 1
        if self._is_better(value):
            self.best, self.num_bad_epochs = value, 0
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        rates = self.rates()
        if self.num_bad_epochs > self.patience:
            lower = [max(rate * self.factor, least) for rate, least in zip(rates, self.min_lrs, strict=True)]
            rates = [new if old - new > self.eps else old for old, new in zip(rates, lower, strict=True)]
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self.write(rates)


class _Several(LRScheduler):
    """Schedulers of one optimiser."""

    def __init__(self, optimizer: Optimizer | None, schedulers: Sequence[LRScheduler]) -> None:
        name, self._schedulers = type(self).__name__, list(schedulers)
        if not self._schedulers:
            raise ValueError(f"{name} takes at least one scheduler")
        self.optimizer = self._schedulers[0].optimizer if optimizer is None else optimizer
        for each in self._schedulers:
            if isinstance(each, ReduceLROnPlateau):
                raise ValueError(f"{name}: {type(each).__name__} has no step without an argument")
            if each.optimizer is not self.optimizer:
                raise ValueError(f"{name}: all schedulers are of the same optimiser")
        self.base_lrs = self._schedulers[0].base_lrs
        self.last_epoch, self._last_lr = 0, self.rates()

    def state_dict(self) -> dict[str, Any]:
        """Return the states of the schedulers, too."""
        return {**super().state_dict(), "_schedulers": [each.state_dict() for each in self._schedulers]}

    def _loading(self, state_dict: Any) -> Callable[[], None]:
        write = super()._loading(state_dict)
        parts = zip(self._schedulers, state_dict["_schedulers"], strict=True)
        writes = [*(each._loading(state) for each, state in parts), write]

        def write_all() -> None:
            for each in writes:
                each()

        return write_all


class SequentialLR(_Several):
    """One scheduler after the other: each begins at a milestone, such as cosine annealing after a warm-up.

    Example:
        >>> import minitorch as mt
        >>> optimizer = mt.optim.SGD([mt.zeros(1, requires_grad=True)], lr=1.0)
        >>> warm_up = mt.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
        >>> decay = mt.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> scheduler = mt.optim.lr_scheduler.SequentialLR(optimizer, [warm_up, decay], milestones=[3])
        >>> rates = []
        >>> for epoch in range(5):
        ...     rates += scheduler.get_last_lr()
        ...     scheduler.step()
        >>> rates
        [0.5, 0.75, 1.0, 1.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        super().__init__(optimizer, schedulers)
        if len(milestones) != len(self._schedulers) - 1:
            raise ValueError(
                f"SequentialLR: {len(self._schedulers)} schedulers have {len(self._schedulers) - 1} milestones between "
                f"them, not {len(milestones)}"
            )
        self._milestones = list(milestones)
        self.begin()
        self.last_epoch = last_epoch + 1

    def begin(self) -> None:
        """Set the rates of the first scheduler."""
        self.last_epoch = 0
        for each in self._schedulers:
            each.last_epoch = -1
        self._schedulers[0].restart()
        self._last_lr = self.rates()

    def step(self) -> None:
        """Go on to the next epoch, of the scheduler whose turn it is."""
        outside_of_recordings()
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[turn]
        if turn and self._milestones[turn - 1] == self.last_epoch:
            scheduler.restart()
        else:
            scheduler.step()
        self._last_lr = self.rates()


class ChainedScheduler(_Several):
    """Several schedulers at once, whose factors multiply."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        super().__init__(optimizer, schedulers)

    def step(self) -> None:
        """Go on to the next epoch of each scheduler."""
        for each in self._schedulers:
            each.step()
        self.last_epoch += 1
        self._last_lr = self.rates()
