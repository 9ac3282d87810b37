"""Shapes: dimensions of a tensor joined, taken apart, exchanged, repeated.

The results are views where memory allows: a write to one is seen in the other, as in PyTorch. Taking parts of
a tensor is in `minitorch.functional.movement.parts`, putting elements elsewhere (`cat`, `roll`, `repeat`) in
`minitorch.functional.movement.arranging`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ... import interpreters
from ... import primitives as P
from ...dtypes import DEFAULT_FLOAT, DType
from ...errors import ShapeError
from ...interpreters import reshape_is_view
from ...ir import Shape, Spec
from ...sizes import is_multiple
from ...tensor import Tensor, with_value
from ..families import member
from ..options import Ints, ints, require_tensor, wrap_dim
from ..pointwise.bits import read_as
from ..pointwise.casting import contiguous

# The same elements in the same order ----------------------------------------------------------------------


def _complete(name: str, x: Tensor, shape: Shape, size: int) -> Shape:
    """Return a shape with its -1 replaced by the length that follows from the others."""
    if all(length >= 0 for length in shape):
        return shape
    known = math.prod([length for length in shape if length != -1])
    if shape.count(-1) != 1 or known <= 0 or not is_multiple(size, known):
        raise ShapeError(
            "MT201",
            f"{name}: {x.spec} cannot become {list(shape)}",
            why="one length may be -1, if it follows from the others"
            + (f": {size} elements are not a multiple of {known}" if known > 0 and shape.count(-1) == 1 else ""),
            fix="give the lengths themselves",
        )
    return tuple([size // known if length == -1 else length for length in shape])


def reshape(input: Tensor, *lengths: Any, shape: Any = None) -> Tensor:
    """Return the elements in the same order under another shape; one length may be -1. A view where memory allows.

    Raises:
        ShapeError: if the number of elements differs (``MT201``).

    Example:
        >>> import minitorch as mt
        >>> mt.arange(6).reshape(2, -1)
        tensor([[0, 1, 2],
                [3, 4, 5]])
    """
    return P.reshape(input, shape=_complete("reshape", input, ints(lengths, shape), math.prod(input.shape)))


def view(self: Tensor, *shape: Any) -> Tensor:
    """Return a view as `reshape`, never a copy; with an element type, the same bits read as that type.

    Raises:
        RuntimeError: if the elements do not lie in memory in this order; use `reshape`.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(2, 3).view(6).shape
        (6,)
    """
    if len(shape) == 1 and isinstance(shape[0], DType):
        return read_as(self, shape[0])
    result = reshape(self, *shape)
    if self.numel() and not reshape_is_view(self, result.shape):
        raise RuntimeError(
            f"a view of shape {list(result.shape)} does not fit how these elements of shape {list(self.shape)} "
            "lie in memory (after a transpose or a slice?): use reshape, which copies, or view a .contiguous() tensor"
        )
    return result


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """Return a `view` with the shape of another tensor."""
    return view(self, other.shape)


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Return a `reshape` with the shape of another tensor."""
    return P.reshape(self, shape=other.shape)


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Join the dimensions from one to another into one.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(2, 3, 4).flatten(1).shape
        (2, 12)
    """
    start, end = wrap_dim(start_dim, input.ndim), wrap_dim(end_dim, input.ndim)
    if start > end:
        raise RuntimeError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}")
    joined = math.prod(input.shape[start : end + 1])
    return P.reshape(input, shape=(*input.shape[:start], joined, *input.shape[end + 1 :]))


def ravel(input: Tensor) -> Tensor:
    """Join all dimensions into one: a view of a contiguous tensor, and a copy of any other.

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([[1, 2], [3, 4]]).ravel()
        tensor([1, 2, 3, 4])
    """
    return P.reshape(contiguous(input), shape=(input.numel(),))


def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """Take one dimension apart into several; one of `sizes` may be -1.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(2, 12).unflatten(1, (3, -1)).shape
        (2, 3, 4)
    """
    dim = wrap_dim(dim, input.ndim)
    if not input.ndim:
        raise IndexError("unflatten: a 0-dimensional tensor has no dimension to take apart")
    parts = _complete(f"unflatten: dimension {dim}", input, ints((sizes,)), input.shape[dim])
    return P.reshape(input, shape=(*input.shape[:dim], *parts, *input.shape[dim + 1 :]))


def squeeze(input: Tensor, dim: Ints | None = None) -> Tensor:
    """Remove the dimensions of length 1, or those of them that are named.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(1, 3, 1).squeeze().shape, mt.zeros(1, 3, 1).squeeze(0).shape
        ((3,), (3, 1))
    """
    named = range(input.ndim) if dim is None else {wrap_dim(one, input.ndim) for one in ints((dim,))}
    kept = tuple(length for axis, length in enumerate(input.shape) if length != 1 or axis not in named)
    return P.reshape(input, shape=kept)


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Insert a new dimension of length 1.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(3).unsqueeze(0).shape, mt.zeros(3).unsqueeze(-1).shape
        ((1, 3), (3, 1))
    """
    dim = wrap_dim(dim, input.ndim + 1)
    return P.reshape(input, shape=(*input.shape[:dim], 1, *input.shape[dim:]))


