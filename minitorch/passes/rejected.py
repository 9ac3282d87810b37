"""Laws that stay out: true of real numbers, and wrong for some value of some type.

Each row has a counterexample, and the tests evaluate both sides there. Compilers apply such laws under a flag such as
`-ffast-math`; here there is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..dtypes import DType, bfloat16, bool_, float16, float32, float64, int8, int32, int64, uint8
from ..graph.build import input_node
from ..graph.graph import Graph
from ..graph.values import Number
from ..ir import Spec
from .patterns import instantiate, op, wildcard
from .rewrite import Rule


@dataclass(frozen=True)
class RejectedLaw:
    """A law with a counterexample.

    Attributes:
        law: the law, as it would stand in a table.
        dtype: a type for which it fails.
        values: for which values of its wildcards.
        why: what goes wrong.
    """

    law: Rule
    dtype: DType
    values: Mapping[str, Number]
    why: str

    def sides(self) -> tuple[Graph, Graph]:
        """Return both sides of the law as graphs of the same inputs: two elements each, in the order of `values`."""
        spec = Spec((2,), self.dtype)
        inputs = {name: input_node(name, spec) for name in self.values}
        left = instantiate(self.law.pattern, inputs, spec)
        assert self.law.expression is not None
        right = instantiate(self.law.expression, inputs, left.spec)
        return Graph(inputs.values(), (left,)), Graph(inputs.values(), (right,))

    def __str__(self) -> str:
        at = ", ".join(f"{name} = {value}" for name, value in self.values.items())
        return f"{self.law}: not for {self.dtype.name}, e.g. {at}: {self.why}"


x, y, z = wildcard("x"), wildcard("y"), wildcard("z")
inf, nan = math.inf, math.nan
_BESIDE: Mapping[str, Any] = {"padding": ((1, 0, 0),), "value": 0.0}  # one zero before each row


def _reject(law: Rule, dtype: DType, why: str, **values: Number) -> RejectedLaw:
    return RejectedLaw(law, dtype, values, why)


REJECTED_LAWS: tuple[RejectedLaw, ...] = (
    # Zeros have signs.
    _reject(Rule(x + 0, x), float32, "-0.0 + 0.0 is 0.0", x=-0.0),
    _reject(Rule(0 - x, -x), float32, "0.0 - 0.0 is 0.0, and -(0.0) is -0.0", x=0.0),
    _reject(Rule(-(x - y), y - x), float32, "of equal numbers, one is -0.0 and the other 0.0", x=1.0, y=1.0),
    _reject(Rule(op.reduce_sum(x, dims=()), x), float32, "a sum starts at 0.0, and 0.0 + -0.0 is 0.0", x=-0.0),
    _reject(Rule(x * 0, 0), float32, "0.0 times a negative number is -0.0", x=-1.0),
    _reject(Rule(x**0.5, op.sqrt(x)), float32, "the power of -0.0 is 0.0, its root -0.0", x=-0.0),
    # NaN and the infinities.
    _reject(Rule(x * 0, 0), float64, "0.0 times NaN is NaN", x=nan),
    _reject(Rule(x * 0, 0), float16, "0.0 times infinity is NaN", x=inf),
    _reject(Rule(x - x, 0), float32, "infinity minus infinity is NaN", x=inf),
    _reject(Rule(x / x, 1), float32, "0 / 0 and infinity / infinity are NaN", x=0.0),
    _reject(Rule(op.equal(x, x), True), float32, "NaN is not equal to itself; that is how one finds it", x=nan),
    _reject(Rule(op.less_equal(x, x), True), bfloat16, "NaN cannot be compared", x=nan),
    _reject(Rule(~op.less(x, y), op.less_equal(y, x)), float32, "with NaN neither of them holds", x=nan, y=1.0),
    _reject(Rule(op.floor_divide(x, 1), op.floor(x)), float32, "infinity // 1 is NaN", x=inf),
    # Rounding, overflow and underflow.
    _reject(Rule((x + y) + z, x + (y + z)), float32, "each sum is rounded", x=1e30, y=-1e30, z=1.0),
    _reject(Rule((x * y) * z, x * (y * z)), float32, "x * y may overflow", x=1e30, y=1e30, z=1e-30),
    _reject(Rule(x * y + x * z, x * (y + z)), float64, "each step is rounded", x=0.1, y=0.7, z=0.1),
    _reject(Rule((x + y) - y, x), float32, "what is small beside y is lost", x=1.0, y=1e30),
    _reject(Rule((x * y) / y, x), float32, "x * y may overflow", x=1e30, y=1e30),
    _reject(Rule((x * 2) / 2, x), float32, "2x may overflow", x=3e38),
    _reject(Rule(x / 3, x * (1 / 3)), float32, "1/3 is rounded; that of a power of two is not", x=5.0),
    _reject(Rule(1 / (1 / x), x), float32, "both reciprocals are rounded", x=7.0),
    _reject(Rule(op.sqrt(x) * op.sqrt(x), x), float32, "the root is rounded, and that of -1 is NaN", x=2.0),
    _reject(Rule(op.sqrt(x * x), abs(x)), float32, "the square may overflow", x=1e30),
    _reject(Rule(op.exp(op.log(x)), x), float32, "the logarithm of -1 is NaN", x=-1.0),
    _reject(Rule(op.log(op.exp(x)), x), float32, "the exponential may overflow", x=100.0),
    _reject(Rule(op.exp(x) - 1, op.expm1(x)), float32, "better, but not the same: exp(x) is rounded", x=1e-4),
    # Zeros that are padded stay zeros, whatever was added before.
    _reject(Rule(op.pad(x + 1, **_BESIDE), op.pad(x, **_BESIDE) + 1), float32, "the zeros would become 1", x=1.0),
    # Integers wrap around.
    _reject(Rule(op.floor_divide(x * 2, 2), x), int32, "2x may wrap around", x=2**30),
    _reject(Rule((x << 1) >> 1, x), int8, "the highest bit is pushed out", x=127),
    _reject(Rule(op.less(x, x + 1), True), int64, "the largest integer plus 1 is the lowest", x=2**63 - 1),
    _reject(Rule(op.less(-1, abs(x)), True), int8, "|-128| is -128 in 8 bits", x=-128),
    _reject(Rule(abs(-x), abs(x)), uint8, "-1 is 255", x=1),
    _reject(Rule(op.floor_divide(x, x), 1), int32, "0 // 0 is 0 in integers", x=0),
    _reject(Rule(op.less(-x, 0), op.less(0, x)), int8, "the lowest integer is its own negative", x=-128),
    # Conversions lose.
    _reject(Rule(op.cast(op.cast(x, dtype=float16), dtype=float32), x), float32, "11 bits are not 24", x=0.1),
    _reject(Rule(op.cast(op.cast(x, dtype=float32), dtype=int32), x), int32, "24 bits are not 32", x=2**24 + 1),
    _reject(Rule(op.cast(op.cast(x, dtype=int8), dtype=int64), x), int64, "300 wraps around in 8 bits", x=300),
    _reject(Rule(op.cast(op.cast(x, dtype=bool_), dtype=int8), x), int8, "every number but 0 becomes 1", x=2),
    _reject(Rule(op.cast(op.floor(x), dtype=int32), op.cast(x, dtype=int32)), float32, "cast rounds towards 0", x=-0.5),
)
