"""Adagrad, RMSprop and Adadelta: the gradient, divided by the root of a sum or a mean of its squares."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

from .. import primitives as P
from ..dtypes import float64
from ..functional.inplace import assign
from ..functional.operands import to_dtype
from ..tensor import Tensor
from .formula import OneFormula, running_mean
from .group import How, ParamGroup, hyperparameters


class Adagrad(OneFormula):
    """``p -= lr * g / (sqrt(sum of squares so far) + eps)`` (Duchi, Hazan and Singer, JMLR 2011).

    Args:
        params: parameters, or groups of them.
        lr: the learning rate.
        lr_decay: step t is made with ``lr / (1 + (t - 1) * lr_decay)``.
        weight_decay: added to the gradient, times the parameter.
        initial_accumulator_value: what the sums of squares start from.
        eps: added to the denominator.
        maximize: go uphill.
        **how: PyTorch's `foreach` and `fused`, which change nothing here.

    Example:
        >>> import minitorch as mt
        >>> w = mt.tensor([4.0, -1000.0], requires_grad=True)
        >>> optimizer = mt.optim.Adagrad([w], lr=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([   3.5000, -999.5000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        *,
        maximize: bool = False,
        **how: Unpack[How],
    ) -> None:
        start = {"initial_accumulator_value": initial_accumulator_value}
        rates = {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay, "eps": eps, **start}
        super().__init__(params, {**hyperparameters("Adagrad", how, **rates), "maximize": maximize})

    def slots(self, group: ParamGroup) -> tuple[str, ...]:
        """Return the count of steps, and the sum of squares."""
        return ("step", "sum")

    def initial(self, group: ParamGroup, slot: str) -> float:
        """Return what the sum of squares starts from."""
        value: float = group["initial_accumulator_value"]
        return value if slot == "sum" else 0.0

    def numbers(self, group: ParamGroup, state: dict[str, Tensor]) -> list[Tensor]:
        """Return the rate of this step, and eps."""
        lr, lr_decay, eps = group.tensors("lr", "lr_decay", "eps", dtype=float64)
        return [lr / (1 + (to_dtype(state["step"], float64) - 1) * lr_decay), eps]

    def change(self, group: ParamGroup, state: dict[str, Tensor], g: Tensor, numbers: list[Tensor]) -> Tensor:
        """Return how far the parameter goes down."""
        rate, eps = numbers
        total = state["sum"] + g * g
        assign(state["sum"], total)
        return rate * g / (P.sqrt(total) + eps)


class RMSprop(OneFormula):
    """``p -= lr * g / (sqrt(mean of squares) + eps)`` (Hinton, lecture 6 of his course, 2012).

    Args:
        params: parameters, or groups of them.
        lr: the learning rate.
        alpha: how much of the running mean is kept at each step.
        eps: added to the denominator.
        weight_decay: added to the gradient, times the parameter.
        momentum: how much of the last direction is kept.
        centered: divide by the deviation from a running mean instead (Graves, arXiv:1308.0850).
        maximize: go uphill.
        **how: PyTorch's `foreach` and `capturable`, which change nothing here.

    Example:
        >>> import minitorch as mt
        >>> w = mt.tensor([4.0, -1000.0], requires_grad=True)
        >>> optimizer = mt.optim.RMSprop([w], lr=0.5, alpha=0.0)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([   3.5000, -999.5000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        *,
        maximize: bool = False,
        **how: Unpack[How],
    ) -> None:
        rates = {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum}
        flags = {"centered": centered, "maximize": maximize}
        super().__init__(params, {**hyperparameters("RMSprop", how, **rates), **flags})

    def slots(self, group: ParamGroup) -> tuple[str, ...]:
        """Return the mean of squares, and with momentum the direction, centered the mean."""
        direction = ("momentum_buffer",) if group.uses("momentum") else ()
        return ("step", "square_avg", *direction, *(("grad_avg",) if group.uses("centered") else ()))

    def numbers(self, group: ParamGroup, state: dict[str, Tensor]) -> list[Tensor]:
        """Return the share of the means, the rate, eps, and the momentum."""
        alpha, *rest = group.tensors("alpha", "lr", "eps", "momentum", dtype=float64)
        return [alpha, 1 - alpha, *rest]

    def change(self, group: ParamGroup, state: dict[str, Tensor], g: Tensor, numbers: list[Tensor]) -> Tensor:
        """Return how far the parameter goes down."""
        alpha, rest, lr, eps, momentum = numbers
        squares = running_mean(state["square_avg"], alpha, rest, g * g)
        if group.uses("centered"):
            mean = running_mean(state["grad_avg"], alpha, rest, g)
            squares = squares - mean * mean
        direction = g / (P.sqrt(squares) + eps)
        if group.uses("momentum"):
            direction = momentum * state["momentum_buffer"] + direction
            assign(state["momentum_buffer"], direction)
        return lr * direction


class Adadelta(OneFormula):
    """Steps as large as the last ones: ``sqrt(mean of squared steps) / sqrt(mean of squares) * g``.

    From Zeiler, arXiv:1212.5701.

    Args:
        params: parameters, or groups of them.
        lr: a factor of the step.
        rho: how much of the two running means is kept at each step.
        eps: added to both means.
        weight_decay: added to the gradient, times the parameter.
        maximize: go uphill.
        **how: PyTorch's `foreach` and `capturable`, which change nothing here.

    Example:
        >>> import minitorch as mt
        >>> w = mt.tensor([4.0], requires_grad=True)
        >>> optimizer = mt.optim.Adadelta([w], rho=0.0, eps=1.0)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([3.0077], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **how: Unpack[How],
    ) -> None:
        rates = hyperparameters("Adadelta", how, lr=lr, rho=rho, eps=eps, weight_decay=weight_decay)
        super().__init__(params, {**rates, "maximize": maximize})

    def slots(self, group: ParamGroup) -> tuple[str, ...]:
        """Return the means of squared gradients and of squared steps."""
        return ("step", "square_avg", "acc_delta")

    def numbers(self, group: ParamGroup, state: dict[str, Tensor]) -> list[Tensor]:
        """Return the share of the means, the factor, and eps."""
        rho, lr, eps = group.tensors("rho", "lr", "eps", dtype=float64)
        return [rho, 1 - rho, lr, eps]

    def change(self, group: ParamGroup, state: dict[str, Tensor], g: Tensor, numbers: list[Tensor]) -> Tensor:
        """Return how far the parameter goes down."""
        rho, rest, lr, eps = numbers
        squares = running_mean(state["square_avg"], rho, rest, g * g)
        step = P.sqrt(state["acc_delta"] + eps) / P.sqrt(squares + eps) * g
        running_mean(state["acc_delta"], rho, rest, step * step)
        return lr * step
