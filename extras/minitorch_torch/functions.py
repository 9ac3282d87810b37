"""`compile`, `inference_mode`, `Size` and `Variable`: PyTorch's names for what minitorch has under another one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import minitorch as mt
from minitorch.functional.printing import OPTIONS

# PyTorch's names for layouts of memory: options that take them ignore them.
strided, contiguous_format, preserve_format = "strided", "contiguous_format", "preserve_format"
channels_last, channels_last_3d = "channels_last", "channels_last_3d"


class Size(tuple[int, ...]):
    """A shape: a tuple of ints with `numel`. Shapes of tensors are plain tuples, which are equal to it.

    Example:
        >>> import minitorch as mt
        >>> mt.Size([2, 3]), mt.Size([2, 3]).numel(), mt.ones(2, 3).shape == mt.Size([2, 3])
        (minitorch.Size([2, 3]), 6, True)
    """

    __slots__ = ()

    def numel(self) -> int:
        """Return the number of elements of a tensor of this shape."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"minitorch.Size({list(self)})"


class _AnyTensor(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, mt.Tensor)


class Variable(metaclass=_AnyTensor):
    """A tensor under its name of before PyTorch 0.4: ``Variable(data, requires_grad=True)`` shares the data's memory.

    Example:
        >>> import minitorch as mt
        >>> x = mt.autograd.Variable(mt.ones(2), requires_grad=True)
        >>> x, isinstance(x, mt.autograd.Variable)
        (tensor([1., 1.], requires_grad=True), True)
    """

    def __new__(cls, data: mt.Tensor, requires_grad: bool = False) -> Any:
        """Return the tensor that shares the data's memory, without history."""
        return data.detach().requires_grad_(requires_grad)


def inference_mode(mode: Any = True) -> Any:
    """Do not record operations for `backward`: here the same as `no_grad`. With ``mode=False`` change nothing.

    Example:
        >>> import minitorch as mt
        >>> @mt.inference_mode()
        ... def twice(x):
        ...     return x * 2
        >>> twice(mt.ones(1, requires_grad=True)).requires_grad
        False
    """
    if callable(mode):
        return mt.no_grad(mode)
    return mt.no_grad() if mode or not mt.is_grad_enabled() else mt.enable_grad()


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Return a function or module compiled by `minitorch.jit`, which traces it: the name and options of PyTorch.

    Args:
        model: the function or module; without one, a decorator is returned.
        fullgraph: always so here: what cannot be traced is an error with the line.
        dynamic, mode, options: taken, and without effect: each signature is compiled once, for its sizes.
        backend: one of minitorch's, or PyTorch's default, which stands for the default here.
        disable: return the model as it is.

    Raises:
        ArgumentError: for another backend (``MT107``).

    Example:
        >>> import minitorch as mt
        >>> mt.compile(lambda x: x * 2 + 1)(mt.ones(2))
        tensor([3., 3.])
    """
    if model is None:
        return lambda function: compile(function, backend=backend, disable=disable)
    if disable:
        return model
    return mt.jit(model) if backend == "inductor" else mt.jit(model, backend=backend)


_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Choose how tensors are printed.

    Args:
        precision: digits after the point, 4 at first.
        threshold: elements from which on only the edges are shown, 1000 at first.
        edgeitems: how many elements each end of a dimension then has, 3 at first.
        linewidth: characters in a line, 80 at first.
        profile: ``"default"``, ``"short"`` or ``"full"``, for all of these.
        sci_mode: whether floats are written with exponents; None if their range decides.

    Example:
        >>> import minitorch as mt
        >>> mt.set_printoptions(precision=2)
        >>> mt.tensor([1.12345])
        tensor([1.12])
        >>> mt.set_printoptions(profile="default")
    """
    if profile is not None and profile not in _PROFILES:
        raise ValueError(f"set_printoptions: profile is one of {', '.join(_PROFILES)}, not {profile!r}")
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    chosen = {**_PROFILES.get(profile or "", {}), **{name: each for name, each in given.items() if each is not None}}
    vars(OPTIONS).update(chosen, sci_mode=sci_mode)
