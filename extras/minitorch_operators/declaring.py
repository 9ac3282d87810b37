"""How an operator is declared: once, in one place, as a row of `OPERATORS`."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from minitorch.errors import ShapeError
from minitorch.ir import OPERATORS, Primitive, Spec

Array = np.ndarray[Any, Any]
NARROW = 2  # bytes of the floats that are computed in float32


def declare(name: str, infer: Any, evaluate: Any, doc: str) -> Primitive:
    """Make an operator and enter it into the table."""
    OPERATORS[name] = primitive = Primitive(name, "operator", infer, evaluate, doc=doc)
    return primitive


def refuse(name: str, *specs: Spec) -> NoReturn:
    """Raise the error for operands that do not fit."""
    raise ShapeError("MT201", f"{name}: {' and '.join(map(str, specs))} do not fit")


def widened(x: Array) -> Array:
    """Floats of 16 bits in float32."""
    return x.astype(np.float32) if x.dtype.itemsize == NARROW and x.dtype.kind in "fV" else x
