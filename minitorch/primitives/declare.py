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
    """The error for dimensions that a primitive's operand does not have.

    Example:
        >>> from minitorch import float32
        >>> print(axis_error("reduce_sum", (1,), Spec((4,), float32)))
        MT201: reduce_sum: dims=[1] do not fit f32[4]
          why: each has to be one of [0], and may be named once
        ...
    """
    named = list(dims) if isinstance(dims, (tuple, list)) else [dims]
    return ShapeError(
        "MT201",
        f"{name}: dims={named} do not fit {spec}",
        why=f"each has to be one of {list(range(spec.ndim))}, and may be named once",
        fix="check the dims against x.shape",
    )
