"""Square brackets: ``x[...]`` and ``x[...] = value``, with all indices that PyTorch allows.

An index is read once into a `Selection`: bounds for one `slice`, the shape after ints have taken dimensions away and
None has added some, and the tensors that are left. Without tensors the result is a view. With tensors, their dimensions
are moved to the front, and one `gather` reads them (one `scatter` writes them). Functions with names, such as
`index_select`, are in `minitorch.functional.movement.gathering`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import primitives as P
from ...dtypes import PYTHON_NUMBERS, bool_, int64, uint8
from ...errors import DTypeError, ShapeError
from ...interpreters import broadcast_shapes, concrete
from ...ir import Shape
from ...primitives.movement import inverse_permutation, taken
from ...sizes import is_symbolic, larger, same, smaller
from ...tensor import Tensor
from ..inplace import assign
from ..operands import fitting_or_infinite, from_array, number, operand, to_dtype
from ..options import as_int, checked, wrap_dim
from ..pointwise.casting import contiguous
from .parts import position
from .shaping import ravel

__all__ = ["index_put_"]

Array = np.ndarray[Any, Any]

MASK_FIX = (
    "keep the shape: mt.where(mask, x, other), x.masked_fill(mask, value) or x[mask] = number; "
    "or select outside of the traced function"
)


# Reading an index -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Selection:
    """Elements that an index selects.

    Attributes:
        bounds: start, stop and step of each dimension; None if everything is taken.
        shape: after that, without the dimensions of ints, with those of None.
        tensors: index tensors, each with its first dimension in that shape; a mask covers several (and may be an
            array, whose values are known).
    """

    bounds: tuple[Shape, Shape, Shape] | None
    shape: Shape
    tensors: tuple[tuple[int, Tensor | Array], ...]

    def slice_of(self, x: Tensor) -> Tensor:
        """Return the part of a tensor inside the bounds, with all its dimensions."""
        if self.bounds is None:
            return x
        start, stop, step = self.bounds
        return P.slice_(x, start=start, stop=stop, step=step)


def _item(item: Any) -> Any:
    """Return one item of an index as an int, bool, slice, None, Ellipsis, tensor, or array with dimensions."""
    if type(item) in _WIDTHS or is_symbolic(item):
        return item
    if isinstance(item, Tensor):
        if item.dtype.is_floating_point or item.dtype is uint8:
            raise IndexError(
                f"a tensor of {item.dtype.name} cannot be an index: positions are int64 (x.long()), "
                "masks bool (x.bool())"
            )
        return bool(_mask_values(item)) if item.dtype is bool_ and item.ndim == 0 else item
    array = np.asarray(item)
    if array.size == 0 and array.dtype.kind == "f":  # an empty list
        array = array.astype(np.int64)
    if array.dtype.kind not in "iub":
        raise IndexError(f"an index is made of ints, slices, None, ..., tensors and lists of ints, not {item!r}")
    return array if array.ndim else array.item()


def _is_mask(item: Any) -> bool:
    return isinstance(item, (Tensor, np.ndarray)) and item.dtype in (bool_, np.bool_)


_WIDTHS: dict[type, int] = {int: 1, slice: 1, bool: 0, type(None): 0, type(Ellipsis): 0}


def _width(item: Any) -> int:
    """Return the number of dimensions that an item indexes."""
    width = _WIDTHS.get(type(item))
    if width is not None:
        return width
    return item.ndim if _is_mask(item) else 1


def selection(x: Tensor, index: Any) -> Selection:
    """Read an index.

    Raises:
        IndexError: if a position is out of range, there are too many, or an item is not an index.
    """
    whole = x.shape
    items = [_item(item) for item in (index if isinstance(index, tuple) else (index,))]
    missing = len(whole) - sum(map(_width, items))
    dots = [place for place, item in enumerate(items) if item is Ellipsis] or [len(items)]
    if missing < 0 or len(dots) > 1:
        given = "more than one ..." if len(dots) > 1 else f"too many indices, {x.ndim - missing},"
        raise IndexError(f"{given} for {x.spec}, which has {x.ndim} dimensions")
    items[dots[0] : dots[0] + 1] = [slice(None)] * missing

    bounds: list[tuple[int, int, int]] = []
    shape: list[int] = []
    tensors: list[tuple[int, Tensor | Array]] = []
    is_all = True
    for item in items:
        dim = len(bounds)
        if item is None or isinstance(item, bool):
            if item is not None:  # a new dimension, of which True takes the one element and False none
                tensors.append((len(shape), from_array(np.zeros(int(item), np.int64))))
            shape.append(1)
        elif isinstance(item, int):
            at = position(item, whole[dim], dim)
            bounds.append((at, at + 1, 1))
            is_all = is_all and bounds[-1] == (0, whole[dim], 1)
        elif isinstance(item, slice):
            bounds.append(slice_bounds(item, whole[dim]))
            is_all = is_all and _is_all(bounds[-1], whole[dim])
            shape.append(taken(*bounds[-1]))
        else:
            lengths = whole[dim : dim + _width(item)]
            tensors.append((len(shape), _index_tensor(item, lengths, dim)))
            bounds += [(0, length, 1) for length in lengths]
            shape += lengths
    if is_all:
        return Selection(None, tuple(shape), tuple(tensors))
    start, stop, step = zip(*bounds, strict=True)
    return Selection((start, stop, step), tuple(shape), tuple(tensors))


def slice_bounds(item: slice, length: int) -> tuple[int, int, int]:
    """Return start, stop and step of a slice of so many elements, counted from 0; the stop is not before the start.

    Raises:
        ValueError: for a step below 1.
    """
    step = 1 if item.step is None else as_int(item.step)
    if step < 1:
        raise ValueError(f"the step of a slice must be 1 or more, not {step}: use flip to read backwards")
    start = 0 if item.start is None else _bound(as_int(item.start), length)
    stop = length if item.stop is None else _bound(as_int(item.stop), length)
    return start, larger(start, stop), step


def _is_all(bounds: tuple[int, int, int], length: int) -> bool:
    """Return whether a slice is all of a dimension, for all sizes."""
    if type(bounds[1]) is type(length) is int:
        return bounds == (0, length, 1)
    return same(bounds, (0, length, 1))


def _bound(value: int, length: int) -> int:
    """Return one bound of a slice, counted from the beginning, as `slice.indices` has it."""
    return larger(value + length, 0) if value < 0 else smaller(value, length)


def _index_tensor(item: Tensor | Array, lengths: Shape, dim: int) -> Tensor | Array:
    """Return an array of positions as a tensor, after checking its values; of a mask, the shape."""
    if _is_mask(item) and item.shape != lengths:
        raise IndexError(f"a mask of shape {list(item.shape)} does not fit dimensions {dim} and on: {list(lengths)}")
    if isinstance(item, Tensor) or _is_mask(item):
        return item
    for extreme in (item.min(), item.max()) if item.size else ():
        position(int(extreme), lengths[0], dim)
    return from_array(item.astype(np.int64))


# Index tensors --------------------------------------------------------------------------------------------


def _mask_values(mask: Tensor | Array) -> Array:
    if isinstance(mask, np.ndarray):
        return mask
    return concrete(mask, "indexing with a boolean mask", "MT103", MASK_FIX)


@dataclass(frozen=True, slots=True)
class Advanced:
    """Index tensors, ready for `gather` and `scatter`.

    Attributes:
        order: the dimensions of the selected shape, the indexed ones first.
        indices: one for each indexed dimension, all of one shape.
        placed: the dimensions after the gather, in the order in which the result has them.
    """

    order: tuple[int, ...]
    indices: tuple[Tensor, ...]
    placed: tuple[int, ...]


def advanced(chosen: Selection) -> Advanced:
    """Convert masks to positions, give all indices one shape, and place their dimensions.

    The indices' own dimensions replace the indexed ones if these are neighbours, and go in front if not. A
    0-dimensional index takes its dimension away as an int does, and does not count here.
    """
    found: list[tuple[int, Tensor]] = []
    for dim, item in chosen.tensors:
        positions = np.nonzero(_mask_values(item)) if _is_mask(item) else (item,)
        found += [(dim + axis, operand(each)) for axis, each in enumerate(positions)]
    dims = [dim for dim, _ in found]
    shape = broadcast_shapes(tuple(tensor for _, tensor in found))
    indices = tuple(tensor if tensor.shape == shape else P.expand(tensor, shape=shape) for _, tensor in found)

    scalars = {dim for dim, tensor in found if not tensor.ndim}
    kept = [dim for dim in range(len(chosen.shape)) if dim not in scalars]
    places = [kept.index(dim) for dim in dims if dim not in scalars]
    neighbours = places == [*range(places[0], places[0] + len(places))] if places else False
    before = places[0] if neighbours else 0

    own = len(shape)
    rest = [dim for dim in range(len(chosen.shape)) if dim not in dims]
    placed = (*range(own, own + before), *range(own), *range(own + before, own + len(rest)))
    return Advanced((*dims, *rest), indices, placed)


def _permuted(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    return x if dims == tuple(range(x.ndim)) else P.permute(x, dims=dims)


def existing(name: str, index: Tensor, length: int, from_end: bool = False) -> Tensor:
    """Return an index, whose elements are positions of a dimension: from 0 on, or also counted from its end."""
    if index.dtype.category != "int":
        raise DTypeError("MT202", f"{name}: an index of type {index.dtype.name}", fix="use integers, e.g. i.long()")
    return checked(f"{name}: the index", index, -length if from_end else 0, length - 1, "IndexError")


def coordinates(name: str, x: Tensor, dim: int, index: Tensor, from_end: bool = False) -> tuple[Tensor, ...]:
    """Return the full positions of an index: its values in its dimension, its own place in the others."""
    fits = index.ndim == x.ndim and all(
        axis == dim or mine <= whole for axis, (mine, whole) in enumerate(zip(index.shape, x.shape, strict=True))
    )
    if not fits:
        raise ShapeError(
            "MT201",
            f"{name}: the index is {index.spec}, the tensor {x.spec}",
            why=f"they need as many dimensions, and the index may be longer only in dimension {dim}",
            fix="expand the index, or use index_select for whole slices",
        )
    coordinates = []
    for axis, length in enumerate(index.shape):
        if axis == dim:
            coordinates.append(existing(name, index, x.shape[dim], from_end))
        else:
            line = P.reshape(P.iota(size=length, dtype=int64), shape=(length,) + (1,) * (index.ndim - axis - 1))
            coordinates.append(P.expand(line, shape=index.shape))
    return tuple(coordinates)


def gathered(name: str, input: Tensor, dim: int, index: Tensor, from_end: bool = False) -> Tensor:
    """Gather as `gather`, for the function of a name; negative positions may count from the end."""
    dim = wrap_dim(dim, input.ndim)
    if not input.ndim:
        return P.reshape(P.gather(ravel(input), existing(name, ravel(index), 1, from_end)), shape=index.shape)
    return P.gather(input, *coordinates(name, input, dim, index, from_end))


# x[index] -------------------------------------------------------------------------------------------------


def getitem(x: Tensor, index: Any) -> Tensor:
    """Return the elements that an index selects: a view for ints, slices, None and ..., else a copy.

    A tensor without dimensions is an index from data: it copies, where PyTorch takes a view. A boolean mask gives a
    shape that depends on its values, so that a graph cannot contain it (``MT103``).

    Raises:
        IndexError: if a position is out of range or an item is not an index.

    Example:
        >>> import minitorch as mt
        >>> x = mt.arange(12).reshape(3, 4)
        >>> x[1, ::2], x[[0, 2], 1], x[x > 9]
        (tensor([4, 6]), tensor([1, 9]), tensor([10, 11]))
    """
    chosen = selection(x, index)
    view = chosen.slice_of(x)
    if view is x or view.shape != chosen.shape:
        view = P.reshape(view, shape=chosen.shape)
    if not chosen.tensors:
        return view
    how = advanced(chosen)
    return contiguous(_permuted(P.gather(_permuted(view, how.order), *how.indices), how.placed))


# x[index] = value -----------------------------------------------------------------------------------------


def _value(value: Any, x: Tensor) -> Tensor:
    """Return the value to be written, in the tensor's type."""
    if isinstance(value, PYTHON_NUMBERS):
        return number(fitting_or_infinite("x[...] = value", value, x.dtype), x.dtype)
    return to_dtype(operand(value), x.dtype)


