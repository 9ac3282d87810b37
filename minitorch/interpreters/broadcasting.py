"""Broadcasting made explicit, in the one place where it happens."""

from __future__ import annotations

from ..errors import ShapeError
from ..ir import PRIMITIVES, Node, user_source
from ..tensor import Tensor
from .provenance import made_by
from .state import current_staging


def expand_operands(inputs: tuple[Tensor, ...], name: str, recorded_only: bool = False) -> tuple[Tensor, ...]:
    """Make broadcasting explicit: operands of an elementwise primitive, expanded to their common shape.

    NumPy broadcasts by itself, so eager needs an explicit `expand` only where a gradient has to be summed back
    (`recorded_only`). This is the only place where broadcasting happens, and the gradient of `expand` is the
    only place where it is undone.
    """
    shapes = [tensor.shape for tensor in inputs]
    if shapes.count(shapes[0]) == len(shapes):
        return inputs
    shape = broadcast_shapes(inputs, name)
    return tuple(
        tensor if tensor.shape == shape or (recorded_only and not tensor._requires_grad) else _expanded(tensor, shape)
        for tensor in inputs
    )


def _expanded(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A tensor broadcast to a shape; a recorded number becomes a number of that shape, which needs no expand."""
    node = tensor._value
    if isinstance(node, Node) and node.primitive is PRIMITIVES["constant"] and not node.shape:
        value = node.params["value"]
        if isinstance(value, (bool, int, float)):  # and no literal, which is an array of its own shape
            return node.primitive(**{**node.params, "shape": shape})
    return PRIMITIVES["expand"](tensor, shape=shape)


def broadcast_shapes(tensors: tuple[Tensor, ...], name: str = "") -> tuple[int, ...]:
    """The common shape of tensors by NumPy's broadcasting rule; `name` is the operation's, for the error.

    Raises:
        ShapeError: naming every operand and, in a graph, the line that made it (``MT201``).
    """
    shape: list[int] = []
    for axis in range(max(tensor.ndim for tensor in tensors), 0, -1):
        lengths = {tensor.shape[-axis] for tensor in tensors if tensor.ndim >= axis} - {1}
        if len(lengths) > 1:
            raise ShapeError(
                "MT201",
                (f"{name}: " if name else "")
                + " and ".join(str(tensor.spec) for tensor in tensors)
                + " do not broadcast together",
                where=operands_text(tensors),
                why=f"dimension {-axis} has lengths {' and '.join(map(str, sorted(lengths)))}: "
                "they must be equal, or one of them 1",
                fix="reshape, unsqueeze or transpose one of them",
            )
        shape.append(lengths.pop() if lengths else 1)
    return tuple(shape)


def operands_text(tensors: tuple[Tensor, ...]) -> str | None:
    """Where each operand of a failed operation comes from; None in eager, where the traceback says it."""
    rows = []
    for tensor in tensors:
        node = tensor._value
        if isinstance(node, Node):
            rows.append(f"{node.spec} is {made_by(node)}")
        elif (staging := current_staging()) is not None:
            rows.append(f"{tensor.spec} is `{staging.name_of(tensor)}`, from outside")
    if not rows:
        return None
    return f"{user_source()}; " + "; ".join(rows)
