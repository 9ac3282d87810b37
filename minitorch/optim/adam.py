"""Adam and AdamW: steps of a size independent of the size of the gradients."""

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


class Adam(OneFormula):
    """Running means of the gradient and its square: ``p -= lr * mean / (sqrt(mean_of_squares) + eps)``.

    From Kingma and Ba, arXiv:1412.6980. Both means start at zero, and are divided by their bias towards it.

    Args:
        params: parameters, or groups of them.
        lr: the learning rate: about how far a parameter moves in a step.
        betas: how much of the two running means is kept at each step.
        eps: added to the denominator.
        weight_decay: added to the gradient, times the parameter; in `AdamW` taken off the parameter, times `lr`.
        amsgrad: divide by the largest mean of squares so far (Reddi et al., arXiv:1904.09237).
        maximize: go uphill.
        **how: PyTorch's `foreach`, `fused` and `capturable`, which change nothing here.

    Raises:
        ValueError: for a negative learning rate, eps or weight decay, and for betas outside of [0, 1).

    Example:
        >>> import minitorch as mt
        >>> w = mt.tensor([4.0, -1000.0], requires_grad=True)
        >>> optimizer = mt.optim.Adam([w], lr=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([   3.5000, -999.5000], requires_grad=True)
    """

    decoupled = False

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **how: Unpack[How],
    ) -> None:
        rates = hyperparameters(type(self).__name__, how, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        super().__init__(params, {**rates, "amsgrad": amsgrad, "maximize": maximize})

    def decays_apart(self, group: ParamGroup) -> bool:
        """Return whether weight decay shrinks the parameters themselves."""
        return self.decoupled

    def slots(self, group: ParamGroup) -> tuple[str, ...]:
        """Return the count of steps, for the corrections, and the two means."""
        return ("step", "exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if group.uses("amsgrad") else ()))

    def numbers(self, group: ParamGroup, state: dict[str, Tensor]) -> list[Tensor]:
        """Return the shares of the means, the rate and eps.

        The corrections of both means are put into the rate and eps (section 2 of the paper): with ``c = sqrt(1 -
        beta2**t)``, the step is ``lr * c / (1 - beta1**t) * mean / (sqrt(squares) + eps * c)``.
        """
        lr, beta1, beta2, eps = group.tensors("lr", "betas", "eps", dtype=float64)
        step = to_dtype(state["step"], float64)
        correction = P.sqrt(1 - P.power(beta2, step))
        rate = lr * correction / (1 - P.power(beta1, step))
        return [beta1, beta2, 1 - beta1, 1 - beta2, rate, eps * correction]

    def change(self, group: ParamGroup, state: dict[str, Tensor], g: Tensor, numbers: list[Tensor]) -> Tensor:
        """Return how far the parameter goes down."""
        beta1, beta2, rest1, rest2, rate, eps = numbers
        mean = running_mean(state["exp_avg"], beta1, rest1, g)
        squares = running_mean(state["exp_avg_sq"], beta2, rest2, g * g)
        if group.uses("amsgrad"):
            squares = P.maximum(state["max_exp_avg_sq"], squares)
            assign(state["max_exp_avg_sq"], squares)
        return rate * mean / (P.sqrt(squares) + eps)


class AdamW(Adam):
    """`Adam` whose weight decay shrinks the parameters themselves (Loshchilov and Hutter, arXiv:1711.05101).

    Args:
        params: parameters, or groups of them.
        lr: the learning rate.
        betas: how much of the two running means is kept at each step.
        eps: added to the denominator.
        weight_decay: the share of a parameter that is taken off at each step, times `lr`.
        amsgrad: divide by the largest mean of squares so far.
        maximize: go uphill.
        **how: PyTorch's `foreach`, `fused` and `capturable`, which change nothing here.

    Example:
        >>> import minitorch as mt
        >>> w = mt.tensor([4.0], requires_grad=True)
        >>> optimizer = mt.optim.AdamW([w], lr=0.5, weight_decay=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([3.3000], requires_grad=True)
    """

    decoupled = True

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        **how: Unpack[How],
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, **how)
