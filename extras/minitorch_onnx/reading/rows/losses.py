"""Losses over classes, random numbers, and attention."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import minitorch as mt
from minitorch.dtypes import bool_, float32, int64
from minitorch.functional.operands import to_dtype
from minitorch.nn import functional as F
from minitorch.tensor import Tensor

from ...common import TYPES
from ..decoding.limits import MOST_DIMS, refuse, shape_of
from ..program import Row
from ..running import Call
from .checks import check_ndim


def _picked(call: Call, log_p: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    """Minus the log-probability of the right class, reduced as the attribute says."""
    check_ndim("its input", log_p, 2, MOST_DIMS)
    classes = log_p.shape[1]
    labels = to_dtype(target, int64)
    ignored = None if call["ignore_index"] is None else mt.eq(labels, call["ignore_index"])
    safe = labels if ignored is None else mt.where(ignored, 0, labels)
    loss = -mt.squeeze(mt.gather(log_p, 1, mt.unsqueeze(safe, 1)), 1)
    if weight is None:
        counts = mt.full(labels.shape, 1.0, dtype=log_p.dtype)
    else:
        if weight.shape != (classes,):
            refuse(f"a weight {weight.spec} for {classes} classes")
        counts = weight[safe]
    counts = counts if ignored is None else mt.where(ignored, 0.0, counts)
    loss = mt.where(mt.eq(counts, 0), 0.0, loss * counts)
    if call["reduction"] == "none":
        return loss
    return mt.sum(loss) if call["reduction"] == "sum" else mt.sum(loss) / mt.sum(counts)


# Random numbers ---------------------------------------------------------------------------------------------


def _random(draw: Callable[[Call, tuple[int, ...]], Tensor]) -> Row:
    """Numbers of this library's generator; a seed in the file is not looked at."""

    def apply(call: Call, x: Tensor | None = None) -> Tensor:
        dtype = TYPES[call["dtype"]] if call["dtype"] else x.dtype if x is not None else float32
        return to_dtype(draw(call, x.shape if x is not None else shape_of(call.op, call["shape"])), dtype)

    return Row(apply, folds=False, types=("dtype",))


# Attention --------------------------------------------------------------------------------------------------


