"""Loops and branches within `func.vmap`, where examples may differ in what they do.

A branch computes both sides, and selects for each example. A loop runs while any example goes on; the others keep their
values. In a recording it is a loop of the interpreter below, over the values of all examples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..autograd.tape import record_many
from ..graph.regions import refused
from ..interpreters import Layer, is_grad_enabled
from ..ir import Primitive
from ..primitives import bitwise_and, permute, random_bits, where
from ..tensor import Batched, Tensor, next_serial
from .bodies import Values, boundary


class Branches(Layer):
    """Both branches of a `cond` are computed for all examples, so neither may change what is outside of it."""

    def __init__(self) -> None:
        self.made: dict[int, Tensor] = {}

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Have a primitive applied below, and note that its result is the branch's own, and a generator for both."""
        output = self.below.bind(primitive, inputs, params)
        for tensor in (output, *inputs) if primitive is random_bits else (output,):
            self.made[id(tensor)] = tensor
        return output

    def assign(self, tensor: Tensor, value: Tensor) -> Any:
        """Write to what a branch has made.

        Raises:
            TracingError: for a tensor from outside (``MT116``).
        """
        if id(tensor._root) not in self.made:
            raise refused(
                f"cond: a branch writes in place to {tensor.spec} from outside, for examples of vmap",
                "both branches are computed for all examples, and each example has the results of one",
                "return the new value from both branches, and write it after the cond",
            )
        return self.below.assign(tensor, value)


def is_any(test: Tensor) -> bool:
    """Return whether a test holds, or does for any example."""
    value = test._value
    if not isinstance(value, Batched):
        return bool(test)
    with value.layer.below_it():
        return is_any(value.tensor.any())


def chosen(test: Tensor, new: list[Tensor], old: Sequence[Tensor]) -> list[Tensor]:
    """Return new values, or old ones for the examples for which a test does not hold."""
    if not isinstance(test._value, Batched):
        return new
    return [where(test, one, other) for one, other in zip(new, old, strict=True)]


def still(before: Tensor, now: Tensor) -> Tensor:
    """Return whether a test holds for what it has held for before."""
    return bitwise_and(before, now) if isinstance(before._value, Batched) else now


def recorded_scan(
    layer: Any,
    scan: Callable[..., Any],
    step: Callable[..., Any],
    first: Values,
    rows: Values,
    options: tuple[Any, ...],
) -> tuple[Any, Any]:
    """Return what a scan gives that the interpreter below a layer records as one of all examples.

    The tape of the mapped function does not see it, so it is not for functions that are differentiated.

    Args:
        layer: the layer of `vmap`.
        scan: `scan`.
        step: from a carry and a slice to both results.
        first: the first carry.
        rows: what is sliced.
        options: of `scan`.
    """
    shown: list[Values] = []

    def of_all(state: list[Tensor], given: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        with layer.entered():
            carried, result = step(first.of(map(layer.wrapped, state)), rows.of(map(layer.wrapped, given)))
        shown[:] = [result]
        with layer.below_it():
            return list(map(layer.of_all, carried.tensors)), list(map(layer.of_all, result.tensors))

    with layer.below_it():
        starts, slices = list(map(layer.of_all, first.tensors)), [_turned(layer.of_all(row)) for row in rows.tensors]
        last, results = scan(of_all, starts, slices, *options)
        results = list(map(_turned, results))
    return first.of(map(layer.wrapped, last)), shown[0].of(map(layer.wrapped, results))


def _turned(tensor: Tensor) -> Tensor:
    """Exchange the first two dimensions: the examples and the repetitions."""
    return permute(tensor, dims=(1, 0, *range(2, tensor.ndim)))


def recorded_while(
    loop: Callable[..., Any],
    test: Callable[..., Tensor],
    body: Callable[..., list[Tensor]],
    first: Sequence[Tensor],
    layer: Any,
    no_gradient: Any,
) -> list[Tensor]:
    """Return the last values of a loop, which the interpreter below a layer records as one of all examples.

    Args:
        loop: `while_loop`.
        test, body: from a list of values to whether to go on, and to the next values.
        first: the first values.
        no_gradient: called where a gradient is asked for.
    """
    sources = [tensor for tensor in first if tensor._requires_grad]

    def next_values(state: list[Tensor]) -> list[Tensor]:
        going, *old = map(layer.wrapped, state)
        with layer.entered():
            begin, new = next_serial(), body(old)
            sources.extend(boundary(new, begin))
            new = chosen(going, new, old)
            return [layer.of_all(each) for each in (still(going, test(new)), *new)]

    start = [test(first), *first]
    with layer.below_it():
        found = loop(lambda state: state[0].any(), next_values, [layer.of_all(each) for each in start])
    shown = [layer.wrapped(each) for each in found[1:]]
    if sources and is_grad_enabled():
        record_many("while_loop", tuple(sources), shown, no_gradient)
    return shown
