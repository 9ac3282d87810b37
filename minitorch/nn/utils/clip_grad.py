"""Functions of all parameters together: gradient clipping, parameters as one vector."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ... import primitives as P
from ...autograd import no_grad
from ...dtypes import float32
from ...functional.inplace import assign
from ...functional.movement.arranging import cat, stack
from ...functional.movement.parts import part
from ...functional.movement.selection import clamp
from ...functional.options import real
from ...functional.reducing.reductions import norm
from ...tensor import Tensor


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    tensors = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [gradient for each in tensors if (gradient := each.grad) is not None]


def _check_limit(what: str, value: float | Tensor) -> None:
    """Refuse a value that is not a number; a tensor is accepted, since its value may be unknown in a trace."""
    if not isinstance(value, Tensor):
        real(what, value)


def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0) -> Tensor:
    """Scale all gradients, in place, so that the norm of all together is at most `max_norm`.

    From Pascanu et al., arXiv:1211.5063.

    Args:
        parameters: the parameters whose ``grad`` is limited.
        max_norm: the largest norm allowed.
        norm_type: the order of the norm, ``math.inf`` included.

    Returns:
        The norm before clipping.

    Example:
        >>> import minitorch as mt
        >>> w = mt.zeros(2, requires_grad=True)
        >>> w.grad = mt.tensor([3.0, 4.0])
        >>> mt.nn.utils.clip_grad_norm_(w, 1.0), w.grad
        (tensor(5.), tensor([0.6000, 0.8000]))
    """
    _check_limit("clip_grad_norm_: max_norm", max_norm)
    norm_type = real("clip_grad_norm_: norm_type", norm_type)
    gradients = _gradients(parameters)
    if not gradients:
        return P.constant(value=0.0, shape=(), dtype=float32)
    with no_grad():
        total = norm(stack([norm(gradient, norm_type) for gradient in gradients]), norm_type)
        scale = clamp(max_norm / (total + 1e-6), max=1.0)  # the 1e-6 is PyTorch's, too
        for gradient in gradients:
            assign(gradient, gradient * scale, "clip_grad_norm_")
    return total


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Limit every element of all gradients, in place, to between minus and plus `clip_value`.

    Example:
        >>> import minitorch as mt
        >>> w = mt.zeros(2, requires_grad=True)
        >>> w.grad = mt.tensor([3.0, -0.5])
        >>> mt.nn.utils.clip_grad_value_(w, 1.0)
        >>> w.grad
        tensor([ 1.0000, -0.5000])
    """
    _check_limit("clip_grad_value_: clip_value", clip_value)
    with no_grad():
        for gradient in _gradients(parameters):
            assign(gradient, clamp(gradient, -clip_value, clip_value), "clip_grad_value_")


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return all elements of all parameters in one dimension.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.utils.parameters_to_vector(mt.nn.Linear(3, 2).parameters()).shape
        (8,)
    """
    return cat([P.reshape(parameter, shape=(parameter.numel(),)) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the elements of a vector into parameters, in place: the inverse of `parameters_to_vector`.

    Raises:
        ValueError: if their numbers differ.
    """
    tensors = list(parameters)
    count = sum(math.prod(tensor.shape) for tensor in tensors)
    if vec.shape != (count,):
        raise ValueError(f"the parameters have {count} elements, the vector {vec.numel()}")
    begin = 0
    with no_grad():
        for tensor in tensors:
            end = begin + tensor.numel()
            assign(tensor, P.reshape(part(vec, 0, begin, end), shape=tensor.shape), "vector_to_parameters")
            begin = end
