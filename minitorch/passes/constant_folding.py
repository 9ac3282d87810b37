"""Constant folding: nodes that depend on constants alone are evaluated at compile time.

Splats stay splats: an elementwise operation on them is done on a sample. `iota` and `random_bits` are not constants
here: a compiler computes their elements where they are used, which is better than reading them from memory. A node with
more than `MOST_ELEMENTS`, or that fails when evaluated (an index out of range), is left to the run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph.build import literal, with_inputs
from ..graph.graph import Graph
from ..graph.values import is_splat
from ..ir import Node
from ..primitives import constant, expand, random_bits
from ..sizes import is_symbolic
from .pipeline import Pass

Array = np.ndarray[Any, Any]

MOST_ELEMENTS = 1 << 14  # elements of operands and result together; raising it takes compile time and memory
MOST_REPEATED = 1 << 6  # elements of a repeated array; beyond, a kernel repeats it by indexing, at no cost
SAMPLE = (2,)  # enough for an operation on splats; of 0-d arrays NumPy computes some powers in another way
ELEMENTWISE = frozenset(("unary", "binary", "ternary"))


def fold_constants(graph: Graph) -> Graph:
    """Evaluate the constant subexpressions of a graph."""
    done = {node: node for node in graph.inputs}
    program = []
    changed = False
    for node in graph.nodes:
        now = with_inputs(node, tuple([done[operand] for operand in node.inputs]))
        if now.inputs and all(operand.primitive is constant for operand in now.inputs):
            folded = fold(now)
            changed |= folded is not None
            now = folded or now
        done[node] = now
        program.append(now)
    return graph.with_nodes(program, [done[node] for node in graph.outputs]) if changed else graph


def fold(node: Node) -> Node | None:
    """Return the constant that a node of constants computes; None if it is left to the run."""
    if node.primitive is random_bits or any(is_symbolic(each.params["value"]) for each in node.inputs):
        return None
    by_number = node.primitive.kind in ELEMENTWISE and all(map(is_splat, node.inputs))
    if not by_number and node.spec.size + sum(each.spec.size for each in node.inputs) > MOST_ELEMENTS:
        return None
    if node.primitive is expand and not by_number and MOST_REPEATED < node.spec.size != node.inputs[0].spec.size:
        return None
    arrays = [array_of(operand, SAMPLE if by_number else operand.shape) for operand in node.inputs]
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(node.primitive.evaluate(*arrays, **node.params))
    except Exception:  # the run raises it, with the user's line
        return None
    if not is_finite(result) and all(map(is_finite, arrays)):  # left to the run, where `check_nan` can name the line
        return None
    return literal_of(result, node)


def is_finite(array: Array) -> bool:
    """Return whether an array holds neither an infinity nor a NaN."""
    return array.dtype.kind in "biu" or bool(np.isfinite(array).all())


def array_of(node: Node, shape: tuple[int, ...]) -> Array:
    """Return the elements of a constant, a splat's in another shape."""
    if is_splat(node):
        return np.asarray(constant.evaluate(value=node.params["value"], shape=shape, dtype=node.dtype))
    return node.params["value"].array  # type: ignore[no-any-return]


def literal_of(array: Array, node: Node) -> Node:
    """Return the constant with these elements, in place of a node; a splat if all have the same bits."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.size:
        bits = flat.view(np.uint8).reshape(flat.size, -1)
        if (bits != bits[0]).any():
            return literal(array, source=node.source)
    return literal(flat[0].item() if flat.size else 0, node.spec, node.source)


CONSTANT_FOLDING = Pass("constant folding", fold_constants, "Evaluate nodes that depend on constants alone.")
