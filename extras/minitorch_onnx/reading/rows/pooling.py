"""Pooling, and normalizations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import minitorch as mt
from minitorch import primitives as P
from minitorch.autograd import no_grad
from minitorch.dtypes import float32
from minitorch.functional.movement.shaping import expand
from minitorch.functional.operands import to_dtype, widen
from minitorch.nn import functional as F
from minitorch.nn.functional.pooling import FirstLargest, windows
from minitorch.primitives.reductions import lowest
from minitorch.tensor import Tensor

from ..decoding.limits import require
from ..program import Row
from ..running import Call
from .checks import check_ndim, dimension, item, padded
from .products import Sliding, sliding


def _geometry(call: Call, x: Tensor) -> Sliding:
    """Size, stride, dilation and padding; with ``ceil_mode``, more padding for the last window, which begins inside."""
    check_ndim("its input", x, 3)
    found = sliding(call, x, call.step.attributes["kernel_shape"])
    if call.step.attributes.get("ceil_mode"):
        for at, (length, k, by, d) in enumerate(zip(x.shape[2:], found.size, found.stride, found.apart, strict=True)):
            before, after = found.pads[at]
            wide = (k - 1) * d + 1
            places = -(-(length + before + after - wide) // by) + 1
            if (places - 1) * by >= length + before:
                places -= 1
            found.pads[at] = (before, max(after, (places - 1) * by + wide - length - before))
    return found


def _windows(x: Tensor, at: Sliding, value: float = 0) -> tuple[Tensor, tuple[int, ...]]:
    """The windows, and their dimensions."""
    n = len(at.size)
    return windows(padded(x, at.pads, value), at.size, at.stride, at.apart), tuple(range(2 + n, 2 + 2 * n))


def MaxPool(x: Tensor, *, storage_order: int = 0, call: Call) -> tuple[Tensor, ...] | Tensor:
    at = _geometry(call, x)
    n, low = len(at.size), lowest(x.dtype)
    seen, dims = _windows(x, at, low)
    if x.dtype.is_floating_point:
        found: Tensor = FirstLargest.apply(seen, n, lambda: _windows(x, at, math.nan)[0])
    else:
        found = mt.amax(seen, dims)
    if not call.wants(1):
        return found
    with no_grad():
        order = list(x.shape[2:])
        places = mt.arange(math.prod(order))
        if storage_order:
            places = mt.reshape(places, order[::-1]).permute(*range(n)[::-1])
        inside = _windows(mt.reshape(places, (1, 1, *order)), at, -1)[0]
        inside = mt.reshape(inside, (1, 1, *found.shape[2:], -1))
        values = mt.where(inside < 0, low, mt.reshape(seen, (*found.shape, -1)))
        chosen = mt.gather(mt.broadcast_to(inside, values.shape), -1, mt.argmax(values, -1, True))
        base = mt.reshape(mt.arange(math.prod(x.shape[:2])) * math.prod(order), (*x.shape[:2], *(1,) * n))
        return found, mt.squeeze(chosen, -1) + base


def AveragePool(x: Tensor, *, count_include_pad: int = 0, call: Call) -> Tensor:
    at, given = _geometry(call, x), sliding(call, x, call.step.attributes["kernel_shape"]).pads
    seen, dims = _windows(widen(x), at)
    inside = mt.ones(1, 1, *x.shape[2:], dtype=seen.dtype)
    if count_include_pad:
        inside = padded(inside, given, 1)
        at = at._replace(pads=[(0, full[1] - own[1]) for full, own in zip(at.pads, given, strict=True)])
    total, count = (P.reduce_sum(each, dims=dims) for each in (seen, _windows(inside, at)[0]))
    return to_dtype(total / count, x.dtype)


def _norm(x: Tensor, dims: Sequence[int], p: int, keep: bool = False) -> Tensor:
    require(p >= 1, "its p is {}, and has to be 1 or more", p)
    return mt.sum(mt.abs(x) ** p, dims, keep) ** (1 / p)


def _places(x: Tensor) -> list[int]:
    return list(range(2, x.ndim))


# Normalization ----------------------------------------------------------------------------------------------


def _batch_norm(
    x: Tensor, scale: Tensor, bias: Tensor, running_mean: Tensor, running_var: Tensor,
    *, epsilon: float, momentum: float, training_mode: int, spatial: int = 1, call: Call,
) -> tuple[Tensor, ...] | Tensor:  # fmt: skip
    if spatial == 0:  # until opset 9: statistics of each element
        return (x - running_mean) * (scale / mt.sqrt(running_var + epsilon)) + bias
    if not training_mode and not (call.version < 14 and call.wants(1)):
        return F.batch_norm(x, running_mean, running_var, scale, bias, eps=epsilon)
    dims = [0, *_places(x)]
    found = mt.mean(x, dims)
    spread = mt.mean(mt.square(x - mt.reshape(found, (1, -1, *(1,) * (x.ndim - 2)))), dims)
    return (
        F.batch_norm(x, found, spread, scale, bias, eps=epsilon),
        running_mean * momentum + found * (1 - momentum),
        running_var * momentum + spread * (1 - momentum),
        found,
        spread,
    )


def LayerNormalization(
    x: Tensor, scale: Tensor, bias: Tensor | None = None, *, axis: int, epsilon: float, call: Call
) -> tuple[Tensor, ...] | Tensor:
    axis = dimension(axis, x.ndim)
    shape = x.shape[axis:]
    if scale.shape == shape and (bias is None or bias.shape == shape) and not call.wants(1) and not call.wants(2):
        return F.layer_norm(x, shape, scale, bias, epsilon)
    dims, wide = list(range(axis, x.ndim)), widen(x)
    center = mt.mean(wide, dims, True)
    moved = wide - center
    inverse = 1 / mt.sqrt(mt.mean(moved * moved, dims, True) + epsilon)
    result = moved * inverse * widen(scale)
    return to_dtype(result if bias is None else result + widen(bias), x.dtype), center, inverse


def RMSNormalization(x: Tensor, scale: Tensor, axis: int, epsilon: float) -> Tensor:
    wide = to_dtype(x, float32) if x.dtype.itemsize < 4 else x
    dims = list(range(dimension(axis, x.ndim), x.ndim))
    normal = wide / mt.sqrt(mt.mean(wide * wide, dims, True) + epsilon)
    return to_dtype(normal * widen(scale), x.dtype)


def InstanceNormalization(x: Tensor, scale: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    check_ndim("its input", x, 3)
    return F.group_norm(x, x.shape[1], scale, bias, epsilon)


def GroupNormalization(x: Tensor, scale: Tensor, bias: Tensor, num_groups: int, epsilon: float, call: Call) -> Tensor:
    if call.version < 21:  # a scale for each group, until ONNX has withdrawn it
        check_ndim("its input", x, 2)
        each = x.shape[1] // max(num_groups, 1)
        scale, bias = (expand(mt.unsqueeze(y, 1), (y.shape[0], each)).reshape(-1) for y in (scale, bias))
    return F.group_norm(x, num_groups, scale, bias, epsilon)


def LRN(x: Tensor, size: int, alpha: float, beta: float, bias: float) -> Tensor:
    """Each channel divided by a power of the squares of its neighbours' (Krizhevsky et al., 2012)."""
    before = (size - 1) // 2
    squares = padded(mt.square(x), [(before, size - 1 - before), *[(0, 0)] * (x.ndim - 2)])
    total = mt.sum(P.unfold(squares, dim=1, size=size, step=1, dilation=1), -1)
    result: Tensor = x / (total * (alpha / size) + bias) ** beta
    return result


