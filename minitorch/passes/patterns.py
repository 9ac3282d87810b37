"""Pattern expressions, matched against nodes and instantiated as nodes.

`minitorch.passes.rewrite` describes their notation, and uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..dtypes import stored
from ..graph.build import apply, literal
from ..graph.text import value_text
from ..graph.values import Number, is_splat, value_key
from ..ir import OPERATORS, PRIMITIVES, Node, Primitive, Source, Spec

# Patterns ---------------------------------------------------------------------------------------------------


class Pattern:
    """A part of a rule's expression; Python's operators combine patterns."""

    __hash__ = object.__hash__

    def __add__(self, other: Operand) -> Operation:
        return op.add(self, other)

    def __radd__(self, other: Number) -> Operation:
        return op.add(other, self)

    def __sub__(self, other: Operand) -> Operation:
        return op.sub(self, other)

    def __rsub__(self, other: Number) -> Operation:
        return op.sub(other, self)

    def __mul__(self, other: Operand) -> Operation:
        return op.mul(self, other)

    def __rmul__(self, other: Number) -> Operation:
        return op.mul(other, self)

    def __truediv__(self, other: Operand) -> Operation:
        return op.div(self, other)

    def __rtruediv__(self, other: Number) -> Operation:
        return op.div(other, self)

    def __pow__(self, other: Operand) -> Operation:
        return op.pow(self, other)

    def __rpow__(self, other: Number) -> Operation:
        return op.pow(other, self)

    def __and__(self, other: Operand) -> Operation:
        return op.bitwise_and(self, other)

    def __or__(self, other: Operand) -> Operation:
        return op.bitwise_or(self, other)

    def __xor__(self, other: Operand) -> Operation:
        return op.bitwise_xor(self, other)

    def __lshift__(self, other: Operand) -> Operation:
        return op.shift_left(self, other)

    def __rshift__(self, other: Operand) -> Operation:
        return op.shift_right(self, other)

    def __invert__(self) -> Operation:
        return op.bitwise_not(self)

    def __neg__(self) -> Operation:
        return op.neg(self)

    def __abs__(self) -> Operation:
        return op.abs(self)


@dataclass(frozen=True, eq=False)
class Wildcard(Pattern):
    """A pattern for any node; the same one wherever the name occurs in a rule."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class SplatOf(Pattern):
    """A splat constant: of one value, of a value that depends on the type, or of any value."""

    name: str
    value: Number | Callable[[Spec], Number] | None = None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Param:
    """A parameter's value: bound by a pattern, inserted by a replacement."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class Operation(Pattern):
    """A primitive applied to patterns."""

    primitive: Primitive
    operands: tuple[Pattern, ...]
    params: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        texts = [f"({each})" if "(" not in str(each) and " " in str(each) else str(each) for each in self.operands]
        if self.primitive.name in _INFIX and len(texts) == 2:
            return f" {_INFIX[self.primitive.name]} ".join(texts)
        if self.primitive.name in _PREFIX:
            sign = _PREFIX[self.primitive.name]
            return f"{sign}({texts[0]})" if texts[0].startswith(sign) else sign + texts[0]
        params = [f"{name}={v if isinstance(v, Param) else value_text(v)}" for name, v in self.params.items()]
        return f"{self.primitive.name}({', '.join([*map(str, self.operands), *params])})"


_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "bitwise_and": "&", "bitwise_or": "|"}
_INFIX |= {"bitwise_xor": "^", "shift_left": "<<", "shift_right": ">>"}
_PREFIX = {"neg": "-", "bitwise_not": "~"}

Operand = Pattern | Number


def wildcard(name: str) -> Wildcard:
    """Return a pattern that matches any node."""
    return Wildcard(name)


def number(name: str, value: Callable[[Spec], Number] | None = None) -> SplatOf:
    """Return a pattern that matches any splat constant, or one whose value is a function of its shape and type."""
    return SplatOf(name, value)


def param(name: str) -> Param:
    """Return a pattern that remembers the value of a parameter."""
    return Param(name)


def as_pattern(operand: Operand) -> Pattern:
    """Return a pattern as it is, or the pattern of a number."""
    return operand if isinstance(operand, Pattern) else SplatOf(str(operand), operand)


class _Operations:
    """The namespace `op`: `op.<name>(*operands, **params)` is the pattern of a primitive or an operator, applied."""

    def __getattr__(self, name: str) -> Callable[..., Operation]:
        primitive = PRIMITIVES.get(name) or OPERATORS.get(name)
        if primitive is None:
            raise AttributeError(f"there is no primitive {name!r}")

        def operation(*operands: Operand, **params: Any) -> Operation:
            return Operation(primitive, tuple(map(as_pattern, operands)), params)

        return operation


op = _Operations()

# Matching ---------------------------------------------------------------------------------------------------

Bindings = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Match:
    """A match: a node that a pattern fits.

    Attributes:
        node: the node to be replaced.
        bindings: the node of each wildcard and the value of each remembered parameter, by name.
    """

    node: Node
    bindings: Bindings

    def __getitem__(self, name: str) -> Any:
        return self.bindings[name]

    def apply(self, primitive: Primitive, *inputs: Node, **params: Any) -> Node:
        """Make a new node, from the same line of the user's program."""
        return apply(primitive, *inputs, source=self.node.source, **params)

    def literal(self, value: Number, spec: Spec | None = None) -> Node:
        """Make a constant of the shape and type of the replaced node, or of another."""
        return literal(value, spec or self.node.spec, self.node.source)


