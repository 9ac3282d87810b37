"""Convolutions over any number of dimensions, and `linear`: windows times weights.

A convolution is one matrix product: every filter is a row, every window of the (padded) input a column. Its two
gradients are convolutions again, with the roles exchanged, so that derivatives of any order are:

- by the input: the cotangent under the filters turned around, and taken apart where there is a stride;
- by the weight: the input under the cotangent, with stride and dilation exchanged.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from ... import primitives as P
from ...autograd import Context, Function
from ...errors import DTypeError, ShapeError
from ...functional.families import member
from ...functional.movement.parts import part
from ...functional.options import whole
from ...functional.pointwise.casting import contiguous
from ...functional.reducing.contraction import einsum
from ...functional.reducing.linalg import matmul
from ...interpreters import handled
from ...ir import Shape
from ...sizes import is_symbolic
from ...tensor import Tensor
from .pooling import Ints, Pairs, padded, per_dim, windows, with_batch


@handled
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``input @ weight.T + bias``.

    Args:
        input: [..., in_features].
        weight: [out_features, in_features].
        bias: [out_features].

    Returns:
        [..., out_features].

    Raises:
        ShapeError: if the input has another number of features than the weight (``MT201``).

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.linear(mt.tensor([1.0, 2.0]), mt.tensor([[3.0, 4.0]]), mt.tensor([0.5]))
        tensor([11.5000])
    """
    if input.ndim and weight.ndim and input.shape[-1] != weight.shape[-1]:
        raise ShapeError(
            "MT201",
            f"linear: the input is {input.spec}, with {input.shape[-1]} features; the weight {weight.spec} takes "
            f"{weight.shape[-1]}",
            fix="make in_features the last length of the input (after a Flatten: channels * height * width)",
        )
    dims = tuple(reversed(range(weight.ndim)))
    result = matmul(input, P.permute(weight, dims=dims))
    return result if bias is None else result + bias


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return ``input1 @ weight[k] @ input2`` for each feature k of the result, plus the bias.

    Args:
        input1: [..., in1_features].
        input2: [..., in2_features].
        weight: [out_features, in1_features, in2_features].
        bias: [out_features].

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.bilinear(mt.ones(5, 2), mt.ones(5, 3), mt.ones(4, 2, 3)).shape
        (5, 4)
    """
    features = (*input1.shape[-1:], *input2.shape[-1:])
    if input1.shape[:-1] != input2.shape[:-1] or weight.ndim != 3 or features != weight.shape[1:]:
        raise ShapeError("MT201", f"bilinear: {input1.spec}, {input2.spec} and the weight {weight.spec} do not fit")
    result = einsum("...i,oij,...j->...o", input1, weight, input2)
    return result if bias is None else result + bias


class Convolution(Function):
    """Convolution of [batch, channels, *lengths] by [filters, channels / groups, *size]: [batch, filters, *places].

    One int per dimension for `stride` and `dilation`, a pair (before, after) for `padding`; negative padding cuts off.
    """

    @staticmethod
    def forward(
        ctx: Context,
        x: Tensor,
        weight: Tensor,
        stride: Sequence[int],
        padding: Pairs,
        dilation: Sequence[int],
        groups: int,
    ) -> Tensor:
        """Multiply all windows by all filters, group by group."""
        ctx.save_for_backward(x, weight)
        ctx.options = stride, padding, dilation, groups  # type: ignore[attr-defined]
        filters, depth, *size = weight.shape
        n = len(size)
        columns, places = _columns(padded(x, padding), size, stride, dilation, groups)
        rows = P.reshape(weight, shape=(groups, filters // groups, depth * math.prod(size)))
        product = P.dot(rows, columns, dtype=x.dtype)
        product = P.reshape(product, shape=(groups, filters // groups, x.shape[0], *places))
        product = P.permute(product, dims=(2, 0, 1, *range(3, 3 + n)))
        return P.reshape(product, shape=(x.shape[0], filters, *places))

    @staticmethod
    def backward(ctx: Context, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        """Compute both gradients, two convolutions."""
        x, weight = ctx.saved_tensors
        options = ctx.options  # type: ignore[attr-defined]
        by_input, by_weight = ctx.needs_input_grad[:2]
        return (
            input_gradient(cotangents[0], x.shape, weight, *options) if by_input else None,
            _weight_gradient(cotangents[0], x, weight, *options) if by_weight else None,
            *[None] * 4,
        )


def _columns(
    x: Tensor, size: Sequence[int], stride: Sequence[int], dilation: Sequence[int], groups: int
) -> tuple[Tensor, Shape]:
    """Return [groups, window, batch * places], a column for every window; and the number of places."""
    n = len(size)
    view = windows(x, size, stride, dilation)
    batch, channels, *places = view.shape[: 2 + n]
    depth = channels // groups
    view = P.reshape(view, shape=(batch, groups, depth, *places, *size))
    at, inside = range(3, 3 + n), range(3 + n, 3 + 2 * n)
    seen, count = depth * math.prod(size), batch * math.prod(places)
    # Two orders of the same copy. Memory is copied fastest along the dimensions that are longer, if that is known.
    if is_symbolic(count) or math.prod(places) >= math.prod(size):
        columns = P.reshape(P.permute(view, dims=(1, 2, *inside, 0, *at)), shape=(groups, seen, count))
    else:
        rows = P.reshape(P.permute(view, dims=(1, 0, *at, 2, *inside)), shape=(groups, count, seen))
        columns = P.permute(rows, dims=(0, 2, 1))
    return columns, tuple(places)


def input_gradient(
    g: Tensor, shape: Shape, weight: Tensor, stride: Sequence[int], padding: Pairs, dilation: Sequence[int], groups: int
) -> Tensor:
    """Return the gradient by the input, of this shape: a convolution of the cotangent.

    With a stride, most products would be with the zeros between its elements. Instead every *phase*, the elements of
    the input that are equally far from where a filter begins, has filters of its own: each has every `stride`-th place
    of the original (Shi et al., arXiv:1609.05158). They are channels first, and then interleaved.
    """
    filters, depth, *size = weight.shape
    n = len(size)
    phases = [by if apart == 1 else 1 for by, apart in zip(stride, dilation, strict=True)]
    places = [-(-length // count) for length, count in zip(size, phases, strict=True)]
    between = [by // count - 1 for by, count in zip(stride, phases, strict=True)]
    # Filters and channels exchanged within each group, and every filter turned around.
    whole = [(0, place * count - length) for place, count, length in zip(places, phases, size, strict=True)]
    pairs = [length for pair in zip(places, phases, strict=True) for length in pair]
    turned = P.reshape(padded(weight, whole), shape=(groups, filters // groups, depth, *pairs))
    turned = P.permute(turned, dims=(0, 2, *range(4, 4 + 2 * n, 2), 1, *range(3, 3 + 2 * n, 2)))
    turned = P.reshape(turned, shape=(groups * depth * math.prod(phases), filters // groups, *places))
    turned = P.flip(turned, dims=tuple(range(2, 2 + n)))
    g = padded(g, [(0, 0)] * n, between=between)
    ends, lengths, starts = [], [], []
    for axis, (before, _) in enumerate(padding):
        reach, length, count = (places[axis] - 1) * dilation[axis], shape[2 + axis], phases[axis]
        first, last = before // count, (length - 1 + before) // count  # of the filter's steps
        lengths.append(last - first + 1)
        ends.append((reach - first, lengths[-1] - g.shape[2 + axis] + first))
        starts.append(before - first * count)
    result: Tensor = Convolution.apply(g, turned, (1,) * n, ends, dilation, groups)
    if math.prod(phases) == 1:
        return result
    result = P.reshape(result, shape=(shape[0], groups * depth, *phases, *lengths))
    order = [dim for axis in range(n) for dim in (2 + n + axis, 2 + axis)]
    result = P.permute(result, dims=(0, 1, *order))
    spread = [length * count for length, count in zip(lengths, phases, strict=True)]
    result = P.reshape(result, shape=(shape[0], groups * depth, *spread))
    for axis, start in enumerate(starts):
        result = part(result, 2 + axis, start, start + shape[2 + axis])
    return result


def _weight_gradient(
    g: Tensor, x: Tensor, weight: Tensor, stride: Sequence[int], padding: Pairs, dilation: Sequence[int], groups: int
) -> Tensor:
    _, depth, *size = weight.shape
    n = len(size)
    batch, _, *lengths = x.shape
    rest = tuple(range(2, 2 + n))
    # The channels of a group become the batch, the batch becomes the channels to sum over.
    x = P.reshape(x, shape=(batch, groups, depth, *lengths))
    x = P.permute(x, dims=(2, 1, 0, *range(3, 3 + n)))
    x = P.reshape(x, shape=(depth, groups * batch, *lengths))
    ends = []
    for axis, (before, _) in enumerate(padding):
        used = (size[axis] - 1) * dilation[axis] + (g.shape[2 + axis] - 1) * stride[axis] + 1
        ends.append((before, used - before - lengths[axis]))
    g = P.permute(g, dims=(1, 0, *rest))
    result: Tensor = Convolution.apply(x, g, dilation, ends, stride, groups)
    return P.permute(result, dims=(1, 0, *rest))


def amounts(
    padding: str | Ints, size: Sequence[int], stride: Sequence[int], dilation: Sequence[int], name: str
) -> Pairs:
    """Return the padding before and after each dimension, from ints or from PyTorch's words for it.

    Raises:
        ValueError: for other words, for a negative number, and for "same" with a stride.
    """
    if padding == "valid":
        return [(0, 0)] * len(size)
    if padding == "same":
        if any(by != 1 for by in stride):
            raise ValueError(f'{name}: padding="same" needs a stride of 1')
        reaches = [(length - 1) * apart for length, apart in zip(size, dilation, strict=True)]
        return [(reach // 2, reach - reach // 2) for reach in reaches]
    if isinstance(padding, str):
        raise ValueError(f'{name}: padding is "same", "valid" or a number, not {padding!r}')
    return [(amount, amount) for amount in per_dim(padding, len(size), "padding")]


def _check_operands(x: Tensor, weight: Tensor, bias: Tensor | None, filters: int, name: str) -> None:
    if x.dtype is not weight.dtype:
        raise DTypeError(
            "MT202",
            f"{name}: the input is {x.spec}, the weight {weight.spec}",
            fix=f"convert the input first: x.to(minitorch.{weight.dtype.name})",
        )
    if bias is not None and bias.shape != (filters,):
        raise ShapeError("MT201", f"{name}: bias is {bias.spec}, and not of shape [{filters}]: one for each filter")


def _check(
    x: Tensor, weight: Tensor, bias: Tensor | None, amounts: Pairs, dilation: Sequence[int], groups: int, name: str
) -> None:
    filters, depth, *size = weight.shape
    _check_operands(x, weight, bias, filters, name)
    if 0 in size:
        raise ShapeError("MT201", f"{name}: the weight {weight.spec} has filters without elements")
    if groups < 1:
        raise ValueError(f"{name}: groups is 1 or more, not {groups}")
    if filters % groups or x.shape[1] != depth * groups:
        raise ShapeError(
            "MT201",
            f"{name}: an input {x.spec} and a weight {weight.spec} do not fit with groups={groups}",
            why=f"{filters} filters cannot be shared out evenly among {groups} groups"
            if filters % groups
            else f"the input has {x.shape[1]} channels, the weight is for {depth * groups}",
            fix="the input is [batch, channels, ...], the weight [filters, channels / groups, ...]",
        )
    for length, pair, places, apart in zip(x.shape[2:], amounts, size, dilation, strict=True):
        if length + sum(pair) < (places - 1) * apart + 1:
            raise ShapeError(
                "MT201",
                f"{name}: a filter of {places} elements, {apart} apart, is longer than {length} with padding {pair}",
                fix="use more padding, or a smaller filter",
            )


def _conv(ndim: int) -> Callable[..., Tensor]:
    name, lengths, size = f"conv{ndim}d", ", ".join("5" * ndim), ", ".join("3" * ndim)

    @member(name, ndim=ndim, lengths=lengths, size=size, shape=(1, 4, *(3,) * ndim))
    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Ints = 1,
        padding: str | Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
    ) -> Tensor:
        """Slide filters over the last {ndim} dimensions (not turned around: a cross-correlation).

        Args:
            input: [batch, channels, ...] or [channels, ...].
            weight: [filters, channels / groups, *size].
            bias: [filters], added to the result.
            stride: how far the filters move.
            padding: how many zeros are put at both ends; or ``"valid"``: none, or ``"same"``: as many as keep the
                length.
            dilation: the distance of the elements under a filter.
            groups: the channels and the filters are divided into so many groups that do not see each other.

        Raises:
            ShapeError: if the shapes do not fit (``MT201``).

        Example:
            >>> import minitorch as mt
            >>> mt.nn.functional.{name}(mt.ones(1, 2, {lengths}), mt.ones(4, 2, {size})).shape
            {shape}
        """
        if weight.ndim != ndim + 2:
            raise ShapeError("MT201", f"{name}: the weight is {weight.spec}, not of {ndim + 2} dimensions")
        step, apart = per_dim(stride, ndim, "stride"), per_dim(dilation, ndim, "dilation")
        ends = amounts(padding, weight.shape[2:], step, apart, name)

        def convolve(x: Tensor) -> Tensor:
            _check(x, weight, bias, ends, apart, groups, name)
            result: Tensor = Convolution.apply(x, weight, step, ends, apart, groups)
            return (
                contiguous(result) if bias is None else result + P.reshape(bias, shape=(1, *bias.shape) + (1,) * ndim)
            )

        return with_batch(convolve, input, ndim, name)

    return handled(conv)


def _conv_transpose(ndim: int) -> Callable[..., Tensor]:
    name, lengths, size = f"conv_transpose{ndim}d", ", ".join("3" * ndim), ", ".join("2" * ndim)

    @member(name, lengths=lengths, size=size, shape=(1, 4, *(6,) * ndim))
    def conv_transpose(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        dilation: Ints = 1,
    ) -> Tensor:
        """Return the gradient of a convolution by its input: each element spreads its filters over the result.

        Args:
            input: [batch, channels, ...] or [channels, ...].
            weight: [channels, filters / groups, *size].
            bias: [filters], added to the result.
            stride: the distance of two elements' filters in the result.
            padding: how much is cut off at both ends, as much as the convolution pads.
            output_padding: how much longer the result is at the ends, of the lengths that a stride gives alike.
            groups: the channels and the filters are divided into so many groups that do not see each other.
            dilation: the distance of a filter's elements.

        Raises:
            ShapeError: if the shapes do not fit (``MT201``).

        Example:
            >>> import minitorch as mt
            >>> mt.nn.functional.{name}(mt.ones(1, 2, {lengths}), mt.ones(2, 4, {size}), stride=2).shape
            {shape}
        """
        if weight.ndim != ndim + 2:
            raise ShapeError("MT201", f"{name}: the weight is {weight.spec}, not of {ndim + 2} dimensions")
        step, apart = per_dim(stride, ndim, "stride"), per_dim(dilation, ndim, "dilation")
        cut, more = per_dim(padding, ndim, "padding"), per_dim(output_padding, ndim, "output_padding")
        for extra, by, gap in zip(more, step, apart, strict=True):
            if extra >= max(by, gap):
                raise ValueError(f"{name}: output_padding={extra} is not below the stride or the dilation")
        whole(f"{name}: groups", groups)
        channels, depth, *size = weight.shape
        filters = depth * groups
        spans = [(length - 1) * gap + 1 for length, gap in zip(size, apart, strict=True)]

        def convolve(x: Tensor) -> Tensor:
            lengths = [
                (length - 1) * by + span - 2 * off + extra
                for length, by, span, off, extra in zip(x.shape[2:], step, spans, cut, more, strict=True)
            ]
            if x.shape[1] != channels or groups < 1 or channels % groups or min(lengths) < 1 or 0 in size:
                raise ShapeError(
                    "MT201",
                    f"{name}: an input {x.spec} and a weight {weight.spec} do not fit with groups={groups}",
                    why=f"the result would be [batch, {filters}, {', '.join(map(str, lengths))}]",
                    fix="the input is [batch, channels, ...], the weight [channels, filters / groups, ...]",
                )
            ends = [(off, 0) for off in cut]
            given = (x.shape[0], filters, *lengths)
            _check_operands(x, weight, bias, filters, name)
            result = input_gradient(x, given, weight, step, ends, apart, groups)
            return (
                contiguous(result) if bias is None else result + P.reshape(bias, shape=(1, *bias.shape) + (1,) * ndim)
            )

        return with_batch(convolve, input, ndim, name)

    return handled(conv_transpose)


conv1d, conv2d, conv3d = _conv(1), _conv(2), _conv(3)
conv_transpose1d, conv_transpose2d = _conv_transpose(1), _conv_transpose(2)


# Windows as columns ---------------------------------------------------------------------------------------


def _columns_of(
    kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    named = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride}
    size, apart, around, step = (per_dim(value, 2, name) for name, value in named.items())
    return size, apart, around, step


def unfold(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Tensor:
    """Return the windows of images as columns: [batch, channels * window, places], as im2col does.

    Args:
        input: [batch, channels, height, width] or [channels, height, width].
        kernel_size: the size of the window.
        dilation: the distance of the elements in the window.
        padding: how many zeros are put at both ends.
        stride: how far the window moves.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.unfold(mt.arange(4.0).reshape(1, 1, 2, 2), (1, 2))
        tensor([[[0., 2.],
                 [1., 3.]]])
    """
    size, apart, around, step = _columns_of(kernel_size, dilation, padding, stride)

    def columns(x: Tensor) -> Tensor:
        seen = windows(padded(x, [(each, each) for each in around]), size, step, apart)
        batch, channels, *places = seen.shape[:4]
        shape = (batch, channels * math.prod(size), math.prod(places))
        return P.reshape(P.permute(seen, dims=(0, 1, 4, 5, 2, 3)), shape=shape)

    return with_batch(columns, input, 2, "unfold")


def fold(
    input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """Add up columns to images: the transpose of `unfold`, in which an element has a place in several windows.

    Args:
        input: [batch, channels * window, places] or [channels * window, places].
        output_size: height and width of the images.
        kernel_size, dilation, padding, stride: as in `unfold`.

    Raises:
        ShapeError: if the number of places is another one (``MT201``).

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.fold(mt.ones(1, 4, 4), output_size=3, kernel_size=2)[0, 0]
        tensor([[1., 2., 1.],
                [2., 4., 2.],
                [1., 2., 1.]])
    """
    size, apart, around, step = _columns_of(kernel_size, dilation, padding, stride)
    lengths = [length + 2 * each for length, each in zip(per_dim(output_size, 2, "output_size"), around, strict=True)]
    spans = [(places - 1) * by + 1 for places, by in zip(size, apart, strict=True)]
    places = [(length - span) // by + 1 for length, span, by in zip(lengths, spans, step, strict=True)]
    window = math.prod(size)
    if input.ndim not in (2, 3) or input.shape[-1] != math.prod(places) or input.shape[-2] % window:
        raise ShapeError(
            "MT201",
            f"fold: {input.spec} is not [..., channels * {window}, {math.prod(places)}]",
            why=f"a window has {window} elements for kernel_size={kernel_size}, dilation={dilation}, and "
            f"output_size={output_size} has {math.prod(places)} places for it",
        )
    channels = input.shape[-2] // window
    parts = P.reshape(input, shape=(*input.shape[:-2], channels, window, *places))
    total: Tensor | None = None
    for at, offset in enumerate(
        itertools.product(*(range(0, span, by) for span, by in zip(spans, apart, strict=True)))
    ):
        # The places of one element of the window lie `stride` apart; what is left over at the end gets nothing.
        reach = [(count - 1) * by + 1 for count, by in zip(places, step, strict=True)]
        ends = [
            (first - cut, length - first - far - cut)
            for first, length, far, cut in zip(offset, lengths, reach, around, strict=True)
        ]
        share = padded(P.reshape(part(parts, parts.ndim - 3, at, at + 1), shape=(*parts.shape[:-3], *places)), ends, 0,
                       [by - 1 for by in step])  # fmt: skip
        total = share if total is None else total + share
    assert total is not None
    return total