def _at_least(ndim: int, shape_of: Callable[[Shape], Shape]) -> Callable[..., Any]:
    def one(tensor: Any) -> Tensor:
        require_tensor(f"atleast_{ndim}d", "tensors", tensor)
        return tensor if tensor.ndim >= ndim else P.reshape(tensor, shape=shape_of(tensor.shape))

    @member(f"atleast_{ndim}d", ndim=ndim, shape=(1,) * ndim)
    def function(*tensors: Any) -> Any:
        """Add dimensions of length 1 up to {ndim}; return a tuple for several tensors.

        Example:
            >>> import minitorch as mt
            >>> mt.{name}(mt.tensor(5.0)).shape
            {shape}
        """
        if len(tensors) == 1 and not isinstance(tensors[0], (list, tuple)):
            return one(tensors[0])
        return tuple(map(one, tensors[0] if len(tensors) == 1 else tensors))

    return function


atleast_1d = _at_least(1, lambda shape: (1,))
atleast_2d = _at_least(2, lambda shape: (1, *shape) if shape else (1, 1))
atleast_3d = _at_least(3, lambda shape: ((1,) * 3, (1, *shape, 1), (*shape, 1))[len(shape)])

# Dimensions exchanged -------------------------------------------------------------------------------------


def permute(input: Tensor, *order: Any, dims: Any = None) -> Tensor:
    """Put the dimensions in another order.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(2, 3, 4).permute(2, 0, 1).shape
        (4, 2, 3)
    """
    return P.permute(input, dims=tuple([wrap_dim(dim, input.ndim) for dim in ints(order, dims)]))


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two dimensions.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(2, 3, 4).transpose(0, -1).shape
        (4, 3, 2)
    """
    first, second = wrap_dim(dim0, input.ndim), wrap_dim(dim1, input.ndim)
    order = list(range(input.ndim))
    if order:
        order[first], order[second] = second, first
    return P.permute(input, dims=tuple(order))


swapdims = transpose


def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Exchange two dimensions: `transpose` under NumPy's name.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(2, 3, 4).swapaxes(0, -1).shape
        (4, 3, 2)
    """
    return transpose(input, axis0, axis1)


def t(input: Tensor) -> Tensor:
    """Return the transpose of a matrix; a tensor of fewer dimensions stays as it is.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(2, 3).t().shape
        (3, 2)
    """
    if input.ndim > 2:
        raise RuntimeError(f"t() is for up to 2 dimensions, not for {input.spec}: use transpose or mT")
    return _reversed(input)


def _reversed(x: Tensor) -> Tensor:
    """Return the dimensions in reverse order; of a matrix, its transpose."""
    return P.permute(x, dims=tuple(reversed(range(x.ndim))))


def _matrix_transpose(x: Tensor) -> Tensor:
    """Exchange the last two dimensions; a number is its own transpose."""
    if x.ndim == 0:
        return x
    if x.ndim < 2:
        raise RuntimeError(f"mT is for matrices and batches of them, not for {x.spec}")
    return transpose(x, -2, -1)


def movedim(input: Tensor, source: Ints, destination: Ints) -> Tensor:
    """Move one or several dimensions to other places; the others keep their order.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(2, 3, 4).movedim(0, -1).shape
        (3, 4, 2)
    """
    sources = [wrap_dim(dim, input.ndim) for dim in ints((source,))]
    places = [wrap_dim(dim, input.ndim) for dim in ints((destination,))]
    if not len(sources) == len(places) == len(set(sources)) == len(set(places)):
        raise RuntimeError(f"movedim: {source} and {destination} must name as many dimensions, each once")
    order = [axis for axis in range(input.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return P.permute(input, dims=tuple(order[: input.ndim]))


moveaxis = movedim

# Dimensions repeated --------------------------------------------------------------------------------------


def expand(self: Tensor, *lengths: Any, size: Any = None) -> Tensor:
    """Repeat dimensions of length 1 without a copy, and add new ones in front; -1 keeps a length.

    Raises:
        ShapeError: if another length than 1 would have to change (``MT201``).

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([[1], [2]]).expand(-1, 3)
        tensor([[1, 1, 1],
                [2, 2, 2]])
    """
    wanted = ints(lengths, size)
    new = len(wanted) - self.ndim
    if -1 in wanted and new >= 0:
        wanted = wanted[:new] + tuple(
            old if length == -1 else length for old, length in zip(self.shape, wanted[new:], strict=True)
        )
    if any(length < 0 for length in wanted):
        raise ShapeError(
            "MT201", f"expand: {self.spec} cannot become {list(wanted)}", fix="use -1 for a kept length only"
        )
    return P.expand(self, shape=wanted)


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Expand to the shape of another tensor."""
    return P.expand(self, shape=other.shape)


def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """Expand to a shape, as `expand`.

    Example:
        >>> import minitorch as mt
        >>> mt.broadcast_to(mt.tensor([1, 2]), (2, 2))
        tensor([[1, 2],
                [1, 2]])
    """
    return expand(input, size)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Expand all tensors to their common shape.

    Example:
        >>> import minitorch as mt
        >>> a, b = mt.broadcast_tensors(mt.zeros(3), mt.zeros(2, 1))
        >>> a.shape, b.shape
        ((2, 3), (2, 3))
    """
    shape = interpreters.broadcast_shapes(tensors) if tensors else ()
    return tuple([P.expand(tensor, shape=shape) for tensor in tensors])


def broadcast_shapes(*shapes: Any) -> Shape:
    """Return the common shape of several shapes; an int stands for a shape of one dimension.

    Example:
        >>> import minitorch as mt
        >>> mt.broadcast_shapes((2, 1), (3,), 1)
        (2, 3)
    """
    shades = tuple([with_value(Spec(ints((shape,)), DEFAULT_FLOAT)) for shape in shapes])
    return interpreters.broadcast_shapes(shades) if shades else ()


PROPERTIES: dict[str, Callable[[Tensor], Tensor]] = {"T": _reversed, "mT": _matrix_transpose}
