"""Adamax and NAdam, relatives of Adam."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Unpack

from .. import primitives as P
from ..dtypes import float64
from ..functional.inplace import assign
from ..functional.operands import to_dtype
from ..tensor import Tensor
from .formula import OneFormula, running_mean
from .group import How, ParamGroup, hyperparameters


class Adamax(OneFormula):
    """`Adam` with the largest gradient so far, which fades, in place of a mean of squares (arXiv:1412.6980, section 7).

    Args:
        params: parameters, or groups of them.
        lr: the learning rate.
        betas: how much of the running mean, and of the largest gradient, is kept at each step.
        eps: added to the magnitude of each gradient.
        weight_decay: added to the gradient, times the parameter.
        maximize: go uphill.
        **how: PyTorch's `foreach` and `capturable`, which change nothing here.

    Example:
        >>> import minitorch as mt
        >>> w = mt.tensor([4.0, -1000.0], requires_grad=True)
        >>> optimizer = mt.optim.Adamax([w], lr=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([   3.5000, -999.5000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        **how: Unpack[How],
    ) -> None:
        rates = hyperparameters("Adamax", how, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        super().__init__(params, {**rates, "maximize": maximize})

    def slots(self, group: ParamGroup) -> tuple[str, ...]:
        """Return the count of steps, the mean, and the largest gradient."""
        return ("step", "exp_avg", "exp_inf")

    def numbers(self, group: ParamGroup, state: dict[str, Tensor]) -> list[Tensor]:
        """Return the shares, the corrected rate, and eps."""
        lr, beta1, beta2, eps = group.tensors("lr", "betas", "eps", dtype=float64)
        return [beta1, beta2, 1 - beta1, lr / (1 - P.power(beta1, to_dtype(state["step"], float64))), eps]

    def change(self, group: ParamGroup, state: dict[str, Tensor], g: Tensor, numbers: list[Tensor]) -> Tensor:
        """Return how far the parameter goes down."""
        beta1, beta2, rest1, rate, eps = numbers
        mean = running_mean(state["exp_avg"], beta1, rest1, g)
        largest = P.maximum(beta2 * state["exp_inf"], P.absolute(g) + eps)
        assign(state["exp_inf"], largest)
        return rate * mean / largest


class NAdam(OneFormula):
    """`Adam` with Nesterov's momentum: the mean is taken one step ahead (Dozat, ICLR 2016 workshop).

    Args:
        params: parameters, or groups of them.
        lr: the learning rate.
        betas: how much of the two running means is kept at each step.
        eps: added to the denominator.
        weight_decay: added to the gradient, times the parameter.
        momentum_decay: how fast the share of the mean grows to the first of `betas`.
        decoupled_weight_decay: take weight decay off the parameter, as `AdamW` does.
        maximize: go uphill.
        **how: PyTorch's `foreach` and `capturable`, which change nothing here.

    Example:
        >>> import minitorch as mt
        >>> w = mt.tensor([4.0, -1000.0], requires_grad=True)
        >>> optimizer = mt.optim.NAdam([w], lr=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([   3.4718, -999.4718], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        maximize: bool = False,
        **how: Unpack[How],
    ) -> None:
        rates = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay}
        flags = {"decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize}
        super().__init__(params, {**hyperparameters("NAdam", how, **rates), **flags})

    def decays_apart(self, group: ParamGroup) -> bool:
        """Return whether weight decay shrinks the parameters themselves."""
        return group.uses("decoupled_weight_decay")

    def slots(self, group: ParamGroup) -> tuple[str, ...]:
        """Return the count of steps, the product of the shares so far, and the two means."""
        return ("step", "mu_product", "exp_avg", "exp_avg_sq")

    def initial(self, group: ParamGroup, slot: str) -> float:
        """Return 1 for the product, 0 for sums."""
        return float(slot == "mu_product")

    def _share(self, group: ParamGroup, step: Tensor) -> Tensor:
        """Return the share of the mean in a step, for all counts of steps."""
        beta1, _, decay = group.tensors("betas", "momentum_decay", dtype=float64)
        return beta1 * (1 - 0.5 * P.exp(math.log(0.96) * decay * to_dtype(step, float64)))

    def update(self, group: ParamGroup, parameters: list[Tensor], gradients: list[Tensor]) -> list[Tensor]:
        """Make one step."""
        state = self.state[parameters[0]]
        product = state["mu_product"]
        assign(product, product * to_dtype(self._share(group, state["step"]), product.dtype))
        return super().update(group, parameters, gradients)

    def numbers(self, group: ParamGroup, state: dict[str, Tensor]) -> list[Tensor]:
        """Return the shares of the means, the corrected rates of gradient and mean, and eps."""
        lr, beta1, beta2, eps = group.tensors("lr", "betas", "eps", dtype=float64)
        step, product = (to_dtype(state[name], float64) for name in ("step", "mu_product"))
        now, ahead = self._share(group, step), self._share(group, step + 1)
        correction = P.sqrt(1 - P.power(beta2, step))
        of_gradient = lr * correction * (1 - now) / (1 - product)
        of_mean = lr * correction * ahead / (1 - product * ahead)
        return [beta1, beta2, 1 - beta1, 1 - beta2, of_gradient, of_mean, eps * correction]

    def change(self, group: ParamGroup, state: dict[str, Tensor], g: Tensor, numbers: list[Tensor]) -> Tensor:
        """Return how far the parameter goes down."""
        beta1, beta2, rest1, rest2, of_gradient, of_mean, eps = numbers
        mean = running_mean(state["exp_avg"], beta1, rest1, g)
        squares = running_mean(state["exp_avg_sq"], beta2, rest2, g * g)
        return (of_gradient * g + of_mean * mean) / (P.sqrt(squares) + eps)
