"""Pooling, and normalizations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import minitorch as mt
from minitorch import primitives as P
from minitorch.autograd import no_grad
from minitorch.dtypes import float32, int64
from minitorch.functional.movement.shaping import expand
from minitorch.functional.operands import to_dtype, widen
from minitorch.nn import functional as F
from minitorch.nn.functional.pooling import FirstLargest, windows
from minitorch.primitives.reductions import lowest
from minitorch.tensor import Tensor

from ..decoding.limits import MOST_DIMS, refuse
from ..program import Row
from ..running import Call
from .checks import check_ndim, dimension, item, padded
from .products import pads_of, per_dimension


def _geometry(call: Call, x: Tensor) -> tuple[list[int], list[int], list[int], list[tuple[int, int]]]:
    """Size, stride, dilation and padding; with ``ceil_mode``, more padding for the last window, which begins inside."""
    check_ndim("its input", x, 3, MOST_DIMS)
    n = x.ndim - 2
    size = per_dimension(call, "kernel_shape", n)
    stride, apart = per_dimension(call, "strides", n), per_dimension(call, "dilations", n)
    pairs = pads_of(call, x.shape[2:], size, stride, apart)
    if call["ceil_mode"]:
        for at, (length, k, by, d) in enumerate(zip(x.shape[2:], size, stride, apart, strict=True)):
            before, after = pairs[at]
            wide = (k - 1) * d + 1
            places = -(-(length + before + after - wide) // by) + 1
            if (places - 1) * by >= length + before:
                places -= 1
            pairs[at] = (before, max(after, (places - 1) * by + wide - length - before))
    return size, stride, apart, pairs


def _max_pool(call: Call, x: Tensor) -> tuple[Tensor, ...] | Tensor:
    size, stride, apart, pairs = _geometry(call, x)
    n = len(size)
    low = lowest(x.dtype)

    def seen(outside: float) -> Tensor:
        return windows(padded(call, x, pairs, outside), size, stride, apart)

    if x.dtype.is_floating_point:
        found: Tensor = FirstLargest.apply(seen(low), n, lambda: seen(math.nan))
    else:
        found = mt.amax(seen(low), list(range(2 + n, 2 + 2 * n)))
    if not call.wants(1):
        return found
    with no_grad():
        order = list(x.shape[2:])
        places = mt.arange(math.prod(order))
        if call["storage_order"]:
            places = mt.reshape(places, order[::-1]).permute(*range(n)[::-1])
        whole = mt.reshape(places, (1, 1, *order))
        inside = windows(padded(call, whole, pairs, -1), size, stride, apart)
        values = mt.reshape(seen(low), (*found.shape, math.prod(size)))
        values = mt.where(mt.reshape(inside, (1, 1, *found.shape[2:], -1)) < 0, low, values)
        hit = mt.argmax(values, -1)
        rows = P.expand(mt.reshape(inside, (1, 1, *found.shape[2:], -1)), shape=values.shape)
        chosen = mt.sum(mt.where(mt.eq(mt.arange(values.shape[-1]), mt.reshape(hit, (*hit.shape, 1))), rows, 0), -1)
        lead = math.prod(x.shape[:2])
        base = mt.reshape(mt.arange(lead) * math.prod(order), (*x.shape[:2], *(1,) * n))
        return found, to_dtype(chosen + base, int64)


def _average_pool(call: Call, x: Tensor) -> Tensor:
    size, stride, apart, pairs = _geometry(call, x)
    n = len(size)
    dims = tuple(range(2 + n, 2 + 2 * n))
    total = P.reduce_sum(windows(padded(call, widen(x), pairs), size, stride, apart), dims=dims)
    inside = mt.ones(1, 1, *x.shape[2:], dtype=total.dtype)
    given = pads_of(call, x.shape[2:], size, stride, apart)
    if call["count_include_pad"]:
        counted = padded(call, inside, given, 1)
        rest = [(0, full[1] - own[1]) for full, own in zip(pairs, given, strict=True)]
        counted = padded(call, counted, rest)
    else:
        counted = padded(call, inside, pairs)
    return to_dtype(total / P.reduce_sum(windows(counted, size, stride, apart), dims=dims), x.dtype)


def _lp_pool(call: Call, x: Tensor) -> Tensor:
    size, stride, apart, pairs = _geometry(call, x)
    dims = list(range(2 + len(size), 2 + 2 * len(size)))
    p = _power(call)
    return mt.sum(mt.abs(windows(padded(call, x, pairs), size, stride, apart)) ** p, dims) ** (1 / p)


def _power(call: Call) -> int:
    """The power of a norm."""
    p: int = call["p"]
    if p < 1:
        refuse(f"its p is {p}, and has to be 1 or more")
    return p


def _places(x: Tensor) -> list[int]:
    return list(range(2, x.ndim))


def _global_lp(call: Call, x: Tensor) -> Tensor:
    p = _power(call)
    return mt.sum(mt.abs(x) ** p, _places(x), True) ** (1 / p)


# Normalization ----------------------------------------------------------------------------------------------


def _batch_norm(
    call: Call, x: Tensor, scale: Tensor, bias: Tensor, running_mean: Tensor, running_var: Tensor
) -> tuple[Tensor, ...] | Tensor:
    if call["spatial"] == 0:  # until opset 9: statistics of each element
        return (x - running_mean) * (scale / mt.sqrt(running_var + call["epsilon"])) + bias
    if not call["training_mode"] and not (call.version < 14 and call.wants(1)):
        return F.batch_norm(x, running_mean, running_var, scale, bias, eps=call["epsilon"])
    dims = [0, *_places(x)]
    found = mt.mean(x, dims)
    spread = mt.mean(mt.square(x - mt.reshape(found, (1, -1, *(1,) * (x.ndim - 2)))), dims)
    keep = call["momentum"]
    return (
        F.batch_norm(x, found, spread, scale, bias, eps=call["epsilon"]),
        running_mean * keep + found * (1 - keep),
        running_var * keep + spread * (1 - keep),
        found,
        spread,
    )


def _standardized(x: Tensor, dims: Sequence[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    center = mt.mean(x, dims, True)
    moved = x - center
    inverse = 1 / mt.sqrt(mt.mean(moved * moved, dims, True) + eps)
    return moved * inverse, center, inverse


def _layer_norm(call: Call, x: Tensor, scale: Tensor, bias: Tensor | None = None) -> tuple[Tensor, ...] | Tensor:
    axis = dimension(call["axis"], x.ndim)
    shape = x.shape[axis:]
    plain = scale.shape == shape and (bias is None or bias.shape == shape)
    if plain and not call.wants(1) and not call.wants(2):
        return F.layer_norm(x, shape, scale, bias, call["epsilon"])
    normal, center, inverse = _standardized(widen(x), list(range(axis, x.ndim)), call["epsilon"])
    result = normal * widen(scale)
    result = result if bias is None else result + widen(bias)
    return to_dtype(result, x.dtype), center, inverse


def _rms_norm(call: Call, x: Tensor, scale: Tensor) -> Tensor:
    axis = dimension(call["axis"], x.ndim)
    wide = to_dtype(x, float32) if x.dtype.itemsize < 4 else x
    normal = wide / mt.sqrt(mt.mean(wide * wide, list(range(axis, x.ndim)), True) + call["epsilon"])
    return to_dtype(normal * widen(scale), x.dtype)


def _instance_norm(call: Call, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    check_ndim("its input", x, 3, MOST_DIMS)
    return F.group_norm(x, x.shape[1], scale, bias, call["epsilon"])


def _group_norm(call: Call, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    if call.version < 21:  # a scale for each group, until ONNX has withdrawn it
        check_ndim("its input", x, 2, MOST_DIMS)
        each = x.shape[1] // max(call["num_groups"], 1)
        scale, bias = (expand(mt.unsqueeze(y, 1), (y.shape[0], each)).reshape(-1) for y in (scale, bias))
    return F.group_norm(x, call["num_groups"], scale, bias, call["epsilon"])


def _lrn(call: Call, x: Tensor) -> Tensor:
    """Each channel divided by a power of the squares of its neighbours' (Krizhevsky et al., 2012)."""
    size = call["size"]
    before = (size - 1) // 2
    padding = tuple([(before, size - 1 - before, 0) if dim == 1 else (0, 0, 0) for dim in range(x.ndim)])
    squares = P.pad(mt.square(x), padding=padding, value=0)
    total = mt.sum(P.unfold(squares, dim=1, size=size, step=1, dilation=1), -1)
    factor, offset, power = call["alpha"] / size, call["bias"], call["beta"]
    result: Tensor = x / (total * factor + offset) ** power
    return result


