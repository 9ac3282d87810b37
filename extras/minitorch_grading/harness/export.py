"""Drivers of exercise 14: nodes of ONNX and tables are plain data; `lower` writes down a graph of primitives.

A node is a row ``(operator, inputs, outputs, attributes)``, with values by their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minitorch import primitives as P
from minitorch.dtypes import float32
from minitorch.graph import Graph, apply, input_node, literal
from minitorch.ir import Node, Shape, Spec

from .driver import Driver, call_purely, within
from .needs import Needs
from .plain import described, plain

NEEDS = Needs(engine=("graph",))

# --- what the notebook works with, too --------------------------------------------------------------------------

PRIMITIVES = {
    each.name: each
    for each in (
        P.add, P.sub, P.mul, P.div, P.neg, P.exp, P.sqrt, P.maximum, P.less, P.less_equal, P.where, P.dot, P.reduce_sum,
        P.reduce_max, P.reshape, P.expand, P.permute,
    )
}  # fmt: skip


def emit(primitive: str, *operands: Node | float, **params: Any) -> Node:
    """Write down one primitive.

    Args:
        primitive: its name, such as ``"add"``.
        operands: values, and numbers, which take the shape of the values.
        params: such as ``dims``, a tuple, of ``reduce_sum``, and ``shape`` of ``expand``.

    Returns:
        The value. It has a shape and no numbers: the graph runs later.

    Example:
        >>> x = input_node("x", Spec((2, 3), float32))
        >>> emit("reduce_sum", emit("mul", x, 2.0), dims=(1,)).shape
        (2,)
    """
    if primitive not in PRIMITIVES:
        raise ValueError(f"there is no primitive {primitive!r} here; there are {', '.join(PRIMITIVES)}")
    values = [each for each in operands if isinstance(each, Node)]
    for each in operands:
        if not isinstance(each, (Node, int, float)):
            raise TypeError(
                f"an operand of {primitive} is a value or a number, and this one is a {type(each).__name__}"
            )
    if not values:
        raise TypeError(f"{primitive} needs an operand that is a value of the graph")
    like = next((each for each in values if each.dtype.is_floating_point), values[0])
    nodes = [each if isinstance(each, Node) else literal(float(each), Spec(like.shape, float32)) for each in operands]
    if primitive == "dot":
        params.setdefault("dtype", float32)
    return apply(PRIMITIVES[primitive], *nodes, **params)


def read(lower: Any, rows: Sequence[Any], shapes: Mapping[str, Shape]) -> Graph:
    """Return the graph of a model: `lower` translates node by node.

    Args:
        lower: ``(operator, operands, attributes) -> value``.
        rows: nodes of ONNX; the last one computes the result.
        shapes: of the inputs and weights, by their names.

    Example:
        >>> def lower(operator, operands, attributes):
        ...     return emit("maximum", operands[0], 0.0)
        >>> print(read(lower, [("Relu", ["x"], ["y"], {})], {"x": (4,)}))
        graph(x: f32[4]):
          %0 = maximum(x, 0.0) : f32[4]
          return %0
    """
    values = {name: input_node(name, Spec(tuple(shape), float32)) for name, shape in shapes.items()}
    inputs = tuple(values.values())
    found = None
    for operator, operands, outputs, attributes in rows:
        found = lower(operator, [values[name] for name in operands], dict(attributes))
        if not isinstance(found, Node):
            raise TypeError(f"lower has to return a value for {operator}, and it is {described(plain(found))}")
        values[outputs[0]] = found
    assert found is not None
    return Graph(inputs, (found,))


# --- the tasks --------------------------------------------------------------------------------------------------


def _text(function: Any, rows: Any, shapes: Any) -> str:
    return str(read(function, rows, shapes))


lower = Driver("export.lower", within(_text), NEEDS)
hard_swish, masked_softmax, formulas, name_table = (
    Driver(f"export.{name}", call_purely, NEEDS) for name in ("hard_swish", "masked_softmax", "formulas", "name_table")
)
