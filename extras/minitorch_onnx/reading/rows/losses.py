"""Losses over classes, random numbers, and attention."""

from __future__ import annotations

import math
from typing import Any

from minitorch.dtypes import bool_, float32, int64
from minitorch.functional.arithmetic import add
from minitorch.functional.arranging import cat
from minitorch.functional.comparison import eq, le
from minitorch.functional.creation import arange, full
from minitorch.functional.elementwise import tanh
from minitorch.functional.extremes import amax
from minitorch.functional.gathering import gather
from minitorch.functional.linalg import matmul
from minitorch.functional.operands import to_dtype
from minitorch.functional.random import rand, randn
from minitorch.functional.reductions import sum
from minitorch.functional.selection import where
from minitorch.functional.shaping import broadcast_to, permute, reshape, squeeze, transpose, unsqueeze
from minitorch.nn import functional as F
from minitorch.tensor import Tensor

from ...common import TYPES
from ..limits import MOST_DIMS, refuse, shape_of
from ..program import Row
from ..running import Call
from .checks import check_ndim


def _picked(call: Call, log_p: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    """Minus the log-probability of the right class, reduced as the attribute says."""
    check_ndim("its input", log_p, 2, MOST_DIMS)
    classes = log_p.shape[1]
    labels = to_dtype(target, int64)
    ignored = None if call["ignore_index"] is None else eq(labels, call["ignore_index"])
    safe = labels if ignored is None else where(ignored, 0, labels)
    loss = -squeeze(gather(log_p, 1, unsqueeze(safe, 1)), 1)
    if weight is None:
        counts = full(labels.shape, 1.0, dtype=log_p.dtype)
    else:
        if weight.shape != (classes,):
            refuse(f"a weight {weight.spec} for {classes} classes")
        counts = weight[safe]
    counts = counts if ignored is None else where(ignored, 0.0, counts)
    loss = where(eq(counts, 0), 0.0, loss * counts)
    if call["reduction"] == "none":
        return loss
    return sum(loss) if call["reduction"] == "sum" else sum(loss) / sum(counts)


def _nll(call: Call, log_p: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    return _picked(call, log_p, target, weight)


def _cross_entropy(call: Call, scores: Tensor, target: Tensor, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
    log_p = F.log_softmax(scores, 1)
    return _picked(call, log_p, target, weight), log_p


# Random numbers ---------------------------------------------------------------------------------------------


def _shape(call: Call, x: Tensor | None) -> tuple[int, ...]:
    return x.shape if x is not None else shape_of(call.op, call["shape"])


def _uniform(call: Call, x: Tensor | None = None) -> Tensor:
    """Of this library's generator; a seed in the file is not looked at."""
    dtype = TYPES[call["dtype"]] if call["dtype"] else x.dtype if x is not None else float32
    low, high = call["low"], call["high"]
    return to_dtype(rand(_shape(call, x)) * (high - low) + low, dtype)


def _normal(call: Call, x: Tensor | None = None) -> Tensor:
    dtype = TYPES[call["dtype"]] if call["dtype"] else x.dtype if x is not None else float32
    return to_dtype(randn(_shape(call, x)) * call["scale"] + call["mean"], dtype)


def _bernoulli(call: Call, x: Tensor) -> Tensor:
    return to_dtype(rand(x.shape) < to_dtype(x, float32), TYPES[call["dtype"]] if call["dtype"] else x.dtype)


# Attention --------------------------------------------------------------------------------------------------


def _heads(x: Tensor, count: int | None) -> Tensor:
    """[batch, time, heads * size] as [batch, heads, time, size]."""
    if x.ndim == 4:
        return x
    if x.ndim != 3 or not count or x.shape[2] % count:
        refuse(f"{x.spec} does not divide into {count} heads")
    return permute(reshape(x, (*x.shape[:2], count, x.shape[2] // count)), 0, 2, 1, 3)


def _repeated(x: Tensor, times: int) -> Tensor:
    """Each head several times, side by side."""
    if times == 1:
        return x
    batch, heads, *rest = x.shape
    wide = broadcast_to(unsqueeze(x, 2), (batch, heads, times, *rest))
    return reshape(wide, (batch, heads * times, *rest))


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
    k = k if past_key is None else cat([past_key, k], 2)
    v = v if past_value is None else cat([past_value, v], 2)
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
    scores = matmul(q * root, transpose(k * root, -2, -1))
    stages = {0: scores}
    bias = _bias(call, scores, mask, before, lengths)
    if call["softcap"]:
        scores = tanh(scores / call["softcap"]) * call["softcap"]
    stages[1] = scores
    stages[2] = scores = scores if bias is None else add(scores, bias)
    precise = TYPES.get(call["softmax_precision"] or 0)
    weights = F.softmax(scores if precise is None else to_dtype(scores, precise), -1)
    if bias is not None:  # a query that may look nowhere gets zeros
        weights = where(eq(amax(scores, -1, True), -math.inf), 0.0, weights)
    weights = to_dtype(weights, scores.dtype)
    stages[3] = weights
    if (chosen := call["qk_matmul_output_mode"] or 0) not in stages:
        refuse(f"its qk_matmul_output_mode is {chosen}, not one of {list(stages)}")
    result = matmul(to_dtype(weights, v.dtype), v)
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
    return reshape(permute(x, 0, 2, 1, 3), (x.shape[0], x.shape[2], -1)) if flat else x


def _bias(call: Call, scores: Tensor, mask: Tensor | None, before: int, lengths: Tensor | None) -> Tensor | None:
    """What is added to the scores: 0 where a query may look, -inf elsewhere, or the mask itself."""
    low = float("-inf")
    found: Tensor | None = None
    rows, columns = scores.shape[-2:]
    if mask is not None:
        check_ndim("attn_mask", mask, 1, 4)
        found = where(mask, 0.0, low) if mask.dtype is bool_ else mask
        found = to_dtype(found, scores.dtype)
        if found.shape[-1] < columns:
            missing = full((*found.shape[:-1], columns - found.shape[-1]), low, dtype=scores.dtype)
            found = cat([found, missing], -1)
    places = arange(columns)
    if lengths is not None:
        used = to_dtype(where(places < reshape(lengths, (-1, 1, 1, 1)), 0.0, low), scores.dtype)
        found = used if found is None else found + used
    first = before if lengths is None else reshape(lengths - rows, (-1, 1, 1, 1))
    own = reshape(arange(rows), (-1, 1)) + first
    left, right = (-1 if call[name] is None else call[name] for name in ("left_window_size", "right_window_size"))
    limits = [le(places, own)] if call["is_causal"] else []
    limits += [le(places, own + right)] if right >= 0 else []
    limits += [le(own - left, places)] if left >= 0 else []
    for inside in limits:
        limit = to_dtype(where(inside, 0.0, low), scores.dtype)
        found = limit if found is None else found + limit
    return found


ROWS: dict[str, Row] = {
    "Attention": Row(_attention, types=("softmax_precision",)),
    "Bernoulli": Row(_bernoulli, folds=False, types=("dtype",)),
    "NegativeLogLikelihoodLoss": Row(_nll),
    "RandomNormal": Row(_normal, folds=False, types=("dtype",)),
    "RandomNormalLike": Row(_normal, folds=False, types=("dtype",)),
    "RandomUniform": Row(_uniform, folds=False, types=("dtype",)),
    "RandomUniformLike": Row(_uniform, folds=False, types=("dtype",)),
    "SoftmaxCrossEntropyLoss": Row(_cross_entropy),
}
