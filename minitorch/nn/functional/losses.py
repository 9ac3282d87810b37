"""Losses: the distance of a prediction from its target, as one number to differentiate (or one per element).

Those of classifiers are in `minitorch.nn.functional.classification`.
All take ``reduction``: ``"mean"``, ``"sum"``, or ``"none"`` for a loss per element.
"""

from __future__ import annotations

from ... import primitives as P
from ...autograd import Context, Function
from ...errors import ShapeError
from ...functional.operands import like, promote_all
from ...functional.options import checked, is_traced
from ...functional.pointwise.compound import xlogy
from ...interpreters import handled
from ...ir import warn_user
from ...primitives.elementwise import scalar
from ...tensor import Tensor
from .activations import log_sigmoid


def sum_of(x: Tensor) -> Tensor:
    """Return the sum of all elements."""
    return P.reduce_sum(x, dims=tuple(range(x.ndim)))


def reduced(loss: Tensor, reduction: str, count: Tensor | int | None = None) -> Tensor:
    """Reduce a loss per element to one number; `count` is the divisor of a mean."""
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum"):
        raise ValueError(f'reduction is "mean", "sum" or "none", not {reduction!r}')
    total = sum_of(loss)
    if reduction == "sum":
        return total
    divisor = loss.numel() if count is None else count
    # Of nothing, the mean is 0/0 = NaN, as in PyTorch.
    return P.div(total, divisor if isinstance(divisor, Tensor) else scalar(divisor, total))


# Of numbers -----------------------------------------------------------------------------------------------


def _pair(input: Tensor, target: Tensor, name: str) -> tuple[Tensor, ...]:
    if input.shape != target.shape:
        warn_user(
            f"{name}: the input is {input.spec}, the target {target.spec}: they will be broadcast, which is rarely "
            "meant ([n, 1] and [n] give n x n differences). Give them one shape.",
            UserWarning,
        )
    return promote_all(input, target)


@handled
def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Return the squared difference.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.mse_loss(mt.tensor([1.0, 2.0]), mt.tensor([1.0, 5.0]))
        tensor(4.5000)
    """
    input, target = _pair(input, target, "mse_loss")
    difference = P.sub(input, target)
    return reduced(P.mul(difference, difference), reduction)


@handled
def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Return the absolute difference.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.l1_loss(mt.tensor([1.0, 2.0]), mt.tensor([1.0, 5.0]))
        tensor(1.5000)
    """
    input, target = _pair(input, target, "l1_loss")
    return reduced(P.absolute(P.sub(input, target)), reduction)


@handled
def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Return half of the squared difference up to `delta`, and a straight line of slope `delta` from there.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.huber_loss(mt.tensor([1.0, 2.0]), mt.tensor([1.5, 5.0]), reduction="none")
        tensor([0.1250, 2.5000])
    """
    input, target = _pair(input, target, "huber_loss")
    difference = P.absolute(P.sub(input, target))
    line = (difference - delta / 2) * delta
    near = P.bitwise_not(P.less_equal(scalar(delta, difference), difference))  # NaN is near, with the gradient NaN
    short = P.where(near, difference, scalar(0, difference))  # the square of an infinite one has no slope
    return reduced(P.where(near, short * short * 0.5, line), reduction)


@handled
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Return `huber_loss` divided by its `delta`: a line of slope 1, and a parabola up to `beta`.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.smooth_l1_loss(mt.tensor([1.0, 2.0]), mt.tensor([1.5, 5.0]), reduction="none")
        tensor([0.1250, 2.5000])
    """
    if is_traced(beta):
        width = like(beta, promote_all(input, target)[0])
        is_line = P.equal(width, scalar(0, width))
        safe = P.where(is_line, scalar(1, width), width)
        parabola = huber_loss(input, target, reduction, safe) / safe  # type: ignore[arg-type]
        return P.where(is_line, l1_loss(input, target, reduction), parabola)
    if beta == 0:
        return l1_loss(input, target, reduction)
    return huber_loss(input, target, reduction, beta) / beta


# Of probabilities -----------------------------------------------------------------------------------------


