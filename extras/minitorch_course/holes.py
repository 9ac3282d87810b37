"""The holes of `golf`: programs that a compiler may not improve, and the best rewriting of each that is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from minitorch.functional.creation.creation import ones
from minitorch.functional.creation.data import from_numpy
from minitorch.functional.movement.arranging import cat

ROWS, COLUMNS, FEW = 2048, 1024, 64


@dataclass(frozen=True)
class Hole:
    """A program to rewrite.

    Attributes:
        given: the program.
        best: a program that computes the same, and moves the fewest bytes that are known.
        arguments: of both, from a number.
        tries: how many of these an attempt has to be right for.
    """

    given: Callable[..., Any]
    best: Callable[..., Any]
    arguments: Callable[[int], tuple[Any, ...]]
    tries: int = 3


def softmax_columns(x: Any) -> Any:
    """A softmax of the rows, and the sum of each column."""
    return x.softmax(1).sum(0)


def softmax_columns_best(x: Any) -> Any:
    """One number for each row is stored, and exp is computed twice, which moves less than to store all of them."""
    return (x - x.logsumexp(1, keepdim=True)).exp().sum(0)


def variance(x: Any) -> Any:
    """The variance of all numbers of a matrix."""
    return (x - x.mean()).square().mean()


def variance_best(x: Any) -> Any:
    """One pass: the variance is that of x - c for any number c, and a c near the mean keeps both terms small.

    Sums over everything are two kernels. Sums over rows are one, which reads each row once.
    """
    shifted = x - x[:1, :1]
    sums, squares = shifted.sum(1), shifted.square().sum(1)
    return squares.sum() / x.numel() - (sums.sum() / x.numel()).square()


def weighted(x: Any, w: Any) -> Any:
    """The rows of x, each divided by its sum, times w."""
    return (x / x.sum(1, keepdim=True)) @ w


def weighted_best(x: Any, w: Any) -> Any:
    """With a column of ones the product computes the sums, too, and is the only one to read x."""
    both = x @ cat([w, ones(len(w), 1)], 1)
    return both[:, :-1] / both[:, -1:]


def _normal(seed: int, rows: int, columns: int) -> Any:
    return from_numpy(np.random.default_rng(seed).standard_normal((rows, columns), np.float32))


def _wide(seed: int) -> tuple[Any, ...]:
    return (3 * _normal(seed, ROWS, COLUMNS),)


def _far(seed: int) -> tuple[Any, ...]:
    """Numbers that are farther and farther from zero, beside their deviation."""
    return (_normal(seed, ROWS, COLUMNS) + 500.0 * seed,)


def _positive(seed: int) -> tuple[Any, ...]:
    return _normal(seed, ROWS, COLUMNS).abs(), _normal(seed + 1, COLUMNS, FEW)


HOLES = {
    "softmax": Hole(softmax_columns, softmax_columns_best, _wide),
    "variance": Hole(variance, variance_best, _far),
    "weighted": Hole(weighted, weighted_best, _positive),
}
