"""Convolutions and pools in `jax.lax`: operators that XLA has kernels for, where a graph has products of windows.

Lifting finds them by where their elements come from. A gradient of a convolution is one, too, and found alike.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

import minitorch_operators as O
from minitorch.dtypes import BY_NUMPY
from minitorch.graph import Graph
from minitorch.ir import Node, Shape
from minitorch.primitives.reductions import lowest
from minitorch_operators.lifting import lifted, sliding
from minitorch_operators.lifting.matching import Found

from .elementwise import Rule, in_float32

# With fewer channels and a smaller window, XLA's convolution on a CPU takes 1.5 to 2.8 times as long as slices and a
# product do (in groups 1.1 to 2.8 times, with a window of one element 1.7 times), else 0.4 to 1.05 times.
CHANNELS, WINDOW = 8, 64


def _if_faster(rule: Any) -> Any:
    """A rule for the convolutions that XLA has fast kernels for; all others stay products."""

    def lift(node: Node, single: set[Node]) -> Found:
        found = rule(node, single)
        if found is None:
            return None
        convolution = found if found.primitive is O.conv else found.inputs[0]
        _, depth, *size = convolution.inputs[1].shape
        area = math.prod(size)
        is_large = area >= WINDOW or (depth >= CHANNELS and area > 1)
        return found if is_large and convolution.params["groups"] == 1 else None

    return lift


STAGES = (_if_faster(sliding.conv), sliding.max_pool, sliding.avg_pool), (_if_faster(sliding.reshaped_conv),)


def lifted_windows(graph: Graph) -> Graph:
    """A graph with the convolutions and pools that XLA has kernels for."""
    return reduce(lifted, STAGES, graph)


def _conv(x: Any, weight: Any, *, strides: Shape, pads: Any, dilations: Shape, groups: int) -> Any:
    return lax.conv_general_dilated(
        x,
        weight,
        strides,
        pads,
        rhs_dilation=dilations,
        feature_group_count=groups,
        precision=lax.Precision.HIGHEST,
    )


def _window(x: Any, initial: float, combine: Any, lengths: Shape, strides: Shape, pads: Any, dilations: Shape) -> Any:
    one = (1, 1)
    return lax.reduce_window(
        x,
        np.asarray(initial, x.dtype),
        combine,
        (*one, *lengths),
        (*one, *strides),
        ((0, 0), (0, 0), *pads),
        window_dilation=(*one, *dilations),
    )


def _max_pool(x: Any, **params: Any) -> Any:
    return _window(x, lowest(BY_NUMPY[np.dtype(x.dtype)]), lax.max, **params)


_total = in_float32(lambda x, **params: _window(x, 0, lax.add, **params))


def _avg_pool(x: Any, *, lengths: Shape, **params: Any) -> Any:
    return lax.div(_total(x, lengths=lengths, **params), jnp.asarray(math.prod(lengths), x.dtype))


RULES: dict[str, Rule] = {"conv": in_float32(_conv), "max_pool": _max_pool, "avg_pool": _avg_pool}
