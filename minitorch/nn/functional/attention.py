"""Attention: a mean of values, weighted by how well their keys fit a query (Vaswani et al., arXiv:1706.03762)."""

from __future__ import annotations

import math

from ... import primitives as P
from ...dtypes import bool_, int64
from ...functional.movement.shaping import transpose
from ...functional.operands import to_dtype, widen
from ...functional.reducing.linalg import matmul
from ...interpreters import handled
from ...primitives.elementwise import scalar
from ...tensor import Tensor, share
from .normalization import dropout


def _causal_mask(queries: int, keys: int) -> Tensor:
    """Return a mask, True where a query may look: at its own position and those before."""
    rows = P.reshape(P.iota(size=queries, dtype=int64), shape=(queries, 1))
    return P.less_equal(P.iota(size=keys, dtype=int64), rows)


def _attention_weights(scores: Tensor) -> Tensor:
    """Return softmax over the last dimension; a row that may look nowhere gets zeros, not NaN."""
    kept = (*scores.shape[:-1], 1)
    largest = P.reshape(P.reduce_max(share(scores), dims=(scores.ndim - 1,)), shape=kept)
    nowhere = P.equal(largest, scalar(-math.inf, scores))
    exponentials = P.exp(P.sub(scores, P.where(nowhere, scalar(0, scores), largest)))
    total = P.reshape(P.reduce_sum(exponentials, dims=(scores.ndim - 1,)), shape=kept)
    return P.div(exponentials, P.where(nowhere, scalar(1, total), total))


def _attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float, is_causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    scores = matmul(widen(query) * scale, transpose(widen(key), -2, -1))
    if is_causal:
        mask = _causal_mask(*scores.shape[-2:])
    if mask is not None and mask.dtype is bool_:
        scores = P.where(mask, scores, scalar(-math.inf, scores))
    elif mask is not None:
        scores = scores + to_dtype(mask, scores.dtype)
    weights = dropout(_attention_weights(scores), dropout_p)
    return to_dtype(matmul(weights, widen(value)), value.dtype), weights


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout_p: float, need_weights: bool
) -> tuple[Tensor, Tensor | None]:
    """Return `scaled_dot_product_attention`, and the weights if they are needed."""
    if not need_weights:
        return scaled_dot_product_attention(query, key, value, mask, dropout_p), None
    scale = 1 / math.sqrt(query.shape[-1])
    out, weights = _attention(query, key, value, mask, dropout_p, False, scale)
    return out, to_dtype(weights, value.dtype)


@handled
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Return ``softmax(query @ key.mT * scale + mask) @ value``.

    In 16 bits, scores, weights and sums are in float32, and the result is rounded once: it is off by half a unit in the
    last place of its type, and by the rounding errors of float32. So is PyTorch's on the CPU, where it computes by this
    formula; its kernel for operands of four dimensions rounds exponentials, too, and is off by more.

    Args:
        query: [..., queries, features].
        key: [..., keys, features].
        value: [..., keys, outputs].
        attn_mask: broadcasts to [..., queries, keys]; of bools, True where a query may look; of floats, added to the
            scores.
        dropout_p: the probability with which a weight is dropped (also outside of training: pass 0 there).
        is_causal: each query looks at the keys up to its own position; instead of a mask.
        scale: by default ``1 / sqrt(features)``.

    Returns:
        [..., queries, outputs]; zeros for a query that may look nowhere.

    Example:
        >>> import minitorch as mt
        >>> x = mt.eye(2)
        >>> mt.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
        tensor([[1.0000, 0.0000],
                [0.3302, 0.6698]])
    """
    if is_causal and attn_mask is not None:
        raise RuntimeError("scaled_dot_product_attention: give attn_mask or is_causal, not both")
    scale = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    return _attention(query, key, value, attn_mask, dropout_p, is_causal, scale)[0]
