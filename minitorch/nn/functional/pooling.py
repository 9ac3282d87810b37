"""Windows that slide over the last dimensions of [batch, channels, ...], and their pooling.

A window is a view (the primitive `unfold`, once per dimension): pooling is padding, windows and a reduction. A
convolution is padding, windows and a product (`minitorch.nn.functional.convolution`).
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ... import primitives as P
from ...autograd import Context, Function
from ...dtypes import int8, int16, int32, int64
from ...errors import ShapeError
from ...functional.families import member
from ...functional.movement.parts import part
from ...functional.movement.shaping import transpose
from ...functional.operands import widened
from ...interpreters import number
from ...primitives.elementwise import scalar
from ...primitives.reductions import lowest
from ...sizes import same
from ...tensor import Tensor

Ints = int | Sequence[int]
Pairs = Sequence[tuple[int, int]]


# Windows --------------------------------------------------------------------------------------------------


def per_dim(value: Ints, count: int, name: str) -> tuple[int, ...]:
    """Return one int per dimension, from one for all or one for each; from 1, paddings and result lengths from 0."""
    values = tuple(value) if isinstance(value, Sequence) else (value,) * count
    if not all(hasattr(each, "__index__") for each in values):
        raise TypeError(f"{name} is made of ints, not {value!r}")
    if len(values) != count:
        raise ValueError(f"{name} is one int, or one for each of {count} dimensions, not {value!r}")
    least = 0 if name in ("padding", "output_padding", "output_size") else 1
    if any(value < least for value in values):
        raise ValueError(f"{name} is {least} or more, not {value!r}")
    return values


def with_batch(function: Callable[[Tensor], Tensor], input: Tensor, ndim: int, name: str) -> Tensor:
    """Apply a function of [batch, channels, ...] to that or to [channels, ...], as PyTorch allows."""
    if input.ndim == ndim + 2:
        return function(input)
    if input.ndim != ndim + 1:
        raise ShapeError(
            "MT201",
            f"{name}: {input.spec} has {input.ndim} dimensions",
            why=f"it takes [batch, channels, ...] or [channels, ...] with {ndim} dimensions to slide over",
            fix="add the missing ones with unsqueeze, e.g. a channel: images.unsqueeze(1)",
        )
    result = function(P.reshape(input, shape=(1, *input.shape)))
    return P.reshape(result, shape=result.shape[1:])


def padded(x: Tensor, amounts: Pairs, value: Any = 0, between: Sequence[int] | None = None) -> Tensor:
    """Pad the last dimensions before, after and between the elements; a negative amount cuts off."""
    lead = x.ndim - len(amounts)
    between = between or (0,) * len(amounts)
    if any(between) or any(max(pair) > 0 for pair in amounts):
        ends = [(max(before, 0), max(after, 0), gap) for (before, after), gap in zip(amounts, between, strict=True)]
        x = P.pad(x, padding=((0, 0, 0),) * lead + tuple(ends), value=value)
    for dim, (before, after) in enumerate(amounts, lead):
        if min(before, after) < 0:
            x = part(x, dim, max(-before, 0), x.shape[dim] - max(-after, 0))
    return x


def _check_windows(x: Tensor, size: Sequence[int], dilation: Sequence[int]) -> None:
    for length, places, apart in zip(x.shape[2:], size, dilation, strict=True):
        if length < (places - 1) * apart + 1:
            raise ShapeError(
                "MT201",
                f"a window of {places} elements, {apart} apart, is longer than the {length} of {x.spec}, padded",
                fix="use more padding, or a smaller window",
            )


def windows(x: Tensor, size: Sequence[int], step: Sequence[int], dilation: Sequence[int]) -> Tensor:
    """Return [batch, channels, *places, *size]: for every place of the window, the elements in it. A view.

    Windows that touch and do not overlap are a reshape, whose gradient is a reshape too.

    Raises:
        ShapeError: if there is no place for a window (``MT201``).
    """
    count = len(size)
    _check_windows(x, size, dilation)
    if all(by == length and apart == 1 for by, length, apart in zip(step, size, dilation, strict=True)):
        shape, whole = list(x.shape[:2]), x
        for dim, length in enumerate(size, 2):
            places = x.shape[dim] // length
            whole = whole if same(places * length, x.shape[dim]) else part(whole, dim, 0, places * length)
            shape += [places, length]
        order = (0, 1, *range(2, 2 + 2 * count, 2), *range(3, 3 + 2 * count, 2))
        return P.permute(P.reshape(whole, shape=tuple(shape)), dims=order)
    for dim in range(count):
        x = P.unfold(x, dim=dim + 2, size=size[dim], step=step[dim], dilation=dilation[dim])
    return x


# Pooling --------------------------------------------------------------------------------------------------


class FirstLargest(Function):
    """Maximum over the last dimensions, NaN if one is NaN; of equal ones the first alone gets the gradient.

    Its position is found in the forward pass and kept as a small integer: the backward pass compares no floats, and
    does not read the windows again.
    """

    @staticmethod
    def forward(ctx: Context, x: Tensor, count: int, candidates: Callable[[], Tensor]) -> Tensor:
        """Return the maximum over `count` dimensions. One of the candidates, NaN in the padding, gets the gradient."""
        y = P.reduce_max(x, dims=tuple(range(x.ndim - count, x.ndim)))
        if ctx.needs_input_grad[0]:
            ctx.shape = x.shape  # type: ignore[attr-defined]
            ctx.save_for_backward(_first_largest(x, y, candidates()))
        return y

    @staticmethod
    def backward(ctx: Context, *cotangents: Tensor) -> tuple[Tensor, None, None]:
        """Return the cotangent, at the place where the maximum was found."""
        (place,) = ctx.saved_tensors
        (g,) = cotangents
        size = math.prod(ctx.shape[place.ndim :])  # type: ignore[attr-defined]
        column = (*place.shape, 1)
        chosen = P.equal(P.iota(size=size, dtype=place.dtype), P.reshape(place, shape=column))
        gradient = P.where(chosen, P.reshape(g, shape=column), scalar(0, g))
        return P.reshape(gradient, shape=ctx.shape), None, None  # type: ignore[attr-defined]


def _first_largest(x: Tensor, y: Tensor, candidates: Tensor) -> Tensor:
    """Return the index of the maximum `y` among the last elements: the first candidate; with NaN in `x`, the last."""
    size = math.prod(x.shape[y.ndim :])
    x, candidates = (P.reshape(each, shape=(*y.shape, size)) for each in (x, candidates))
    # Every place k has two numbers: k for NaN, of which the last place has the highest, and below those ~k = -1 - k, of
    # which the first place has the highest. So the highest number that is found tells the place.
    dtype = next(each for each in (int8, int16, int32, int64) if size <= 1 << (8 * each.itemsize - 1))
    places, zero = P.iota(size=size, dtype=dtype), number(0, dtype)
    hit = P.equal(candidates, P.reshape(y, shape=(*y.shape, 1)))
    found = P.where(hit, P.bitwise_not(places), number(lowest(dtype), dtype))
    highest = P.reduce_max(P.where(P.equal(x, x), found, places), dims=(y.ndim,))
    return P.where(P.less(highest, zero), P.bitwise_not(highest), highest)


def _sliding(
    input: Tensor, kernel_size: Ints, stride: Ints | None, padding: Ints, dilation: Ints, ndim: int, name: str
) -> tuple[tuple[int, ...], tuple[int, ...], Pairs, tuple[int, ...]]:
    """Return size, step, padding and dilation of the windows, checked and one per dimension."""
    size = per_dim(kernel_size, ndim, "kernel_size")
    step = size if stride is None else per_dim(stride, ndim, "stride")
    amounts = per_dim(padding, ndim, "padding")
    if any(2 * amount > length for amount, length in zip(amounts, size, strict=True)):
        raise ValueError(f"{name}: the padding, {padding}, is more than half of the window, {kernel_size}")
    return size, step, [(amount, amount) for amount in amounts], per_dim(dilation, ndim, "dilation")


def _rounded_up(x: Tensor, size: Sequence[int], step: Sequence[int], amounts: Pairs, apart: Sequence[int]) -> Pairs:
    """Return the padding with which one more window fits wherever elements are left over (``ceil_mode``).

    As in PyTorch, a window that would begin in the padding at the end is left out.
    """
    found = []
    for length, places, by, (before, after), distance in zip(x.shape[2:], size, step, amounts, apart, strict=True):
        span, total = (places - 1) * distance + 1, before + length + after
        more = -((span - total) // by)  # windows after the first
        more -= more * by >= before + length
        found.append((before, after + max(more * by + span - total, 0)))
    return found


def _example(ndim: int) -> dict[str, Any]:
    """Return words for the example of a pool: the lengths of its input, and the number of elements."""
    return {"lengths": ", ".join("4" * ndim), "count": 4**ndim}


def _max_pool(ndim: int) -> Callable[..., Tensor]:
    name = f"max_pool{ndim}d"

    @member(name, ndim=ndim, **_example(ndim), result="[1., 3.]" if ndim == 1 else "[ 5.,  7., 13., 15.]")
    def max_pool(
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """Return the largest element of each window over the last {ndim} dimensions.

        Args:
            input: [batch, channels, ...] or [channels, ...].
            kernel_size: the size of the window.
            stride: how far it moves, by default its size.
            padding: how much -inf is put at both ends, up to half of the window.
            dilation: the distance of the elements in the window.
            ceil_mode: whether the elements at the end that fill no window have one, too.
            return_indices: also return where each was found, as a position in the last {ndim} dimensions, flattened.

        Example:
            >>> import minitorch as mt
            >>> x = mt.arange({count}.0).reshape(1, {lengths})
            >>> mt.nn.functional.{name}(x, 2).flatten()
            tensor({result})
        """
        size, step, amounts, apart = _sliding(input, kernel_size, stride, padding, dilation, ndim, name)

        def seen(x: Tensor, outside: float) -> Tensor:
            around = _rounded_up(x, size, step, amounts, apart) if ceil_mode else amounts
            return windows(padded(x, around, outside), size, step, apart)

        def pool(x: Tensor) -> Tensor:
            result: Tensor = FirstLargest.apply(seen(x, lowest(x.dtype)), ndim, lambda: seen(x, math.nan))
            return result

        def positions(x: Tensor) -> Tensor:
            inside = seen(x, lowest(x.dtype))
            largest = P.reduce_max(inside, dims=tuple(range(2 + ndim, 2 + 2 * ndim)))
            place = P.cast(_first_largest(inside, largest, seen(x, math.nan)), dtype=int64)
            flat: Any = 0
            for dim in range(ndim):
                first = P.iota(size=place.shape[2 + dim], dtype=int64) * step[dim] - amounts[dim][0]
                within = place // math.prod(size[dim + 1 :]) % size[dim] * apart[dim]
                at = P.reshape(first, shape=(*first.shape, *(1,) * (ndim - 1 - dim))) + within
                flat = at + flat * x.shape[2 + dim]
            return flat  # type: ignore[no-any-return]

        values = with_batch(pool, input, ndim, name)
        return (values, with_batch(positions, input.detach(), ndim, name)) if return_indices else values

    return max_pool


def _avg_pool(ndim: int) -> Callable[..., Tensor]:
    name = f"avg_pool{ndim}d"
    result = "[0.5000, 2.5000]" if ndim == 1 else "[ 2.5000,  4.5000, 10.5000, 12.5000]"

    @member(name, ndim=ndim, **_example(ndim), result=result)
    def avg_pool(
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        """Return the mean of each window over the last {ndim} dimensions.

        Args:
            input: [batch, channels, ...] or [channels, ...].
            kernel_size: the size of the window.
            stride: how far it moves, by default its size.
            padding: how many zeros are put at both ends, up to half of the window.
            ceil_mode: whether the elements at the end that fill no window have one, too.
            count_include_pad: whether the mean counts the padding.
            divisor_override: divide the sums by this number.

        Example:
            >>> import minitorch as mt
            >>> x = mt.arange({count}.0).reshape(1, {lengths})
            >>> mt.nn.functional.{name}(x, 2).flatten()
            tensor({result})
        """
        size, step, amounts, apart = _sliding(input, kernel_size, stride, padding, 1, ndim, name)
        dims = tuple(range(2 + ndim, 2 + 2 * ndim))

        def pool(x: Tensor) -> Tensor:
            around = _rounded_up(x, size, step, amounts, apart) if ceil_mode else amounts

            def sums(x: Tensor, around: Pairs) -> Tensor:
                return P.reduce_sum(windows(padded(x, around), size, step, apart), dims=dims)

            counted = amounts if count_include_pad else [(0, 0)] * ndim  # the padding that has a share in the means
            if divisor_override is not None or around == counted:
                return P.div(sums(x, around), scalar(divisor_override or math.prod(size), x))
            lengths = [length + before + after for length, (before, after) in zip(x.shape[2:], counted, strict=True)]
            rest = [(a - c, b - d) for (a, b), (c, d) in zip(around, counted, strict=True)]
            ones = P.constant(value=1, shape=(1, 1, *lengths), dtype=x.dtype)
            return P.div(sums(x, around), sums(ones, rest))

        return with_batch(pool, input, ndim, name)

    return avg_pool


def _unequal(length: int, places: int) -> tuple[Tensor, Tensor]:
    """Return windows of a length, from floor(i n / places) to ceil((i + 1) n / places), which differ and overlap.

    For each window there are as many positions as the largest has, and whether they lie inside of it: [places, most].
    """
    largest = max((-(-(i + 1) * length // places) - i * length // places for i in range(places)), default=1)
    window = P.reshape(P.iota(size=places, dtype=int64), shape=(places, 1))
    begin, end = window * length // places, -(-(window + 1) * length // places)
    place = begin + P.iota(size=largest, dtype=int64)
    inside = P.less(place, end)
    return P.where(inside, place, begin), inside


@widened
def _means(x: Tensor, *, places: int) -> Tensor:
    """Average unequal windows over the last dimension; an infinity or NaN stays in the windows that contain it."""
    place, inside = _unequal(x.shape[-1], places)
    taken = P.where(inside, x[..., place], scalar(0, x))
    return P.div(P.reduce_sum(taken, dims=(x.ndim,)), P.reduce_sum(P.cast(inside, dtype=x.dtype), dims=(1,)))


def _adapted(name: str, x: Tensor, output_size: Any) -> tuple[tuple[int, ...], list[int]]:
    """Return how many windows are asked for, and their sizes if those are equal and do not overlap."""
    lengths = x.shape[2:]
    asked = output_size if isinstance(output_size, (list, tuple)) else (output_size,) * len(lengths)
    kept = [n if k is None else k for n, k in zip(lengths, asked, strict=True)]
    wanted = per_dim(kept, len(lengths), "output_size")
    if 0 in lengths:
        raise ShapeError("MT201", f"{name}: {x.spec} has no elements to pool", fix="leave it out if it is empty")
    size = [length // max(places, 1) for length, places in zip(lengths, wanted, strict=True)]
    equal = all(by * places == length for by, places, length in zip(size, wanted, lengths, strict=True))
    return wanted, size if equal else []


def _adaptive_max_pool(ndim: int) -> Callable[..., Any]:
    name = f"adaptive_max_pool{ndim}d"

    @member(name, ndim=ndim, lengths=", ".join("6" * ndim), shape=(2, *(4,) * ndim))
    def adaptive_max_pool(input: Tensor, output_size: int | Sequence[int | None], return_indices: bool = False) -> Any:
        """Return the largest elements of the windows of `adaptive_avg_pool{ndim}d`.

        Args:
            input: [batch, channels, ...] or [channels, ...].
            output_size: the lengths of the last {ndim} dimensions of the result, None for one that stays.
            return_indices: also return where each was found, as a position in the last {ndim} dimensions, flattened.

        Example:
            >>> import minitorch as mt
            >>> mt.nn.functional.{name}(mt.ones(2, {lengths}), 4).shape
            {shape}
        """

        def pool(x: Tensor, positions: bool = False) -> Any:
            wanted, size = _adapted(name, x, output_size)
            if size:
                pooled = _max_pool(ndim)(x, size, return_indices=positions)
                return pooled[1] if positions else pooled
            found = [_unequal(length, places) for length, places in zip(x.shape[2:], wanted, strict=True)]
            shapes = [[1] * (2 * ndim) for _ in found]
            for dim, (place, _) in enumerate(found):
                shapes[dim][dim], shapes[dim][ndim + dim] = place.shape
            at, within = ([P.reshape(each, shape=tuple(shape)) for each, shape in zip(kind, shapes, strict=True)]
                          for kind in zip(*found, strict=True))  # fmt: skip
            inside = functools.reduce(operator.and_, within)

            def seen(x: Tensor, outside: float) -> Tensor:
                return P.where(inside, x[..., *at], scalar(outside, x))

            if not positions:
                return FirstLargest.apply(seen(x, lowest(x.dtype)), ndim, lambda: seen(x, math.nan))
            view = seen(x, lowest(x.dtype))
            largest = P.reduce_max(view, dims=tuple(range(2 + ndim, 2 + 2 * ndim)))
            place = P.cast(_first_largest(view, largest, seen(x, math.nan)), dtype=int64)
            flat: Any = 0
            for length, each in zip(x.shape[2:], at, strict=True):
                flat = each + flat * length
            flat = P.expand(flat, shape=view.shape).reshape(*place.shape, -1)
            return flat.gather(-1, place.unsqueeze(-1)).squeeze(-1)

        values = with_batch(pool, input, ndim, name)
        return (values, with_batch(lambda x: pool(x, True), input.detach(), ndim, name)) if return_indices else values

    return adaptive_max_pool


def _adaptive_avg_pool(ndim: int) -> Callable[..., Tensor]:
    name = f"adaptive_avg_pool{ndim}d"

    @member(name, ndim=ndim, lengths=", ".join("6" * ndim), shape=(2, *(4,) * ndim))
    def adaptive_avg_pool(input: Tensor, output_size: int | Sequence[int | None]) -> Tensor:
        """Return the means of as many windows as give the result the requested size.

        Window i of k over a length n is from floor(i n / k) up to ceil((i + 1) n / k): where k does not divide n,
        windows overlap.

        Args:
            input: [batch, channels, ...] or [channels, ...].
            output_size: the lengths of the last {ndim} dimensions of the result, None for one that stays.

        Raises:
            ShapeError: for an input whose last dimensions are empty (``MT201``).
            ValueError: for a negative length.

        Example:
            >>> import minitorch as mt
            >>> mt.nn.functional.{name}(mt.ones(2, {lengths}), 4).shape
            {shape}
        """

        def pool(x: Tensor) -> Tensor:
            wanted, size = _adapted(name, x, output_size)
            if size:
                result: Tensor = _avg_pool(ndim)(x, size)
                return result
            for dim, places in enumerate(wanted, 2):
                x = transpose(_means(transpose(x, dim, -1), places=places), dim, -1)
            return x

        return with_batch(pool, input, ndim, name)

    return adaptive_avg_pool


max_pool1d, max_pool2d = _max_pool(1), _max_pool(2)
avg_pool1d, avg_pool2d = _avg_pool(1), _avg_pool(2)
adaptive_max_pool1d, adaptive_max_pool2d = _adaptive_max_pool(1), _adaptive_max_pool(2)
adaptive_avg_pool1d, adaptive_avg_pool2d = _adaptive_avg_pool(1), _adaptive_avg_pool(2)