def _fitted(value: Tensor, shape: Shape) -> Tensor:
    """Expand a value to the shape of its target, without surplus dimensions in front."""
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = P.reshape(value, shape=value.shape[1:])
    try:
        return value if value.shape == shape else P.expand(value, shape=shape)
    except ShapeError:
        raise ShapeError(
            "MT201",
            f"x[...] = value: the index selects the shape {list(shape)}, the value is {value.spec}",
            fix="give a value that broadcasts to the selected shape",
        ) from None


def _masked(view: Tensor, dim: int, mask: Tensor, value: Tensor) -> Tensor | None:
    """Return the view with one value, or one for each element of the other dimensions, where a mask holds.

    Return None if the value has one element for each True: `where` cannot use their number.
    """
    after = view.ndim - dim - mask.ndim
    before = value.ndim - after - 1  # the value's dimensions in front of the one that counts the True elements
    if before >= 0 and (value.shape[before] != 1 or before > dim):
        return None
    if before >= 0:
        value = P.reshape(value, shape=(*value.shape[:before], *(1,) * mask.ndim, *value.shape[before + 1 :]))
    aligned = P.reshape(mask, shape=mask.shape + (1,) * after)
    return P.where(aligned, _fitted(value, view.shape), view)


def setitem(x: Tensor, index: Any, value: Any) -> None:
    """Write a number or a tensor that broadcasts to the elements that an index selects.

    A mask with a value that does not depend on the number of True elements works in a graph, too.

    Raises:
        IndexError: if a position is out of range or an item is not an index.
        ShapeError: if the value does not broadcast to the selection (``MT201``).
        AutogradError: for a leaf that requires a gradient (``MT401``).

    Example:
        >>> import minitorch as mt
        >>> x = mt.zeros(2, 3)
        >>> x[0, 1:] = mt.tensor([1.0, 2.0])
        >>> x[x == 0] = -1
        >>> x
        tensor([[-1.,  1.,  2.],
                [-1., -1., -1.]])
    """
    _write(x, index, value)


