"""Losses of classifiers: the probability that a prediction gave to the right class."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ... import primitives as P
from ...dtypes import int64
from ...errors import ShapeError
from ...functional.movement.arranging import pad, stack
from ...functional.operands import from_array, to_dtype, widen
from ...functional.options import checked, equals, is_traced
from ...functional.reducing.reductions import log_softmax
from ...interpreters import concrete, handled
from ...primitives.elementwise import scalar
from ...tensor import Tensor
from .lookup import class_numbers
from .losses import reduced, same_shape, sum_of


def _class_dim(input: Tensor, name: str) -> int:
    if not input.ndim:
        raise ShapeError("MT201", f"{name}: the input is {input.spec}; it needs a dimension of classes")
    return 0 if input.ndim == 1 else 1


def _classes_last(x: Tensor, dim: int) -> Tensor:
    if dim == x.ndim - 1:
        return x
    return P.permute(x, dims=(*range(dim), *range(dim + 1, x.ndim), dim))


def _check_target(input: Tensor, target: Tensor, dim: int, name: str) -> None:
    wanted = (*input.shape[:dim], *input.shape[dim + 1 :])
    if target.shape != wanted:
        raise ShapeError(
            "MT201",
            f"{name}: the input is {input.spec}, the target {target.spec}",
            why=f"dimension {dim} of the input has one number per class, so the target has the shape {list(wanted)}",
            fix="give one class number per prediction (or, to cross_entropy, one probability per class)",
        )


def _check_weight(input: Tensor, weight: Tensor | None, dim: int, name: str) -> None:
    count = input.shape[dim]
    if weight is not None and weight.shape != (count,):
        raise ShapeError(
            "MT201",
            f"{name}: the weight is {weight.spec}, and the input {input.spec} has {count} classes",
            why=f"dimension {dim} of the input has one number per class, and so has the weight",
            fix=f"give a weight of the shape [{count}]",
        )


def _picked(x: Tensor, classes: Tensor) -> Tensor:
    """Return, of [..., classes], the element at a class number [...]."""
    shape, count = classes.shape, classes.numel()
    if classes.ndim != 1:
        x, classes = P.reshape(x, shape=(count, x.shape[-1])), P.reshape(classes, shape=(count,))
    picked = P.gather(x, P.iota(size=count, dtype=classes.dtype), classes)
    return picked if picked.shape == shape else P.reshape(picked, shape=shape)


@handled
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the log-probability of the right class.

    Args:
        input: log-probabilities, [batch, classes, ...] or [classes].
        target: class numbers, [batch, ...] or [].
        weight: the weight of each class, [classes]; a mean is divided by the sum of the weights.
        ignore_index: a class number that does not count.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
        IndexError: if there is no such class.
        ShapeError: if the shapes do not fit (``MT201``).

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.nll_loss(mt.tensor([[-1.0, -2.0], [-3.0, -4.0]]), mt.tensor([1, 0]))
        tensor(2.5000)
    """
    return _of_classes(input, target, weight, ignore_index, reduction, 0.0, "nll_loss")


def _of_classes(
    log_p: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
    name: str,
) -> Tensor:
    dim = _class_dim(log_p, name)
    _check_target(log_p, target, dim, name)
    _check_weight(log_p, weight, dim, name)
    target = class_numbers(target, name)
    log_p = _classes_last(log_p, dim)
    ignored = P.equal(target, scalar(ignore_index, target))
    zero = scalar(0, log_p)
    classes = P.where(ignored, scalar(0, target), target)
    classes = checked(f"{name}: the target", classes, 0, log_p.shape[-1] - 1, "IndexError")
    counts = P.where(ignored, zero, scalar(1, log_p))
    if weight is not None:
        counts = P.where(ignored, zero, P.gather(weight, classes))
    loss = P.neg(_picked(log_p, classes))
    loss = P.where(ignored, zero, loss if weight is None else loss * counts)
    if not equals(label_smoothing, 0):
        spread = P.neg(P.reduce_sum(log_p if weight is None else log_p * weight, dims=(log_p.ndim - 1,)))
        spread = P.where(ignored, zero, spread)
        loss = loss * (1 - label_smoothing) + spread * _share(label_smoothing, log_p.shape[-1])
    return reduced(loss, reduction, sum_of(counts) if reduction == "mean" else None)


def _share(label_smoothing: float, classes: int) -> float:
    """Return each class's share of the target; it is infinite if there are no classes, as in PyTorch."""
    return label_smoothing / classes if classes else math.inf


