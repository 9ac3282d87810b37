"""Normalizations, which keep the activations of a network in range, and dropout, which regularises it.

16-bit inputs are normalized in float32 and rounded once, as PyTorch does: a mean of squares overflows float16 early. So
a result is off by half a unit in the last place of its type, and by the rounding errors of float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ... import primitives as P
from ...autograd import no_grad
from ...errors import ShapeError
from ...functional.creation.random import rand
from ...functional.families import member
from ...functional.inplace import assign
from ...functional.movement.selection import clamp
from ...functional.movement.shaping import broadcast_tensors
from ...functional.operands import promote, to_dtype, widen, widened
from ...functional.options import equals, probability, require_float, whole
from ...functional.reducing.reductions import norm
from ...functional.reducing.reductions import sum as sum_
from ...primitives.elementwise import scalar
from ...tensor import Tensor


def _mean(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """Return the mean over dims, which are kept with length 1."""
    kept = tuple([1 if axis in dims else length for axis, length in enumerate(x.shape)])
    count = math.prod([x.shape[dim] for dim in dims])
    return P.reshape(P.div(P.reduce_sum(x, dims=dims), scalar(count, x)), shape=kept)


def _standardized(x: Tensor, dims: tuple[int, ...], eps: float) -> Tensor:
    centered = x - _mean(x, dims)
    return centered / P.sqrt(_mean(centered * centered, dims) + eps)


def _scaled(x: Tensor, like: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    """Return ``x * weight + bias``, rounded once, to the type of the input, even with parameters of a longer type."""
    scaled = x if weight is None else x * widen(weight)
    return to_dtype(scaled if bias is None else scaled + widen(bias), like.dtype)


def _check_shapes(name: str, input: Tensor, shape: Sequence[int], **parameters: Tensor | None) -> None:
    """Refuse weights and statistics that would be broadcast.

    Raises:
        ShapeError: ``MT201``.
    """
    for what, each in parameters.items():
        if each is not None and each.shape != tuple(shape):
            raise ShapeError(
                "MT201",
                f"{name}: {what} is {each.spec}, and not of shape {list(shape)}",
                why=f"it has one number for each place of {input.spec} that is normalized by itself",
                fix="make it for this many features",
            )


def _last_dims(
    input: Tensor, normalized_shape: int | Sequence[int], name: str, **parameters: Tensor | None
) -> tuple[int, ...]:
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape or input.shape[-len(shape) :] != shape:
        raise ShapeError(
            "MT201",
            f"{name}: {input.spec} does not end in the normalized shape {list(shape)}",
            why="the last dimensions are normalized together, and the weight has their shape",
            fix="normalize over input.shape[-1:], or move the dimension that you mean to the end",
        )
    _check_shapes(name, input, shape, **parameters)
    return tuple(range(input.ndim - len(shape), input.ndim))


def layer_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize to mean 0, variance 1 over the last dimensions, then ``* weight + bias`` (Ba et al., arXiv:1607.06450).

    Args:
        input: a float tensor whose shape ends in `normalized_shape`.
        normalized_shape: the dimensions to normalize over.
        weight: of that shape.
        bias: of that shape.
        eps: added to the variance.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.layer_norm(mt.tensor([[1.0, 2.0, 3.0]]), (3,))
        tensor([[-1.2247,  0.0000,  1.2247]])
    """
    dims = _last_dims(input, normalized_shape, "layer_norm", weight=weight, bias=bias)
    return _scaled(_standardized(widen(input), dims, eps), input, weight, bias)


