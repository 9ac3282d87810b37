"""`autocast`: products in a 16-bit type, losses in float32, and no cast in the program itself.

Micikevicius et al., "Mixed Precision Training", arXiv:1710.03740. The weights stay in float32 (*master weights*), and
so do their gradients: a weight is cast where a product reads it, and the gradient of a cast is a cast back.

    user's call ──► linear(x: f32, w: f32)      a function of one of two lists, which asks the thread's handler
                      ▼
                    cast(x, bf16), cast(w, bf16)   ordinary nodes; that of a weight is made once in a block
                      ▼
                    linear itself, autocast off

The lists are PyTorch's for the CPU. So the casts are made where a listed function is called, in every mode alike.
Functions of neither list compute in the types that they are given; those of several operands promote, as they always
do. For a graph that was recorded without, the pass `minitorch.passes.autocast` does the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from minitorch.dtypes import DType, as_dtype, bfloat16, float16, float32, float64
from minitorch.functional.devices import on_cpu
from minitorch.interpreters import Handler, current_handler, decorated, is_grad_enabled, set_handler
from minitorch.primitives import cast
from minitorch.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])

# The types to compute in; the first is the one that is meant if none is given.
LOWER_TYPES = (bfloat16, float16)

LOWER = frozenset({
    "_dot", "addbmm", "addmm", "baddbmm", "bmm", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "linear", "matmul", "mm", "scaled_dot_product_attention",
})  # fmt: skip
"""The functions whose operands are cast to the lower type, but for float64."""

FULL = frozenset({
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "huber_loss", "kl_div", "l1_loss",
    "mse_loss", "nll_loss", "prod", "smooth_l1_loss", "trace",
})  # fmt: skip
"""The functions whose operands of 16 bits are cast to float32."""


@dataclass(frozen=True)
class Autocast:
    """A mode of mixed precision.

    Attributes:
        dtype: the lower type.
        cache_enabled: whether a weight is cast once in a block.
    """

    dtype: DType
    cache_enabled: bool = True

    def __str__(self) -> str:
        return f"autocast to {self.dtype.name}"


class Casting:
    """The handler (`minitorch.interpreters.handling`) of a block.

    Attributes:
        key: the mode.
        casts: weights, which are kept so that their `id` stays their own, and their casts, by the weight's `id` and
            version, the type, and whether the tape records; a block within another one shares them.
    """

    def __init__(self, mode: Autocast, casts: dict[Any, tuple[Tensor, Tensor]] | None = None) -> None:
        self.key = mode
        self.casts = {} if casts is None else casts

    def again(self) -> Casting:
        """Return a handler of the same mode, without casts: those of one recording are no values of another."""
        return Casting(self.key)

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call a function of the lists with casts of its operands, and autocast off inside."""
        dtype = float32 if function.__name__ in FULL else self.key.dtype
        args = tuple([self._cast(value, dtype) for value in args])
        options = {name: self._cast(value, dtype) for name, value in options.items()}
        set_handler(None)
        try:
            return function(*args, **options)
        finally:
            set_handler(self)

    def _cast(self, value: Any, dtype: DType) -> Any:
        """Cast an argument; what is no tensor of a float type is passed on as it is."""
        if not isinstance(value, Tensor):
            return value
        given = value.dtype
        if given is dtype or given is float64 or not given.is_floating_point:
            return value
        if not self.key.cache_enabled or dtype is float32 or not _is_weight(value):
            return cast(value, dtype=dtype)
        key = id(value), value._version, dtype, is_grad_enabled()
        known = self.casts.get(key)
        if known is None:
            known = self.casts[key] = value, cast(value, dtype=dtype)
        return known[1]


def _is_weight(tensor: Tensor) -> bool:
    """Whether a tensor is likely to be cast again in a block, as PyTorch sees it: a float32 leaf to be trained."""
    return tensor.dtype is float32 and tensor._requires_grad and tensor._entry is None and tensor._view is None


def current_autocast() -> Autocast | None:
    """Return the mode that is on in this thread, if there is one."""
    handler = current_handler()
    return handler.key if isinstance(handler, Casting) else None


def check_device(name: str, device_type: Any) -> None:
    """Refuse another device than the CPU, by the name of the function that was given it."""
    if not isinstance(device_type, str):
        raise ValueError(f"{name}: device_type is a string such as 'cpu', not {type(device_type).__name__}")
    on_cpu(device_type)


