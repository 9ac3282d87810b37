"""`gradcheck`: comparison of the tape's derivatives with finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import float64
from ..errors import AutogradError
from ..interpreters import concrete
from ..primitives import constant
from ..primitives.sources import Literal
from ..tensor import Tensor
from .grad_mode import no_grad
from .gradients import detach, grad


def _numbers(tensor: Tensor) -> Any:
    return concrete(tensor, "gradcheck").astype("float64", order="C")


def _from_numbers(array: Any) -> Tensor:
    return constant(value=Literal(array), shape=array.shape, dtype=float64)


def gradcheck(
    function: Callable[..., Any],
    inputs: Tensor | Sequence[Tensor],
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Return whether the gradients of a function agree with central differences, in every element.

    Args:
        function: takes `inputs`, returns a tensor or a tuple of tensors.
        inputs: float64 tensors; those with ``requires_grad`` are checked.
        eps: the step, in the input's units.
        atol, rtol: the permitted absolute and relative difference.
        raise_exception: raise when they differ, instead of returning False.

    Raises:
        AutogradError: ``MT405``, naming the input, the elements and both derivatives.

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor([0.5, 1.5], dtype=mt.float64, requires_grad=True)
        >>> mt.autograd.gradcheck(mt.exp, x)
        True
    """
    tensors = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    for number, tensor in enumerate(tensors):
        if tensor._requires_grad and tensor.dtype is not float64:
            raise AutogradError(
                "MT405",
                f"input {number} of gradcheck is {tensor.spec}",
                why="differences need float64",
                fix="use x.double()",
            )

    def outputs(*args: Tensor) -> list[Tensor]:
        result = function(*args)
        several = result if isinstance(result, (tuple, list)) else [result]
        return [output for output in several if output.dtype.is_floating_point]

    for position in range(len(outputs(*tensors))):
        for number, tensor in enumerate(tensors):
            if not tensor._requires_grad:
                continue
            problem = _compare(outputs, tensors, position, number, eps, atol, rtol)
            if problem is not None:
                if raise_exception:
                    raise AutogradError("MT405", problem, fix="check the operation's gradient rule")
                return False
    return True


def _compare(
    outputs: Callable[..., list[Tensor]],
    tensors: list[Tensor],
    position: int,
    number: int,
    eps: float,
    atol: float,
    rtol: float,
) -> str | None:
    """Return the first disagreement for one output and one input as text, or None."""
    output = outputs(*tensors)[position]
    base = _numbers(detach(tensors[number]))
    rows = output.numel()
    analytic = []
    for row in range(rows):
        seed = _numbers(detach(output))
        seed[...] = 0
        seed.reshape(-1)[row] = 1
        if output._requires_grad:
            (gradient,) = grad(output, tensors[number], _from_numbers(seed), retain_graph=True, allow_unused=True)
        else:
            gradient = None
        analytic.append((base * 0 if gradient is None else _numbers(gradient)).reshape(-1))
    for column in range(base.size):
        sides = []
        for sign in (1, -1):
            moved = base.copy()
            moved.reshape(-1)[column] += sign * eps
            args = [_from_numbers(moved) if index == number else tensor for index, tensor in enumerate(tensors)]
            with no_grad():
                sides.append(_numbers(outputs(*args)[position]).reshape(-1))
        numeric = (sides[0] - sides[1]) / (2 * eps)
        for row in range(rows):
            mine, theirs = float(analytic[row][column]), float(numeric[row])
            if not abs(mine - theirs) <= atol + rtol * abs(theirs):
                return (
                    f"the derivative of element {row} of output {position} by element {column} of input {number} is "
                    f"{mine:.6g} by the tape, {theirs:.6g} by differences"
                )
    return None
