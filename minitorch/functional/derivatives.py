"""Formulas with a given derivative, in place of that of their steps.

An exact formula is often pieced together from several, with limits between. The derivative of its steps then loses
digits, or is NaN, where the function's own is known. `with_derivative` takes both.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import primitives as P
from ..autograd import Context, Function
from ..interpreters import expand_operands
from ..tensor import Tensor

Formula = Callable[..., Tensor]


def with_derivative(name: str, formula: Formula, *derivatives: Formula | None) -> Formula:
    """Return a formula that `backward` passes with given derivatives.

    Args:
        name: the name of the function, on the tape.
        formula: ``(*inputs) -> output``, of float tensors of one type, which broadcast.
        derivatives: for each input, ``(*inputs) -> derivative``, written with tensor operations, so that it can itself
            be differentiated; None where it is 0, whatever the cotangent is.
    """

    class Differentiable(Function):
        @staticmethod
        def forward(ctx: Context, *inputs: Tensor) -> Tensor:
            ctx.save_for_backward(*inputs)
            return formula(*inputs)

        @staticmethod
        def backward(ctx: Context, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
            inputs, (g,) = ctx.saved_tensors, cotangents
            flat = P.constant(value=0, shape=g.shape, dtype=g.dtype)
            rules = zip(derivatives, ctx.needs_input_grad, strict=True)
            return tuple([(P.mul(g, rule(*inputs)) if rule else flat) if needed else None for rule, needed in rules])

    Differentiable.__name__ = Differentiable.__qualname__ = name

    def apply(*inputs: Tensor) -> Tensor:
        if any(x._requires_grad for x in inputs):
            return Differentiable.apply(*expand_operands(inputs, name, recorded_only=True))  # type: ignore[no-any-return]
        return formula(*inputs)

    return apply
