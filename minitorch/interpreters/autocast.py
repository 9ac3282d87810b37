"""Mixed precision: which functions compute in the lower type, and which in float32, while `autocast` is on.

    user's call ──► linear(x: f32, w: f32)      a function of one of the two lists, marked where it is defined
                      │  autocast on?
                      ▼
                    cast(x, bf16), cast(w, bf16)   ordinary nodes; that of a weight is made once in a block
                      ▼
                    linear itself, autocast off

The lists are PyTorch's for the CPU. They are of functions, not of primitives: the exponential of a `softmax` and that
of a loss are one primitive. So the casts are made where a listed function is called, in every mode alike, and all that
is below (recording, gradients, passes, kernels) sees casts like any others. Functions of neither list compute in the
types that they are given; those of several operands promote, as they always do.

The state belongs to the thread: `Autocast` or None, and the casts of weights that were made so far.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ..dtypes import DType, float32, float64
from ..ir import PRIMITIVES
from ..tensor import Tensor
from .state import Autocast, Cast, thread

F = TypeVar("F", bound=Callable[..., Tensor])

# Which functions have a policy, by name: the rows that tests compare with PyTorch's.
LOWER: dict[str, Callable[..., Any]] = {}
FULL: dict[str, Callable[..., Any]] = {}


def current_autocast() -> Autocast | None:
    """The autocast that is on in this thread, if there is one."""
    return thread.autocast


def set_autocast(mode: Autocast | None) -> Autocast | None:
    """Switch autocast in this thread; returns what it was."""
    previous, thread.autocast = thread.autocast, mode
    return previous


@contextmanager
def autocasting(mode: Autocast | None) -> Iterator[None]:
    """Switch autocast to a mode for a block that makes its own casts: for what runs again, or runs later."""
    state = thread
    previous, casts = state.autocast, state.casts
    state.autocast, state.casts = mode, {}
    try:
        yield
    finally:
        state.autocast, state.casts = previous, casts


def enter_autocast(mode: Autocast | None) -> Autocast | None:
    """Switch autocast at the beginning of a block; returns what it was."""
    thread.autocast_depth += 1
    return set_autocast(mode)


def leave_autocast(previous: Autocast | None) -> None:
    """Switch autocast back at the end of a block; the outermost one forgets the casts of weights."""
    state = thread
    state.autocast = previous
    state.autocast_depth -= 1
    if not state.autocast_depth:
        state.casts.clear()


def in_lower_precision(function: F) -> F:
    """Mark a function whose float operands are cast to the lower type while autocast is on, but for float64."""
    return _marked(function, LOWER, lambda mode: mode.dtype)


def in_full_precision(function: F) -> F:
    """Mark a function whose float operands of 16 bits are cast to float32 while autocast is on."""
    return _marked(function, FULL, lambda mode: float32)


def _marked(function: F, table: dict[str, Callable[..., Any]], type_in: Callable[[Autocast], DType]) -> F:
    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Tensor:
        state = thread
        mode = state.autocast
        if mode is None:
            return function(*args, **options)
        dtype = type_in(mode)
        args = tuple([_cast(value, dtype, mode) for value in args])
        options = {name: _cast(value, dtype, mode) for name, value in options.items()}
        state.autocast = None
        try:
            return function(*args, **options)
        finally:
            state.autocast = mode

    table[function.__name__] = called
    return called  # type: ignore[return-value]


def _cast(value: Any, dtype: DType, mode: Autocast) -> Any:
    """An argument of a marked function; what is no tensor of a float type is passed on as it is."""
    if not isinstance(value, Tensor):
        return value
    given = value.dtype
    if given is dtype or given is float64 or not given.is_floating_point:
        return value
    if not mode.cache_enabled or dtype is float32 or not _is_weight(value):
        return PRIMITIVES["cast"](value, dtype=dtype)
    state = thread
    key = id(value), value._version, dtype, state.grad_enabled
    known = state.casts.get(key)
    if known is None:
        known = state.casts[key] = Cast(value, PRIMITIVES["cast"](value, dtype=dtype))
    return known.result


def _is_weight(tensor: Tensor) -> bool:
    """Whether a tensor is likely to be cast again in a block, as PyTorch sees it: a float32 leaf to be trained."""
    return tensor.dtype is float32 and tensor._requires_grad and tensor._entry is None and tensor._view is None
