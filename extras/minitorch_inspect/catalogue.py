"""The catalogue: the primitives by family, and the public functions composed of them."""

from __future__ import annotations

from minitorch import primitives
from minitorch.functional import FUNCTIONS
from minitorch.nn import functional as nn_functional


def public_functions() -> list[str]:
    """The names of all public functions on tensors: ``minitorch.*`` and ``minitorch.nn.functional.*``.

    Example:
        >>> "softmax" in " ".join(public_functions())
        True
    """
    own = [f"minitorch.{name}" for name in FUNCTIONS]
    layers = [f"minitorch.nn.functional.{name}" for name in nn_functional.__all__ if name not in FUNCTIONS]
    return sorted(own + layers)


def primitives_table() -> str:
    """The primitives by family, one per line, and the counts of primitives and public functions.

    Example:
        >>> print(primitives_table().splitlines()[0])
        argreduction
    """
    return f"{primitives!r}; {len(public_functions())} public functions are built on them"
