"""Losses of margins, distances and likelihoods: each is a formula, reduced as those in `losses` are.

Formulas and edge cases are PyTorch's (``aten/src/ATen/native/Loss.cpp``).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ... import primitives as P
from ...errors import ShapeError
from ...functional.movement.selection import minimum
from ...functional.operands import to_dtype
from ...functional.options import checked, real, require_float
from ...functional.reducing.reductions import norm
from ...primitives.elementwise import scalar
from ...tensor import Tensor
from .activations import log_sigmoid
from .lookup import class_numbers
from .losses import reduced, same_shape

Distance = Callable[[Tensor, Tensor], Tensor]


def _positive(x: Tensor) -> Tensor:
    return x.clamp(min=0)


def _where(target: Tensor, value: int, loss: Tensor, negated: bool = False) -> Tensor:
    """Return the loss where the target is a value, or is not; 0 elsewhere."""
    chosen = target.ne(value) if negated else target.eq(value)
    return P.where(chosen, loss, scalar(0, loss))


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Return the p-norm of ``x1 - x2 + eps`` along the last dimension.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.pairwise_distance(mt.tensor([[0.0, 0.0]]), mt.tensor([[3.0, 4.0]]))
        tensor([5.0000])
    """
    return norm(x1 - x2 + eps, p, -1, keepdim)


