"""Parametrizations by name: weights of a given length, and of a given largest singular value.

`minitorch.nn.utils.weight_norm` and `spectral_norm` are PyTorch's earlier forms, whose states have other names.
"""

from __future__ import annotations

import math
from typing import Any

from ... import primitives as P
from ...autograd import no_grad
from ...functional.creation.random import randn
from ...functional.inplace import assign
from ...functional.reducing.linalg import mv
from ...functional.reducing.reductions import norm
from ...tensor import Tensor
from ..functional.normalization import normalize
from ..layers import _ConvTranspose
from ..module import Module
from .parametrize import parameter_of, register_parametrization


def lengths(weight: Tensor, dim: int | None) -> Tensor:
    """Return the norms of a weight over all dimensions but one, or over all (None; in PyTorch, -1 as well)."""
    if dim is None or dim == -1:
        return norm(weight)
    others = [each for each in range(weight.ndim) if each != dim % weight.ndim]
    return norm(weight, 2, others, keepdim=True) if others else weight.abs()


def rows(weight: Tensor, dim: int) -> Tensor:
    """Return a weight as a matrix with a row for each position in a dimension."""
    moved = weight.movedim(dim, 0)
    return P.reshape(moved, shape=(moved.shape[0], math.prod(moved.shape[1:])))


def default_dim(module: Module) -> int:
    """Return the dimension of a layer's weight that its results belong to."""
    return 1 if isinstance(module, _ConvTranspose) else 0


def approached(matrix: Tensor, u: Tensor, v: Tensor, steps: int, eps: float) -> tuple[Tensor, Tensor]:
    """Return singular vectors of the largest singular value, after some steps of the power iteration."""
    with no_grad():
        for _ in range(steps):
            u = normalize(mv(matrix, v), dim=0, eps=eps)
            v = normalize(mv(matrix.mT, u), dim=0, eps=eps)
    return u, v


def divided(weight: Tensor, u: Tensor, v: Tensor, steps: int, dim: int, eps: float, v_first: bool = False) -> Tensor:
    """Divide a weight by its largest singular value, as `u` and `v` have it; steps approach these first, in place.

    From Miyato et al., arXiv:1802.05957.
    """
    matrix = rows(weight, dim)
    if steps:
        fixed = matrix.detach()
        near = approached(fixed.mT, v, u, steps, eps)[::-1] if v_first else approached(fixed, u, v, steps, eps)
        with no_grad():
            for buffer, value in zip((u, v), near, strict=True):
                assign(buffer, value, "spectral_norm")
        u, v = (each.clone() for each in near)  # of which a later step changes nothing
    return weight / u.dot(mv(matrix, v))


def first_vectors(weight: Tensor, dim: int, eps: float, steps: int) -> tuple[Tensor, Tensor]:
    """Return vectors to begin the power iteration with, drawn at random."""
    matrix = rows(weight.detach(), dim)
    u, v = (normalize(randn(size, dtype=weight.dtype), dim=0, eps=eps) for size in matrix.shape)
    return approached(matrix, u, v, steps, eps)


class _WeightNorm(Module):
    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, length: Tensor, direction: Tensor) -> Tensor:
        return direction * (length / lengths(direction, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return lengths(weight, self.dim), weight


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, steps: int, dim: int, eps: float) -> None:
        super().__init__()
        self.steps, self.dim, self.eps = steps, dim, eps
        if weight.ndim > 1:
            for name, value in zip(("_u", "_v"), first_vectors(weight, dim, eps, 15), strict=True):
                self.register_buffer(name, value)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        return divided(weight, self._u, self._v, self.steps if self.training else 0, self.dim, self.eps)


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Train the lengths and the directions of a weight apart (Salimans and Kingma, arXiv:1602.07868).

    Args:
        module: the layer, which is changed.
        name: of its parameter.
        dim: the dimension along which each position has a length of its own; None for one length in all.

    Example:
        >>> import minitorch as mt
        >>> layer = mt.nn.utils.parametrizations.weight_norm(mt.nn.Linear(3, 2))
        >>> {name: tuple(each.shape) for name, each in layer.state_dict().items() if "weight" in name}
        {'parametrizations.weight.original0': (2, 1), 'parametrizations.weight.original1': (2, 3)}
    """
    return register_parametrization(module, name, _WeightNorm(dim))


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide a weight by its largest singular value, which each reading in training approaches by power iterations.

    Args:
        module: the layer, which is changed.
        name: of its parameter.
        n_power_iterations: steps for each reading.
        eps: the least length of a vector that is divided by its length.
        dim: the dimension of the results, by default 0, and 1 of transposed convolutions.

    Example:
        >>> import minitorch as mt
        >>> layer = mt.nn.utils.parametrizations.spectral_norm(mt.nn.Linear(3, 2))
        >>> list(layer.state_dict())[1:]
        ['parametrizations.weight.original', 'parametrizations.weight.0._u', 'parametrizations.weight.0._v']
    """
    dim = default_dim(module) if dim is None else dim
    made = _SpectralNorm(parameter_of(module, name), n_power_iterations, dim, eps)
    return register_parametrization(module, name, made)