def _lp_normalization(call: Call, x: Tensor) -> Tensor:
    axis = call["axis"]
    length = mt.sum(mt.abs(x), axis, True) if call["p"] == 1 else mt.sqrt(mt.sum(mt.square(x), axis, True))
    return mt.where(mt.eq(length, 0), 0.0, x / mt.where(mt.eq(length, 0), 1.0, length))


def _dropout(call: Call, x: Tensor, ratio: Any = None, training: Any = None) -> tuple[Tensor, ...] | Tensor:
    p = 0.5 if ratio is None else float(item("the ratio", ratio))
    active = training is not None and bool(item("the mode", training))
    if not active or p == 0:
        return (x, mt.ones(x.shape, dtype="bool")) if call.wants(1) else x
    kept = F.dropout(mt.ones(x.shape, dtype=x.dtype), p)
    return x * kept, kept > 0


ROWS: dict[str, Row] = {
    "AveragePool": Row(_average_pool),
    "BatchNormalization": Row(_batch_norm, untrained=(3, 4)),
    "Dropout": Row(_dropout, known=(1, 2), folds=False),
    "GlobalAveragePool": Row(lambda call, x: mt.mean(x, _places(x), True)),
    "GlobalLpPool": Row(_global_lp),
    "GlobalMaxPool": Row(lambda call, x: mt.amax(x, _places(x), True)),
    "GroupNormalization": Row(_group_norm),
    "InstanceNormalization": Row(_instance_norm),
    "LRN": Row(_lrn),
    "LayerNormalization": Row(_layer_norm),
    "LpNormalization": Row(_lp_normalization),
    "LpPool": Row(_lp_pool),
    "MaxPool": Row(_max_pool),
    "RMSNormalization": Row(_rms_norm),
}
