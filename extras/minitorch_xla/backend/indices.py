"""Indices that are data: counted from the beginning for XLA, and checked, since XLA raises no errors.

XLA clamps an index out of range, or leaves out what is written there. So a program that has such an index computes in
vain, and a check says so before anything is given back. An index that interval analysis finds to be in range, such as
an `iota`, has no check.

If indices are cheap to compute (of inputs, by pointwise operations and movements), NumPy computes them before the
program runs, and nobody waits for the program. If not, the check is one more result of the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from minitorch import primitives as P
from minitorch.graph import Graph
from minitorch.graph.build import topological_order
from minitorch.interpreters import run_silently
from minitorch.ir import INPUT, POINTWISE, Node
from minitorch.passes.intervals import Known, interval, of_type

from .elementwise import Rule, full

FIRST = {"gather": 1, "scatter": 2, "scatter_add": 2}  # primitives that read indices, and which operand is the first
CHEAP = frozenset((*POINTWISE, "movement", "source"))

IN_RANGE = (None, None)

Ends = tuple[float, float]
Checks = list[tuple[Node, Ends]]
"""Indices, and values of the primitive `check`, each with the least and the largest number that it may be."""


def checks_of(graph: Graph) -> Checks:
    """The indices of a graph that may be out of range, each once."""
    found = dict.fromkeys(pair for node in graph.nodes for pair in _indices(node))
    return [pair for pair in found if _limits(*pair) != IN_RANGE]


def readers(graph: Graph) -> list[Node]:
    """The nodes whose indices may be out of range."""
    return [node for node in graph.nodes if any(_limits(*pair) != IN_RANGE for pair in _indices(node))]


def _indices(node: Node) -> Iterator[tuple[Node, Ends]]:
    first = FIRST.get(node.primitive.name)
    if first is not None:
        for index, length in zip(node.inputs[first:], node.inputs[0].shape, strict=False):
            yield index, (-length, length - 1)
    if node.primitive is P.check:
        yield node.inputs[0], (node.params["low"], node.params["high"])


def _limits(value: Node, ends: Ends, given: Known | None = None) -> tuple[float | None, float | None]:
    """The least and the largest number that a value may be; None for an end that is known not to be passed."""
    if value.dtype.is_floating_point:
        return ends
    (least, most), (low, high) = ends, interval(value, given)
    return (least if low < least else None), (most if high > most else None)


class Ahead:
    """The check of indices by NumPy, ahead of the program.

    Most often all inputs that indices are computed from are in range themselves. Where interval analysis shows that
    indices then are, this is asked first, and nothing is computed.

    Args:
        graph: the whole of it.
        checks: of its indices.

    Attributes:
        is_cheap: whether it may take the place of the program's own check.
        reads: the positions of the inputs that it reads.
    """

    def __init__(self, graph: Graph, checks: Checks) -> None:
        self._checks = [(value, *_limits(value, ends)) for value, ends in checks]
        nodes = topological_order([index for index, _ in checks])
        self._nodes = [node for node in nodes if node.inputs]
        self.is_cheap = all(node.primitive.kind in CHEAP for node in self._nodes)
        inputs = {node: place for place, node in enumerate(graph.inputs)}
        self._inputs = [node for node in nodes if node.primitive is INPUT]
        self.reads = [inputs[node] for node in self._inputs]
        if self.is_cheap:
            self._constants = {node: node.primitive.evaluate(**node.params) for node in nodes if _is_source(node)}
            self._usual = _usual(self._inputs, checks)

    def __call__(self, values: Sequence[Any]) -> bool:
        """Whether an index is out of range, from the values of a call."""
        arrays = [np.asarray(values[place]) for place in self.reads]
        if self._usual and all(
            # A negative number is a large one without a sign.
            not array.size or np.maximum.reduce(array.view(unsigned), axis=None) <= high
            for array, (unsigned, high) in zip(arrays, self._usual, strict=True)
        ):
            return False
        known = self._constants | dict(zip(self._inputs, arrays, strict=True))
        run_silently(self._compute, known)
        for index, low, high in self._checks:
            value = known[index]
            if value.size and not ((low is None or value.min() >= low) and (high is None or value.max() <= high)):
                return True  # also for NaN
        return False

    def _compute(self, known: dict[Node, np.ndarray[Any, Any]]) -> None:
        for node in self._nodes:
            known[node] = node.primitive.evaluate(*[known[operand] for operand in node.inputs], **node.params)


def _is_source(node: Node) -> bool:
    return not node.inputs and node.primitive is not INPUT


def _usual(inputs: Sequence[Node], checks: Checks) -> list[tuple[str, int]]:
    """For each input an unsigned type and its largest usual number: a range in which no check fails; or nothing."""
    if not all(node.dtype.category == "int" for node in inputs):
        return []
    reads = {index: set(topological_order([index])) for index, _ in checks}
    ends = {node: min(int(high) for index, (_, high) in checks if node in reads[index]) for node in inputs}
    given = {node: (0, min(high, int(of_type(node.dtype).high))) for node, high in ends.items()}
    if any(high < 0 or _limits(index, (low, high), given) != IN_RANGE for index, (low, high) in checks):
        return []
    return [(f"u{node.dtype.itemsize}", high) for node, (_, high) in given.items()]


def applied(rule: Rule, node: Node, operands: list[Any]) -> Any:
    """What a rule makes of a primitive that reads indices.

    An index that goes through the rows in order is no index for XLA, but a dimension that the rule is mapped over: rows
    that are divided among devices stay where they are.
    """
    first = FIRST[node.primitive.name]
    indices = [_from_beginning(value, *pair) for value, pair in zip(operands[first:], _indices(node), strict=True)]
    if len(indices) > 1 and node.inputs[first].primitive is P.iota and len(indices[0]) == len(operands[0]):
        return jax.vmap(rule)(*operands[:first], *indices[1:])
    return rule(*operands[:first], *indices)


def _from_beginning(value: Any, index: Node, ends: Ends) -> Any:
    wide = lax.convert_element_type(value, jnp.int64)
    if interval(index)[0] >= 0:
        return wide
    return lax.select(lax.lt(wide, full(wide, 0)), lax.add(wide, full(wide, ends[1] + 1)), wide)


def out_of_range(checks: Checks, known: Mapping[Node, Any]) -> Any:
    """Whether one of the indices is not there, or a value is out of range, in `jax.lax`."""
    wrong = []
    for value, ends in checks:
        wide = known[value]
        if not value.dtype.is_floating_point:
            wide = lax.convert_element_type(wide, jnp.int64)
        low, high = _limits(value, ends)
        beyond = [lax.bitwise_not(lax.ge(wide, full(wide, low)))] if low is not None else []  # also for NaN
        beyond += [lax.bitwise_not(lax.le(wide, full(wide, high)))] if high is not None else []
        wrong.append(lax.reduce_or(reduce(lax.bitwise_or, beyond), tuple(range(wide.ndim))))
    return reduce(lax.bitwise_or, wrong)