def matches(pattern: Pattern, node: Node, bindings: Bindings) -> bool:
    """Return whether a pattern fits a node, with operands in the order written; enter the bindings found."""
    if isinstance(pattern, Wildcard):
        return bindings.setdefault(pattern.name, node) is node
    if isinstance(pattern, SplatOf):
        return is_splat(node) and _number_matches(pattern, node, bindings)
    assert isinstance(pattern, Operation)
    if pattern.primitive is not node.primitive or len(pattern.operands) != len(node.inputs):
        return False
    for name, wanted in pattern.params.items():
        value = node.params[name]
        if isinstance(wanted, Param):
            wanted = bindings.setdefault(wanted.name, value)
        if value is not wanted and value_key(value) != value_key(wanted):
            return False
    return all(map(matches, pattern.operands, node.inputs, (bindings,) * len(node.inputs)))


def _number_matches(pattern: SplatOf, node: Node, bindings: Bindings) -> bool:
    actual = stored(node.params["value"], node.spec.dtype)
    wanted = pattern.value(node.spec) if callable(pattern.value) else pattern.value
    if wanted is None:
        known = bindings.setdefault(pattern.name, node)
        return known is node or (is_splat(known) and stored(known.params["value"], known.dtype) == actual)
    return repr(_in_type(wanted, node.spec)) == repr(actual)


def _in_type(wanted: Number, spec: Spec) -> Number | None:
    """Return a pattern's number in the type of a node, or None if the type cannot hold it."""
    category = spec.dtype.category
    if type(wanted) is bool and category != "bool":
        return None
    try:
        number = stored(wanted, spec.dtype)
    except (ValueError, OverflowError):
        return None
    return number if category == "float" or number == wanted else None


def orders(pattern: Pattern) -> Iterator[Pattern]:
    """Yield all orders of the operands of commutative operations in a pattern."""
    if not isinstance(pattern, Operation):
        yield pattern
        return
    choices: list[tuple[Pattern, ...]] = [()]
    for operand in pattern.operands:
        choices = [(*before, each) for before in choices for each in orders(operand)]
    for operands in choices:
        yield Operation(pattern.primitive, operands, pattern.params)
        if pattern.primitive.commutes and operands[0] is not operands[1]:
            yield Operation(pattern.primitive, operands[::-1], pattern.params)


# Instantiation --------------------------------------------------------------------------------------------


def instantiate(pattern: Pattern, bindings: Mapping[str, Any], like: Spec, source: Source | None = None) -> Node:
    """Return the nodes that an expression describes.

    Args:
        pattern: what to make.
        bindings: the nodes of its wildcards and the values of its parameters, by name.
        like: shape and type of numbers, where no other operand determines them.
        source: the user's line, for the new nodes.
    """
    if isinstance(pattern, SplatOf) and pattern.value is not None:
        return literal(pattern.value(like) if callable(pattern.value) else pattern.value, like, source)
    if not isinstance(pattern, Operation):
        return bindings[pattern.name]  # type: ignore[no-any-return, attr-defined]
    inputs = {each: instantiate(each, bindings, like, source) for each in pattern.operands if not _is_number(each)}
    spec = next((node.spec for node in inputs.values()), like)
    nodes = [inputs.get(each) or instantiate(each, bindings, spec, source) for each in pattern.operands]
    params = {
        name: bindings[value.name] if isinstance(value, Param) else value for name, value in pattern.params.items()
    }
    return apply(pattern.primitive, *nodes, source=source, **params)


def _is_number(pattern: Pattern) -> bool:
    return isinstance(pattern, SplatOf) and pattern.value is not None