class BinaryCrossEntropy(Function):
    """Binary cross entropy with logarithms of at least -100; the gradient is PyTorch's, finite but large there."""

    @staticmethod
    def forward(ctx: Context, p: Tensor, target: Tensor) -> Tensor:
        """Return the loss per element."""
        limit = scalar(-100, p)
        hit, miss = P.maximum(P.log(p), limit), P.maximum(P.log1p(P.neg(p)), limit)
        ctx.save_for_backward(p, target)
        return -(target * hit + (1 - target) * miss)

    @staticmethod
    def backward(ctx: Context, *cotangents: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the cotangent times (p - target) / (p * (1 - p))."""
        p, target = ctx.saved_tensors
        (g,) = cotangents
        by_target = None
        if ctx.needs_input_grad[1]:
            by_target = g * (P.log1p(P.neg(p)) - P.log(p))
        return g * ((p - target) / P.maximum(p * (1 - p), scalar(1e-12, p))), by_target


@handled
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Return ``-(target * log(p) + (1 - target) * log(1 - p))`` for probabilities p; the logarithms are at least -100.

    With scores before a sigmoid, `binary_cross_entropy_with_logits` is exact where this one is at its limit.

    Raises:
        ValueError: if an element of the input or the target is outside of [0, 1].
        ShapeError: if the shapes differ (``MT201``).

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.binary_cross_entropy(mt.tensor([0.5, 0.0]), mt.tensor([1.0, 1.0]), reduction="none")
        tensor([  0.6931, 100.0000])
    """
    input, target = same_shape(input, target, "binary_cross_entropy")
    input = checked("binary_cross_entropy: the input", input, 0, 1)
    target = checked("binary_cross_entropy: the target", target, 0, 1)
    loss: Tensor = BinaryCrossEntropy.apply(input, target)
    return reduced(loss if weight is None else loss * weight, reduction)


def same_shape(input: Tensor, target: Tensor, name: str) -> tuple[Tensor, ...]:
    """Return input and target in one type.

    Raises:
        ShapeError: if their shapes differ (``MT201``).
    """
    if input.shape != target.shape:
        raise ShapeError(
            "MT201",
            f"{name}: the input is {input.spec}, the target {target.spec}",
            why="there is one target for each prediction",
            fix="give them one shape, e.g. input.squeeze(-1)",
        )
    return promote_all(input, target)


@handled
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return `binary_cross_entropy` of ``sigmoid(input)``, exact for scores of any size.

    Args:
        input: scores.
        target: probabilities, of the same shape.
        weight: the weight of each element.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        pos_weight: the weight of the positive part of the loss.

    Raises:
        ShapeError: if the shapes differ (``MT201``).

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.binary_cross_entropy_with_logits(mt.tensor([-500.0]), mt.tensor([1.0]))
        tensor(500.)
    """
    input, target = same_shape(input, target, "binary_cross_entropy_with_logits")
    missed = log_sigmoid(input) if pos_weight is None else log_sigmoid(input) * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * input - missed
    return reduced(loss if weight is None else loss * weight, reduction)


@handled
def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Return the Kullback-Leibler divergence ``target * (log(target) - input)`` of `target` from ``exp(input)``.

    Args:
        input: log-probabilities.
        target: probabilities; log-probabilities if `log_target`.
        reduction: as for all losses, or ``"batchmean"``: the sum divided by the first dimension.
        log_target: whether the target is log-probabilities.

    Example:
        >>> import minitorch as mt
        >>> p = mt.tensor([[0.5, 0.5]])
        >>> mt.nn.functional.kl_div(mt.tensor([[0.25, 0.75]]).log(), p, reduction="batchmean")
        tensor(0.1438)
    """
    input, target = _pair(input, target, "kl_div")
    if log_target:
        loss = P.exp(target) * (target - input)
    else:
        loss = xlogy(target, target) - target * input  # 0 * log(0) is 0 in information theory
    if reduction == "batchmean":
        return reduced(loss, "mean", count=input.shape[0])
    return reduced(loss, reduction)
