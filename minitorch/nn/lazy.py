"""Layers that learn the size of their input from the first one: `LazyLinear` and its kin.

Until then their parameters have no elements. An optimiser may hold them already: the first call fills the same objects,
and the layer becomes one of the ordinary class.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

import numpy as np

from ..tensor import Tensor, with_value
from . import layers, norms
from .module import Module
from .parameter import Parameter


def _unfilled() -> Parameter:
    empty = Parameter(with_value(np.empty(0, np.float32)))
    empty.is_unfilled = True  # type: ignore[attr-defined]
    return empty


class _Lazy(Module):
    """Layer of a `kind` whose first argument is the length of a dimension of its first input."""

    kind: ClassVar[type[Any]]
    dim: ClassVar[int]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__()
        self.args, self.options = args, options
        given = inspect.signature(self.kind).bind(1, *args, **options)
        given.apply_defaults()
        affine = given.arguments.get("affine", True)
        for name, has in (("weight", affine), ("bias", affine and given.arguments.get("bias", True))):
            self.register_parameter(name, _unfilled() if has else None)

    def forward(self, input: Tensor) -> Any:
        """Make the parameters, become the ordinary layer, and call it."""
        weight: Parameter | None = vars(self)["weight"]
        options = self.options if weight is None else {"dtype": weight.dtype, **self.options}
        made = self.kind(input.shape[self.dim], *self.args, **options)
        hooks, training = self._hooks, self.training
        for name in ("weight", "bias"):
            mine, new = getattr(self, name), getattr(made, name)
            if mine is not None:
                mine._value, mine.is_unfilled = new._value, False
                made.register_parameter(name, mine)
        vars(self).clear()
        vars(self).update(vars(made))
        self.__class__ = self.kind
        self._hooks, self.training = hooks, training
        return self.forward(input)


def _lazy(kind: type[Module], dim: int, options: str, shape: str) -> type[_Lazy]:
    name = f"Lazy{kind.__name__}"
    doc = f"""`{kind.__name__}` that takes the first argument from dimension {dim} of its first input.

    Example:
        >>> import minitorch as mt
        >>> layer = mt.nn.{name}({options})
        >>> _ = layer(mt.zeros{shape})
        >>> type(layer).__name__
        {kind.__name__!r}
    """
    return type(name, (_Lazy,), {"kind": kind, "dim": dim, "__doc__": doc, "__module__": __name__})


LazyLinear = _lazy(layers.Linear, -1, "3", "(2, 4)")
LazyConv1d = _lazy(layers.Conv1d, -2, "8, 3", "(2, 4, 5)")
LazyConv2d = _lazy(layers.Conv2d, -3, "8, 3", "(2, 4, 5, 5)")
LazyConvTranspose1d = _lazy(layers.ConvTranspose1d, -2, "8, 3", "(2, 4, 5)")
LazyConvTranspose2d = _lazy(layers.ConvTranspose2d, -3, "8, 3", "(2, 4, 5, 5)")
LazyBatchNorm1d = _lazy(norms.BatchNorm1d, 1, "", "(2, 4)")
LazyBatchNorm2d = _lazy(norms.BatchNorm2d, 1, "", "(2, 4, 5, 5)")
