"""`OneFormula`, optimisers whose step is one formula for each parameter, with numbers that the parameters share."""

from __future__ import annotations

from ..dtypes import DType, float32, float64
from ..functional.inplace import assign
from ..functional.operands import to_dtype
from ..tensor import Tensor
from .group import ParamGroup
from .optimizer import Optimizer


def running_mean(old: Tensor, share: Tensor, rest: Tensor, new: Tensor) -> Tensor:
    """Return a share of a mean and the rest of something new, and write it to the mean."""
    mean = share * old + rest * new
    assign(old, mean)
    return mean


class OneFormula(Optimizer):
    """Base class: a subclass gives the `numbers` of a group, and the `change` of a parameter.

    Weight decay is done here: added to the gradient, or taken off the parameter.
    """

    def numbers(self, group: ParamGroup, state: dict[str, Tensor]) -> list[Tensor]:
        """Return the factors shared by all parameters of a group, in float64, of the counts in a state."""
        raise NotImplementedError

    def change(self, group: ParamGroup, state: dict[str, Tensor], g: Tensor, numbers: list[Tensor]) -> Tensor:
        """Write the state of a parameter, and return what is taken off the parameter."""
        raise NotImplementedError

    def decays_apart(self, group: ParamGroup) -> bool:
        """Return whether weight decay shrinks the parameters themselves (Loshchilov and Hutter, arXiv:1711.05101)."""
        return False

    def update(self, group: ParamGroup, parameters: list[Tensor], gradients: list[Tensor]) -> list[Tensor]:
        """Make one step."""
        shared: dict[DType, list[Tensor]] = {}  # the numbers, rounded to the type of parameters
        updated = []
        for p, g in zip(parameters, gradients, strict=True):
            if p.dtype not in shared:
                lr, decay = group.tensors("lr", "weight_decay", dtype=float64)
                factor = 1 - lr * decay if self.decays_apart(group) else decay
                dtype = float32 if p.dtype.itemsize < 4 else p.dtype
                shared[p.dtype] = [to_dtype(x, dtype) for x in (factor, *self.numbers(group, self.state[p]))]
            factor, *numbers = shared[p.dtype]
            kept = p
            if group.uses("weight_decay"):
                kept, g = (p * factor, g) if self.decays_apart(group) else (p, g + factor * p)
            updated.append(assign(p, kept - self.change(group, self.state[p], g, numbers)))
        return updated
