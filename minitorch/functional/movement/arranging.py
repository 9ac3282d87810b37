"""Rearranged elements: tensors joined, repeated, turned, padded, laid on diagonals or cut to
triangles.

Nothing here is a view. Reshaping is in `minitorch.functional.movement.shaping`, taking parts in
`minitorch.functional.movement.parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import primitives as P
from ...dtypes import PYTHON_NUMBERS, bool_, int64
from ...errors import ShapeError
from ...interpreters import concrete
from ...primitives.elementwise import scalar
from ...primitives.movement import on_diagonal
from ...sizes import same
from ...tensor import Tensor
from ..families import member
from ..operands import fitting, from_array, is_operand, number, promote_all
from ..options import Ints, as_int, ints, is_traced, real, whole, wrap_dim
from ..pointwise.casting import clone, own
from .parts import diagonal as diagonal_of
from .parts import dim_with_places, part
from .shaping import atleast_1d, atleast_2d, flatten, unsqueeze

# Joined ---------------------------------------------------------------------------------------------------


def _check_several(name: str, tensors: Any) -> None:
    """Refuse one tensor, and a sequence of anything but tensors, where several are joined."""
    if not isinstance(tensors, Sequence):
        raise TypeError(f"{name} takes a list or tuple of tensors, not {type(tensors).__name__}: write {name}([a, b])")
    for tensor in tensors:
        if not is_operand(tensor) or isinstance(tensor, PYTHON_NUMBERS):
            raise TypeError(f"{name} joins tensors, and {tensor!r} is of type {type(tensor).__name__}")


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Join tensors along a dimension; of different types, in the type that holds all.

    Raises:
        TypeError: if the tensors are not in a list or tuple.
        ShapeError: if another dimension differs, or there are no tensors (``MT201``).

    Example:
        >>> import minitorch as mt
        >>> mt.cat([mt.tensor([1, 2]), mt.tensor([0.5])])
        tensor([1.0000, 2.0000, 0.5000])
    """
    _check_several("cat", tensors)
    given = promote_all(*tensors) if tensors else ()
    # An empty tensor of one dimension fits everywhere, since loops in PyTorch programs begin with one.
    joined = [tensor for tensor in given if not same(tensor.shape, (0,))] or list(given[:1])
    return P.concatenate(*joined, dim=wrap_dim(dim, joined[0].ndim) if joined else 0)