# Of distances and signs -----------------------------------------------------------------------------------


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Return ``max(0, -target * (input1 - input2) + margin)``: 0 where the larger input is the one that target says.

    Args:
        input1, input2: scores.
        target: 1 where the first has to be larger, -1 where the second has.
        margin: by how much.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Example:
        >>> import minitorch as mt
        >>> x, y = mt.tensor([3.0, 1.0]), mt.tensor([1.0, 2.0])
        >>> mt.nn.functional.margin_ranking_loss(x, y, mt.tensor([1, 1]), reduction="none")
        tensor([0., 1.])
    """
    if not input1.ndim == input2.ndim == target.ndim:
        raise ShapeError(
            "MT201", f"margin_ranking_loss: {input1.spec}, {input2.spec} and {target.spec} differ in dimensions"
        )
    return reduced(_positive(-target * (input1 - input2) + margin), reduction)


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """Return a distance where the target is 1, and ``max(0, margin - input)`` where it is -1.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.hinge_embedding_loss(mt.tensor([0.5, 0.25]), mt.tensor([1, -1]), reduction="none")
        tensor([0.5000, 0.7500])
    """
    far = _where(target, 1, _positive(margin - input), negated=True)
    return reduced(far + _where(target, -1, input, negated=True), reduction)


def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Return ``log(1 + e**(-target * input))``, for targets 1 and -1.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.soft_margin_loss(mt.tensor([0.0, 2.0]), mt.tensor([1.0, -1.0]), reduction="none")
        tensor([0.6931, 2.1269])
    """
    require_float(input, "soft_margin_loss")
    same_shape(input, target, "soft_margin_loss")
    return reduced(-log_sigmoid(to_dtype(target, input.dtype) * input), reduction)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """Return ``1 - cosine`` of two vectors where the target is 1, and ``max(0, cosine - margin)`` where it is -1.

    Args:
        input1, input2: [batch, features] or [features].
        target: [batch] or [].
        margin: the cosine up to which vectors count as different.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Example:
        >>> import minitorch as mt
        >>> x, y = mt.tensor([[1.0, 0.0], [1.0, 0.0]]), mt.tensor([[0.0, 1.0], [1.0, 0.0]])
        >>> mt.nn.functional.cosine_embedding_loss(x, y, mt.tensor([1, -1]), reduction="none")
        tensor([1., 1.])
    """
    if target.ndim > 1 or not input1.ndim == input2.ndim == target.ndim + 1:
        raise ShapeError("MT201", f"cosine_embedding_loss: {input1.spec}, {input2.spec} and {target.spec} do not fit")
    squares = ((input1 * input1).sum(-1) + 1e-12) * ((input2 * input2).sum(-1) + 1e-12)
    cosine = (input1 * input2).sum(-1) / squares.sqrt()
    return reduced(_where(target, 1, 1 - cosine) + _where(target, -1, _positive(cosine - margin)), reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return ``max(0, |anchor - positive| - |anchor - negative| + margin)`` (Balntas et al., BMVC 2016).

    Args:
        anchor, positive, negative: [..., features].
        margin: how much farther the negative has to be.
        p, eps: as in `pairwise_distance`.
        swap: whether the negative's distance is that from the positive where this is less.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor([[0.0, 0.0]])
        >>> mt.nn.functional.triplet_margin_loss(x, x + 1, x + 2)
        tensor(0.)
    """

    def distance(x: Tensor, y: Tensor) -> Tensor:
        return pairwise_distance(x, y, p, eps)

    return _triplet(anchor, positive, negative, distance, margin, swap, reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Distance | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return `triplet_margin_loss` for any function of two tensors that is a distance.

    Example:
        >>> import minitorch as mt
        >>> x, far = mt.tensor([[0.0, 0.0]]), lambda x, y: (x - y).abs().amax(-1)
        >>> mt.nn.functional.triplet_margin_with_distance_loss(x, x + 1, x + 1.5, distance_function=far)
        tensor(0.5000)
    """
    return _triplet(anchor, positive, negative, distance_function or pairwise_distance, margin, swap, reduction)


def _triplet(
    anchor: Tensor, positive: Tensor, negative: Tensor, distance: Distance, margin: float, swap: bool, reduction: str
) -> Tensor:
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ShapeError(
            "MT201", f"triplet_margin_loss: {anchor.spec}, {positive.spec} and {negative.spec} differ in dimensions"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduced(_positive(near - far + margin), reduction)


# Of several labels ----------------------------------------------------------------------------------------


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Return the mean over the classes of `binary_cross_entropy_with_logits`.

    Args:
        input: scores, [..., classes].
        target: of the same shape, 1 for the labels that hold and 0 for others.
        weight: the weight of each class.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.multilabel_soft_margin_loss(mt.zeros(1, 2), mt.tensor([[1.0, 0.0]]))
        tensor(0.6931)
    """
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    loss = loss if weight is None else loss * weight
    return reduced(loss.sum(-1) / input.shape[-1], reduction)


def _rows(input: Tensor, target: Tensor, ndim: int, name: str) -> None:
    if not 1 <= input.ndim <= 2 or (target.shape != input.shape[:ndim] and input.ndim == 2):
        raise ShapeError("MT201", f"{name}: the input is {input.spec}, the target {target.spec}")


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean over the other classes i of ``max(0, margin - x[target] + x[i]) ** p``.

    Args:
        input: scores, [batch, classes] or [classes].
        target: class numbers, [batch] or [].
        p: 1 or 2.
        margin: by how much the right class has to lead.
        weight: the weight of each class, for the samples of it.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.multi_margin_loss(mt.tensor([[0.0, 0.5, 2.0]]), mt.tensor([1]))
        tensor(1.)
    """
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss: p is 1 or 2, not {p}")
    _rows(input, target, 1, "multi_margin_loss")
    classes, target = input.shape[-1], class_numbers(target, "multi_margin_loss")
    place = checked("multi_margin_loss: the target", target, 0, classes - 1, "IndexError").reshape(*input.shape[:-1], 1)
    right = P.iota(size=classes, dtype=target.dtype).eq(place)
    lacking = _positive(margin - input.gather(-1, place) + input)
    loss = lacking * lacking if p == 2 else lacking
    loss = loss if weight is None else loss * weight[place]
    return reduced(P.where(right, scalar(0, loss), loss).sum(-1) / classes, reduction)


def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Return the sum over the classes i that are no label, and labels j, of ``max(0, 1 - x[j] + x[i]) / classes``.

    Args:
        input: scores, [batch, classes] or [classes].
        target: of the same shape, int64: class numbers, of which those before the first -1 count.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Example:
        >>> import minitorch as mt
        >>> x, labels = mt.tensor([0.1, 0.2, 0.4, 0.8]), mt.tensor([3, 0, -1, 1])
        >>> mt.nn.functional.multilabel_margin_loss(x, labels)
        tensor(0.8500)
    """
    _rows(input, target, 2, "multilabel_margin_loss")
    classes, target = input.shape[-1], class_numbers(target, "multilabel_margin_loss")
    target = checked("multilabel_margin_loss: the target", target, -1, classes - 1, "IndexError")
    counts = target.ge(0).long().cumprod(-1).bool()
    place = P.where(counts, target, scalar(0, target))
    is_label = (place.unsqueeze(-1).eq(P.iota(size=classes, dtype=target.dtype)) & counts.unsqueeze(-1)).any(-2)
    lacking = _positive(1 - input.gather(-1, place).unsqueeze(-1) + input.unsqueeze(-2))
    pairs = counts.unsqueeze(-1) & ~is_label.unsqueeze(-2)
    return reduced(P.where(pairs, lacking, scalar(0, lacking)).sum((-2, -1)) / classes, reduction)


# Of likelihoods -------------------------------------------------------------------------------------------


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the log-likelihood of counts under Poisson distributions, without ``log(target!)``.

    Args:
        input: the expected counts, or their logarithms.
        target: the counts.
        log_input: whether the input is logarithms.
        full: whether Stirling's approximation of ``log(target!)`` is added, for counts above 1.
        eps: added to the input before its logarithm is taken.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.poisson_nll_loss(mt.tensor([0.0, 1.0]), mt.tensor([1.0, 2.0]), reduction="none")
        tensor([1.0000, 0.7183])
    """
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + (target * (2 * math.pi)).log() * 0.5
        loss = loss + to_dtype(P.where(target.le(1), scalar(0, stirling), stirling), loss.dtype)
    return reduced(loss, reduction)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the log-likelihood of numbers under normal distributions (Nix and Weigend, ICNN 1994).

    Args:
        input: the means.
        target: the numbers.
        var: the variances: of the shape of the input, or with the last dimension left out or of length 1; or one.
        full: whether the constant ``log(2 pi) / 2`` is added.
        eps: the least variance; the gradient passes as if there were no bound.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        ShapeError: if the shapes do not fit (``MT201``).
        ValueError: for a negative variance.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.gaussian_nll_loss(mt.tensor([0.0]), mt.tensor([2.0]), mt.tensor([4.0]))
        tensor(1.1931)
    """
    if not isinstance(var, Tensor):
        var = P.expand(scalar(real("gaussian_nll_loss: var", var), input), shape=input.shape)
    if var.shape == input.shape[:-1] and input.ndim:
        var = var.unsqueeze(-1)
    if var.ndim != input.ndim or any(
        mine not in (1, theirs) for mine, theirs in zip(var.shape, input.shape, strict=True)
    ):
        raise ShapeError("MT201", f"gaussian_nll_loss: the input is {input.spec}, the variance {var.spec}")
    var = checked("gaussian_nll_loss: var", var, 0, math.inf)
    var = var + (eps - var.detach()).clamp(min=0)
    difference = input - target
    loss = (var.log() + difference * difference / var) * 0.5
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)
