"""Checkpointing (rematerialisation): compute intermediate values twice instead of keeping them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .. import primitives as P
from ..dtypes import DType
from ..interpreters import (
    Handle,
    Layer,
    current_handler,
    current_staging,
    handling,
    interpreting,
    is_grad_enabled,
    on_top,
)
from ..ir import Primitive, Source, user_source
from ..tensor import TapeEntry, Tensor, next_serial
from ..tree import flatten, unflatten
from .creation.generator import default_generator
from .recompute import Recomputation, recorded_since


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool = False,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function, without keeping its intermediate values for `backward`, which computes them again.

    Saves memory and costs time: of the function, only the arguments are kept. Random numbers are the same the second
    time (those of the default generator). Any other effect of the function happens twice. Like
    ``torch.utils.checkpoint.checkpoint`` with ``use_reentrant=False``; the idea is of Chen et al., arXiv:1604.06174.

    In a traced function the recomputation is part of the graph; `primitives.barrier` keeps CSE from merging it with the
    first computation. Values that depend on no argument are computed once.

    Args:
        function: computes a tensor or a nested structure of them, the same each time.
        args: its arguments; tensors, also within tuples, lists and dicts, and anything else.
        use_reentrant, preserve_rng_state: PyTorch's options, without effect: what is computed is the same.
        kwargs: likewise arguments of the function.

    Returns:
        The result of the function.

    Raises:
        AutogradError: in `backward`: ``MT402`` if a tensor that its operations read, recorded or not, was overwritten
            since, ``MT406`` if it does something else when it runs again.

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor([0.0, 1.0], requires_grad=True)
        >>> y = mt.checkpoint(lambda x: mt.exp(mt.sin(x)), x)
        >>> y.sum().backward()
        >>> x.grad
        tensor([1.0000, 1.2534])
    """
    if not is_grad_enabled():
        return function(*args, **kwargs)
    handler = current_handler()
    state, draws = default_generator.get_state(), default_generator.draws()
    first = next_serial()
    reads = Reads()
    with on_top(reads), handling(handler):  # which remembers nothing of this run the second time
        result = function(*args, **kwargs)
    draws_numbers = default_generator.draws() != draws
    entries = recorded_since(_tensors(result), first)
    if not entries:
        return result

    def again() -> list[TapeEntry]:
        positional, by_name = _apart((args, kwargs))
        if draws_numbers:
            now = default_generator.get_state()
            default_generator.set_state(_apart(state))
        first = next_serial()
        try:
            with handling(handler):
                result = function(*positional, **by_name)
        finally:
            if draws_numbers:
                default_generator.set_state(now)
        return recorded_since(_tensors(result), first)

    name = getattr(function, "__name__", type(function).__name__)
    drawn_from = default_generator._state  # it goes on, and is put back to its earlier state for the second time
    Recomputation(name, again, entries, [(tensor, line) for tensor, line in reads if tensor is not drawn_from])
    return result


def _tensors(value: Any) -> list[Tensor]:
    leaves, _ = flatten(value)
    return [leaf for leaf in leaves if isinstance(leaf, Tensor)]


def _apart(value: Any) -> Any:
    """Copy values through `barrier` in a trace, so that CSE does not merge the recomputation."""
    if current_staging() is None:
        return value
    leaves, structure = flatten(value)
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor):
            leaves[place] = P.barrier(leaf)
    return unflatten(structure, leaves)


class Reads(Layer):
    """Tensors that some operations read, and neither made nor wrote to. They are not kept alive."""

    def __init__(self) -> None:
        self._read: dict[int, tuple[weakref.ref[Tensor], Source | None]] = {}  # roots, by id
        self._own: set[int] = set()  # roots that were made or written to, by id

    def note(self, tensors: Iterable[Tensor]) -> None:
        """Note that tensors are read."""
        for tensor in tensors:
            root: Tensor = getattr(tensor, "_origin", tensor)._root
            known = self._read.get(id(root))
            if id(root) not in self._own and (known is None or known[0]() is not root):
                self._read[id(root)] = weakref.ref(root), user_source()

    def _made(self, tensor: Tensor) -> Tensor:
        if tensor._view is None:
            self._own.add(id(tensor))
        return tensor

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Apply a primitive, and note its inputs."""
        output = self.below.bind(primitive, inputs, params)
        self.note(inputs)
        return self._made(output)

    def number(self, value: bool | int | float, dtype: DType) -> Tensor:
        """Return a constant."""
        return self._made(self.below.number(value, dtype))

    def assign(self, tensor: Tensor, value: Tensor) -> Handle | None:
        """Write into a tensor, which is this program's own from now on."""
        self.note((value,))
        self._own.add(id(tensor._root))
        self._read.pop(id(tensor._root), None)
        return self.below.assign(tensor, value)

    def concrete(self, tensor: Tensor, what: str, code: str = "MT102", fix: str | None = None) -> np.ndarray[Any, Any]:
        """Return the array of a tensor, which is read."""
        self.note((tensor,))
        return self.below.concrete(tensor, what, code, fix)

    def callback(self, function: Callable[[list[np.ndarray[Any, Any]]], None], tensors: Sequence[Tensor]) -> None:
        """Call a function with the values of tensors, which are read."""
        self.note(tensors)
        self.below.callback(function, tensors)

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a compiled function, and note the inputs of its graph; in a recording it is a part of that."""
        if self.recording is not None:
            return self.recording.call(function, args, kwargs)
        with interpreting(self.below):
            result = function(*args, **kwargs)
        self.note(function.inputs(args, kwargs))
        return result

    def __iter__(self) -> Iterator[tuple[Tensor, Source | None]]:
        """Yield the tensors that still exist, each with the line that read it first."""
        for reference, source in self._read.values():
            root = reference()
            if root is not None:
                yield root, source
