"""Parts of a tensor along a dimension: slices, splits, windows, diagonals; all are views.

The indices are plain ints, so the shapes are known without computing. Square brackets and indices that are
data are in `minitorch.functional.movement.indexing`.
"""

from __future__ import annotations

from itertools import pairwise

from ... import primitives as P
from ...sizes import larger, smaller
from ...tensor import Tensor
from ..options import Ints, as_int, ints, wrap_dim
from .shaping import movedim

__all__ = ["chunk", "diagonal", "narrow", "select", "split", "tensor_split", "unbind", "unfold"]


def part(x: Tensor, dim: int, start: int, stop: int, step: int = 1) -> Tensor:
    """Return the elements from start up to stop along one dimension; the bounds are known to fit."""
    begin, end, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
    begin[dim], end[dim], steps[dim] = start, stop, step
    return P.slice_(x, start=tuple(begin), stop=tuple(end), step=tuple(steps))


def dim_with_places(name: str, x: Tensor, dim: int) -> int:
    """Return a dimension to take parts of, counted from 0.

    Raises:
        IndexError: if there is no such dimension, or no dimension at all.
    """
    if not x.ndim:
        raise IndexError(f"{name}: a 0-dimensional tensor has no dimension to take parts of; x.reshape(1) has one")
    return wrap_dim(dim, x.ndim)


def position(index: int, length: int, dim: int) -> int:
    """Return a position along a dimension, counted from its beginning.

    Raises:
        IndexError: for a position out of range.
    """
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range for dimension {dim} with length {length}")
    return index + length if index < 0 else index


def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return some elements in a row along a dimension.

    Example:
        >>> import minitorch as mt
        >>> mt.arange(10).narrow(0, 2, 3)
        tensor([2, 3, 4])
    """
    dim, start, length = dim_with_places("narrow", input, dim), as_int(start), as_int(length)
    begin = start + input.shape[dim] if start < 0 else start
    if not 0 <= begin <= begin + length <= input.shape[dim]:
        raise IndexError(f"narrow: {length} elements from {start} do not fit dimension {dim} of {input.spec}")
    return part(input, dim, begin, begin + length)


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Return the slice at one position of a dimension, without that dimension.

    Example:
        >>> import minitorch as mt
        >>> mt.arange(6).reshape(2, 3).select(1, -1)
        tensor([2, 5])
    """
    dim = dim_with_places("select", input, dim)
    at = position(as_int(index), input.shape[dim], dim)
    return P.reshape(part(input, dim, at, at + 1), shape=(*input.shape[:dim], *input.shape[dim + 1 :]))


def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return all slices along a dimension, without that dimension.

    Example:
        >>> import minitorch as mt
        >>> a, b = mt.tensor([[1, 2], [3, 4]]).unbind()
        >>> b
        tensor([3, 4])
    """
    dim = dim_with_places("unbind", input, dim)
    return tuple([select(input, dim, index) for index in range(input.shape[dim])])


def _parts(x: Tensor, dim: int, bounds: list[int]) -> tuple[Tensor, ...]:
    ends = [smaller(bound, x.shape[dim]) for bound in bounds]
    return tuple([part(x, dim, a, larger(a, b)) for a, b in pairwise(ends)])


def split(tensor: Tensor, split_size_or_sections: Ints, dim: int = 0) -> tuple[Tensor, ...]:
    """Return parts of one length (the last may be shorter), or of the lengths in a list, along a dimension.

    Raises:
        RuntimeError: if the lengths in the list do not add up.

    Example:
        >>> import minitorch as mt
        >>> mt.arange(5).split(2)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    dim = dim_with_places("split", tensor, dim)
    length = tensor.shape[dim]
    if isinstance(split_size_or_sections, (tuple, list)):
        bounds = [0]
        for size in ints((split_size_or_sections,)):
            bounds.append(bounds[-1] + size)
            if size < 0:
                raise RuntimeError(f"split: a part cannot have the length {size}")
        if bounds[-1] != length:
            raise RuntimeError(f"split: the lengths {split_size_or_sections} do not add up to {length}")
        return _parts(tensor, dim, bounds)
    size = as_int(split_size_or_sections)
    if size < 0 or (size == 0 and length):
        raise RuntimeError(f"split: parts of length {size} do not make up {length}")
    bounds = [0]
    while bounds[-1] + size < length:
        bounds.append(bounds[-1] + size)
    return _parts(tensor, dim, [*bounds, length]) if length else (part(tensor, dim, 0, 0),)


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return at most so many parts of one length (the last may be shorter).

    Example:
        >>> import minitorch as mt
        >>> [part.shape for part in mt.zeros(7).chunk(3)]
        [(3,), (3,), (1,)]
    """
    dim = dim_with_places("chunk", input, dim)
    if chunks < 1:
        raise RuntimeError(f"chunk: into {chunks} parts")
    length = input.shape[dim]
    return split(input, -(-length // chunks), dim) if length else tuple([part(input, dim, 0, 0) for _ in range(chunks)])


def tensor_split(input: Tensor, indices_or_sections: Ints, dim: int = 0) -> tuple[Tensor, ...]:
    """Return so many parts of lengths that differ by at most 1; or the parts between the positions in a list.

    Example:
        >>> import minitorch as mt
        >>> [part.tolist() for part in mt.arange(5).tensor_split(3)]
        [[0, 1], [2, 3], [4]]
    """
    dim = dim_with_places("tensor_split", input, dim)
    length = input.shape[dim]
    if isinstance(indices_or_sections, (tuple, list)):
        inner = [max(0, at + length) if at < 0 else at for at in ints((indices_or_sections,))]
        return _parts(input, dim, [0, *inner, length])
    count = as_int(indices_or_sections)
    if count < 1:
        raise RuntimeError(f"tensor_split: into {count} parts")
    small, longer = divmod(length, count)
    return _parts(input, dim, [number * small + smaller(number, longer) for number in range(count + 1)])


def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return windows of some size, a step apart, along a dimension; the place inside the window is the last
    dimension.

    Example:
        >>> import minitorch as mt
        >>> mt.arange(5).unfold(0, 3, 1)
        tensor([[0, 1, 2],
                [1, 2, 3],
                [2, 3, 4]])
    """
    dim = wrap_dim(dimension, self.ndim)
    if size < 0 or step < 1:
        raise RuntimeError(f"unfold: windows of 0 elements or more, 1 or more apart, not of {size}, {step} apart")
    if not self.ndim:  # in PyTorch it has one window, and the result no dimension for windows
        return select(unfold(P.reshape(self, shape=(1,)), 0, size, step), 0, 0)
    if size == 0:
        places = self.shape[dim] // step + 1
        return P.reshape(part(self, dim, 0, 0), shape=(*self.shape[:dim], places, *self.shape[dim + 1 :], 0))
    return P.unfold(self, dim=dim, size=size, step=step, dilation=1)


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return the diagonal of two dimensions, as the last dimension; `offset` counts diagonals to the right.

    Example:
        >>> import minitorch as mt
        >>> mt.arange(9).reshape(3, 3).diagonal(1)
        tensor([1, 5])
    """
    dim1, dim2 = wrap_dim(dim1, input.ndim), wrap_dim(dim2, input.ndim)
    if dim1 == dim2:
        raise RuntimeError(f"diagonal: the dimensions must differ, both are {dim1}")
    return P.diagonal(movedim(input, (dim1, dim2), (-2, -1)), offset=as_int(offset))
