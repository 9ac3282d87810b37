"""Learning rates that change from epoch to epoch, as functions of the epoch's number.

A scheduler writes ``group["lr"]``, which recorded training steps read: none is traced again. `step` belongs between
the epochs, outside of the recorded function, because the number of the epoch is a Python int.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import TracingError
from ..functional.operands import real
from ..interpreters import current_staging
from .optimizer import Optimizer


def _checked(optimizer: Any, name: str) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{name} takes an optimizer first, not {type(optimizer).__name__}")
    return optimizer


class LRScheduler:
    """The base class: a subclass says what each group's learning rate is multiplied with.

    Args:
        optimizer: whose groups are changed.
        last_epoch: the number of epochs that have been, minus one, for going on after a break.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = _checked(optimizer, type(self).__name__)
        self.base_lrs: list[float] = []
        for group in optimizer.param_groups:
            if last_epoch == -1 or "initial_lr" not in group:
                group["initial_lr"] = group["lr"]
            self.base_lrs.append(group["initial_lr"])
        self.last_epoch = last_epoch
        self.step()

    def lr(self, base: float, group: int) -> float:
        """The learning rate of a group in epoch `self.last_epoch`, from what it was at first."""
        raise NotImplementedError(f"{type(self).__name__} does not say what the learning rate is")

    def get_last_lr(self) -> list[float]:
        """The learning rates of the groups."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self) -> None:
        """Go on to the next epoch.

        Raises:
            TracingError: inside of a function that is being recorded (``MT105``).
        """
        staging = current_staging()
        if staging is not None and not staging.defers:
            raise TracingError(
                "MT105",
                "a scheduler's step inside of a recorded function",
                why="it counts epochs in a Python int, which would change now and never again when the graph runs",
                fix="call scheduler.step() after the recorded function; the graph reads the new learning rate",
            )
        self.last_epoch += 1
        for number, (group, base) in enumerate(zip(self.optimizer.param_groups, self.base_lrs, strict=True)):
            group["lr"] = self.lr(base, number)

    def state_dict(self) -> dict[str, Any]:
        """The number of the epoch, and the learning rates at first."""
        return {"last_epoch": self.last_epoch, "base_lrs": self.base_lrs}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.last_epoch, self.base_lrs = state_dict["last_epoch"], list(state_dict["base_lrs"])


class StepLR(LRScheduler):
    """Multiplied by `gamma` every `step_size` epochs.

    Example:
        >>> import minitorch as mt
        >>> optimizer = mt.optim.SGD([mt.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = mt.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> rates = []
        >>> for epoch in range(5):
        ...     rates += scheduler.get_last_lr()
        ...     scheduler.step()
        >>> rates
        [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        if real("StepLR: step_size", step_size) <= 0:
            raise ValueError(f"StepLR: step_size is a number of epochs, at least 1, not {step_size}")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def lr(self, base: float, group: int) -> float:
        """A staircase down."""
        return float(base * self.gamma ** (self.last_epoch // self.step_size))


class LambdaLR(LRScheduler):
    """Multiplied by a function of the epoch's number.

    Args:
        optimizer: whose groups are changed.
        lr_lambda: the function, or one for each group.
        last_epoch: the number of epochs that have been, minus one.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        count = len(_checked(optimizer, "LambdaLR").param_groups)
        self.lr_lambdas = [lr_lambda] * count if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != count:
            raise ValueError(f"there are {count} groups and {len(self.lr_lambdas)} functions")
        super().__init__(optimizer, last_epoch)

    def lr(self, base: float, group: int) -> float:
        """What the group's function says."""
        return base * self.lr_lambdas[group](self.last_epoch)


class CosineAnnealingLR(LRScheduler):
    """Down to `eta_min` in `T_max` epochs, along half a cosine, and up again (Loshchilov and Hutter, arXiv:1608.03983).

    Example:
        >>> import minitorch as mt
        >>> optimizer = mt.optim.SGD([mt.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = mt.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
        >>> scheduler.step()
        >>> [round(rate, 3) for rate in scheduler.get_last_lr()]
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def lr(self, base: float, group: int) -> float:
        """Half a cosine."""
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
