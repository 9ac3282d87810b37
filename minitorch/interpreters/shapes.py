"""The shape rule of broadcasting, as in NumPy."""

from __future__ import annotations

from ..errors import ShapeError
from ..ir import Shape
from ..tensor import Tensor


def common_shape(tensors: tuple[Tensor, ...], name: str = "") -> Shape:
    """Return the common shape of tensors by NumPy's broadcasting rule; `name` is the operation's, for the error.

    Raises:
        ShapeError: naming every operand (``MT201``).
    """
    shape: list[int] = []
    for axis in range(max(tensor.ndim for tensor in tensors), 0, -1):
        lengths = [length for tensor in tensors if tensor.ndim >= axis and (length := tensor.shape[-axis]) != 1]
        if lengths and lengths.count(lengths[0]) < len(lengths):
            raise ShapeError(
                "MT201",
                (f"{name}: " if name else "")
                + " and ".join(str(tensor.spec) for tensor in tensors)
                + " do not broadcast together",
                why=f"dimension {-axis} has lengths {' and '.join(map(str, sorted({*lengths})))}: "
                "they must be equal, or one of them 1",
                fix="reshape, unsqueeze or transpose one of them",
            )
        shape.append(lengths[0] if lengths else 1)
    return tuple(shape)