concat = concatenate = cat


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Stack tensors of one shape along a new dimension.

    Raises:
        TypeError: if the tensors are not in a list or tuple.
        ShapeError: if a shape differs, or there are no tensors (``MT201``).

    Example:
        >>> import minitorch as mt
        >>> mt.stack([mt.tensor([1, 2]), mt.tensor([3, 4])], dim=1)
        tensor([[1, 3],
                [2, 4]])
    """
    _check_several("stack", tensors)
    for each in tensors:
        if each.shape != tensors[0].shape:
            raise ShapeError("MT201", f"stack: {tensors[0].spec} and {each.spec} have different shapes")
    return cat([unsqueeze(tensor, dim) for tensor in tensors], dim)


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join tensors along the second dimension; along the only one, for tensors of one.

    Example:
        >>> import minitorch as mt
        >>> mt.hstack([mt.zeros(2, 1), mt.zeros(2, 3)]).shape
        (2, 4)
    """
    _check_several("hstack", tensors)
    rows = [atleast_1d(tensor) for tensor in tensors]
    return cat(rows, 0 if rows[0].ndim == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Join tensors of at least two dimensions along the first.

    Example:
        >>> import minitorch as mt
        >>> mt.vstack([mt.zeros(3), mt.ones(3)])
        tensor([[0., 0., 0.],
                [1., 1., 1.]])
    """
    _check_several("vstack", tensors)
    return cat([atleast_2d(tensor) for tensor in tensors])


row_stack = vstack


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Return the coordinates of a grid, from those along each axis; ``"xy"`` exchanges the first two dimensions.

    Example:
        >>> import minitorch as mt
        >>> rows, columns = mt.meshgrid(mt.tensor([1, 2]), mt.tensor([3, 4, 5]), indexing="ij")
        >>> columns
        tensor([[3, 4, 5],
                [3, 4, 5]])
    """
    if indexing not in ("ij", "xy"):
        raise ValueError(f'meshgrid: indexing is "ij" or "xy", not {indexing!r}')
    axes = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else list(tensors)
    places = list(range(len(axes)))
    if indexing == "xy" and len(axes) > 1:
        places[:2] = [1, 0]
    shape = [0] * len(axes)
    for axis, place in zip(axes, places, strict=True):
        shape[place] = axis.numel()
    return tuple(
        P.expand(P.reshape(axis, shape=(axis.numel(), *(1,) * (len(axes) - place - 1))), shape=tuple(shape))
        for axis, place in zip(axes, places, strict=True)
    )


# Turned ---------------------------------------------------------------------------------------------------


def flip(input: Tensor, *each: Any, dims: Any = None) -> Tensor:
    """Reverse some dimensions, given one by one or as `dims`.

    Example:
        >>> import minitorch as mt
        >>> mt.arange(3).flip(0)
        tensor([2, 1, 0])
    """
    turned = [wrap_dim(dim, input.ndim) for dim in ints(each, dims)]
    return P.flip(input, dims=tuple(turned) if input.ndim else ())


def _flipper(name: str, dim: int, what: str, result: str) -> Callable[[Tensor], Tensor]:
    @member(name, what=what, result=result)
    def function(input: Tensor) -> Tensor:
        """Return the {what} in reverse order.

        Example:
            >>> import minitorch as mt
            >>> mt.tensor([[1, 2], [3, 4]]).{name}().tolist()
            {result}
        """
        if input.ndim <= dim:
            raise RuntimeError(f"{name} needs at least {dim + 1} dimensions, not {input.spec}")
        return P.flip(input, dims=(dim,))

    return function


flipud = _flipper("flipud", 0, "rows", "[[3, 4], [1, 2]]")
fliplr = _flipper("fliplr", 1, "columns", "[[2, 1], [4, 3]]")


def roll(input: Tensor, shifts: Ints, dims: Ints | None = None) -> Tensor:
    """Move elements along dimensions; those that leave at the end come in at the beginning.

    Without `dims`, the elements are moved as if they were in one row.

    Example:
        >>> import minitorch as mt
        >>> mt.arange(5).roll(2)
        tensor([3, 4, 0, 1, 2])
    """
    if dims is None:
        return P.reshape(roll(P.reshape(input, shape=(input.numel(),)), shifts, 0), shape=input.shape)
    amounts, axes = ints((shifts,)), ints((dims,))
    if len(amounts) != len(axes):
        raise RuntimeError(f"roll: {len(amounts)} shifts for {len(axes)} dims")
    moved = input
    for amount, axis in zip(amounts, axes, strict=True):
        dim = dim_with_places("roll", input, axis)
        length = input.shape[dim]
        cut = -amount % length if length else 0
        if not same(cut, 0):
            moved = P.concatenate(part(moved, dim, cut, length), part(moved, dim, 0, cut), dim=dim)
    return clone(input) if moved is input else moved


# Repeated -------------------------------------------------------------------------------------------------


def repeat(self: Tensor, *each: Any, repeats: Any = None) -> Tensor:
    """Repeat the whole tensor along each dimension; more numbers than dimensions add dimensions in
    front.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([1, 2]).repeat(2, 2)
        tensor([[1, 2, 1, 2],
                [1, 2, 1, 2]])
    """
    times = ints(each, repeats)
    if len(times) < self.ndim or any(count < 0 for count in times):
        raise RuntimeError(f"repeat: {list(times)} must give a number from 0 up for each dimension of {self.spec}")
    shape = (1,) * (len(times) - self.ndim) + self.shape
    split = tuple(length for old in shape for length in (1, old))
    repeated = tuple(length for pair in zip(times, shape, strict=True) for length in pair)
    result = tuple(number * old for number, old in zip(times, shape, strict=True))
    return own(P.reshape(P.expand(P.reshape(self, shape=split), shape=repeated), shape=result))


def tile(input: Tensor, *each: Any, dims: Any = None) -> Tensor:
    """Repeat as `repeat`, but missing numbers at the front are 1.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([[1, 2], [3, 4]]).tile(2)
        tensor([[1, 2, 1, 2],
                [3, 4, 3, 4]])
    """
    times = ints(each, dims)
    return repeat(input, (1,) * (input.ndim - len(times)) + times)


def repeat_interleave(
    input: Tensor, repeats: int | Tensor, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Repeat each slice along a dimension several times in a row; without a dimension, each element.

    A tensor of `repeats` gives the number for each slice; the shape of the result then depends on data, so that
    a graph cannot contain it (``MT103``).

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([1, 2]).repeat_interleave(2), mt.tensor([1, 2]).repeat_interleave(mt.tensor([0, 3]))
        (tensor([1, 1, 2, 2]), tensor([2, 2, 2]))
    """
    if dim is None:
        input, dim = P.reshape(input, shape=(input.numel(),)), 0
    dim = wrap_dim(dim, input.ndim)
    length = input.shape[dim]
    if not isinstance(repeats, Tensor):
        wide = unsqueeze(input, dim + 1)
        times = whole("repeat_interleave: the number of repeats", repeats)
        return own(
            flatten(P.expand(wide, shape=(*input.shape[: dim + 1], times, *input.shape[dim + 1 :])), dim, dim + 1)
        )
    # Data from here on: how long the result is follows from the values of `repeats`.
    fix = "repeat by an int, or compute the positions outside and pass them to index_select"
    counts = concrete(repeats, "repeat_interleave with a tensor of repeats", "MT103", fix).reshape(-1)
    if len(counts) not in (1, length):
        raise RuntimeError(f"repeat_interleave: {len(counts)} repeats for {length} slices")
    if counts.size and counts.min() < 0:
        raise RuntimeError("repeat_interleave: repeats cannot be negative")
    positions = np.repeat(np.arange(length), np.broadcast_to(counts, (length,)))
    if output_size is not None and output_size != len(positions):
        raise RuntimeError(f"repeat_interleave: the result has length {len(positions)}, output_size is {output_size}")
    moved = P.permute(input, dims=(dim, *(axis for axis in range(input.ndim) if axis != dim)))
    order = (*range(1, dim + 1), 0, *range(dim + 1, input.ndim))
    return P.permute(P.gather(moved, from_array(positions)), dims=order)


# Padded, on diagonals, in triangles -----------------------------------------------------------------------


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Put a value before and after the elements, as `torch.nn.functional.pad`; negative amounts cut off.

    Args:
        input: the tensor.
        pad: before and after, in pairs: first for the last dimension, then for the one before it, and so on.
        mode: ``"constant"``; or ``"reflect"`` (at the last element), ``"replicate"`` (that element) or ``"circular"``
            (the elements of the other end).
        value: the constant to put there, 0 by default.

    Raises:
        TypeError: for amounts that are not ints, and a value that is not a number.
        ShapeError: if more elements are cut off than there are (``MT201``).

    Example:
        >>> import minitorch as mt
        >>> mt.pad(mt.tensor([1, 2]), (1, 2), value=7)
        tensor([7, 1, 2, 7, 7])
    """
    try:
        amounts = ints((pad,))
    except TypeError:
        raise TypeError(f"pad: the amounts are ints, a pair for each dimension, not {pad!r}") from None
    fill = 0 if value is None else value
    if not is_traced(fill):
        real("pad: the value", fill)
    if mode not in ("constant", *_OUTSIDE):
        raise NotImplementedError(f"pad: the mode is 'constant', {', '.join(map(repr, _OUTSIDE))}, not {mode!r}")
    if len(amounts) % 2 or len(amounts) > 2 * input.ndim:
        raise RuntimeError(f"pad: {list(amounts)} does not give pairs for at most {input.ndim} dimensions")
    given = [*zip(amounts[::2], amounts[1::2], strict=True)]
    pairs = [(0, 0)] * (input.ndim - len(given)) + given[::-1]
    if min(amounts, default=0) < 0:
        start = tuple(max(0, -before) for before, _ in pairs)
        stop = tuple(length - max(0, -after) for length, (_, after) in zip(input.shape, pairs, strict=True))
        if any(low > high for low, high in zip(start, stop, strict=True)):
            raise ShapeError(
                "MT201", f"pad: {list(amounts)} cuts off more than there is of {input.spec}", fix="cut off less"
            )
        input = P.slice_(input, start=start, stop=stop, step=(1,) * input.ndim)
    padding = tuple((max(0, before), max(0, after), 0) for before, after in pairs)
    if mode != "constant":
        for dim, (before, after, _) in enumerate(padding):
            if before or after:
                input = _continued(input, dim, before, after, mode)
        return input
    if is_traced(fill):
        inside = P.pad(P.expand(number(True, bool_), shape=input.shape), padding=padding, value=False)
        return P.where(inside, P.pad(input, padding=padding, value=0), number(fill, input.dtype))
    return P.pad(input, padding=padding, value=fitting("pad", fill, input.dtype))


# Of each mode of `pad`, the elements before and after those of a length: where they start, and whether backwards.
_OUTSIDE: dict[str, tuple[Callable[[int, int], tuple[int, int]], bool]] = {
    "reflect": (lambda length, before: (1, length - 1), True),
    "replicate": (lambda length, before: (0, length - 1), False),
    "circular": (lambda length, before: (length - before, 0), False),
}


def _continued(x: Tensor, dim: int, before: int, after: int, mode: str) -> Tensor:
    """Put elements of a dimension before and after it, as a mode of `pad` says."""
    length, most = x.shape[dim], x.shape[dim] - (mode == "reflect")
    if length < 1 or (mode != "replicate" and max(before, after) > most):
        raise ShapeError("MT201", f"pad: {mode} has {most} elements of {x.spec} in dimension {dim}", fix="pad by less")
    places, backwards = _OUTSIDE[mode]
    first, second = places(length, before)
    ends = []
    for start, count in ((first, before), (second - after if backwards else second, after)):
        if mode == "replicate":
            end = P.expand(part(x, dim, start, start + 1), shape=(*x.shape[:dim], count, *x.shape[dim + 1 :]))
        else:
            end = part(x, dim, start, start + count)
        ends.append(P.flip(end, dims=(dim,)) if backwards else end)
    return cat([end for end, count in ((ends[0], before), (x, 1), (ends[1], after)) if count], dim)


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return matrices with the elements of the last dimension on a diagonal, and zeros elsewhere.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([1, 2]).diag_embed()
        tensor([[1, 0],
                [0, 2]])
    """
    first, second = wrap_dim(dim1, input.ndim + 1), wrap_dim(dim2, input.ndim + 1)
    if first == second:
        raise RuntimeError(f"diag_embed: the dimensions must differ, both are {first}")
    offset = as_int(offset)
    side = input.shape[-1] + abs(offset)
    order = list(range(input.ndim - 1))
    for place, axis in sorted(((first, input.ndim - 1), (second, input.ndim))):
        order.insert(place, axis)
    return P.permute(on_diagonal(input, side, side, offset), dims=tuple(order))


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a copy of the diagonal of a matrix, or the matrix with a vector on its diagonal. `diagonal` is a view.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([[1, 2], [3, 4]]).diag(), mt.tensor([5]).diag(1)
        (tensor([1, 4]), tensor([[0, 5],
                [0, 0]]))
    """
    if input.ndim not in (1, 2):
        raise RuntimeError(f"diag takes a vector or a matrix, not {input.spec}")
    return diag_embed(input, diagonal) if input.ndim == 1 else clone(diagonal_of(input, diagonal))


def _triangle(name: str, side: str, result: str) -> Callable[..., Tensor]:
    @member(name, side=side, result=result)
    def function(input: Tensor, diagonal: int = 0) -> Tensor:
        """Return the matrix with zeros {side} a diagonal; `diagonal` counts diagonals to the right.

        Example:
            >>> import minitorch as mt
            >>> mt.tensor([[1, 2], [3, 4]]).{name}().tolist()
            {result}
        """
        if input.ndim < 2:
            raise RuntimeError(f"{name} is for matrices and batches of them, not for {input.spec}")
        rows, columns = input.shape[-2:]
        row = P.reshape(P.iota(size=rows, dtype=int64), shape=(rows, 1))
        column = P.iota(size=columns, dtype=int64)
        edge = P.add(row, P.constant(value=diagonal, shape=(), dtype=int64))
        inside = P.less_equal(column, edge) if name == "tril" else P.less_equal(edge, column)
        return P.where(inside, input, scalar(0, input))

    return function


tril = _triangle("tril", "above", "[[1, 0], [3, 4]]")
triu = _triangle("triu", "below", "[[1, 2], [0, 4]]")