def LpNormalization(x: Tensor, axis: int, p: int) -> Tensor:
    length = mt.sum(mt.abs(x), axis, True) if p == 1 else mt.sqrt(mt.sum(mt.square(x), axis, True))
    return mt.where(mt.eq(length, 0), 0.0, x / mt.where(mt.eq(length, 0), 1.0, length))


def _dropout(x: Tensor, ratio: Any = None, training: Any = None, *, call: Call) -> tuple[Tensor, ...] | Tensor:
    p = 0.5 if ratio is None else float(item("the ratio", ratio))
    active = training is not None and bool(item("the mode", training))
    if not active or p == 0:
        return (x, mt.ones(x.shape, dtype="bool")) if call.wants(1) else x
    kept = F.dropout(mt.ones(x.shape, dtype=x.dtype), p)
    return x * kept, kept > 0


ROWS: dict[str, Row | Callable[..., Any]] = {
    "BatchNormalization": Row(_batch_norm, untrained=(3, 4)),
    "Dropout": Row(_dropout, known=(1, 2), folds=False),
    "GlobalAveragePool": lambda x: mt.mean(x, _places(x), True),
    "GlobalLpPool": lambda x, p: _norm(x, _places(x), p, True),
    "GlobalMaxPool": lambda x: mt.amax(x, _places(x), True),
    "LpPool": lambda x, p, call: _norm(*_windows(x, _geometry(call, x)), p),
}
