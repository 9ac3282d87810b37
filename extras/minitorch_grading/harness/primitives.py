"""Drivers of exercise 10: a function of values is written down as a graph of primitives.

The operations below are what the student has; each of them is one primitive, and shapes are broadcast as in NumPy. The
answer is the text of the graph. The judge runs it, differentiates it, and counts its primitives and kernels.
"""

from __future__ import annotations

from typing import Any

from minitorch import primitives as P
from minitorch.dtypes import float32
from minitorch.graph import Graph, apply, input_node, literal
from minitorch.ir import PRIMITIVES, Node, Primitive, Shape, Spec

from .driver import Driver, within
from .needs import Needs
from .plain import described, plain
from .recording import operators, refusal

NEEDS = Needs(engine=("graph",))


# --- what the notebook works with, too --------------------------------------------------------------------------


def _written(name: str, *operands: object) -> Value:
    if len(operands) == 1:
        return _one(PRIMITIVES[name], *operands)
    return _together(PRIMITIVES[name], *operands)


@operators(_written)
class Value:
    """A value of a graph, of which the shape and the type are known, and no number."""

    def __init__(self, node: Node) -> None:
        self.node = node

    @property
    def shape(self) -> Shape:
        """The lengths of its dimensions."""
        return self.node.shape

    __bool__ = __len__ = __iter__ = refusal(
        "a graph is written down before it has numbers, so it has no `if`: use where(condition, a, b)"
    )
    __float__ = __abs__ = __pow__ = __array_ufunc__ = refusal(
        "a graph is written down before it has numbers: use the functions of this notebook, and none of math, "
        "NumPy or Python"
    )
    __le__ = __ge__ = refusal("there are < and >, and equal(a, b); <= and >= are not there")


def _spread(value: object, shape: Shape, like: Node) -> Node:
    """A value, or a number, in a shape."""
    if isinstance(value, Value):
        return value.node if value.shape == shape else apply(P.expand, value.node, shape=shape)
    if isinstance(value, (int, float)):
        return literal(float(value), Spec(shape, like.dtype if like.dtype.is_floating_point else float32))
    raise TypeError(f"a value or a number is wanted, and it is a {type(value).__name__}")


def _common(*values: object) -> tuple[Shape, Node]:
    """The shape to which all are broadcast, and one of them."""
    nodes = [each.node for each in values if isinstance(each, Value)]
    if not nodes:
        raise TypeError("one of the operands has to be a value of the graph")
    shape: list[int] = []
    for place in range(1, max(node.spec.ndim for node in nodes) + 1):
        lengths = {node.shape[-place] for node in nodes if node.spec.ndim >= place} - {1}
        if len(lengths) > 1:
            shapes = " and ".join(str(list(node.shape)) for node in nodes)
            raise ValueError(f"shapes {shapes} do not go together: dimensions are aligned on the right")
        shape.append(lengths.pop() if lengths else 1)
    return tuple(reversed(shape)), nodes[0]


def _together(primitive: Primitive, *values: object) -> Value:
    shape, like = _common(*values)
    return Value(apply(primitive, *[_spread(each, shape, like) for each in values]))


def _one(primitive: Primitive, x: object) -> Value:
    if not isinstance(x, Value):
        raise TypeError(f"{primitive.name} takes a value of the graph, and it is a {type(x).__name__}")
    return Value(apply(primitive, x.node))


def exp(x: Value) -> Value:
    """e to the power x."""
    return _one(P.exp, x)


def log(x: Value) -> Value:
    """The natural logarithm."""
    return _one(P.log, x)


def log1p(x: Value) -> Value:
    """The logarithm of 1 + x, exact near 0."""
    return _one(P.log1p, x)


def sqrt(x: Value) -> Value:
    """The square root."""
    return _one(P.sqrt, x)


def tanh(x: Value) -> Value:
    """The hyperbolic tangent."""
    return _one(P.tanh, x)


def absolute(x: Value) -> Value:
    """The number without its sign."""
    return _one(P.absolute, x)


def maximum(a: Any, b: Any) -> Value:
    """The larger of two."""
    return _together(P.maximum, a, b)


def equal(a: Any, b: Any) -> Value:
    """Whether two are equal, for `where`."""
    return _together(P.equal, a, b)


def where(condition: Value, a: Any, b: Any) -> Value:
    """`a` where the condition holds, `b` elsewhere."""
    if not isinstance(condition, Value):
        raise TypeError("the condition is a value of the graph, such as x < 0.0")
    shape, _ = _common(condition, a, b)
    like = next((each.node for each in (a, b) if isinstance(each, Value)), condition.node)
    operands = [_spread(each, shape, like) for each in (a, b)]
    chosen = condition.node if condition.shape == shape else apply(P.expand, condition.node, shape=shape)
    return Value(apply(P.where, chosen, *operands))


def total(x: Value, keepdim: bool = False) -> Value:
    """The sum of each row: the last dimension goes, or stays with length 1."""
    node = apply(P.reduce_sum, x.node, dims=(x.node.spec.ndim - 1,))
    return Value(apply(P.reshape, node, shape=(*x.shape[:-1], 1)) if keepdim else node)


def graph_of(function: Any, shape: Shape) -> Graph:
    """The graph that a function of one value writes down.

    Raises:
        TypeError: if it returns no value.

    Example:
        >>> print(graph_of(lambda x: x * 2.0 + 1.0, (4,)))
        graph(x: f32[4]):
          %0 = mul(x, 2.0) : f32[4]
          %1 = add(%0, 1.0) : f32[4]
          return %1
    """
    x = input_node("x", Spec(shape, float32))
    found = function(Value(x))
    if not isinstance(found, Value):
        raise TypeError(f"a value of the graph has to be returned, and it is {described(plain(found))}")
    return Graph((x,), (found.node,))


# --- the tasks --------------------------------------------------------------------------------------------------


def _text(function: Any, shape: Any) -> str:
    return str(graph_of(function, tuple(shape)))


hard_swish, asinh, layer_norm, lengths, mish = (
    Driver(f"primitives.{name}", within(_text), NEEDS)
    for name in ("hard_swish", "asinh", "layer_norm", "lengths", "mish")
)
