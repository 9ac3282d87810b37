"""Numbers as categories: `embedding` looks up a vector for each, `one_hot` makes one."""

from __future__ import annotations

from ... import primitives as P
from ...autograd import no_grad
from ...dtypes import bool_, int64
from ...errors import DTypeError, ShapeError
from ...functional.inplace import assign
from ...functional.movement.selection import where
from ...functional.operands import to_dtype
from ...functional.options import as_int, checked
from ...functional.reducing.reductions import norm
from ...interpreters import concrete
from ...primitives.elementwise import scalar
from ...tensor import Tensor, share


def class_numbers(x: Tensor, name: str) -> Tensor:
    """Return integers of any type as int64.

    Raises:
        DTypeError: for anything else (``MT202``).
    """
    if x.dtype.category != "int":
        raise DTypeError(
            "MT202",
            f"{name}: class numbers of {x.dtype.name}",
            why="they are positions in a table",
            fix="convert them: x.long()",
        )
    return to_dtype(x, int64)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
) -> Tensor:
    """Return a row of the weight for each index.

    Args:
        input: indices of an integer type and any shape.
        weight: [rows, features].
        padding_idx: a row that gets no gradient.
        max_norm: shorten the rows that are looked up to this length, in the weight itself and unseen by the tape.
        norm_type: the p of that length.

    Returns:
        [*input.shape, features].

    Raises:
        IndexError: if there is no such row.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.embedding(mt.tensor([2, 0]), mt.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]))
        tensor([[4., 5.],
                [0., 1.]])
    """
    index = class_numbers(input, "embedding")
    if weight.ndim != 2:
        raise ShapeError("MT201", f"embedding: the weight has rows and features, and is {weight.spec}")
    index = checked("embedding: the input", index, 0, weight.shape[0] - 1, "IndexError")
    if max_norm is not None:
        with no_grad():
            none, one = (
                P.constant(value=value, shape=shape, dtype=bool_)
                for value, shape in ((False, weight.shape[:1]), (True, index.shape))
            )
            lengths = norm(weight, norm_type, dim=1, keepdim=True)
            is_long = P.reshape(P.scatter(none, one, index), shape=lengths.shape) & (lengths > max_norm)
            assign(weight, where(is_long, weight * (max_norm / (lengths + 1e-7)), weight))
    rows = P.gather(weight, index)
    if padding_idx is None:
        return rows
    position = padding_idx + weight.shape[0] if padding_idx < 0 else padding_idx
    is_padding = P.reshape(P.equal(index, scalar(position, index)), shape=(*index.shape, 1))
    return P.where(is_padding, share(rows), rows)


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Return for each class number a row of zeros with a 1 in its place, as int64.

    Args:
        input: class numbers, of an integer type and any shape.
        num_classes: the length of the rows; by default the largest number plus 1, known in eager mode only.

    Raises:
        TracedValueError: while recording, if `num_classes` is left out (``MT103``).
        ValueError: for a class number below 0, or not below `num_classes`.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.one_hot(mt.tensor([2, 0]), num_classes=3)
        tensor([[0, 0, 1],
                [1, 0, 0]])
    """
    index, num_classes = class_numbers(input, "one_hot"), as_int(num_classes)
    if num_classes < 0:
        fix = "say how many classes there are: one_hot(x, num_classes=10)"
        num_classes = max(1, int(concrete(index, "one_hot without num_classes", "MT103", fix).max()) + 1)
    index = checked("one_hot: the input", index, 0, num_classes - 1)
    places = P.iota(size=num_classes, dtype=int64)
    return P.cast(P.equal(P.reshape(index, shape=(*index.shape, 1)), places), dtype=int64)
