"""Broadcasting: the only place where operands are expanded to a common shape."""

from __future__ import annotations

from ..errors import ShapeError
from ..ir import PRIMITIVES, Node, Shape, user_source
from ..tensor import Tensor
from .provenance import made_by
from .shapes import common_shape
from .state import current_staging


def expand_operands(inputs: tuple[Tensor, ...], name: str, recorded_only: bool = False) -> tuple[Tensor, ...]:
    """Make broadcasting explicit: operands of an elementwise primitive, expanded to their common shape.

    NumPy broadcasts by itself, so eager needs an explicit `expand` only where a gradient has to be summed back
    (`recorded_only`). This is the only place where broadcasting happens, and the gradient of `expand` is the only place
    where it is undone.
    """
    shapes = [tensor.shape for tensor in inputs]
    if len(set(map(len, shapes))) == 1 and shapes.count(shapes[0]) == len(shapes):
        return inputs
    shape = broadcast_shapes(inputs, name)
    return tuple(
        tensor
        if (len(own) == len(shape) and own == shape) or (recorded_only and not tensor._requires_grad)
        else _expanded(tensor, shape)
        for tensor, own in zip(inputs, shapes, strict=True)
    )


def _expanded(tensor: Tensor, shape: Shape) -> Tensor:
    """Broadcast a tensor to a shape; a recorded number becomes a number of that shape and needs no expand."""
    node = tensor._value
    if isinstance(node, Node) and node.primitive is PRIMITIVES["constant"] and not node.shape:
        value = node.params["value"]
        if isinstance(value, (bool, int, float)):  # not a literal array, which has its own shape
            return node.primitive(**{**node.params, "shape": shape})
    return PRIMITIVES["expand"](tensor, shape=shape)


def broadcast_shapes(tensors: tuple[Tensor, ...], name: str = "") -> Shape:
    """Return the common shape of tensors by NumPy's broadcasting rule; `name` is the operation's, for the error.

    Raises:
        ShapeError: naming every operand and, in a graph, the line that made it (``MT201``).
    """
    try:
        return common_shape(tensors, name)
    except ShapeError as error:
        if origins := operands_text(tensors):
            error.locate(origins)
        raise


def operands_text(tensors: tuple[Tensor, ...]) -> str | None:
    """Return the origin of each operand of a failed operation; None in eager mode, where the traceback has it."""
    rows = []
    for tensor in tensors:
        node = tensor._value
        if isinstance(node, Node):
            rows.append(f"{node.spec} is {made_by(node)}")
        elif (recording := current_staging()) is not None:
            rows.append(f"{tensor.spec} is `{recording.name_of(tensor)}`, from outside")
    if not rows:
        return None
    return f"{user_source()}; " + "; ".join(rows)
