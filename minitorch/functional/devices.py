"""Devices: the CPU alone. PyTorch's ways to ask for it are accepted, and other devices refused."""

from __future__ import annotations

from typing import Any

from ..errors import DeviceError
from ..tensor import Tensor

__all__ = ["cpu", "cuda", "pin_memory"]

# PyTorch's kinds of devices, to tell the name of a device from a misspelt element type.
_KNOWN = ("cpu", "cuda", "gpu", "hpu", "meta", "mps", "tpu", "xla", "xpu")


class device(str):  # noqa: N801  PyTorch's name
    """A device by its name, and perhaps a number. Any may be named; tensors are on the CPU alone.

    Attributes:
        type: the name without the number.
        index: the number, or None.

    Raises:
        RuntimeError: for a name that PyTorch does not have either.

    Example:
        >>> import minitorch as mt
        >>> mt.device("cuda:1"), mt.device("cuda", 1).index, mt.ones(2).device == mt.device("cpu")
        (device(type='cuda', index=1), 1, True)
    """

    __slots__ = ()

    def __new__(cls, type: Any, index: int | None = None) -> device:
        """Return the device of a name such as ``"cuda:0"``."""
        text = str(type) if index is None else f"{type}:{index}"
        if _kind(text) not in _KNOWN:
            raise RuntimeError(f"there is no kind of device {text!r}; there are {', '.join(_KNOWN)}")
        return super().__new__(cls, text)

    @property
    def type(self) -> str:
        """The name without the number."""
        return _kind(self)

    @property
    def index(self) -> int | None:  # type: ignore[override]
        """The number, or None."""
        return int(self.partition(":")[2]) if ":" in self else None

    def __repr__(self) -> str:
        return f"device(type={self.type!r}" + ("" if self.index is None else f", index={self.index}") + ")"


def _kind(device: Any) -> str:
    """Return ``"cuda"`` of ``"cuda:0"``, or of an object such as PyTorch's ``torch.device("cuda:0")``."""
    return str(device).partition(":")[0]


def is_device(value: Any) -> bool:
    """Return whether a device is meant: its name, an object such as ``torch.device("cpu")``, or the number of a GPU."""
    return type(value) is int or type(value).__name__ == "device" or (isinstance(value, str) and _kind(value) in _KNOWN)


def on_cpu(device: Any) -> None:
    """Make sure that a device is the CPU, or that none is asked for.

    Raises:
        DeviceError: ``MT203`` for any other one.
    """
    if device is not None and _kind(device) != "cpu":
        raise DeviceError(
            "MT203",
            f"there is no device {str(device)!r}",
            why="minitorch computes on the CPU alone, on as many of its cores as mt.get_num_threads() says",
            fix='write device="cpu", or leave it out; functions run elsewhere by '
            'mt.jit(f, backend="xla", device="cuda")',
        )


def cpu(self: Tensor) -> Tensor:
    """Return the tensor itself: all tensors are on the CPU.

    Example:
        >>> import minitorch as mt
        >>> x = mt.ones(2)
        >>> x.cpu() is x, x.device
        (True, device(type='cpu'))
    """
    return self


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Return the tensor itself: there is no device to which pinned memory could be copied faster.

    Example:
        >>> import minitorch as mt
        >>> mt.ones(2).pin_memory()
        tensor([1., 1.])
    """
    return self


def cuda(self: Tensor, device: Any = None) -> Tensor:
    """Raise an error: there is no such device.

    Raises:
        DeviceError: ``MT203``.
    """
    on_cpu("cuda" if device is None else device)
    return self


_CPU = device("cpu")


def _device(tensor: Tensor) -> device:
    """Return the device of the tensor: the CPU."""
    return _CPU


PROPERTIES = {"device": _device}
