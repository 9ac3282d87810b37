"""The declaration of primitives: each once, in one place, as a row of `PRIMITIVES`."""

from __future__ import annotations

from typing import Any

from ..errors import PARTS, ShapeError
from ..ir import PRIMITIVES, Primitive, Spec


def declare(name: str, kind: str, infer: Any, evaluate: Any, **fields: Any) -> Primitive:
    """Make a primitive and enter it into the table; the fields are those of `Primitive`."""
    if name in PRIMITIVES:
        raise ValueError(f"the primitive {name!r} is declared twice")
    PARTS.add(name)
    PRIMITIVES[name] = primitive = Primitive(name, kind, infer, evaluate, **fields)
    return primitive


def axis_error(name: str, dims: Any, spec: Spec) -> ShapeError:
    """Return the error for dimensions that a primitive's operand does not have.

    Args:
        dims: one, some, or words that follow "no dimension".

    Example:
        >>> from minitorch import float32
        >>> print(axis_error("reduce_sum", (1,), Spec((4,), float32)))
        MT201: reduce_sum: dims=[1] do not fit f32[4]
          why: each has to be one of [0], and may be named once
        ...
    """
    if isinstance(dims, str):
        problem = f"{spec} has no dimension {dims}"
    else:
        problem = f"dims={list(dims) if isinstance(dims, (tuple, list)) else [dims]} do not fit {spec}"
    return ShapeError(
        "MT201",
        f"{name}: {problem}",
        why=f"each has to be one of {list(range(spec.ndim))}, and may be named once",
        fix="check the dims against x.shape",
    )
