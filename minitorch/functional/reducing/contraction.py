"""`einsum`: products of tensors with named dimensions, summed over the names that the result does not have.

A labelled tensor is a tensor and a label for each dimension. `einsum` works thus: repeated labels become diagonals,
labels used by no other operand are summed away, and two tensors at a time become one (`contract`),
until one is left. `contract` sorts the labels of a pair into batch, free and summed ones, the form of the
primitive `dot`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
from itertools import combinations
from typing import Any

from ... import primitives as P
from ...errors import DTypeError, ShapeError
from ...interpreters import current_handler, handled
from ...tensor import Tensor
from ..movement.parts import diagonal
from ..operands import promote
from ..reducing.reductions import accumulated

__all__ = ["einsum"]

Label = Hashable
Labels = Sequence[Label]
Labelled = tuple[Tensor, list[Label]]


def _arranged(x: Tensor, labels: Labels, *groups: Labels, joined: bool) -> Tensor:
    """Return the dimensions ordered by groups of labels; each group but the first becomes one dimension if they are
    `joined`.
    """
    order = tuple(labels.index(label) for group in groups for label in group)
    x = x if order == tuple(range(x.ndim)) else P.permute(x, dims=order)
    if not joined:
        return x
    lengths = iter(x.shape)
    batch = tuple([next(lengths) for _ in groups[0]])
    shape = batch + tuple(math.prod([next(lengths) for _ in group]) for group in groups[1:])
    return x if shape == x.shape else P.reshape(x, shape=shape)


def _summed(x: Tensor, labels: Labels, keep: Collection[Label]) -> Labelled:
    """Sum over the labels that are not kept."""
    dims = tuple(dim for dim, label in enumerate(labels) if label not in keep)
    return (P.reduce_sum(x, dims=dims) if dims else x), [label for label in labels if label in keep]


def check_types(name: str, *tensors: Tensor) -> None:
    """Refuse operands of different types: products do not promote, as in PyTorch.

    Raises:
        DTypeError: ``MT202``.
    """
    if any(tensor.dtype is not tensors[0].dtype for tensor in tensors):
        raise DTypeError(
            "MT202",
            f"{name}: {' and '.join(str(tensor.spec) for tensor in tensors)} have different types",
            why="a product is the costly operation of a program; a silent conversion would hide a mistake",
            fix="convert one of them, e.g. a @ b.to(a.dtype)",
        )


@handled
def _dot(a: Tensor, b: Tensor) -> Tensor:
    check_types("a product", a, b)
    return P.dot(a, b, dtype=a.dtype)


def contract(a: Tensor, of_a: Labels, b: Tensor, of_b: Labels, keep: Collection[Label]) -> Labelled:
    """Return the product of two tensors, summed over all labels that are not kept.

    Args:
        a: the first tensor.
        of_a: its labels, each once.
        b: the second tensor.
        of_b: its labels; where they are those of `a`, so are the lengths.
        keep: the labels that are needed afterwards.

    Returns:
        The product and its labels: batch labels (of both), free ones of `a`, free ones of `b`.
    """
    a, of_a = _summed(a, of_a, {*keep, *of_b})
    b, of_b = _summed(b, of_b, {*keep, *of_a})
    batch = [label for label in of_a if label in of_b and label in keep]
    summed = [label for label in of_a if label in of_b and label not in keep]
    free_a = [label for label in of_a if label not in of_b]
    free_b = [label for label in of_b if label not in of_a]
    labels = [*batch, *free_a, *free_b]
    if not summed:  # nothing is added up: an elementwise product
        left = _arranged(a, of_a, batch, free_a, joined=False)
        right = _arranged(b, of_b, batch, free_b, joined=False)
        split = len(batch)
        left = P.reshape(left, shape=left.shape + (1,) * len(free_b)) if free_b else left
        right_shape = right.shape[:split] + (1,) * len(free_a) + right.shape[split:]
        return P.mul(*promote(left, P.reshape(right, shape=right_shape) if free_a else right)), labels
    length = dict(zip((*of_a, *of_b), (*a.shape, *b.shape), strict=True))
    left = _arranged(a, of_a, batch, free_a, summed, joined=True)
    right = _arranged(b, of_b, batch, summed, free_b, joined=True)
    product = _dot(left, right)
    shape = tuple(length[label] for label in labels)
    return (product if product.shape == shape else P.reshape(product, shape=shape)), labels


# Reading an equation --------------------------------------------------------------------------------------


def _bad(equation: str, why: str) -> ValueError:
    return ValueError(f"einsum: {equation!r}: {why}")


def _labels(equation: str, term: str, ndim: int | None) -> list[Label]:
    """Return the labels of a term such as ``"b...ij"``; the dimensions of ``...`` are numbered from the last one
    backwards.
    """
    if term.count(".") not in (0, 3) or (term.count(".") == 3 and "..." not in term):
        raise _bad(equation, f"the dots in {term!r} are not ...")
    before, dots, after = term.partition("...")
    names = before + after
    if not all(name.isalpha() and name.isascii() for name in names):
        raise _bad(equation, f"{term!r} has something else than letters and ...")
    if ndim is None:
        return [*before, *(["..."] if dots else []), *after]
    hidden = ndim - len(names)
    if hidden < 0 or (hidden and not dots):
        raise _bad(equation, f"{term!r} names {len(names)} dimensions of a tensor of {ndim}")
    return [*before, *range(hidden, 0, -1), *after]


def _read(equation: str, ndims: Sequence[int]) -> tuple[list[list[Label]], list[Label]]:
    """Return the labels of each operand, and those of the result."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ndims):
        raise _bad(equation, f"{len(terms)} terms for {len(ndims)} tensors")
    inputs = [_labels(equation, term, ndim) for term, ndim in zip(terms, ndims, strict=True)]
    every = [label for labels in inputs for label in labels]
    hidden: list[Label] = [*range(max((label for label in every if isinstance(label, int)), default=0), 0, -1)]
    if arrow:
        named = _labels(equation, right, None)
        if "..." not in named:
            hidden = []
    else:  # the names that occur once, in alphabetical order, after the dimensions of ...
        named = [
            "...",
            *sorted(str(name) for name in set(every) if isinstance(name, str) and every.count(name) == 1),
        ]
    at = named.index("...") if "..." in named else 0
    output = [*named[:at], *hidden, *named[at + ("..." in named) :]]
    if len(set(output)) != len(output) or not set(output) <= set(every):
        raise _bad(equation, "the result names a dimension twice, or one that no operand has")
    return inputs, output


