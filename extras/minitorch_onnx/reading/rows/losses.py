"""Losses over classes, random numbers, and attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import minitorch as mt
from minitorch.dtypes import DType, bool_, float32
from minitorch.functional.operands import to_dtype
from minitorch.nn import functional as F
from minitorch.tensor import Tensor

from ..decoding.limits import require, shape_of
from ..program import Row
from ..running import Call
from .checks import check_ndim


def NegativeLogLikelihoodLoss(
    log_p: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: int | None, reduction: str
) -> Tensor:
    return F.nll_loss(log_p, target, weight, -1 if ignore_index is None else ignore_index, reduction)


def SoftmaxCrossEntropyLoss(scores: Tensor, *others: Tensor | None, ignore_index: int | None, reduction: str) -> Any:
    log_p = F.log_softmax(scores, 1)
    return NegativeLogLikelihoodLoss(log_p, *others, ignore_index=ignore_index, reduction=reduction), log_p  # type: ignore[arg-type]


# Random numbers ---------------------------------------------------------------------------------------------


def _random(draw: Callable[[Any, Mapping[str, Any]], Tensor]) -> Row:
    """Numbers of this library's generator; a seed in the file is not looked at."""

    def apply(x: Tensor | None = None, *, dtype: DType | None, shape: list[int] | None = None, call: Call) -> Tensor:
        found = draw(shape_of(shape or ()) if x is None else x.shape, call.step.attributes)
        return to_dtype(found, dtype or (float32 if x is None else x.dtype))

    return Row(apply, folds=False)


# Attention --------------------------------------------------------------------------------------------------


def _heads(x: Tensor, count: int | None) -> Tensor:
    """[batch, time, heads * size] as [batch, heads, time, size]."""
    if x.ndim == 4:
        return x
    fits = x.ndim == 3 and count and x.shape[2] % count == 0
    require(fits, "{} does not divide into {} heads", x.spec, count)
    return mt.permute(mt.reshape(x, (*x.shape[:2], count, -1)), 0, 2, 1, 3)


def Attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None,
    past_key: Tensor | None = None, past_value: Tensor | None = None, lengths: Tensor | None = None,
    *, q_num_heads: int | None, kv_num_heads: int | None, scale: float | None, softcap: float, is_causal: int,
    softmax_precision: DType | None, qk_matmul_output_mode: int | None, left_window_size: int | None = None,
    right_window_size: int | None = None, call: Call,
) -> tuple[Any, ...] | Tensor:  # fmt: skip
    """Attention as ONNX defines it since opset 23: with heads in groups, a cache, and a cap on the scores."""
    q, k, v = _heads(query, q_num_heads), _heads(key, kv_num_heads), _heads(value, kv_num_heads)
    before = 0
    if past_key is not None and past_value is not None:
        check_ndim("past_key", past_key, 4, 4)
        before, k, v = past_key.shape[2], mt.cat([past_key, k], 2), mt.cat([past_value, v], 2)
    present = (k, v)
    fits = k.shape[1] and q.shape[1] % k.shape[1] == 0
    require(fits, "{} heads of queries for {} of keys", q.shape[1], k.shape[1])
    k, v = (mt.repeat_interleave(each, q.shape[1] // k.shape[1], 1) for each in present)
    scale = 1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else scale
    require(scale >= 0, "its scale is {}", scale)

    def merged(x: Tensor) -> Tensor:
        return mt.reshape(mt.permute(x, 0, 2, 1, 3), (x.shape[0], x.shape[2], -1)) if query.ndim == 3 else x

    left, right = (-1 if each is None else each for each in (left_window_size, right_window_size))
    special = softcap or softmax_precision or qk_matmul_output_mode or max(left, right) >= 0
    is_whole = mask is None or (mask.shape[-1:] == k.shape[-2:-1] and not is_causal)
    if is_whole and not special and past_key is lengths is None and not any(call.step.outputs[1:]):
        return merged(F.scaled_dot_product_attention(q, k, v, mask, 0.0, bool(is_causal), scale))
    root = math.sqrt(scale)
    stages = [mt.matmul(q * root, mt.transpose(k * root, -2, -1))]
    rows, columns = stages[0].shape[-2:]
    places, own = mt.arange(columns), mt.reshape(mt.arange(rows), (-1, 1)) + before
    limits = []
    if lengths is not None:
        used = mt.reshape(lengths, (-1, 1, 1, 1))
        limits, own = [mt.lt(places, used)], own + used - rows
    limits += [mt.le(places, own)] if is_causal else []
    limits += [mt.le(places, own + right)] if right >= 0 else []
    limits += [mt.le(own - left, places)] if left >= 0 else []
    bias = _bias(stages[0], mask, limits)
    stages.append(mt.tanh(stages[0] / softcap) * softcap if softcap else stages[0])
    stages.append(stages[1] if bias is None else mt.add(stages[1], bias))
    weights = F.softmax(to_dtype(stages[2], softmax_precision or stages[2].dtype), -1)
    if bias is not None:  # a query that may look nowhere gets zeros
        weights = mt.where(mt.eq(mt.amax(stages[2], -1, True), -math.inf), 0.0, weights)
    stages.append(to_dtype(weights, stages[2].dtype))
    chosen = qk_matmul_output_mode or 0
    require(0 <= chosen < 4, "its qk_matmul_output_mode is {}, not one of 0 to 3", chosen)
    return merged(mt.matmul(to_dtype(stages[3], v.dtype), v)), *present, stages[chosen]


def _bias(scores: Tensor, mask: Tensor | None, limits: list[Tensor]) -> Tensor | None:
    """What is added to the scores: 0 where a query may look, -inf elsewhere, or the mask itself."""
    parts = [to_dtype(mt.where(inside, 0.0, -math.inf), scores.dtype) for inside in limits]
    if mask is not None:
        check_ndim("attn_mask", mask, 1, 4)
        found = to_dtype(mt.where(mask, 0.0, -math.inf) if mask.dtype is bool_ else mask, scores.dtype)
        missing = scores.shape[-1] - found.shape[-1]
        if missing > 0:
            rest = mt.full((*found.shape[:-1], missing), -math.inf, dtype=scores.dtype)
            found = mt.cat([found, rest], -1)
        parts.insert(0, found)
    return sum(parts[1:], parts[0]) if parts else None


def _bernoulli(x: Tensor, dtype: DType | None) -> Tensor:
    return to_dtype(mt.rand(x.shape) < to_dtype(x, float32), dtype or x.dtype)


_NORMAL = _random(lambda shape, given: mt.randn(shape) * given["scale"] + given["mean"])
_UNIFORM = _random(lambda shape, given: mt.rand(shape) * (given["high"] - given["low"]) + given["low"])

ROWS = {
    "Bernoulli": Row(_bernoulli, folds=False),
    "RandomNormal": _NORMAL,
    "RandomNormalLike": _NORMAL,
    "RandomUniform": _UNIFORM,
    "RandomUniformLike": _UNIFORM,
}
