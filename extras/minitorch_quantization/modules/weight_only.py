"""Weight-only quantisation: weights in 8 or 4 bits with a scale for each group of a row, everything else in float.

A product of a matrix and a vector reads each weight once, so its time is that of reading them: a quarter or an eighth
of the bytes. What a row of the weight is multiplied with is called k. It is cut into groups of `group_size`:

    weight [rows, k] float32  ──►  [rows, groups, group_size] integers, and scales [rows, groups]

With 4 bits, the integers -8 to 7 are stored as 0 to 15, two in a byte: the first half of a group in the low bits, the
second half in the high bits. So unpacking is a shift of the same bytes by 0 and by 4, without any interleaving.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from minitorch import primitives as P
from minitorch.autograd import no_grad
from minitorch.dtypes import float32, int8, int32, uint8
from minitorch.errors import QuantizationError
from minitorch.functional.creation.creation import arange
from minitorch.functional.movement.arranging import pad
from minitorch.functional.reducing.extremes import amax, amin
from minitorch.nn.layers import Affine
from minitorch.nn.module import Module
from minitorch.tensor import Tensor

from ..affine import quantize
from ..arguments import kinds_of, refuse_prepared
from ..replacing import LAYERS, layers_of, nothing_found, replaced
from ..schemes import choose_qparams, require_finite
from .quantized import Stored, called

BITS = (8, 4)


class WeightOnly(Stored):
    """A layer whose weight is stored in 8 or 4 bits, and dequantised when it is used.

    Its buffers: `weight`, int8 [rows, groups, group_size], or uint8 [rows, groups, group_size / 2] of two numbers each;
    `scale`, float32 [rows, groups]; `bias`.

    Args:
        name: of the layer, for messages.
        layer: a `Linear`, `Conv1d` or `Conv2d`.
        bits: 8 or 4.
        group_size: how many numbers along k share a scale; None for all of a row.

    Raises:
        QuantizationError: for other numbers of bits, for an odd or empty group of 4 bits (``MT702``), and for a weight
            that is not finite (``MT701``).
    """

    scale: Tensor

    def __init__(self, name: str, layer: Affine, bits: int = 8, group_size: int | None = None) -> None:
        super().__init__(name, layer)
        rows, self.bits = layer.weight.shape[0], bits
        self.shape = tuple(layer.weight.shape)
        k = math.prod(self.shape[1:])
        size = k + (bits == 4 and k % 2) if group_size is None else group_size
        if bits not in BITS or size < 1 or size != int(size) or (bits == 4 and size % 2):
            raise QuantizationError(
                "MT702",
                f"the weight of {called(name, layer)}: {bits} bits in groups of {size}",
                fix="use 8 bits, or 4 bits with an even group size",
            )
        groups = -(-k // size)
        with no_grad():
            require_finite(f"the weight of {called(name, layer)}", layer.weight)
            grouped = pad(layer.weight.detach().float().reshape(rows, k), (0, groups * size - k))
            grouped = grouped.reshape(rows * groups, size)
            low, high = (-8, 7) if bits == 4 else (-128, 127)
            extremes = amin(grouped, 1), amax(grouped, 1)
            given = choose_qparams(*extremes, int8, low, high, symmetric=True, axis=0)
            integers = quantize(grouped, given).reshape(rows, groups, size)
            self.register_buffer("weight", pack(integers) if bits == 4 else integers)
            self.register_buffer("scale", given.scale.reshape(rows, groups))
        self.group_size = size

    def dequantized(self) -> Tensor:
        """The weight in float32, of the layer's own shape."""
        integers = unpack(self.weight) if self.bits == 4 else P.cast(self.weight, dtype=float32)
        rows, k = self.shape[0], math.prod(self.shape[1:])
        flat = (integers * self.scale.unsqueeze(-1)).reshape(rows, -1)
        return (flat if flat.shape[1] == k else flat[:, :k]).reshape(self.shape)

    def computed(self, input: Tensor) -> Tensor:
        """The layer of the dequantised weight."""
        return self.applied(input, self.dequantized(), self.bias)

    def extra_repr(self) -> str:
        """The layer, and how its weight is stored."""
        return f"{self.kind}({self._options}), weight of {self.bits} bits in groups of {self.group_size}"


def pack(integers: Tensor) -> Tensor:
    """Integers from -8 to 7 as halves of bytes: the first half of the last axis in the low bits.

    Example:
        >>> import minitorch as mt
        >>> pack(mt.tensor([-8, 7, 0, -1], dtype=mt.int8))
        tensor([128, 127], dtype=minitorch.uint8)
    """
    half = integers.shape[-1] // 2
    nibbles = (integers + 8).to(uint8)
    return nibbles[..., :half] | (nibbles[..., half:] << 4)


def unpack(packed: Tensor) -> Tensor:
    """The integers in `packed` bytes, as float32: both halves of every byte.

    Example:
        >>> import minitorch as mt
        >>> unpack(mt.tensor([128, 127], dtype=mt.uint8))
        tensor([-8.,  7.,  0., -1.])
    """
    shifts = arange(0, 8, 4, dtype=int32).unsqueeze(-1)
    nibbles = (P.cast(packed, dtype=int32).unsqueeze(-2) >> shifts) & 15
    return P.cast(nibbles - 8, dtype=float32).reshape(*packed.shape[:-1], 2 * packed.shape[-1])


def quantize_weights_(
    model: Module, bits: int = 8, group_size: int | None = None, kinds: type[Module] | Iterable[type[Module]] = LAYERS
) -> Module:
    """Store the weights of a model's layers in 8 or 4 bits, in place; returns the model.

    Args:
        model: any module; if it is a layer itself, the result is a new module in its place.
        bits: 8 or 4.
        group_size: how many numbers along a row share a scale, 32 to 128 usually; None for a whole row. Zeros fill up
            the last group.
        kinds: the classes of layers, of `Linear`, `Conv1d` and `Conv2d`.

    Raises:
        QuantizationError: as of `WeightOnly`, and if there is no such layer (``MT702``).

    Example:
        >>> import minitorch as mt
        >>> net = mt.quantization.quantize_weights_(mt.nn.Sequential(mt.nn.Linear(128, 3)), bits=4, group_size=64)
        >>> net[0].weight.shape, net[0].scale.shape, net(mt.ones(128)).shape
        ((3, 2, 32), (3, 2), (3,))
    """
    refuse_prepared(model)
    found: dict[str, Any] = dict(layers_of(model, wanted := kinds_of(kinds)))
    if not found:
        raise nothing_found(model, wanted)
    return replaced(model, {name: WeightOnly(name, layer, bits, group_size) for name, layer in found.items()})