def _lengths(equation: str, tensors: Sequence[Tensor], inputs: list[list[Label]]) -> dict[Label, int]:
    length: dict[Label, int] = {}
    for tensor, labels in zip(tensors, inputs, strict=True):
        for label, mine in zip(labels, tensor.shape, strict=True):
            known = length.get(label, 1)
            if known != mine and 1 not in (known, mine):
                name = f"dimension {label!r}" if isinstance(label, str) else "a dimension of ..."
                raise ShapeError(
                    "MT201",
                    f"einsum: {equation!r} with {' and '.join(str(each.spec) for each in tensors)}",
                    why=f"{name} has the lengths {known} and {mine}",
                    fix="give equal names to equal lengths only",
                )
            length[label] = mine if known == 1 else known
    return length


def _cleaned(x: Tensor, labels: list[Label], length: dict[Label, int]) -> Labelled:
    """Return each label once (a repeated one is a diagonal), without those of length 1 where another operand has
    more.
    """
    while len(set(labels)) < len(labels):
        label = next(label for label in labels if labels.count(label) > 1)
        first = labels.index(label)
        second = labels.index(label, first + 1)
        if x.shape[first] != x.shape[second]:
            raise ShapeError(
                "MT201", f"einsum: {label!r} names two dimensions of {x.spec}", fix="name equal ones alike"
            )
        x = diagonal(x, 0, first, second)
        labels = [*(other for at, other in enumerate(labels) if at not in (first, second)), label]
    wanted = [(label, mine) for label, mine in zip(labels, x.shape, strict=True) if mine == length[label]]
    if len(wanted) < len(labels):
        x = P.reshape(x, shape=tuple(mine for _, mine in wanted))
    return x, [label for label, _ in wanted]


def einsum(equation: str, *operands: Any) -> Tensor:
    """Compute products and sums over named dimensions (Einstein's convention), as `torch.einsum`.

    Each operand's dimensions get letters; equal letters run together, and those that the result does not name
    are summed. Three dots stand for any further dimensions, which broadcast. Without ``->``, the result has
    the letters that occur once. Of several operands, the two that cost least are multiplied first.

    Raises:
        ValueError: if the equation cannot be read or does not fit the number of dimensions.
        ShapeError: if equal letters stand for different lengths (``MT201``).
        DTypeError: if the types differ (``MT202``).

    Example:
        >>> import minitorch as mt
        >>> a, b = mt.ones(2, 3), mt.ones(3, 4)
        >>> mt.einsum("ij,jk->ik", a, b).shape, mt.einsum("ij->j", a), mt.einsum("...i,...i", a, a)
        ((2, 4), tensor([2., 2., 2.]), tensor([3., 3.]))
    """
    given = operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) else operands
    if current_handler() is None:  # which gives products one type, and promotes the rest
        check_types("einsum", *given)
    inputs, output = _read(equation, [tensor.ndim for tensor in given])
    length = _lengths(equation, given, inputs)
    pending = [_cleaned(tensor, labels, length) for tensor, labels in zip(given, inputs, strict=True)]
    while len(pending) > 1:
        costs = {
            (first, second): math.prod([length[label] for label in {*pending[first][1], *pending[second][1]}])
            for first, second in combinations(range(len(pending)), 2)
        }
        first, second = min(costs, key=costs.__getitem__)
        others = [each for at, each in enumerate(pending) if at not in (first, second)]
        keep = {*output, *(label for _, labels in others for label in labels)}
        pending = [contract(*pending[first], *pending[second], keep), *others]
    result, labels = pending[0]
    if len(given) == 1 and set(labels) - set(output):  # no product, which would keep the type: a sum like others
        result = accumulated(result, None)
    result, labels = _summed(result, labels, output)
    return _arranged(result, labels, output, joined=False)