@handled
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return minus the log-probability of the right class, from scores: `log_softmax`, then `nll_loss`.

    Args:
        input: scores, [batch, classes, ...] or [classes].
        target: class numbers, [batch, ...] or []; or a probability for each class, of the shape of the input.
        weight: the weight of each class, [classes].
        ignore_index: a class number that does not count.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``; the mean is over the batch, weighted by `weight`.
        label_smoothing: the share of the target that is spread over all classes (Szegedy et al., arXiv:1512.00567).

    Raises:
        IndexError: if there is no such class.
        ShapeError: if the shapes do not fit (``MT201``).

    Example:
        >>> import minitorch as mt
        >>> mt.nn.functional.cross_entropy(mt.tensor([[0.0, 0.0], [0.0, 100.0]]), mt.tensor([0, 1]))
        tensor(0.3466)
    """
    if not is_traced(label_smoothing) and not 0 <= label_smoothing <= 1:
        raise ValueError(f"cross_entropy: label_smoothing is from 0 to 1, not {label_smoothing}")
    dim = _class_dim(input, "cross_entropy")
    log_p = log_softmax(input, dim)
    if not target.dtype.is_floating_point:
        return _of_classes(log_p, target, weight, ignore_index, reduction, label_smoothing, "cross_entropy")
    _check_weight(input, weight, dim, "cross_entropy")
    log_p, target = same_shape(log_p, target, "cross_entropy with probabilities")
    if not equals(label_smoothing, 0):
        target = target * (1 - label_smoothing) + _share(label_smoothing, log_p.shape[dim])
    loss = _classes_last(log_p * target, dim)
    loss = P.neg(P.reduce_sum(loss if weight is None else loss * weight, dims=(loss.ndim - 1,)))
    return reduced(loss, reduction, count=loss.numel())


# Of sequences whose alignment is not known ----------------------------------------------------------------

_IMPOSSIBLE = -1e30  # a logarithm of 0 that arithmetic, and its gradient, leave finite


def _lengths(given: Tensor | Sequence[int] | int, count: int, name: str) -> Tensor:
    found = given if isinstance(given, Tensor) else from_array(np.asarray(given, np.int64))
    found = class_numbers(found, f"ctc_loss: {name}").reshape(-1)
    if found.shape != (count,):
        raise ShapeError("MT201", f"ctc_loss: {name} are {found.spec}, for {count} sequences")
    return found


def _padded(targets: Tensor, lengths: Tensor) -> Tensor:
    """Return targets that lie one after another as rows of one length."""
    known = concrete(lengths, "ctc_loss with targets one after another", "MT103", "pad the targets: [batch, length]")
    places = (np.cumsum(known) - known)[:, None] + np.arange(known.max(initial=0) if targets.numel() else 0)
    return targets[from_array(np.minimum(places, targets.shape[0] - 1))]


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return minus the log-probability that a sequence of outputs spells the target, summed over all alignments.

    The forward algorithm of Graves et al., "Connectionist temporal classification" (ICML 2006), in logarithms. The
    gradient is that of this sum; PyTorch's has that of `log_softmax` in it, so it differs for `log_probs` that are not
    the result of one.

    Args:
        log_probs: [time, batch, classes] or [time, classes].
        targets: class numbers, [batch, length], or those of all sequences one after another.
        input_lengths, target_lengths: [batch]; the number of outputs and of class numbers of each sequence.
        blank: the class that stands for nothing.
        reduction: ``"mean"`` (each loss is divided by the length of its target), ``"sum"`` or ``"none"``.
        zero_infinity: whether a loss without an alignment is 0, and not infinite.

    Raises:
        ShapeError: if the shapes do not fit (``MT201``).

    Example:
        >>> import minitorch as mt
        >>> even = mt.zeros(3, 1, 2).log_softmax(-1)
        >>> mt.nn.functional.ctc_loss(even, mt.tensor([[1]]), [3], [1]).exp()
        tensor(1.3333)
    """
    x = widen(log_probs.unsqueeze(1) if log_probs.ndim == 2 else log_probs)
    if x.ndim != 3 or not x.shape[0]:
        raise ShapeError("MT201", f"ctc_loss: {log_probs.spec} is not [time, batch, classes]")
    time, batch, classes = x.shape
    ends, counts = _lengths(input_lengths, batch, "input_lengths"), _lengths(target_lengths, batch, "target_lengths")
    words = class_numbers(targets, "ctc_loss")
    if words.ndim == 1:
        words = words.unsqueeze(0) if batch == 1 else _padded(words, counts)
    if words.ndim != 2 or words.shape[0] != batch:
        raise ShapeError("MT201", f"ctc_loss: the targets are {targets.spec}, for {batch} sequences")
    length = words.shape[1]
    is_target = P.less(P.iota(size=length, dtype=int64), counts.unsqueeze(-1))
    words = checked(
        "ctc_loss: the targets", P.where(is_target, words, scalar(blank, words)), 0, classes - 1, "IndexError"
    )
    # States: a blank, the first target, a blank, the second target, ..., a blank.
    gaps = P.constant(value=blank, shape=(batch, length + 1), dtype=int64)
    states = P.concatenate(stack([gaps[:, :-1], words], -1).reshape(batch, 2 * length), gaps[:, :1], dim=1)
    skips = pad(states[:, 2:].ne(states[:, :-2]) & states[:, 2:].ne(blank), (2, 0)) if length else states.ne(states)
    emitted = x.gather(2, states.unsqueeze(0).expand(time, *states.shape))
    begin = P.equal(P.iota(size=2 * length + 1, dtype=int64), scalar(0, states))
    impossible = scalar(_IMPOSSIBLE, x)
    reached = P.where(begin, scalar(0, x), impossible).expand(batch, -1)  # ahead of the first output
    for at, each in enumerate(emitted.unbind(0)):
        before = [pad(reached, (by, 0), value=_IMPOSSIBLE)[:, : 2 * length + 1] for by in (0, 1, 2)]
        before[2] = P.where(skips, before[2], impossible)
        reached = P.where(ends.gt(at).unsqueeze(-1), stack(before).logsumexp(0) + each, reached)
    last = reached.gather(1, (counts * 2).unsqueeze(-1))
    other = reached.gather(1, (counts * 2 - 1).clamp(min=0).unsqueeze(-1))
    other = P.where(counts.gt(0).unsqueeze(-1), other, impossible)
    loss = -stack([last, other]).logsumexp(0).squeeze(-1)
    loss = P.where(loss.gt(-_IMPOSSIBLE / 2), scalar(0 if zero_infinity else math.inf, loss), loss)
    if reduction == "mean":
        loss = loss / to_dtype(counts.clamp(min=1), loss.dtype)
    return to_dtype(reduced(loss if log_probs.ndim == 3 else loss.squeeze(0), reduction), log_probs.dtype)
