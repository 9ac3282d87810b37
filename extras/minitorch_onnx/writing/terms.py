"""`Term`: a value of an ONNX graph in the making, with Python's operators: ``(x * 0.5).Tanh()`` appends two nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minitorch import dtypes
from minitorch.dtypes import DType
from minitorch.ir import Node

from .building import Building, Row

Method = Callable[[Any, Any], "Term"]


def _both(kind: str) -> tuple[Method, Method]:
    """A binary operator of Python, and the same with its operands exchanged."""
    return lambda self, other: self.of(kind, self, other), lambda self, other: self.of(kind, other, self)


class Term:
    """A value by its name. A method of an operator's name appends that operator, with numbers in the value's type.

    Args:
        b: the graph.
        dtype: the type of numbers beside it, which is that of the value, or of those that were compared.
        name: of the value.
    """

    def __init__(self, b: Building, dtype: DType, name: str) -> None:
        self.b, self.dtype, self.name = b, dtype, name

    def of(self, kind: str, *operands: Any, **attributes: Any) -> Term:
        """Append an operator on terms and numbers."""
        names = [each.name if isinstance(each, Term) else self.b.number(each, self.dtype) for each in operands]
        return Term(self.b, self.dtype, self.b.op(kind, *names, **attributes))

    def __getattr__(self, kind: str) -> Callable[..., Term]:
        return lambda *others, **attributes: self.of(kind, self, *others, **attributes)

    def __neg__(self) -> Term:
        return self.of("Neg", self)

    def __invert__(self) -> Term:
        return self.of("Not", self)

    __add__, __radd__ = _both("Add")
    __sub__, __rsub__ = _both("Sub")
    __mul__, __rmul__ = _both("Mul")
    __truediv__, __rtruediv__ = _both("Div")
    __mod__, __rmod__ = _both("Mod")
    __and__, __rand__ = _both("And")
    __or__, __ror__ = _both("Or")
    __xor__, __rxor__ = _both("Xor")
    __lt__, __gt__ = _both("Less")
    __le__, __ge__ = _both("LessOrEqual")

    def where(self, one: Any, other: Any) -> Term:
        """One value where this one is True, another one elsewhere."""
        return self.of("Where", self, one, other)


def in_type(compose: Callable[..., Term]) -> Row:
    """The row of a composition of terms; 16-bit floats are computed in float32."""

    def row(b: Building, node: Node, operands: list[str]) -> str:
        dtype = node.inputs[0].dtype
        narrow = dtype in (dtypes.float16, dtypes.bfloat16)
        wide = dtypes.float32 if narrow else dtype
        found = compose(*[Term(b, wide, b.cast(each, dtype, wide)) for each in operands])
        return b.cast(found.name, wide, dtype)

    return row