def _write(x: Tensor, index: Any, value: Any, accumulate: bool = False) -> Tensor:
    """Carry out a write, and return the result of `assign`: the tensor or, while a graph is defined, its new value."""
    new = _value(value, x)
    if isinstance(index, Tensor) and index.dtype is bool_ and not index.ndim:  # all or nothing
        return assign(x, P.where(index, _fitted(new, x.shape), x), "x[mask] = value")
    chosen = selection(x, index)
    target = chosen.slice_of(x)
    if not chosen.tensors:
        new = new if new.ndim == 0 else _fitted(new, chosen.shape)
        new = target + new if accumulate else new
    else:
        new = _with_written(
            P.reshape(target, shape=chosen.shape), chosen, new, P.scatter_add if accumulate else P.scatter
        )
    written = assign(target, P.reshape(new, shape=target.shape) if new.ndim else new, "x[...] = value")
    return written if target is x else x


def _with_written(view: Tensor, chosen: Selection, value: Tensor, scatter: P.Primitive) -> Tensor:
    """Return a new value for a view, in which the elements at index tensors are replaced, or added to."""
    dim, item = chosen.tensors[0]
    if len(chosen.tensors) == 1 and _is_mask(item) and scatter is P.scatter:
        written = _masked(view, dim, operand(item), value)
        if written is not None:
            return written
    how = advanced(chosen)
    lengths = how.indices[0].shape + tuple(view.shape[dim] for dim in how.order[len(how.indices) :])
    updates = _fitted(value, tuple(lengths[dim] for dim in how.placed))
    moved = scatter(_permuted(view, how.order), _permuted(updates, inverse_permutation(how.placed)), *how.indices)
    return _permuted(moved, inverse_permutation(how.order))


def index_put_(self: Tensor, indices: tuple[Tensor, ...], values: Any, accumulate: bool = False) -> Tensor:
    """Write ``x[indices] = values``, and return the tensor.

    Args:
        self: the tensor.
        indices: positions or masks, one for each of the first dimensions.
        values: a number or a tensor that broadcasts to what the indices select.
        accumulate: add the values to the elements, also where an element is selected repeatedly.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(3).index_put_((mt.tensor([0, 2, 2]),), mt.tensor([1.0, 2.0, 3.0]), accumulate=True)
        tensor([1., 0., 5.])
    """
    return _write(self, tuple(indices), values, accumulate)


OPERATORS: dict[str, Callable[..., Any]] = {
    "__getitem__": getitem,
    "__setitem__": setitem,
}
