"""Checkpointing (rematerialisation): compute intermediate values twice instead of keeping them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import primitives as P
from ..autograd import no_grad
from ..autograd.recompute import Recomputation, recorded_since
from ..interpreters import current_handler, current_staging, handling, is_grad_enabled, on_top
from ..tensor import TapeEntry, Tensor, next_serial
from ..tree import flatten, unflatten
from .generator import default_generator
from .reads import Reads


def checkpoint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function, without keeping its intermediate values for `backward`, which computes them again.

    Saves memory and costs time: of the function, only the arguments are kept. Random numbers are the same the second
    time (those of the default generator). Any other effect of the function happens twice. Like
    ``torch.utils.checkpoint.checkpoint`` with ``use_reentrant=False``; the idea is of Chen et al., arXiv:1604.06174.

    In a traced function the recomputation is part of the graph; `primitives.barrier` keeps CSE from merging it with the
    first computation. Values that depend on no argument are computed once.

    Args:
        function: computes a tensor or a nested structure of them, the same each time.
        args: its arguments; tensors, also within tuples, lists and dicts, and anything else.
        kwargs: likewise.

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
        with no_grad():
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
            leaves[place]._requires_grad = leaf._requires_grad
    return unflatten(structure, leaves)
