"""Noise: random rounding errors, drawn where compiled code may round otherwise than eager mode.

Sums have another order there, and functions other approximations. Nothing else differs, but for the last place of
arithmetic on a backend that does not keep its bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from minitorch.dtypes import DType, float32, float64
from minitorch.graph import Graph
from minitorch.graph.evaluation import value_of
from minitorch.graph.values import shared
from minitorch.interpreters import run_silently
from minitorch.ir import Node, Primitive

Array = np.ndarray[Any, Any]

# Results may differ by so many times the effect of one-ulp noise, or of another order of summation. Noise is random,
# and the next draw may be larger; a sampled order is a possible one. Raising them hides smaller mistakes.
TIMES_NOISE, TIMES_ORDER = 16, 8

# Terms of one accumulator, at most: longer sums that have a kernel to themselves are split (`LONGEST` in
# `compiler/`), and so many lanes and vectors share the others. Of several sums side by side, each may be in one lane.
LONGEST, LANES = 1 << 12, 16

# Operations on floats whose results are floats already: nothing is left to round.
EXACT = frozenset({"neg", "abs", "floor", "trunc", "maximum", "cast", "bitcast", "floor_divide", "remainder"})


def is_noisy(primitive: Primitive) -> bool:
    """Whether compiled code may differ in the last place: sums are reordered, functions approximated."""
    return primitive.reorders or primitive.ulp > 0.5 or primitive.together is not None


def is_rounded(primitive: Primitive) -> bool:
    """Whether every mode rounds it alike, but for backends that do not keep their bits (`Backend.keeps_bits`).

    16-bit floats that moved at all have moved by one ulp. A new primitive is: to say otherwise is a row in `EXACT`.
    """
    return primitive.kind in ("unary", "binary") and primitive.ulp == 0.5 and primitive.name not in EXACT


def further(right: Array, moved: Array, times: int) -> Array:
    """A noisy value with its noise multiplied; 16-bit floats have moved as far as they may already."""
    if moved is right or right.dtype.kind in "biu":
        return right
    times = (times > 0) - (times < 0) if right.dtype.itemsize == 2 else times
    with np.errstate(all="ignore"):
        distance = moved.astype(np.float64) - right.astype(np.float64)
        found = (right.astype(np.float64) + times * distance).astype(right.dtype)
    return np.where(np.isnan(moved), moved, np.where(np.isfinite(distance) & (distance != 0), found, right))


def move(array: Array, random: np.random.Generator, by: int = 1) -> Array:
    """Every float moved by up to so many units in the last place; zeros, infinities and NaN stay.

    Example:
        >>> move(np.float32([0, np.inf, 5]), np.random.default_rng(0)).round(6).tolist()
        [0.0, inf, 5.0]
    """
    if array.dtype.kind in "biu":
        return array
    with np.errstate(all="ignore"):  # the spacing at infinity is NaN, and NumPy's floats of 16 bits say so
        step = by * np.spacing(np.abs(array)).astype(np.float64)
        moved = (array.astype(np.float64) + step * random.uniform(-1, 1, array.shape)).astype(array.dtype)
    return np.where(np.isfinite(moved) & (array != 0), moved, array)


def noisy(node: Node, operands: Sequence[Array], random: np.random.Generator, in_runs: bool) -> Array:
    """The value of a node, with noise on sums and on the result.

    A sum is taken in double precision, where nothing is lost by adding up, or in runs of a random length, as kernels
    do. Noise on the terms alone does not show how much that makes: where terms are alike, all additions of a run round
    to the same side.

    16-bit floats are computed in float32 and rounded once: the noise is that of float32, as far as results may go.
    """
    if node.primitive.together is not None:
        inside = partial(_noisy_body, random=random, in_runs=in_runs)
        results = node.primitive.together(*operands, run=inside, **shared(node.params))
        return np.asarray(results[node.params["result"]])
    by, params, dtype = 1, node.params, node.dtype.numpy
    if any(operand.dtype.itemsize == 2 and operand.dtype.is_floating_point for operand in (node, *node.inputs)):
        by = TIMES_NOISE if node.dtype.itemsize == 2 else 1
        dtype = np.dtype(np.float32) if node.dtype.itemsize == 2 else dtype
        operands = [each if each.dtype.kind in "biu" else each.astype(np.float32) for each in operands]
        params = {name: float32 if isinstance(value, DType) else value for name, value in params.items()}
    if node.primitive.reorders:
        operands = [move(operand, random, by) for operand in operands]
    if node.primitive.name == "reduce_sum" and operands[0].size:
        terms = operands[0].size // max(1, node.spec.size)
        longest = terms if node.spec.size > 1 else max(LONGEST, terms // LANES)
        run = int(random.integers(longest // 4 + 1, longest, endpoint=True)) if in_runs else 0
        value = run_silently(_sum, operands[0], node.params["dims"], run)
    else:
        value = np.asarray(run_silently(lambda: node.primitive.evaluate(*operands, **params)))
    if node.primitive.kind == "contraction":
        value = np.where(_terms_overflow(node, operands), 0 if in_runs else math.nan, value)
    with np.errstate(all="ignore"):
        value, sign = value.astype(dtype), np.where(random.random(value.shape) < 0.5, -1, 1).astype(dtype)
        value = np.where(np.isnan(value), np.copysign(value, sign), value)  # the sign of NaN means nothing
        if by == 1:
            return move(value, random)
        # Noise at the ends of the range: otherwise only few numbers are rounded to another one.
        return np.asarray((value * (1 + sign * by * np.float32(2.0**-23))).astype(node.dtype.numpy))


def _noisy_body(body: Graph, arrays: Sequence[Array], random: np.random.Generator, in_runs: bool) -> list[Array]:
    """The results of a loop's body, with noise on what it computes; a decision in it is not turned."""
    values = dict(zip(body.inputs, arrays, strict=True))
    for node in body.nodes:
        operands = [values[operand] for operand in node.inputs]
        if is_noisy(node.primitive) and node.dtype.is_floating_point:
            values[node] = noisy(node, operands, random, in_runs)
        else:  # what is rounded alike has operands that are not alike
            value = value_of(node, operands)
            values[node] = move(value, random) if is_rounded(node.primitive) else value
    return [values[output] for output in body.outputs]


