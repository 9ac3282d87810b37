"""`autocast`: products in a 16-bit type, losses in float32, and no cast in the program itself.

Micikevicius et al., "Mixed Precision Training", arXiv:1710.03740. The weights stay in float32 (*master weights*), and
so do their gradients: a weight is cast where a product reads it, and the gradient of a cast is a cast back. The state
and the casts are in `minitorch.interpreters.autocast`; here is the block that switches it. For a graph
that was recorded without, the pass `minitorch.passes.autocast` does the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from ..dtypes import DType, as_dtype, bfloat16, float16
from ..functional.devices import on_cpu
from ..interpreters import Autocast, current_autocast, decorated, enter_autocast, leave_autocast

F = TypeVar("F", bound=Callable[..., Any])

# The types to compute in; the first is the one that is meant if none is given.
LOWER_TYPES = (bfloat16, float16)


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
        self._previous: list[Autocast | None] = []

    def __call__(self, function: F) -> F:
        """As a decorator, of functions and modules."""
        options = self.device, self.fast_dtype, self.enabled, self.cache_enabled
        return decorated(lambda: autocast(*options), function)  # type: ignore[no-any-return]

    def __enter__(self) -> autocast:
        mode = Autocast(self.fast_dtype, self.cache_enabled) if self.enabled else None
        self._previous.append(enter_autocast(mode))
        return self

    def __exit__(self, *exception: object) -> None:
        leave_autocast(self._previous.pop())


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
