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
from ...functional.reducing.ordering import searchsorted
from ...functional.reducing.reductions import norm
from ...interpreters import concrete
from ...primitives.elementwise import scalar
from ...primitives.reductions import lowest
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


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    mode: str = "mean",
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return the mean, the sum or the maximum of the rows of each bag of indices.

    Args:
        input: indices: [bags, length], or [indices] with the offsets at which bags begin.
        weight: [rows, features].
        offsets: [bags], of a one-dimensional input.
        max_norm, norm_type: as in `embedding`.
        mode: ``"mean"``, ``"sum"`` or ``"max"``.
        per_sample_weights: a factor for each index, if the mode is ``"sum"``.
        include_last_offset: whether the offsets end with the number of indices.
        padding_idx: a row that does not count.

    Returns:
        [bags, features]; zeros for an empty bag.

    Raises:
        ShapeError: if the shapes do not fit (``MT201``).
        ValueError: for another mode.

    Example:
        >>> import minitorch as mt
        >>> table = mt.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
        >>> mt.nn.functional.embedding_bag(mt.tensor([2, 0, 1]), table, mt.tensor([0, 2]))
        tensor([[2., 3.],
                [2., 3.]])
    """
    if mode not in ("mean", "sum", "max"):
        raise ValueError(f'embedding_bag: mode is "mean", "sum" or "max", not {mode!r}')
    if input.ndim not in (1, 2) or (offsets is None) != (input.ndim == 2):
        raise ShapeError("MT201", f"embedding_bag: {input.spec} is not [bags, length], nor [indices] with offsets")
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.shape != input.shape):
        raise ValueError(f'embedding_bag: per_sample_weights are {input.shape}, and for mode="sum"')
    index = class_numbers(input, "embedding_bag").reshape(-1)
    position = P.iota(size=index.shape[0], dtype=int64)
    if offsets is None:
        bags, bag = input.shape[0], position // max(input.shape[1], 1)
    else:
        starts = offsets[:-1] if include_last_offset else offsets
        bags, bag = starts.shape[0], searchsorted(starts, position, right=True) - 1
    rows = embedding(index, weight, padding_idx, max_norm, norm_type)
    padding = scalar(weight.shape[0] if padding_idx is None else padding_idx % weight.shape[0], index)
    counts = P.bitwise_not(P.equal(index, padding)).unsqueeze(-1)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    rows = P.where(counts, rows, scalar(lowest(rows.dtype) if mode == "max" else 0, rows))
    empty = P.constant(value=0, shape=(bags, weight.shape[1]), dtype=rows.dtype)
    used = empty[:, :1].index_add(0, bag, P.cast(counts, dtype=rows.dtype))
    if mode == "max":
        into = bag.unsqueeze(-1).expand(*rows.shape)
        return P.where(used.eq(0), empty, empty.scatter_reduce(0, into, rows, "amax", include_self=False))
    total = empty.index_add(0, bag, rows)
    return total / used.clamp(min=1) if mode == "mean" else total


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
