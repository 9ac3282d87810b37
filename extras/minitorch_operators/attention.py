"""Scaled dot-product attention as an operator (Vaswani and others, arXiv:1706.03762): ONNX's Attention."""

from __future__ import annotations

import numpy as np

from minitorch import dtypes
from minitorch.ir import Spec

from .declaring import Array, declare, refuse, widened


def _infer(query: Spec, key: Spec, value: Spec, *mask: Spec, scale: float, causal: bool) -> Spec:
    fits = query.ndim == key.ndim == value.ndim >= 2 and query.shape[:-2] == key.shape[:-2] == value.shape[:-2]
    fits = fits and query.shape[-1] == key.shape[-1] and key.shape[-2] == value.shape[-2]
    if not fits or len(mask) > 1 or not query.dtype.is_floating_point:
        refuse("attention", query, key, value, *mask)
    scores = (*query.shape[:-1], key.shape[-2])
    for each in mask:
        padded = (1,) * (len(scores) - each.ndim) + each.shape
        if len(padded) > len(scores) or any(a not in (1, b) for a, b in zip(padded, scores, strict=True)):
            refuse("attention", query, key, value, each)
        if each.dtype not in (dtypes.bool_, query.dtype):
            refuse("attention", query, each)
    return Spec((*query.shape[:-1], value.shape[-1]), query.dtype)


def _evaluate(query: Array, key: Array, value: Array, *mask: Array, scale: float, causal: bool) -> Array:
    q, k, v = (widened(each) for each in (query, key, value))
    low = q.dtype.type(-np.inf)
    scores = np.matmul(q * q.dtype.type(scale), np.swapaxes(k, -1, -2))
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, low)
    for each in mask:
        scores = np.where(each, scores, low) if each.dtype == bool else scores + widened(each)
    largest = np.max(scores, axis=-1, keepdims=True)
    nowhere = largest == low
    z = np.exp(scores - np.where(nowhere, 0, largest).astype(scores.dtype))
    total = np.sum(z, axis=-1, keepdims=True)
    found: Array = np.matmul(z / np.where(nowhere, 1, total).astype(z.dtype), v)
    return found.astype(query.dtype)


attention = declare(
    "attention",
    _infer,
    _evaluate,
    "softmax(query @ key.mT * scale + mask) @ value, zeros for a query that may look nowhere; a mask of bools is True "
    "where it may look, causal at its own position and before",
)
