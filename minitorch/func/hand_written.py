"""Hand-written functions (`autograd.Function`) within `vmap`, with a gradient around it.

A function of one example becomes one of all, which the tape below records: its `backward` runs the given one on top of
the same layer again, and adds up the gradients of what the examples share.
"""

from __future__ import annotations

from typing import Any

from ..autograd.function import Function, Output
from ..errors import AutogradError
from ..primitives import reduce_sum, reshape
from ..tensor import Tensor


def called_below(layer: Any, function: Any, context: Any, args: tuple[Any, ...]) -> Any:
    """Return what a function gives for the arguments, which belong to a layer, recorded below the layer."""
    held = [layer.examples(arg) if isinstance(arg, Tensor) else None for arg in args]
    count = next((each.shape[0] for each in held if each is not None and each.shape[0] != 1), 1)
    is_tuple = False

    class Whole(Function):
        @staticmethod
        def forward(ctx: Any, *_: Any) -> tuple[Tensor, ...]:
            nonlocal is_tuple
            with layer.entered():
                result = function._run(context, args, True)
            if context._dirty:
                raise AutogradError(
                    "MT401",
                    f"{function.__name__} writes to its argument within vmap, and a gradient is asked for around it",
                    fix="return a new tensor from forward",
                )
            is_tuple = isinstance(result, tuple)
            outputs = result if is_tuple else (result,)
            found = tuple([layer.of_all(each, count) for each in outputs])
            constant = {id(each) for each in context._constant}
            ctx.mark_non_differentiable(*[y for y, each in zip(found, outputs, strict=True) if id(each) in constant])
            ctx.set_materialize_grads(context._fills)
            context.place(enumerate(outputs))
            ctx.save_for_backward(*[found[each.position] for each in context._saved if isinstance(each, Output)])
            return found

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            places = [each.position for each in context._saved if isinstance(each, Output)]
            context._outputs = dict(zip(places, map(layer.wrapped, ctx.saved_tensors), strict=True))
            with layer.entered():
                found = function.backward(context, *[g if g is None else layer.wrapped(g) for g in cotangents])
            found = found if isinstance(found, tuple) else (found,)
            return tuple(
                [g if g is None else _for(each, layer.of_all(g, count)) for each, g in zip(held, found, strict=True)]
            )

    Whole.__name__ = function.__name__
    with layer.below_it():
        outputs = Whole.apply(*[arg if each is None else each for arg, each in zip(args, held, strict=True)])
    wrapped = tuple(map(layer.wrapped, outputs))
    return wrapped if is_tuple else wrapped[0]


def _for(examples: Tensor | None, gradient: Tensor) -> Tensor:
    """Return the gradient of an argument, of those for each example: their sum, if the examples share it."""
    if examples is not None and examples.shape[0] == gradient.shape[0]:
        return gradient
    total = reduce_sum(gradient, dims=(0,))
    return total if examples is None else reshape(total, shape=examples.shape)
