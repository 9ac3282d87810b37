"""The graphs of this exercise: elementwise operations, reductions over the first dimension, and what expands them."""

from __future__ import annotations

from random import Random
from typing import Any

from .... import primitives as P
from ....dtypes import float32
from ....graph import Graph, apply, input_node, literal
from ....ir import Node, Spec
from ...asks.fusion import REDUCTIONS

Cases = list[tuple[str, Any]]


def text_of(*lines: str) -> str:
    """A graph of some lines, the last of which are its outputs."""
    return "\n".join(["graph(x: f32[4,8], y: f32[4,8]):", *lines[:-1], f"return {lines[-1]}"])


CHAIN = text_of("%0 = neg(x)", "%1 = exp(%0)", "%2 = add(%1, y)", "%2")
DIAMOND = text_of("%0 = exp(x)", "%1 = neg(%0)", "%2 = mul(%0, y)", "%3 = add(%1, %2)", "%3")
SOFTMAX = text_of(  # over the first dimension
    "%0 = reduce_max(x, dims=[0])",
    "%1 = expand(%0, shape=[4,8])",
    "%2 = sub(x, %1)",
    "%3 = exp(%2)",
    "%4 = reduce_sum(%3, dims=[0])",
    "%5 = expand(%4, shape=[4,8])",
    "%6 = div(%3, %5)",
    "%6",
)
SIBLINGS = text_of("%0 = neg(x)", "%1 = reduce_sum(x, dims=[0])", "%2 = exp(x)", "%3 = neg(%1)", "%0, %2, %3")
ZIGZAG = text_of(
    "%0 = exp(x)",
    "%1 = reduce_sum(%0, dims=[0])",
    "%2 = expand(%1, shape=[4,8])",
    "%3 = mul(%0, %2)",
    "%3",
)
TURNS = text_of(  # two chains of different shapes that take turns
    "%0 = exp(x)",
    "%1 = reduce_sum(y, dims=[0])",
    "%2 = neg(%1)",
    "%3 = mul(%0, x)",
    "%4 = exp(%2)",
    "%5 = abs(%3)",
    "%6 = add(%4, %2)",
    "%7 = add(%5, %3)",
    "%6, %7",
)


def random_kernels(random: Random, size: int) -> Graph:
    """A graph of elementwise operations, sums over the first dimension, and what expands them again."""
    whole, row = Spec((4, 8), float32), Spec((8,), float32)
    inputs = [input_node(name, whole) for name in "xy"]
    pool: list[Node] = list(inputs)
    for _ in range(size):
        a = random.choice(pool[-4:])
        choice = random.random()
        if a.spec == whole and choice < 0.2:
            pool.append(apply(random.choice(REDUCTIONS), a, dims=(0,)))
        elif a.spec == row and choice < 0.5:
            pool.append(apply(P.expand, a, shape=whole.shape))
        elif choice < 0.6:
            pool.append(apply(random.choice((P.neg, P.exp, P.absolute)), a))
        else:
            b = random.choice([node for node in pool if node.spec == a.spec])
            b = literal(2.0, a.spec) if random.random() < 0.2 else b
            pool.append(apply(random.choice((P.add, P.mul, P.sub)), a, b))
    outputs = [pool[-1]] + [random.choice(pool[2:])] * (random.random() < 0.5)
    return Graph(inputs, outputs)
