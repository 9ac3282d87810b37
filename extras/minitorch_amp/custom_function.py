"""`custom_fwd` and `custom_bwd`: autocast for functions with a hand-written gradient.

forward in a block ──► custom_fwd ──► cast_inputs? ── yes ──► floats cast to that type, autocast off
                           │                       └─ no ───► autocast as it is
                           └── notes on ctx which of the two it was
backward, later ──────► custom_bwd ──► the same autocast, whatever block `backward()` is called in
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, overload

import numpy as np

from minitorch.dtypes import DType, as_dtype, float64
from minitorch.functional.operands import to_dtype
from minitorch.interpreters import current_handler, handling
from minitorch.tensor import Tensor

from .autocast_mode import check_device

F = TypeVar("F", bound=Callable[..., Any])


@overload
def custom_fwd(fwd: F, *, device_type: str, cast_inputs: Any = None) -> F: ...
@overload
def custom_fwd(fwd: None = None, *, device_type: str, cast_inputs: Any = None) -> Callable[[F], F]: ...
def custom_fwd(fwd: F | None = None, *, device_type: str, cast_inputs: Any = None) -> F | Callable[[F], F]:
    """A decorator of the `forward` of an `autograd.Function`, as `torch.amp.custom_fwd`.

    Args:
        fwd: a function of a context and arguments.
        device_type: ``"cpu"``.
        cast_inputs: a float type. Where autocast is on, tensors of floats among the arguments, and in lists, tuples and
            dicts of them, are cast to it, but for float64, and `forward` runs with autocast off. Without it, `forward`
            runs with the autocast of the call.

    Raises:
        ValueError: if `device_type` is no string.
        DeviceError: for another device (``MT203``).

    Example:
        >>> import minitorch as mt
        >>> class Product(mt.autograd.Function):
        ...     @staticmethod
        ...     @mt.amp.custom_fwd(device_type="cpu", cast_inputs=mt.float32)
        ...     def forward(ctx, a, b):
        ...         ctx.save_for_backward(a, b)
        ...         return a @ b
        ...     @staticmethod
        ...     @mt.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, g):
        ...         a, b = ctx.saved_tensors
        ...         return g @ b.mT, a.mT @ g
        >>> with mt.autocast("cpu"):
        ...     a = mt.ones(2, 2) @ mt.ones(2, 2)
        ...     a.dtype, Product.apply(a, a).dtype
        (minitorch.bfloat16, minitorch.float32)
    """
    check_device("custom_fwd", device_type)
    dtype = None if cast_inputs is None else as_dtype(cast_inputs)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=dtype)
    function = fwd

    @functools.wraps(function)
    def forward(ctx: Any, *args: Any, **options: Any) -> Any:
        handler = current_handler()
        ctx._autocast = handler if dtype is None else None
        if dtype is None or handler is None:
            return function(ctx, *args, **options)
        with handling(None):
            return function(ctx, *_cast(args, dtype), **_cast(options, dtype))

    return forward


@overload
def custom_bwd(bwd: F, *, device_type: str) -> F: ...
@overload
def custom_bwd(bwd: None = None, *, device_type: str) -> Callable[[F], F]: ...
def custom_bwd(bwd: F | None = None, *, device_type: str) -> F | Callable[[F], F]:
    """A decorator of the `backward` of an `autograd.Function`: it runs in the autocast that `forward` ran in.

    As `torch.amp.custom_bwd`; `forward` is decorated with `custom_fwd`, which has an example.

    Raises:
        ValueError: if `device_type` is no string.
        DeviceError: for another device (``MT203``).
        RuntimeError: in `backward`, if `forward` is not decorated.
    """
    check_device("custom_bwd", device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    function = bwd

    @functools.wraps(function)
    def backward(ctx: Any, *args: Any, **options: Any) -> Any:
        if not hasattr(ctx, "_autocast"):
            raise RuntimeError(
                f"custom_bwd: the forward of {ctx._name} is not decorated with custom_fwd, which notes its autocast"
            )
        with handling(ctx._autocast):
            return function(ctx, *args, **options)

    return backward


def _cast(value: Any, dtype: DType) -> Any:
    """A value with all its float tensors in a type, but those of float64."""
    if isinstance(value, Tensor):
        return to_dtype(value, dtype) if value.dtype.is_floating_point and value.dtype is not float64 else value
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {_cast(key, dtype): _cast(each, dtype) for key, each in value.items()}
    if isinstance(value, Iterable):
        cast = (_cast(each, dtype) for each in value)
        return type(value)(cast) if isinstance(value, (list, tuple)) else cast
    return value
