"""The blanks of notebook 12: batch normalization in the convolution before it, and where that is allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import minitorch_operators as O
from minitorch import primitives as P
from minitorch.dtypes import float32
from minitorch.graph import Graph, apply, input_node, literal
from minitorch.ir import Node, Spec
from minitorch.primitives import constant

from ..blanking import Blank, Case

# On paper -----------------------------------------------------------------------------------------------------------


def scale_and_shift(gamma: Any, beta: Any, mean: Any, variance: Any, eps: Any) -> Any:
    """Return s and t, for which batch normalization is s*x + t."""
    s = gamma / np.sqrt(variance + eps)
    t = beta - s * mean
    return s, t


def _statistics(channels: int) -> list[Any]:
    draw = np.random.default_rng(12)
    return [*draw.normal(size=(3, channels)), draw.uniform(0.5, 2, channels)]


def _channels() -> Iterable[Case]:
    gamma, beta, mean, variance = _statistics(6)
    yield "For six channels", gamma, beta, mean, variance, 1e-5
    yield "For a variance of 0", gamma, beta, mean, 0 * variance, 1e-5


# In a graph ---------------------------------------------------------------------------------------------------------


def numbers(node: Node) -> Any:
    """Return the numbers of a constant, as the notebook does."""
    return constant.evaluate(**node.params).astype(np.float64)


def stored(array: Any) -> Node:
    """Return a constant with these numbers, as the notebook does."""
    return literal(np.asarray(array, np.float32))


def folded_convolution(conv: Any, norm: Any) -> Any:
    """Return the convolution that computes what `norm` makes of `conv`."""
    _, filters, *bias = conv.inputs
    gamma, beta, mean, variance = map(numbers, norm.inputs[1:])
    s, t = scale_and_shift(gamma, beta, mean, variance, norm.params["eps"])
    old_bias = numbers(bias[0]) if bias else 0
    new_filters = s[:, None, None, None] * numbers(filters)
    new_bias = s * old_bias + t
    return apply(conv.primitive, conv.inputs[0], stored(new_filters), stored(new_bias), **conv.params)


def _block(has_bias: bool = True) -> Graph:
    """A convolution and a normalization of three channels, whose parameters are constants."""
    draw = np.random.default_rng(34)
    filters, bias = draw.normal(size=(3, 3, 3, 3)), draw.normal(size=3)
    x = input_node("x", Spec((2, 3, 5, 5), float32))
    options: Any = {"strides": (1, 1), "pads": ((1, 1), (1, 1)), "dilations": (1, 1), "groups": 1}
    conv = apply(O.conv, x, *map(stored, (filters, bias) if has_bias else (filters,)), **options)
    return Graph([x], [apply(O.batch_norm, conv, *map(stored, _statistics(3)), eps=0.01)])


def _convolutions() -> Iterable[Case]:
    for words, has_bias in (("With a bias", True), ("For a convolution without a bias", False)):
        *_, norm = _block(has_bias).nodes
        yield words, norm.inputs[0], norm


def _computed(function: Callable[..., Any], conv: Node, norm: Node) -> Any:
    """The numbers that the new convolution computes."""
    made = function(conv, norm)
    if not isinstance(made, Node) or made.primitive is not O.conv:
        return made
    x = np.random.default_rng(56).normal(size=(2, 3, 5, 5)).astype(np.float32)
    return made.primitive.evaluate(x, *map(numbers, made.inputs[1:]), **made.params)


# Where it is allowed ------------------------------------------------------------------------------------------------


def may_fold(graph: Any, conv: Any, norm: Any) -> Any:
    """Return whether `norm` may be folded into `conv`."""
    is_alone = graph.users()[conv] == (norm,) and conv not in graph.outputs
    is_known = all(each.primitive is constant for each in norm.inputs[1:])
    return is_alone and is_known


def _graphs() -> Iterable[Case]:
    block = _block()
    (norm,) = block.outputs
    conv = norm.inputs[0]
    yield "In a block as in the model", block, conv, norm
    yield "Where an addition reads the convolution, too", Graph(block.inputs, [apply(P.add, norm, conv)]), conv, norm
    yield "Where the convolution is a result of the program, too", Graph(block.inputs, [norm, conv]), conv, norm
    mean = apply(P.reduce_sum, block.inputs[0], dims=(0, 2, 3))
    other = apply(O.batch_norm, conv, *norm.inputs[1:3], mean, norm.inputs[4], eps=0.01)
    yield "Where the mean depends on the images", Graph(block.inputs, [other]), conv, other


BLANKS = {
    "scale_and_shift": Blank(
        scale_and_shift,
        _channels,
        {
            "You divide by the variance. The deviation is its square root.": {"np.sqrt": ""},
            "The eps is added to the variance, under the root.": {
                "np.sqrt(variance + eps)": "(np.sqrt(variance) + eps)"
            },
            "The mean is subtracted before x is scaled, so t has s times the mean.": {"s * mean": "mean"},
        },
    ),
    "folded_convolution": Blank(
        folded_convolution,
        _convolutions,
        {
            "The old bias is scaled, too: it is added before the normalization.": {"s * old_bias": "old_bias"},
            "The old bias is missing.": {"s * old_bias + ": ""},
            "A channel of the result is a filter, the first axis; you scale the channels of the input.": {
                "s[:, None, None, None]": "s[:, None, None]"
            },
        },
        ask=_computed,
    ),
    "may_fold": Blank(
        may_fold,
        _graphs,
        {
            "A result of the program is read, too, by the caller: look at graph.outputs.": {
                " and conv not in graph.outputs": ""
            },
            "Statistics of the batch are no constants: look at norm.inputs.": {" and is_known": ""},
        },
    ),
}
