"""Functions of a module's parameters: clipping, weights computed from others, and sequences of several lengths."""

from __future__ import annotations

from ...packages import names_from

_NAMES = {
    "clip_grad": "clip_grad_norm_ clip_grad_value_ parameters_to_vector vector_to_parameters",
    "normalised": "remove_spectral_norm remove_weight_norm spectral_norm weight_norm",
}  # of each file, the names; it is loaded for the first of them
_HOMES = {name: f"{__name__}.{file}" for file, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)
_FILES = ("clip_grad", "parametrizations", "parametrize", "rnn")
__getattr__, __dir__ = names_from(__name__, {**_HOMES, **{name: f"{__name__}.{name}" for name in _FILES}})