class autocast:  # noqa: N801 (PyTorch's name)
    """Mixed precision in a `with` block, or in a decorated function, as `torch.autocast` on the CPU.

    =====================  ==========================================================================================
    in the lower type      linear, conv1d, conv2d, conv3d, matmul (``@``), mm, bmm, addmm, baddbmm, addbmm, inner,
                           tensordot, products within einsum, scaled_dot_product_attention
    in float32             mse_loss, l1_loss, huber_loss, smooth_l1_loss, kl_div, cross_entropy, nll_loss,
                           binary_cross_entropy, binary_cross_entropy_with_logits, prod, trace
    as they are given      all others; several operands promote, to the widest type
    =====================  ==========================================================================================

    Only float types are cast, and float64 never. The lists are those of PyTorch 2.13 for the CPU, and the same in eager
    mode, `jit`, `lazy` and a `Session`. A jitted function is traced for each autocast that it is called in.

    Call ``backward()`` outside of the block. Inside it gives the same gradients here, since a gradient is computed in
    the types of its operation.

    Args:
        device_type: ``"cpu"``.
        dtype: the lower type: bfloat16, also by default, or float16, for which a loss is scaled (`GradScaler`).
        enabled: False switches autocast off, inside of another block, too.
        cache_enabled: whether the cast of a weight is kept until the outermost block ends. Its gradients are then added
            up in the lower type, as PyTorch does. A weight that is written in place is cast again.

    Raises:
        ValueError: if `device_type` is no string.
        DeviceError: for another device (``MT203``).

    Warns:
        UserWarning: for another dtype, with which nothing is cast, as in PyTorch.

    Example:
        >>> import minitorch as mt
        >>> model, x = mt.nn.Linear(3, 2), mt.ones(4, 3)
        >>> with mt.autocast("cpu"):
        ...     y = model(x)
        ...     loss = mt.nn.functional.mse_loss(y, mt.zeros(4, 2))
        >>> y.dtype, loss.dtype
        (minitorch.bfloat16, minitorch.float32)
        >>> loss.backward()
        >>> model.weight.dtype, model.weight.grad.dtype
        (minitorch.float32, minitorch.float32)
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        check_device("autocast", device_type)
        self.device = "cpu"
        self.fast_dtype: DType = LOWER_TYPES[0] if dtype is None else as_dtype(dtype)
        self.enabled = bool(enabled)
        self.cache_enabled = cache_enabled is None or bool(cache_enabled)
        if self.enabled and self.fast_dtype not in LOWER_TYPES:
            warnings.warn(
                f"autocast: the lower type is bfloat16 or float16, not {self.fast_dtype.name}; nothing is cast",
                stacklevel=2,
            )
            self.enabled = False
        self._previous: list[Handler | None] = []

    def __call__(self, function: F) -> F:
        """As a decorator, of functions and modules."""
        options = self.device, self.fast_dtype, self.enabled, self.cache_enabled
        return decorated(lambda: autocast(*options), function)  # type: ignore[no-any-return]

    def __enter__(self) -> autocast:
        outer = current_handler()
        casts = outer.casts if isinstance(outer, Casting) else None
        mode = Autocast(self.fast_dtype, self.cache_enabled)
        self._previous.append(set_handler(Casting(mode, casts) if self.enabled else None))
        return self

    def __exit__(self, *exception: object) -> None:
        set_handler(self._previous.pop())


def is_autocast_enabled(device_type: str = "cpu") -> bool:
    """Whether autocast is on in this thread.

    Example:
        >>> import minitorch as mt
        >>> with mt.autocast("cpu"):
        ...     mt.is_autocast_enabled()
        True
    """
    check_device("is_autocast_enabled", device_type)
    return current_autocast() is not None


def get_autocast_dtype(device_type: str = "cpu") -> DType:
    """The lower type: that of the autocast that is on, or the one that `autocast` takes by default.

    Example:
        >>> import minitorch as mt
        >>> mt.get_autocast_dtype("cpu")
        minitorch.bfloat16
    """
    check_device("get_autocast_dtype", device_type)
    mode = current_autocast()
    return LOWER_TYPES[0] if mode is None else mode.dtype


def is_autocast_available(device_type: str) -> bool:
    """Whether there is autocast for a device: for the CPU.

    Example:
        >>> import minitorch as mt
        >>> mt.amp.is_autocast_available("cpu"), mt.amp.is_autocast_available("cuda")
        (True, False)
    """
    if not isinstance(device_type, str):
        raise ValueError(f"is_autocast_available: device_type is a string, not {type(device_type).__name__}")
    return device_type.partition(":")[0] == "cpu"
