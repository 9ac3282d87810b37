"""Lifting: compositions of primitives become operators, under the names by which other systems know them.

    div(exp(sub(x, expand(max))), expand(sum))  ──►  softmax(x, dim)

A rule looks at a node, and at the nodes that it is computed from, and gives the operator that computes the same, or
None. Structure alone decides, never a name of a module. The nodes of a graph are visited in program order, so a rule
sees operands that were lifted before: a bias is taken up by the convolution that it is added to, if nothing else reads
the convolution's result.

Values are the same up to the order of sums. The exceptions: where all scores of a row overflow to -inf, a softmax gives
NaN and attention zeros, whichever of them it was before. QuantizeLinear may make another integer of NaN. Values are
not checked: an index below 0 counts from the end, where an embedding refuses it.

`RULES` are the rules of `LIFTING`. Two passes may follow it: `recurrent.RECURRENCES`, which looks at many steps at a
time, and `MEANS`, since rules such as that of layer norm look for the quotient that a mean is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from minitorch.graph import Graph
from minitorch.graph.build import topological_order, with_inputs
from minitorch.ir import INPUT, Node
from minitorch.passes.dead_code import DEAD_CODE
from minitorch.passes.pipeline import Pass
from minitorch.sizes import UndecidedError

from . import activations, attention, choices, group_norm, pointwise, products, sliding
from .matching import Found

Rule = Callable[[Node, set[Node]], Found]
"""(a node, the nodes that are read once) -> the operator in its place."""

RULES: tuple[Rule, ...] = (
    *activations.FIRST,
    pointwise.signbit,
    pointwise.softmax,
    pointwise.log_softmax,
    pointwise.layer_norm,
    pointwise.layer_norm_parameters,
    pointwise.batch_norm,
    pointwise.batch_norm_parameters,
    sliding.conv,
    sliding.conv_bias,
    sliding.max_pool,
    sliding.avg_pool,
    attention.attention,
    products.matmul,
    products.gemm,
    products.gemm_bias,
    products.quantize,
    products.dequantize,
    activations.clip_low,
    activations.clip_high,
    *activations.LATER,
    choices.minimum,
    choices.reduce_min,
    choices.argmin,
    choices.ceil,
    choices.unchecked,
    choices.take_along,
    choices.topk,
    group_norm.group_norm,
)


def lifted(graph: Graph, rules: tuple[Rule, ...] = RULES) -> Graph:
    """A graph with operators in place of what they are composed of.

    Example:
        >>> import minitorch as mt
        >>> with mt.no_grad():
        ...     graph = mt.jit(mt.nn.Sequential(mt.nn.Linear(4, 3), mt.nn.ReLU())).graph(mt.ones(2, 4))
        >>> lifted(graph).count()
        Counter({'gemm': 1, 'relu': 1})
    """
    reads = Counter(operand for node in graph.nodes for operand in node.inputs)
    reads.update(graph.outputs)
    mapped: dict[Node, Node] = {node: node for node in graph.inputs}
    single: set[Node] = set()
    emitted: dict[Node, None] = {}
    for node in graph.nodes:
        now = with_inputs(node, tuple([mapped[operand] for operand in node.inputs]))
        while (found := _first(rules, now, single)) is not None:
            now = found
        mapped[node] = now
        if reads[node] == 1:
            single.add(now)
        for each in topological_order((now,), emitted):
            if each.primitive is not INPUT:
                emitted[each] = None
    outputs = [mapped[node] for node in graph.outputs]
    if all(now is node for node, now in mapped.items()):
        return graph
    return DEAD_CODE(graph.with_nodes(emitted, outputs))


def _first(rules: tuple[Rule, ...], node: Node, single: set[Node]) -> Found:
    for rule in rules:
        try:
            if (found := rule(node, single)) is not None:
                return found
        except UndecidedError:  # it would decide by a symbolic size
            continue
    return None


LIFTING = Pass("lifting", lifted, "operators such as conv and softmax in place of what they are composed of")
MEANS = Pass(
    "means", lambda graph: lifted(graph, (choices.mean, choices.kept_mean)), "means in place of quotients of sums"
)