def _heads(x: Tensor, count: int | None) -> Tensor:
    """[batch, time, heads * size] as [batch, heads, time, size]."""
    if x.ndim == 4:
        return x
    if x.ndim != 3 or not count or x.shape[2] % count:
        refuse(f"{x.spec} does not divide into {count} heads")
    return mt.permute(mt.reshape(x, (*x.shape[:2], count, x.shape[2] // count)), 0, 2, 1, 3)


def _repeated(x: Tensor, times: int) -> Tensor:
    """Each head several times, side by side."""
    if times == 1:
        return x
    batch, heads, *rest = x.shape
    wide = mt.broadcast_to(mt.unsqueeze(x, 2), (batch, heads, times, *rest))
    return mt.reshape(wide, (batch, heads * times, *rest))


def _attention(
    call: Call,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    lengths: Tensor | None = None,
) -> tuple[Any, ...] | Tensor:
    """Attention as ONNX defines it since opset 23: with heads in groups, a cache, and a cap on the scores."""
    flat = query.ndim == 3
    for name, each in (("past_key", past_key), ("past_value", past_value)):
        if each is not None:
            check_ndim(name, each, 4)
    q, k, v = (
        _heads(x, call[name]) for x, name in ((query, "q_num_heads"), (key, "kv_num_heads"), (value, "kv_num_heads"))
    )
    before = 0 if past_key is None else past_key.shape[2]
    k = k if past_key is None else mt.cat([past_key, k], 2)
    v = v if past_value is None else mt.cat([past_value, v], 2)
    present = (k, v)
    if not k.shape[1] or q.shape[1] % k.shape[1]:
        refuse(f"{q.shape[1]} heads of queries for {k.shape[1]} of keys")
    times = q.shape[1] // k.shape[1]
    k, v = _repeated(k, times), _repeated(v, times)
    scale = call["scale"] if call["scale"] is not None else 1 / math.sqrt(max(q.shape[-1], 1))
    if not scale >= 0:
        refuse(f"its scale is {scale}")
    if _is_plain(call, k, mask, past_key, lengths):
        return _merged(F.scaled_dot_product_attention(q, k, v, mask, 0.0, bool(call["is_causal"]), scale), flat)
    root = math.sqrt(scale)
    scores = mt.matmul(q * root, mt.transpose(k * root, -2, -1))
    stages = {0: scores}
    bias = _bias(call, scores, mask, before, lengths)
    if call["softcap"]:
        scores = mt.tanh(scores / call["softcap"]) * call["softcap"]
    stages[1] = scores
    stages[2] = scores = scores if bias is None else mt.add(scores, bias)
    precise = TYPES.get(call["softmax_precision"] or 0)
    weights = F.softmax(scores if precise is None else to_dtype(scores, precise), -1)
    if bias is not None:  # a query that may look nowhere gets zeros
        weights = mt.where(mt.eq(mt.amax(scores, -1, True), -math.inf), 0.0, weights)
    weights = to_dtype(weights, scores.dtype)
    stages[3] = weights
    if (chosen := call["qk_matmul_output_mode"] or 0) not in stages:
        refuse(f"its qk_matmul_output_mode is {chosen}, not one of {list(stages)}")
    result = mt.matmul(to_dtype(weights, v.dtype), v)
    return _merged(result, flat), *present, stages[chosen]


def _is_plain(call: Call, key: Tensor, mask: Tensor | None, *more: Tensor | None) -> bool:
    """Whether attention is that of `minitorch.nn.functional`, and no second result is asked for."""
    special = ("softcap", "softmax_precision", "qk_matmul_output_mode")
    limits = (call["left_window_size"], call["right_window_size"])
    return (
        not any(call[name] for name in special)
        and all(each is None or each < 0 for each in limits)
        and all(each is None for each in more)
        and not any(call.step.outputs[1:])
        and (mask is None or (mask.shape[-1:] == key.shape[-2:-1] and not call["is_causal"]))
    )


def _merged(x: Tensor, flat: bool) -> Tensor:
    """[batch, heads, time, size] as [batch, time, heads * size], if the operands were."""
    return mt.reshape(mt.permute(x, 0, 2, 1, 3), (x.shape[0], x.shape[2], -1)) if flat else x


def _bias(call: Call, scores: Tensor, mask: Tensor | None, before: int, lengths: Tensor | None) -> Tensor | None:
    """What is added to the scores: 0 where a query may look, -inf elsewhere, or the mask itself."""
    low = float("-inf")
    found: Tensor | None = None
    rows, columns = scores.shape[-2:]
    if mask is not None:
        check_ndim("attn_mask", mask, 1, 4)
        found = mt.where(mask, 0.0, low) if mask.dtype is bool_ else mask
        found = to_dtype(found, scores.dtype)
        if found.shape[-1] < columns:
            missing = mt.full((*found.shape[:-1], columns - found.shape[-1]), low, dtype=scores.dtype)
            found = mt.cat([found, missing], -1)
    places = mt.arange(columns)
    if lengths is not None:
        used = to_dtype(mt.where(places < mt.reshape(lengths, (-1, 1, 1, 1)), 0.0, low), scores.dtype)
        found = used if found is None else found + used
    first = before if lengths is None else mt.reshape(lengths - rows, (-1, 1, 1, 1))
    own = mt.reshape(mt.arange(rows), (-1, 1)) + first
    left, right = (-1 if call[name] is None else call[name] for name in ("left_window_size", "right_window_size"))
    limits = [mt.le(places, own)] if call["is_causal"] else []
    limits += [mt.le(places, own + right)] if right >= 0 else []
    limits += [mt.le(own - left, places)] if left >= 0 else []
    for inside in limits:
        limit = to_dtype(mt.where(inside, 0.0, low), scores.dtype)
        found = limit if found is None else found + limit
    return found


_NORMAL = _random(lambda call, shape: mt.randn(shape) * call["scale"] + call["mean"])
_UNIFORM = _random(lambda call, shape: mt.rand(shape) * (call["high"] - call["low"]) + call["low"])

ROWS: dict[str, Row] = {
    "Attention": Row(_attention, types=("softmax_precision",)),
    "Bernoulli": Row(
        lambda call, x: to_dtype(
            mt.rand(x.shape) < to_dtype(x, float32), TYPES[call["dtype"]] if call["dtype"] else x.dtype
        ),
        folds=False,
        types=("dtype",),
    ),
    "NegativeLogLikelihoodLoss": Row(_picked),
    "RandomNormal": _NORMAL,
    "RandomNormalLike": _NORMAL,
    "RandomUniform": _UNIFORM,
    "RandomUniformLike": _UNIFORM,
    "SoftmaxCrossEntropyLoss": Row(
        lambda call, scores, *given: (_picked(call, log_p := F.log_softmax(scores, 1), *given), log_p)
    ),
}
