"""`Batching`, the interpreter behind `vmap`: a layer that gives each operation one dimension more, for the examples.

    x * w                 within vmap, with x of shape [3] for each of 8 examples, and w shared by all
      │
    Batching              x is `Batched`: a tensor [8, 3] of the interpreter below; w is that interpreter's own
      │  rule of `mul`
    x' * w                [8, 3] times [3]: below, recorded by its tape, computed by `Eager` or noted by `Staging`

A rule is a composition of primitives, which the interpreter below is asked for. So whatever there is below, another
vmap, a tape or a recording, sees ordinary operations. Most rules follow from a primitive's family and the names of its
parameters (`BEHIND`); others stand beside the declaration, as `Primitive.batch`. For a primitive without a rule the
examples are computed one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import TracedValueError, TracingError
from ..interpreters import Layer, current, interpreting
from ..interpreters.state import thread
from ..ir import POINTWISE, Primitive, user_source
from ..primitives import cast, concatenate, expand, reshape, slice_
from ..primitives.movement import together, with_dimensions
from ..tensor import Batched, Tensor, with_value
from .hand_written import called_below

# How a parameter that speaks of dimensions speaks of them behind one more, of so many examples.
BEHIND: dict[str, Callable[[Any, int], Any]] = {
    "dim": lambda dim, count: dim + 1,
    "dims": lambda dims, count: tuple(dim + 1 for dim in dims),
    "shape": lambda shape, count: (count, *shape),
    "start": lambda start, count: (0, *start),
    "stop": lambda stop, count: (count, *stop),
    "step": lambda step, count: (1, *step) if isinstance(step, tuple) else step,
    "padding": lambda padding, count: ((0, 0, 0), *padding),
}
_REGULAR = (*POINTWISE, "movement", "reduction", "argreduction", "scan", "sort")  # families for which that is the rule


class Batching(Layer):
    """The interpreter of one call of `vmap`.

    Args:
        count: the number of examples.
        randomness: whether examples draw ``"different"`` numbers, the ``"same"`` ones, or none (``"error"``).
    """

    called: Any = None  # the modules of a recording are not noted

    def __init__(self, count: int, randomness: str) -> None:
        self.count = count
        self.randomness = randomness

    @property
    def mapped(self) -> Batching:
        """The layer itself."""
        return self

    def examples(self, tensor: Tensor) -> Tensor | None:
        """Return the values of all examples, if the tensor is one of this layer's."""
        value = tensor._value
        return value.tensor if isinstance(value, Batched) and value.layer is self else None

    def below_of(self, values: Iterable[Any]) -> list[Tensor]:
        """Return the tensors among some values as those of the interpreter below."""
        tensors = [each for each in values if isinstance(each, Tensor)]
        return [tensor if (held := self.examples(tensor)) is None else held for tensor in tensors]

    def of_all(self, tensor: Tensor, count: int | None = None) -> Tensor:
        """Return the value of each example, for so many of them (by default all), also where they share it."""
        held = self.examples(tensor)
        held = _shared(tensor) if held is None else held
        count = self.count if count is None else count
        return held if held.shape[0] == count else expand(held, shape=(count, *tensor.shape))

    def wrapped(self, examples: Tensor) -> Tensor:
        """Return the tensor that a program on top of this layer sees."""
        return with_value(Batched(examples, self))

    def own(self, tensor: Tensor, model: Tensor) -> Tensor:
        """Return a new tensor that all examples share as one for each, as the model is, which may be written to."""
        held = self.examples(model)
        if held is None or self.examples(tensor) is not None:
            return tensor
        with self.below_it():
            copies = cast(expand(tensor, shape=(held.shape[0], *tensor.shape)), dtype=tensor.dtype)
            if isinstance(held._value, Batched):
                copies = held._value.layer.own(copies, held)
            return self.wrapped(copies)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Put the layer on top of the current interpreter for a `with` block."""
        previous, self.below = self.below, current()
        try:
            with interpreting(self):
                yield
        finally:
            self.below = previous

    def custom(self, function: Any, context: Any, args: tuple[Any, ...]) -> Any:
        """Call a hand-written `Function` whose gradient is asked for below, too."""
        return called_below(self, function, context, args)

    @contextmanager
    def below_it(self) -> Iterator[None]:
        """Make the interpreter below current for a `with` block."""
        thread.interpreter, previous = self.below, thread.interpreter
        try:
            yield
        finally:
            thread.interpreter = previous

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Apply a primitive to all examples, if it has an operand with a value for each."""
        held = [self.examples(tensor) for tensor in inputs]
        if all(each is None for each in held):
            if primitive.kind != "random" or self.randomness == "same":
                return self.below.bind(primitive, inputs, params)
            if self.randomness == "error":
                raise RuntimeError(
                    f"random numbers are drawn within vmap, at {user_source()}: say vmap(..., randomness='different') "
                    "or 'same', or draw them outside and pass them as an argument"
                )
            with self.below_it():
                return self.wrapped(primitive(*inputs, **_behind(params, self.count)))
        with self.below_it():
            return self.wrapped(self._apply(primitive, inputs, held, params))

    def _apply(
        self,
        primitive: Primitive,
        inputs: tuple[Tensor, ...],
        held: Sequence[Tensor | None],
        params: Mapping[str, Any],
    ) -> Tensor:
        if primitive.broadcasts and primitive.batch is None:  # what is shared broadcasts by itself
            rank = max(tensor.ndim for tensor in inputs)
            pairs = zip(inputs, held, strict=True)
            operands = [tensor if each is None else with_dimensions(each, rank) for tensor, each in pairs]
            return primitive(*operands, **params)
        operands = [_shared(tensor) if each is None else each for tensor, each in zip(inputs, held, strict=True)]
        if primitive.batch is not None:
            return primitive.batch(*operands, **params)
        if primitive.kind in _REGULAR and len(operands) == 1:
            return primitive(*operands, **_behind(params, operands[0].shape[0]))
        return _one_by_one(primitive, together(*operands), params)

    def assign(self, tensor: Tensor, value: Tensor) -> Any:
        """Write into the values of all examples.

        Raises:
            TracingError: for a value for each example, and a tensor that all share (``MT109``).
        """
        target, given = self.examples(tensor), self.examples(value)
        if target is None and given is None:
            return self.below.assign(tensor, value)
        self._refuse_shared("an in-place write", tensor, target, given)
        assert target is not None
        with self.below_it():
            target.copy_(value if given is None else given)
        return None

    def _refuse_shared(self, what: str, tensor: Tensor, target: Tensor | None, given: Tensor | None) -> None:
        count = 1 if given is None else given.shape[0]
        if target is None or target.shape[0] != count != 1:
            raise TracingError(
                "MT109",
                f"{what} of a value for each example into {tensor.spec}, which all examples of vmap share",
                where=str(user_source()),
                why="one place in memory would get several values",
                fix="compute a new tensor (x = x + y), begin with one made of an argument (mt.zeros_like(y)), or pass "
                "the tensor to vmap as an argument with a dimension of the examples",
            )

    def concrete(self, tensor: Tensor, what: str, code: str = "MT102", fix: str | None = None) -> np.ndarray[Any, Any]:
        """Return the array of a tensor that all examples share.

        Raises:
            TracedValueError: for one with a value for each example.
        """
        if self.examples(tensor) is None:
            return self.below.concrete(tensor, what, code, fix)
        raise TracedValueError(
            code,
            f"{what} needs the value of {tensor.spec}, of which vmap has one for each example",
            where=str(user_source()),
            why="the function is called once for all examples: there is no one value now",
            fix=fix or "leave it a tensor, which arithmetic takes like a number; or loop over the examples",
        )

    def grad_of(self, tensor: Tensor) -> Tensor | None:
        """Return ``tensor.grad``."""
        return self.below.grad_of(tensor) if self.examples(tensor) is None else tensor._grad

    def set_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        """Assign ``tensor.grad``; refuse a gradient for each example of a tensor that all share."""
        given = None if grad is None else self.examples(grad)
        if self.examples(tensor) is not None:
            tensor._grad = grad
        elif given is None:
            self.below.set_grad(tensor, grad)
        else:
            self._refuse_shared("the gradient", tensor, None, given)

    def callback(self, function: Callable[[list[np.ndarray[Any, Any]]], None], tensors: Sequence[Tensor]) -> None:
        """Call a function with the values of each example in turn."""
        held = [self.examples(tensor) for tensor in tensors]
        differ = [each is not None for each in held]

        def one_by_one(arrays: list[np.ndarray[Any, Any]]) -> None:
            for place in range(self.count):
                pairs = zip(arrays, differ, strict=True)
                function([array[place % len(array)] if has_many else array for array, has_many in pairs])

        pairs = zip(tensors, held, strict=True)
        self.below.callback(one_by_one, [tensor if each is None else each for tensor, each in pairs])

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function behind a compiled one."""
        return function.inlined(args, kwargs)


def _behind(params: Mapping[str, Any], count: int) -> dict[str, Any]:
    return {name: BEHIND[name](value, count) if name in BEHIND else value for name, value in params.items()}


def _shared(tensor: Tensor) -> Tensor:
    return reshape(tensor, shape=(1, *tensor.shape))


def _one_by_one(primitive: Primitive, operands: Sequence[Tensor], params: Mapping[str, Any]) -> Tensor:
    """Apply a primitive without a rule to the examples one after another."""
    results = [primitive(*[part(each, 0, place) for each in operands], **params) for place in range(len(operands[0]))]
    return concatenate(*map(_shared, results), dim=0)


def part(tensor: Tensor, dim: int, first: int, last: int | None = None) -> Tensor:
    """Return the elements of a dimension from `first` to before `last`; without `last` one, without the dimension."""
    start = tuple(first if axis == dim else 0 for axis in range(tensor.ndim))
    end = first + 1 if last is None else last
    stop = tuple(end if axis == dim else length for axis, length in enumerate(tensor.shape))
    taken = slice_(tensor, start=start, stop=stop, step=(1,) * tensor.ndim)
    return taken if last is not None else reshape(taken, shape=(*taken.shape[:dim], *taken.shape[dim + 1 :]))


def own_value(tensor: Tensor) -> Tensor:
    """Return a tensor with the same value and no history on the tape of this program, to differentiate by.

    Within vmap, what all examples share becomes a value of the layer: its history here is not its history below.
    """
    layer: Batching | None = current().mapped
    if layer is None or layer.examples(tensor) is not None:
        return tensor
    with layer.below_it():
        return layer.wrapped(_shared(tensor))