def _terms_overflow(node: Node, operands: Sequence[Array]) -> Array:
    """Where the terms of a contraction overflow, added up without their signs: for products that are infinite if they
    are rounded and not if they are fused with a sum, whether anything finite is left depends on the order as well.

    The weights of attention are up to 1 in a sum, and divided afterwards; so are other factors of a row.
    """
    scale = 2.0**-600 if node.dtype.itemsize == 8 else 1.0  # squared, no term of a float64 can overflow
    known = [np.abs(np.where(np.isfinite(each), each, 0).astype(np.float64)) for each in operands]
    sizes = [np.maximum(each, 1) * scale for each in known]
    total = run_silently(lambda: node.primitive.evaluate(*sizes, **{**node.params, "dtype": float64}))
    carried = np.float64 if node.dtype.itemsize == 8 else np.float32
    return np.asarray(total > float(np.finfo(carried).max) * scale * scale)


def _sum(array: Array, axis: tuple[int, ...], run: int) -> Array:
    """A sum in double precision, or of runs of so many terms, each summed in order."""
    if not run:
        return np.asarray(np.add.reduce(array, axis=axis, dtype=np.float64))
    dtype = np.result_type(array.dtype, np.float32)  # as everywhere, the sums of 16-bit floats are in float32
    terms = np.moveaxis(array, axis, range(len(axis))).reshape(-1, *np.delete(array.shape, axis)).astype(dtype)
    sums = [np.add.accumulate(terms[start : start + run], axis=0)[-1] for start in range(0, len(terms), run)]
    return np.asarray(np.add.reduce(sums, axis=0))
