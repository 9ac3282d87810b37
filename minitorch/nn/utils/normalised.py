"""`weight_norm` and `spectral_norm` with parameters of the module's own: ``weight_g``, ``weight_orig``."""

from __future__ import annotations

from typing import Any

from ...autograd import no_grad
from ..parameter import Parameter
from .parametrizations import default_dim, divided, first_vectors, lengths
from .parametrize import computed, parameter_of, restored


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Train the lengths and the directions of a weight apart, as `parametrizations.weight_norm` does.

    The parameters are ``weight_g`` (lengths) and ``weight_v`` (directions).

    Example:
        >>> import minitorch as mt
        >>> list(mt.nn.utils.weight_norm(mt.nn.Linear(3, 2)).state_dict())
        ['bias', 'weight_g', 'weight_v']
    """
    weight = parameter_of(module, name)
    computed(
        module,
        name,
        lambda self: (v := getattr(self, f"{name}_v")) * (getattr(self, f"{name}_g") / lengths(v, dim)),
    )
    with no_grad():
        module.register_parameter(f"{name}_g", Parameter(lengths(weight, dim)))
    module.register_parameter(f"{name}_v", weight)
    return module


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide a weight by its largest singular value, as `parametrizations.spectral_norm` does.

    The parameter is ``weight_orig``, the buffers ``weight_u`` and ``weight_v``.

    Example:
        >>> import minitorch as mt
        >>> list(mt.nn.utils.spectral_norm(mt.nn.Linear(3, 2)).state_dict())
        ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    weight, axis = parameter_of(module, name), default_dim(module) if dim is None else dim

    def value(self: Any) -> Any:
        u, v = getattr(self, f"{name}_u"), getattr(self, f"{name}_v")
        steps = n_power_iterations if self.training else 0
        return divided(getattr(self, f"{name}_orig"), u, v, steps, axis, eps, v_first=True)

    computed(module, name, value)
    module.register_parameter(f"{name}_orig", weight)
    for end, vector in zip("uv", first_vectors(weight, axis, eps, 0), strict=True):
        module.register_buffer(f"{name}_{end}", vector)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Undo `weight_norm`: the parameter has the value computed last."""
    return _removed(module, name, "_g", "_v")


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Undo `spectral_norm`: the parameter has the value computed last."""
    return _removed(module, name, "_orig", "_u", "_v")


def _removed(module: Any, name: str, *ends: str) -> Any:
    if not all(hasattr(module, name + end) for end in ends):
        raise ValueError(f"{type(module).__name__} has no {name!r} that is computed from {name + ends[0]!r}")
    with no_grad():
        value = getattr(module, name).clone()
    for end in ends:
        delattr(module, name + end)
    restored(module, name, value)
    return module
