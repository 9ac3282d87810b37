"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

from .. import primitives as P
from ..functional.inplace import assign
from ..primitives.elementwise import scalar
from ..tensor import Tensor
from .group import How, ParamGroup, hyperparameters
from .optimizer import Optimizer


class SGD(Optimizer):
    """``p -= lr * g``; with momentum, ``p -= lr * m`` where ``m = momentum * m + (1 - dampening) * g``.

    Args:
        params: parameters, or groups of them.
        lr: the learning rate.
        momentum: how much of the last direction is kept (Polyak, 1964); 0 for plain descent.
        dampening: how much of the gradient is left out of the direction, after the first step.
        weight_decay: added to the gradient, times the parameter.
        nesterov: look ahead by one step of the momentum (Sutskever et al., ICML 2013).
        maximize: go uphill.
        **how: PyTorch's `foreach` and `fused`, which change nothing here.

    Raises:
        ValueError: for a negative learning rate, momentum or weight decay.

    Example:
        >>> import minitorch as mt
        >>> w = mt.tensor([4.0], requires_grad=True)
        >>> optimizer = mt.optim.SGD([w], lr=0.25)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([2.], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        **how: Unpack[How],
    ) -> None:
        rates = hyperparameters("SGD", how, lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay)
        super().__init__(params, {**rates, "nesterov": nesterov, "maximize": maximize})
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov's momentum needs a momentum above 0 and no dampening")

    def slots(self, group: ParamGroup) -> tuple[str, ...]:
        """Return the direction, kept if there is momentum."""
        counted = ("step",) if group.uses("dampening") else ()
        return ("momentum_buffer", *counted) if group.uses("momentum") else ()

    def update(self, group: ParamGroup, parameters: list[Tensor], gradients: list[Tensor]) -> list[Tensor]:
        """Make one step."""
        updated = []
        for p, g in zip(parameters, gradients, strict=True):
            lr, momentum, weight_decay = group.tensors("lr", "momentum", "weight_decay", dtype=p.dtype)
            if group.uses("weight_decay"):
                g = g + weight_decay * p
            if group.uses("momentum"):
                buffer = self.state[p]["momentum_buffer"]
                new = g
                if group.uses("dampening"):
                    new = g * self._share(group, p)
                direction = momentum * buffer + new
                assign(buffer, direction)
                g = g + momentum * direction if group.uses("nesterov") else direction
            updated.append(assign(p, p - lr * g))
        return updated

    def _share(self, group: ParamGroup, p: Tensor) -> Tensor:
        """Return the share of the gradient in the direction: all of it in the first step."""
        (dampening,) = group.tensors("dampening", dtype=p.dtype)
        step = self.state[p]["step"]
        return P.where(P.equal(step, scalar(1, step)), scalar(1, p), 1 - dampening)
