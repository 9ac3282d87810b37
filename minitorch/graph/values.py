"""The static values in a graph, parameters of nodes and numbers in literals, and the keys that tell them apart.

A *splat* is a `constant` node whose value is one Python number, repeated in every element. It is written into a listing
where it is used (``add(%0, 1.0)``) and has no identity: two splats with the same bits are the same. Python's own
equality does not serve: it says ``0.0 == -0.0``, ``1 == True`` and ``nan != nan``. The keys made here compare type
and bits.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from ..dtypes import PYTHON_NUMBERS, DType, float64, stored
from ..ir import Node
from ..primitives import constant
from ..sizes import is_symbolic

Number = bool | int | float

# The types of a node's parameters; tuples of these are parameters, too. All are immutable.
SCALAR_KINDS = (bool, int, float, str, DType)


def is_static(value: object) -> bool:
    """Return whether a value can be a parameter of a node: a number, a name, an element type, or tuples of them."""
    if type(value) is not tuple:
        return type(value) in SCALAR_KINDS or is_symbolic(value)
    return all(map(is_static, value))


def value_key(value: Any) -> Hashable:
    """Return a key that is equal for equal parameters only: it tells 1, 1.0 and True apart, and 0.0 from -0.0.

    Example:
        >>> value_key(0.0) == value_key(-0.0), value_key(math.nan) == value_key(math.nan)
        (False, True)
    """
    kind = type(value)
    if kind is tuple:
        return value if set(map(type, value)) <= {int} else tuple(map(value_key, value))
    if kind is float or kind is bool:
        return kind, repr(value)
    return value  # type: ignore[no-any-return]


def params_key(params: Mapping[str, Any]) -> Hashable:
    """Return the key of all parameters of a node."""
    if len(params) > 1:
        return tuple([(name, value_key(params[name])) for name in sorted(params)])
    return tuple([(name, value_key(value)) for name, value in params.items()])


def is_splat(node: Node) -> bool:
    """Return whether a node repeats one plain number; passes do not compute with symbolic numbers."""
    return node.primitive is constant and issubclass(type(node.params["value"]), PYTHON_NUMBERS)


def splat_key(node: Node) -> Hashable:
    """Return the key of a splat: the bits of its element, its shape and its type. All NaNs have one key."""
    return repr(stored(node.params["value"], node.spec.dtype)), node.spec.shape, node.spec.dtype


def number_text(value: Number, dtype: DType) -> str:
    """Return the shortest text that gives the element exactly in its type.

    Example:
        >>> from minitorch.dtypes import bool_, float32, float64, int8
        >>> [number_text(0.1, float32), number_text(-0.0, float64), number_text(3, float32), number_text(3, int8)]
        ['0.1', '-0.0', '3.0', '3']
    """
    value = stored(value, dtype)
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is int:
        return str(value)
    if math.isnan(value):
        return "nan"
    text = repr(value) if dtype is float64 else str(dtype.numpy.type(value))
    return f"{text}.0" if text.lstrip("-").isdigit() else text


def bodies(node: Node) -> dict[str, Any]:
    """Return the graphs among the parameters of a node, by name: the bodies of a loop, or branches."""
    if node.primitive.together is None:
        return {}
    return {name: value for name, value in node.params.items() if not is_static(value)}


def shared(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that siblings have in common."""
    return {name: value for name, value in params.items() if name != "result"}


def siblings(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """Map the first of the siblings among some nodes to all of them, in order.

    Example:
        >>> import numpy as np
        >>> from minitorch.graph import Graph, evaluate
        >>> graph = Graph.parse('''
        ... graph(x: f32[3,2], c: f32[2]):
        ...   %0 = scan(c, x, body=@0, length=3, carried=1, sliced=1, reverse=false, result=0)
        ...   %1 = scan(c, x, body=@0, length=3, carried=1, sliced=1, reverse=false, result=1)
        ...   return %0, %1
        ... @0(c: f32[2], x: f32[2]):
        ...   %0 = add(c, x)
        ...   return %0, c
        ... ''')
        >>> [[node.params["result"] for node in group] for group in siblings(graph.nodes).values()]
        [[0, 1]]
        >>> [each.tolist() for each in evaluate(graph, [np.ones((3, 2), np.float32), np.zeros(2, np.float32)])]
        [[3.0, 3.0], [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]]
    """
    found: dict[Hashable, list[Node]] = {}
    for node in nodes:
        if node.primitive.together is not None:
            key = node.primitive, tuple(map(id, node.inputs)), params_key(shared(node.params))
            found.setdefault(key, []).append(node)
    return {group[0]: group for group in found.values()}
