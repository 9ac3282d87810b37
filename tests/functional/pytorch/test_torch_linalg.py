"""`minitorch.linalg` against `torch.linalg`: values, gradients and second gradients, where torch is installed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt

torch = pytest.importorskip("torch")
random = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return random.normal(size=shape)


def symmetric(*shape: int) -> np.ndarray:
    x = numbers(*shape)
    return x + np.swapaxes(x, -1, -2)


def positive(*shape: int) -> np.ndarray:
    x = numbers(*shape)
    return x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1])


Case = tuple[str, tuple[Any, ...], dict[str, Any], Callable[[Any], Any] | None]
CASES: list[Case] = []


def case(name: str, *args: Any, of: Callable[[Any], Any] | None = None, **options: Any) -> None:
    """A call; `of` its result, a number that does not depend on the signs of vectors."""
    CASES.append((name, args, options, of))


SHAPES = ((4, 4), (5, 3), (3, 5), (2, 5, 3), (2, 3, 5))
for _shape in ((4, 4), (2, 3, 3)):
    for _name in ("inv", "det"):
        case(_name, numbers(*_shape))
    case("slogdet", numbers(*_shape), of=lambda r: r[1])
    case("cholesky", positive(*_shape), upper=len(_shape) > 2)
    case("eigh", symmetric(*_shape), of=lambda r: r[0])
    case("eigh", symmetric(*_shape), of=lambda r: r[0][..., None] + r[1] ** 2)
    for _power in (-2, 1, 2, 5):
        case("matrix_power", numbers(*_shape), _power)
case("eigh", symmetric(4, 4), of=lambda r: r[1].abs() * r[0], UPLO="U")
case("eigvalsh", symmetric(4, 4))
for _shape in SHAPES:
    case("qr", numbers(*_shape), of=lambda r: r[0])
    case("qr", numbers(*_shape), of=lambda r: r[1])
    for _full in (True, False):
        case("svd", numbers(*_shape), of=lambda r: r[1], full_matrices=_full)
    case("svd", numbers(*_shape), of=lambda r: r[0] ** 2, full_matrices=False)
    case("svd", numbers(*_shape), of=lambda r: (r[2] ** 4) + r[1].sum(), full_matrices=False)
    for _name in ("svdvals", "pinv", "matrix_rank", "cond", "vector_norm", "norm"):
        case(_name, numbers(*_shape))
    case("lstsq", numbers(*_shape), numbers(*_shape[:-1], 2), of=lambda r: r[0])
    case("vector_norm", numbers(*_shape), 3, -1, True)
    case("norm", numbers(*_shape), 2, 1)
    for _order in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        case("matrix_norm", numbers(*_shape), _order, keepdim=_order in ("nuc", 1))
_low = numbers(5, 2) @ numbers(2, 4)
case("pinv", _low)
case("matrix_rank", _low)
case("matrix_rank", numbers(3, 3), 0.5)
case("norm", numbers(3, 4), "nuc")
case("norm", numbers(2, 3, 4), 1, (2, 0), True)
case("qr", numbers(3, 5), of=lambda r: r[1] ** 2, mode="complete")
for _shapes in (((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3, 2)), ((2, 3, 3), (2, 3)), ((3, 3), (5, 3, 2))):
    case("solve", *(numbers(*each) for each in _shapes))
case("solve", numbers(3, 3), numbers(2, 3), left=False)
_triangles: list[dict[str, Any]] = [{"upper": True}, {"upper": False, "left": False}]
for _options in (*_triangles, {"upper": True, "unitriangular": True}):
    case("solve_triangular", numbers(3, 3) + 3 * np.eye(3), numbers(3, 3), **_options)
case("vecdot", numbers(2, 3), numbers(2, 3))
case("cross", numbers(2, 3), numbers(2, 3))
case("cond", numbers(3, 3), -2)
case("multi_dot", numbers(2, 3), numbers(3, 4), of=lambda r: r)


def outcome(library: Any, name: str, args: tuple[Any, ...], options: dict[str, Any], of: Any) -> list[np.ndarray]:
    """The result, its gradients, and theirs."""
    made = [library.tensor(x, requires_grad=True) if isinstance(x, np.ndarray) else x for x in args]
    tensors = [x for x in made if isinstance(x, library.Tensor)]
    function = getattr(library.linalg, name)
    result = function(tensors) if name == "multi_dot" else function(*made, **options)
    result = result if of is None else of(result)
    found = [result]
    if result.requires_grad:
        first = library.autograd.grad((result * result).sum(), tensors, create_graph=True)
        found += [*first, *library.autograd.grad(sum((x * x).sum() for x in first), tensors)]
    return [x.detach().numpy() for x in found]


@pytest.mark.parametrize(("name", "args", "options", "of"), CASES, ids=lambda x: x if isinstance(x, str) else "")
def test_values_and_gradients_are_pytorchs(name, args, options, of):
    for mine, yours in zip(outcome(mt, name, args, options, of), outcome(torch, name, args, options, of), strict=True):
        assert mine.shape == yours.shape
        np.testing.assert_allclose(mine, yours, rtol=1e-5, atol=1e-7 * max(1, np.abs(yours).max(initial=0)))


@pytest.mark.filterwarnings("ignore:torch")
@pytest.mark.parametrize("name", ["det", "inverse", "logdet", "pinverse", "slogdet", "cholesky", "qr", "svd"])
def test_functions_of_matrices_are_pytorchs(name):
    x = positive(4, 4)
    mine, yours = getattr(mt, name)(mt.tensor(x)), getattr(torch, name)(torch.tensor(x))
    pairs = zip(mine, yours, strict=True) if isinstance(mine, tuple) else [(mine, yours)]
    for one, other in pairs:
        np.testing.assert_allclose(np.abs(one.numpy()), np.abs(other.numpy()), rtol=1e-8)


@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize("bins", [1, 4, [-1.0, 0.0, 0.2, 2.0]])
def test_histograms_are_pytorchs(bins, density):
    x, weight = np.round(numbers(50) * 4) / 4, np.abs(numbers(50))
    for more in ({}, {"weight": weight}, {} if isinstance(bins, list) else {"range": (-1.0, 1.0)}):
        results = [
            library.histogram(
                library.tensor(x),
                library.tensor(np.array(bins)) if isinstance(bins, list) else bins,
                density=density,
                **{key: library.tensor(value) if key == "weight" else value for key, value in more.items()},
            )
            for library in (mt, torch)
        ]
        for mine, yours in zip(*results, strict=True):
            np.testing.assert_allclose(mine.numpy(), yours.numpy(), rtol=1e-9)
