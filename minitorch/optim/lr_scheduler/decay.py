"""Schedules that multiply the rates by a number: at some epochs, at each, or along a line or a power."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from ...functional.options import real, whole
from ..optimizer import Optimizer
from .scheduler import LRScheduler, checked


class Factors(LRScheduler):
    """Scheduler that multiplies the present rates, each epoch, by a factor of the epoch's number."""

    def factor(self, epoch: int) -> float:
        """Return the factor of an epoch."""
        raise NotImplementedError(f"{type(self).__name__} does not say what the factors are")

    def get_lr(self) -> list[float]:
        """Return the rates, times the factor of this epoch."""
        factor = self.factor(self.last_epoch)
        return [rate * factor for rate in self.rates()]


class StepLR(Factors):
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

    def factor(self, epoch: int) -> float:
        """Return `gamma` at the end of `step_size` epochs, else 1."""
        return 1.0 if not epoch or epoch % self.step_size else self.gamma


class MultiStepLR(Factors):
    """Multiplication by `gamma` at each of `milestones`, which are numbers of epochs.

    Example:
        >>> import minitorch as mt
        >>> optimizer = mt.optim.SGD([mt.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = mt.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
        >>> rates = []
        >>> for epoch in range(4):
        ...     rates += scheduler.get_last_lr()
        ...     scheduler.step()
        >>> rates
        [1.0, 0.5, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(whole("MultiStepLR: a milestone", each) for each in milestones)
        self.gamma = real("MultiStepLR: gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """Return `gamma` at a milestone, else 1."""
        return self.gamma ** self.milestones[epoch]


class ExponentialLR(Factors):
    """Multiplication by `gamma` in each epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = real("ExponentialLR: gamma", gamma)
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """Return `gamma` after the first epoch."""
        return 1.0 if self._is_initial else self.gamma


class ConstantLR(Factors):
    """The first rate, times `factor`, for `total_iters` epochs."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        self.share, self.total_iters = _share("ConstantLR: factor", factor), whole("ConstantLR: epochs", total_iters)
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """Return the factor in the first epoch, and its inverse in the last one."""
        return self.share if epoch == 0 else 1 / self.share if epoch == self.total_iters else 1.0


class LinearLR(Factors):
    """The first rate, times a factor that goes along a line from `start_factor` to `end_factor`: a warm-up.

    Example:
        >>> import minitorch as mt
        >>> optimizer = mt.optim.SGD([mt.zeros(1, requires_grad=True)], lr=1.0)
        >>> scheduler = mt.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
        >>> rates = []
        >>> for epoch in range(3):
        ...     rates += scheduler.get_last_lr()
        ...     scheduler.step()
        >>> rates
        [0.5, 0.75, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor, self.end_factor = (
            _share("LinearLR: start_factor", start_factor),
            _share("LinearLR: end_factor", end_factor),
        )
        self.total_iters = whole("LinearLR: total_iters", total_iters)
        if not self.start_factor:
            raise ValueError("LinearLR: start_factor is more than 0: no factor leads from 0 to another rate")
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """Return the quotient of two points of the line."""
        if epoch == 0:
            return self.start_factor
        if self._is_initial or epoch > self.total_iters:
            return 1.0
        rise = self.end_factor - self.start_factor
        return 1 + rise / (self.total_iters * self.start_factor + (epoch - 1) * rise)


class PolynomialLR(Factors):
    """The first rate, times a power of the share of `total_iters` epochs that is left."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = whole("PolynomialLR: total_iters", total_iters)
        self.power = real("PolynomialLR: power", power)
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """Return the quotient of two powers."""
        if self._is_initial or epoch > self.total_iters:
            return 1.0
        factor: float = ((1 - epoch / self.total_iters) / (1 - (epoch - 1) / self.total_iters)) ** self.power
        return factor


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
        count = len(checked(optimizer, type(self).__name__).param_groups)
        name = type(self).__name__
        if not callable(lr_lambda) and not isinstance(lr_lambda, Sequence):
            raise TypeError(f"{name}: lr_lambda is a function, or a list of them, not {type(lr_lambda).__name__}")
        self.lr_lambdas = [lr_lambda] * count if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != count:
            raise ValueError(f"{name}: one function for each group of parameters: {count}, not {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the values of the groups' functions, times the first rates."""
        return self._times(self.base_lrs)

    def _times(self, rates: Sequence[float]) -> list[float]:
        text = f"{type(self).__name__}: what lr_lambda returns"
        factors = [real(text, each(self.last_epoch)) for each in self.lr_lambdas]
        return [rate * factor for rate, factor in zip(rates, factors, strict=True)]


class MultiplicativeLR(LambdaLR):
    """The present learning rate, multiplied by a function of the epoch's number."""

    restart = LRScheduler.step  # it has no first rates

    def get_lr(self) -> list[float]:
        """Return the values of the groups' functions, times the present rates."""
        return self.rates() if self._is_initial else self._times(self.rates())


def _share(name: str, value: float) -> float:
    """Return a factor from 0 to 1."""
    if not 0 <= real(name, value) <= 1:
        raise ValueError(f"{name} is from 0 to 1, not {value}")
    return value
