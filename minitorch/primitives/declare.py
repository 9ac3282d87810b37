"""How a primitive is declared: once, in one place, as a row of `PRIMITIVES`."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..ir import PRIMITIVES, Primitive, Spec


def declare(name: str, kind: str, infer: Any, evaluate: Any, **fields: Any) -> Primitive:
    """Make a primitive and enter it into the table; the fields are those of `Primitive`."""
    if name in PRIMITIVES:
        raise ValueError(f"the primitive {name!r} is declared twice")
    PRIMITIVES[name] = primitive = Primitive(name, kind, infer, evaluate, **fields)
    return primitive


def axis_error(name: str, dims: Any, spec: Spec) -> ShapeError:
    """The error for dimensions that a primitive's operand does not have."""
    return ShapeError(
        "MT201",
        f"{name}: {spec} has no dimension {dims}",
        why=f"it has {spec.ndim} dimensions, numbered from 0; they may be named once each",
        fix="check the dims against x.shape",
    )
