"""Learning rates that change from epoch to epoch: factors on the present rate, so that several schedulers multiply.

A rate set by hand is changed by these factors, too, as in PyTorch; `LambdaLR` alone starts from the first one. A
scheduler writes ``group["lr"]``, which recorded training steps read: none is traced again. `step` belongs between the
epochs, outside of the recorded function, because the number of the epoch is a Python int.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import TracingError
from ..functional.options import real, whole
from ..interpreters import current_staging
from .optimizer import Optimizer


def _checked(optimizer: Any, name: str) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{name} takes an optimizer first, not {type(optimizer).__name__}")
    return optimizer


class LRScheduler:
    """Base class: a subclass computes the next learning rates of the groups in `get_lr`.

    Args:
        optimizer: the optimiser whose groups are changed.
        last_epoch: the number of past epochs, minus one, for going on after a break.

    Raises:
        TypeError: if a number is something else.
        KeyError: when going on, if the groups do not hold their initial learning rates.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = _checked(optimizer, type(self).__name__)
        self.base_lrs: list[float] = []
        if last_epoch != -1:
            whole(f"{type(self).__name__}: last_epoch", last_epoch)
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", float(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f'{type(self).__name__}: with last_epoch={last_epoch} each group needs an "initial_lr", the '
                    "learning rate that it began with: load the optimizer's state first, or set it"
                )
            self.base_lrs.append(group["initial_lr"])
        self.last_epoch = last_epoch
        self._is_initial = True
        self.step()
        self._is_initial = False

    def get_lr(self) -> list[float]:
        """Return the learning rates of the groups in epoch `self.last_epoch`, from the present and the first ones."""
        raise NotImplementedError(f"{type(self).__name__} does not say what the learning rates are")

    def _rates(self) -> list[float]:
        """Return the present learning rates of the groups."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def get_last_lr(self) -> list[float]:
        """Return the learning rates that the last `step` gave the groups."""
        return self._last_lr

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
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = rate
        self._last_lr = self._rates()

    def state_dict(self) -> dict[str, Any]:
        """Return the number of the epoch, and the initial learning rates."""
        return {"last_epoch": self.last_epoch, "base_lrs": self.base_lrs}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the result of `state_dict`.

        Raises:
            TypeError: if it is not such a dict.
            ValueError: if it has learning rates of more or fewer groups; nothing is loaded then.
        """
        self._loading(state_dict)()

    def _loading(self, state_dict: Any) -> Callable[[], None]:
        """Check a state, and return the function that writes it."""
        if not isinstance(state_dict, Mapping) or not {"last_epoch", "base_lrs"} <= state_dict.keys():
            raise TypeError(
                'load_state_dict takes what state_dict() gave, a dict with "last_epoch" and "base_lrs", '
                f"not {type(state_dict).__name__}: {state_dict!r:.60}"
            )
        rates, count = state_dict["base_lrs"], len(self.optimizer.param_groups)
        if not isinstance(rates, list | tuple):
            raise TypeError(f"load_state_dict: base_lrs is a list of learning rates, not {type(rates).__name__}")
        if len(rates) != count:
            raise ValueError(f"the optimiser has {count} groups, and the state learning rates for {len(rates)}")
        epoch = whole("load_state_dict: last_epoch", state_dict["last_epoch"])
        found = [real("load_state_dict: a learning rate", rate) for rate in rates]

        def write() -> None:
            self.last_epoch, self.base_lrs = epoch, found
            self._last_lr = self._rates()

        return write


class StepLR(LRScheduler):
    """Step decay: the learning rate is multiplied by `gamma` every `step_size` epochs.

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
        if whole("StepLR: step_size", step_size) < 1:
            raise ValueError(f"StepLR: step_size is a number of epochs, at least 1, not {step_size}")
        self.step_size, self.gamma = step_size, real("StepLR: gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the rates, multiplied by `gamma` or unchanged."""
        factor = 1.0 if not self.last_epoch or self.last_epoch % self.step_size else self.gamma
        return [rate * factor for rate in self._rates()]


class LambdaLR(LRScheduler):
    """The first learning rate, multiplied by a function of the epoch's number; later changes are overwritten.

    Args:
        optimizer: the optimiser whose groups are changed.
        lr_lambda: the function, or one for each group.
        last_epoch: the number of past epochs, minus one.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        count = len(_checked(optimizer, "LambdaLR").param_groups)
        if not callable(lr_lambda) and not isinstance(lr_lambda, Sequence):
            raise TypeError(f"LambdaLR: lr_lambda is a function, or a list of them, not {type(lr_lambda).__name__}")
        self.lr_lambdas = [lr_lambda] * count if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != count:
            raise ValueError(
                f"LambdaLR: one function for each group of parameters: {count}, not {len(self.lr_lambdas)}"
            )
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the values of the groups' functions, times the first rates."""
        factors = [real("LambdaLR: what lr_lambda returns", each(self.last_epoch)) for each in self.lr_lambdas]
        return [base * factor for base, factor in zip(self.base_lrs, factors, strict=True)]


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
            return self._rates()
        now, before = (1 + math.cos(math.pi * epoch / self.T_max) for epoch in (self.last_epoch, self.last_epoch - 1))
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            up = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * up for rate, base in zip(self._rates(), self.base_lrs, strict=True)]
        return [now / before * (rate - self.eta_min) + self.eta_min for rate in self._rates()]
