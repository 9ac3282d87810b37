"""Node construction for passes and parsers: shape and type are inferred, nothing is recorded or computed."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

import numpy as np

from ..dtypes import BY_NUMPY, stored
from ..ir import INPUT, Node, Primitive, Source, Spec, as_stored
from ..primitives import Literal, constant
from .values import Number


def apply(primitive: Primitive, *inputs: Node, source: Source | None = None, **params: Any) -> Node:
    """Make a node that applies a primitive to nodes.

    Raises:
        ShapeError, DTypeError: if the inputs do not fit the primitive.

    Example:
        >>> from minitorch.dtypes import float32
        >>> from minitorch.primitives import reduce_sum
        >>> apply(reduce_sum, input_node("x", Spec((2, 3), float32)), dims=(1,))
        <reduce_sum: f32[2]>
    """
    spec = primitive.infer(*[node.spec for node in inputs], **params)
    return Node(primitive, inputs, as_stored(params, spec), spec, source)


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """Apply the same operation to other inputs; return the node itself if they are the same."""
    if all(map(_is, inputs, node.inputs)):
        return node
    same_specs = all(new.spec == old.spec for new, old in zip(inputs, node.inputs, strict=True))
    spec = node.spec if same_specs else node.primitive.infer(*[each.spec for each in inputs], **node.params)
    return Node(node.primitive, inputs, node.params, spec, node.source)


def _is(a: object, b: object) -> bool:
    return a is b


def input_node(name: str, spec: Spec, source: Source | None = None) -> Node:
    """Make an input of a graph."""
    return Node(INPUT, (), {"name": name}, spec, source)


def literal(value: Number | np.ndarray[Any, Any], spec: Spec | None = None, source: Source | None = None) -> Node:
    """Make a constant: one number in every element of `spec`, or an array (whose `spec` need not be given).

    Raises:
        OverflowError, ValueError: for a number that an integer type cannot hold.
    """
    if isinstance(value, np.ndarray):
        spec = Spec(value.shape, BY_NUMPY[value.dtype])
        return apply(constant, source=source, value=Literal(value), shape=spec.shape, dtype=spec.dtype)
    if spec is None:
        raise TypeError("a number alone does not say what shape and type it has: give a spec")
    params: Mapping[str, Any] = {
        "value": stored(value, spec.dtype),
        "shape": spec.shape,
        "dtype": spec.dtype,
    }
    return Node(constant, (), params, spec, source)


def topological_order(outputs: Iterable[Node], known: Container[Node] = ()) -> list[Node]:
    """Return the nodes that the outputs depend on in topological order, without `known` nodes and those only they need.

    The order is that of a depth-first walk, inputs from left to right: the same for the same graph, always.
    """
    done: set[Node] = set()
    order: list[Node] = []
    pending = list(outputs)
    pending.reverse()
    while pending:
        node = pending[-1]
        if node in done or node in known:
            pending.pop()
            continue
        missing = [operand for operand in reversed(node.inputs) if operand not in done and operand not in known]
        if missing:
            pending += missing
        else:
            pending.pop()
            done.add(node)
            order.append(node)
    return order