def rms_norm(
    input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Normalize to mean square 1 over the last dimensions, then ``* weight`` (Zhang and Sennrich, arXiv:1910.07467).

    Args:
        input: a float tensor whose shape ends in `normalized_shape`.
        normalized_shape: the dimensions to normalize over.
        weight: of that shape.
        eps: added to the mean square; by default the distance from 1 to the next float of the type.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.rms_norm(mt.tensor([3.0, 4.0]), (2,))
        tensor([0.8485, 1.1314])
    """
    dims = _last_dims(input, normalized_shape, "rms_norm", weight=weight)
    require_float(input, "rms_norm")
    if eps is None:
        eps = _EPSILON[input.dtype.name]
    x = widen(input)
    return _scaled(x / P.sqrt(_mean(x * x, dims) + eps), input, weight, None)


# The distance from 1 to the next number. PyTorch computes 16-bit types in float32, whose eps it then takes.
_EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-23, "bfloat16": 2.0**-23}


def _per_channel(x: Tensor, ndim: int) -> Tensor:
    """Shape one number per channel to go with [batch, channels, ...]."""
    return P.reshape(x, shape=(1, x.numel()) + (1,) * (ndim - 2))


def _channel_parameters(ndim: int, *parameters: Tensor | None) -> tuple[Tensor | None, ...]:
    return tuple([None if each is None else _per_channel(each, ndim) for each in parameters])


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Apply `layer_norm` to groups of channels, with one weight and bias per channel (Wu and He, arXiv:1803.08494).

    Raises:
        ShapeError: if the groups do not divide the channels, or weight or bias is not [channels] (``MT201``).
        ValueError: if there is one value per group in all.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.group_norm(mt.tensor([[1.0, 3.0, 10.0, 30.0]]), 2)
        tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    if input.ndim < 2:
        raise ShapeError("MT201", f"group_norm: {input.spec} has no dimensions of the batch and of channels")
    batch, channels = input.shape[:2]
    if num_groups < 1:
        raise ValueError(f"group_norm: num_groups is 1 or more, not {num_groups}")
    if channels % num_groups:
        raise ShapeError("MT201", f"group_norm: {channels} channels do not divide into {num_groups} groups")
    _check_shapes("group_norm", input, (channels,), weight=weight, bias=bias)
    if math.prod((batch, *input.shape[2:])) * (channels // num_groups) == 1:
        raise ValueError(f"group_norm: {input.spec} has not more than one value per group, and so no variance")
    size = math.prod((channels, *input.shape[2:])) // num_groups
    grouped = P.reshape(input, shape=(batch, num_groups, size))
    normal = P.reshape(_standardized(widen(grouped), (2,), eps), shape=input.shape)
    return _scaled(normal, input, *_channel_parameters(input.ndim, weight, bias))


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize every channel to mean 0, variance 1, then ``* weight + bias`` (Ioffe and Szegedy, arXiv:1502.03167).

    Args:
        input: [batch, channels, ...].
        running_mean: [channels]; used as the mean if not training, and written in place if training.
        running_var: [channels]; likewise, the variance.
        weight: [channels].
        bias: [channels].
        training: whether the statistics are the batch's own.
        momentum: the share of the batch in the new running statistics.
        eps: added to the variance.

    As in PyTorch, the batch is divided by its own (biased) variance, and the unbiased one goes into `running_var`.

    In 16 bits, statistics are in float32, and the result is rounded once. In training PyTorch rounds them to the type
    of the weights, so with weights in 16 bits, its results are off by more than half a unit in the last place.

    Raises:
        ValueError: in training, if there is only one value per channel.

    Example:
        >>> import minitorch as mt
        >>> mean, var = mt.zeros(1), mt.ones(1)
        >>> mt.nn.functional.batch_norm(mt.tensor([[1.0], [3.0]]), mean, var, training=True)
        tensor([[-1.0000],
                [ 1.0000]])
        >>> mean, var
        (tensor([0.2000]), tensor([1.1000]))
    """
    given = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    _check_shapes("batch_norm", input, input.shape[1:2], **given)
    x = widen(input)
    if training:
        count = _values_per_channel(input)
        dims = (0, *range(2, input.ndim))
        mean = _mean(x, dims)
        centered = x - mean
        var = _mean(centered * centered, dims)
        if count:  # an empty batch says nothing of the mean
            _update(running_mean, mean, momentum)
            _update(running_var, var, momentum, count / (count - 1))
    elif running_mean is None or running_var is None:
        raise ValueError("batch_norm without running_mean and running_var needs training=True")
    else:
        centered = x - _per_channel(widen(running_mean), input.ndim)
        var = _per_channel(widen(running_var), input.ndim)
    return _scaled(centered / P.sqrt(var + eps), input, *_channel_parameters(input.ndim, weight, bias))


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Apply `batch_norm` to every sample by itself (Ulyanov et al., arXiv:1607.08022).

    Args:
        input: [batch, channels, ...].
        running_mean, running_var: [channels]; moved towards the means over the batch, or else used.
        weight, bias: [channels].
        use_input_stats: whether the statistics are those of each sample.
        momentum: the share of the batch in the new running statistics.
        eps: added to the variance.

    Raises:
        ValueError: if there is only one value per channel.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.instance_norm(mt.tensor([[[1.0, 3.0], [10.0, 30.0]]]))
        tensor([[[-1.0000,  1.0000],
                 [-1.0000,  1.0000]]])
    """
    if input.ndim < 3:
        raise ShapeError("MT201", f"instance_norm: {input.spec} is not [batch, channels, ...]")
    batch, channels = input.shape[:2]
    given = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    _check_shapes("instance_norm", input, (channels,), **given)
    mean, var, scale, shift = [
        None if each is None else P.reshape(P.expand(each, shape=(batch, channels)), shape=(batch * channels,))
        for each in given.values()
    ]
    rows = P.reshape(input, shape=(1, batch * channels, *input.shape[2:]))
    result = batch_norm(rows, mean, var, scale, shift, use_input_stats, momentum, eps)
    for running, new in ((running_mean, mean), (running_var, var)) if use_input_stats else ():
        if running is not None and new is not None:
            _update(running, _mean(P.reshape(new, shape=(batch, channels)), (0,)), 1.0)
    return P.reshape(result, shape=input.shape)


@widened
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Divide by ``(k + alpha * mean)**beta``, the mean being of the squares of `size` neighbouring channels.

    From Krizhevsky et al., "ImageNet classification with deep convolutional neural networks" (2012), section 3.3.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.local_response_norm(mt.ones(1, 3, 1), 3, alpha=3.0, beta=1.0).flatten()
        tensor([0.3333, 0.2500, 0.3333])
    """
    if input.ndim < 3:
        raise ShapeError("MT201", f"local_response_norm: {input.spec} is not [batch, channels, ...]")
    if whole("local_response_norm: size", size) < 1:
        raise ValueError(f"local_response_norm: size is 1 or more, not {size}")
    ends = ((0, 0, 0), (size // 2, (size - 1) // 2, 0), *((0, 0, 0),) * (input.ndim - 2))
    near = P.unfold(P.pad(input * input, padding=ends, value=0), dim=1, size=size, step=1, dilation=1)
    mean = P.reduce_sum(near, dims=(input.ndim,)) / size
    return input / (mean * alpha + k) ** beta


def _values_per_channel(input: Tensor) -> int:
    count = math.prod((input.shape[0], *input.shape[2:])) if input.ndim > 1 else 1
    if count == 1:
        raise ValueError(
            f"batch_norm: {input.spec} has not more than one value per channel (dimension 1), and so no variance to "
            "divide by; use a larger batch, or evaluation mode (module.eval())"
        )
    return count


def _update(running: Tensor | None, batch: Tensor, momentum: float | Tensor, factor: float = 1.0) -> None:
    """Move a running statistic towards that of the batch, in place."""
    if running is not None:
        with no_grad():
            new = P.reshape(batch, shape=running.shape) * factor
            assign(running, running + (new - running) * momentum, "the update of a running statistic")


def _divided_by_length(x: Tensor, dim: int, eps: float) -> Tensor:
    """Divide by the Euclidean length along a dimension, at least eps; limited inside the root, for a finite slope."""
    squares = sum_(x * x, dim=dim, keepdim=True)
    return x / P.sqrt(P.maximum(squares, scalar(eps * eps, squares)))


_normalized = widened(_divided_by_length)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Scale to length 1 along a dimension, in the p-norm; a vector shorter than `eps` is divided by `eps`.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.normalize(mt.tensor([[3.0, 4.0]]))
        tensor([[0.6000, 0.8000]])
    """
    if p == 2:
        return _normalized(input, dim, eps)
    return input / clamp(norm(input, p, dim, keepdim=True), min=eps)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between vectors along a dimension, each taken to be at least `eps` long.

    The dimension is one of the shape that both broadcast to.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.cosine_similarity(mt.tensor([[1.0, 0.0]]), mt.tensor([[1.0, 1.0]]))
        tensor([0.7071])
    """
    return _cosine(*broadcast_tensors(*promote(x1, x2)), dim, eps)


@widened
def _cosine(a: Tensor, b: Tensor, dim: int, eps: float) -> Tensor:
    return sum_(_divided_by_length(a, dim, eps) * _divided_by_length(b, dim, eps), dim=dim)


def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """Zero each element with probability `p`, and divide the others by ``1 - p`` (Srivastava et al., JMLR 15, 2014).

    Args:
        input: a float tensor.
        p: the probability, from 0 to 1.
        training: if False, the input is returned as it is.

    Raises:
        TypeError: if `p` is not a number.
        ValueError: if it is outside of [0, 1].

    The draws come from the default generator (`minitorch.manual_seed`), also in a graph.

    Example:
        >>> import minitorch as mt
        >>> _ = mt.manual_seed(0)
        >>> sorted(set(mt.nn.functional.dropout(mt.ones(100), 0.75).tolist()))
        [0.0, 4.0]
    """
    return _dropped("dropout", input, p, training, input.shape)


def _dropout(ndim: int) -> Callable[..., Tensor]:
    name = f"dropout{ndim}d"

    @member(name, lengths=", 2" * ndim)
    def dropout(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
        """Zero whole channels of [batch, channels, ...] or [channels, ...] with probability `p`, as `dropout` elements.

        From Tompson et al., arXiv:1411.4280.

        Example:
            >>> import minitorch as mt
            >>> mt.nn.functional.{name}(mt.ones(3, 4{lengths}), 0.75).flatten(2).var(-1).sum()
            tensor(0.)
        """
        if input.ndim not in (ndim + 1, ndim + 2):
            raise ShapeError("MT201", f"{name}: {input.spec} is not [batch, channels, ...] with {ndim} dimensions more")
        # As in PyTorch, [channels, height, width] is taken for [batch, channels, length].
        channels = input.ndim - ndim if (ndim, input.ndim) != (2, 3) else 2
        return _dropped(name, input, p, training, (*input.shape[:channels], *(1,) * (input.ndim - channels)))

    return dropout


dropout1d, dropout2d = _dropout(1), _dropout(2)


def _dropped(name: str, input: Tensor, p: float, training: bool, shape: Sequence[int]) -> Tensor:
    """Drop by draws of a shape that is broadcast to the input's."""
    p = probability(f"{name}: p", p)
    if not training or equals(p, 0):
        return input
    if equals(p, 1):
        return input * 0
    kept = P.less_equal(scalar(p, draws := rand(shape)), draws)  # a draw is below p with probability p
    return P.where(kept, input * (1 / (1 - p)), scalar(0, input))
