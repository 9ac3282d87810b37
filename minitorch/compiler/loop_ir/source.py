"""Loop IR as Python: the text of a function that runs, slowly, and computes what the kernel computes.

It is what a student reads: the loops as loops, every load and store with its index, and one line per value that is used
more than once. The arrays are flat, as memory is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...dtypes import DType
from .expressions import (
    ALWAYS,
    Apply,
    Choose,
    Expression,
    Inside,
    Load,
    Number,
    Position,
    Scratch,
    Sum,
    Total,
    computed_in,
    index_values,
)
from .index import Index, Looked, Quotient, Remainder
from .loops import Accumulate, Keep, Loop, LoopKernel, Nest, Statement, Store

# How a primitive is written. Arguments are NumPy scalars, so arithmetic has the element type's rounding and overflow.
OPERATORS = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "div": "{} / {}",
    "multiply_add": "{} * {} + {}",
    "neg": "-{}",
    "less": "{} < {}",
    "less_equal": "{} <= {}",
    "equal": "{} == {}",
    "bitwise_not": "~{}",
    "bitwise_and": "{} & {}",
    "bitwise_or": "{} | {}",
    "bitwise_xor": "{} ^ {}",
    "shift_left": "{} << {}",
    "shift_right": "{} >> {}",
    "floor_divide": "{} // {}",
    "remainder": "{} % {}",
}
FUNCTIONS = {"abs": "np.abs", "atan2": "np.arctan2", "pow": "np.power", "erf": "erf"}  # the others have NumPy's name
REDUCTIONS = {"reduce_sum": "{} + {}", "reduce_prod": "{} * {}", "reduce_max": "np.maximum({}, {})"}
START = {"reduce_sum": "0", "reduce_prod": "1"}


def scalar_type(dtype: DType) -> str:
    """What makes a number of an element type."""
    return "bfloat16" if dtype.name == "bfloat16" else "np.bool_" if dtype.name == "bool" else f"np.{dtype.name}"


class _Printer:
    """Prints one nest."""

    def __init__(self, nest: Nest, names: Sequence[str]) -> None:
        self.nest = nest
        self.names = names
        self.lines: list[str] = []
        self.known: dict[Expression, str] = {}
        self.inside: set[tuple[int, Index, int]] = set()  # conditions that hold where text is being written

    def print(self) -> list[str]:
        """The lines of the nest."""
        depth = 1
        for slot, (length, dtype) in enumerate(self.nest.scratch):
            self._line(depth, f"row{slot} = np.empty({length}, {scalar_type(dtype)})  # a row that stays in the cache")
        for row in self.nest.rows:
            self._line(depth, f"for {row} in range({row.extent}):")
            depth += 1
        for loop in self.nest.loops:
            self._loop(loop, depth)
        return self.lines

    def _line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def _loop(self, loop: Loop, depth: int) -> None:
        for statement in loop.statements:
            if isinstance(statement, Accumulate):
                dtype = computed_in(statement.value.dtype)
                start = START.get(statement.reduction, _lowest(dtype))
                self._line(depth, f"total{statement.slot} = {scalar_type(dtype)}({start})")
        for column in loop.columns:
            self._line(depth, f"for {column} in range({column.extent}):")
            depth += 1
        self.known = {}
        uses = Counter(part for statement in loop.statements for part in _parts(statement.value))
        for statement in loop.statements:
            self._name_shared(statement.value, uses, depth)
            self._statement(statement, depth)
        for statement in loop.statements:
            if isinstance(statement, Accumulate) and _is_narrow(statement):
                total = f"total{statement.slot}"
                self._line(depth - len(loop.columns), f"{total} = {scalar_type(statement.value.dtype)}({total})")

    def _name_shared(self, expression: Expression, uses: Counter[Expression], depth: int) -> None:
        """Give a line to what is used more than once, innermost first."""
        if expression in self.known:
            return
        # What is not chosen must not be computed, and what is summed is another number at every step.
        if not isinstance(expression, (Choose, Sum)):
            for part in (*expression.parts(), *index_values(expression)):
                self._name_shared(part, uses, depth)
        if uses[expression] > 1 and isinstance(expression, (Apply, Load, Sum)) and expression not in self.known:
            name = f"t{len(self.known)}"
            self._line(depth, f"{name} = {self.text(expression)}")
            self.known[expression] = name

    def _statement(self, statement: Statement, depth: int) -> None:
        value = self.text(statement.value)
        match statement:
            case Accumulate():
                total = f"total{statement.slot}"
                value = f"np.float32({value})" if _is_narrow(statement) else value
                self._line(depth, f"{total} = {REDUCTIONS[statement.reduction].format(total, value)}")
            case Store():
                self._line(depth, f"{self.names[statement.buffer]}[{self.index(statement.index)}] = {value}")
            case Keep():
                self._line(depth, f"row{statement.slot}[{self.index(statement.index)}] = {value}")

    def index(self, index: Index) -> str:
        """An index as Python."""
        parts = []
        for atom, factor in index.terms:
            if isinstance(atom, Quotient):
                text = f"{self._bracketed(atom.index)} // {atom.divisor}"
            elif isinstance(atom, Remainder):
                text = f"{self._bracketed(atom.index)} % {atom.divisor}"
            elif isinstance(atom, Looked):
                text = f"at({self.text(atom.value)}, {atom.extent})"
            else:
                text = str(atom)
            text = text if text.isidentifier() else f"({text})"
            parts.append(text if factor == 1 else f"{factor} * {text}")
        if index.constant or not parts:
            parts.append(str(index.constant))
        return " + ".join(parts).replace("+ -", "- ")

    def _bracketed(self, index: Index) -> str:
        alone = not index.constant and len(index.terms) == 1 and index.terms[0][1] == 1
        return self.index(index) if alone else f"({self.index(index)})"

    def _inside(self, inside: Inside) -> str:
        return " and ".join(f"{low} <= {self.index(index)} < {high}" for low, index, high in inside.bounds)

    def text(self, expression: Expression) -> str:
        """An expression as Python."""
        if expression in self.known:
            return self.known[expression]
        match expression:
            case Number():
                value = repr(expression.value)
                return f"{scalar_type(expression.dtype)}({f'float({value!r})' if value in _NOT_LITERAL else value})"
            case Load():
                text = f"{self.names[expression.buffer]}[{self.index(expression.index)}]"
                unknown = Inside(tuple(bound for bound in expression.inside.bounds if bound not in self.inside))
                if unknown != ALWAYS:
                    zero = f"{scalar_type(expression.dtype)}(0)"
                    return f"({text} if {self._inside(unknown)} else {zero})"
                return text
            case Position():
                return f"{scalar_type(expression.dtype)}({self.index(expression.index)})"
            case Total():
                return f"total{expression.slot}"
            case Scratch():
                return f"row{expression.slot}[{self.index(expression.index)}]"
            case Choose():
                elsewhere, before = self.text(expression.elsewhere), self.inside
                unknown = Inside(tuple(bound for bound in expression.inside.bounds if bound not in before))
                self.inside = before | set(expression.inside.bounds)
                here = self.text(expression.here)
                self.inside = before
                return f"({here} if {self._inside(unknown)} else {elsewhere})" if unknown != ALWAYS else here
            case Sum():
                of, start = expression.variable, f"{scalar_type(expression.dtype)}(0)"
                return f"sum(({self.text(expression.value)} for {of} in range({of.extent})), {start})"
            case Apply():
                return self._apply(expression)
        raise TypeError(f"{type(expression).__name__} is not an expression")

    def _apply(self, expression: Apply) -> str:
        name, arguments = expression.primitive, [self.text(part) for part in expression.arguments]
        if name == "where":
            condition, a, b = arguments
            return f"({a} if {condition} else {b})"
        if name == "cast":
            return f"{scalar_type(expression.dtype)}({arguments[0]})"
        if name == "bitcast":
            return f"{arguments[0]}.view({scalar_type(expression.dtype)})"
        if expression.arguments[0].dtype.name == "bool" and name in ("add", "mul"):
            name = {"add": "bitwise_or", "mul": "bitwise_and"}[name]
        if name in OPERATORS:
            return f"({OPERATORS[name].format(*arguments)})"
        return f"{FUNCTIONS.get(name, f'np.{name}')}({', '.join(arguments)})"


def _is_narrow(statement: Accumulate) -> bool:
    """Whether a total is kept in a wider type than that of what is added."""
    return computed_in(statement.value.dtype) is not statement.value.dtype


AT = """\
def at(place, length):
    if not -length <= place < length:
        raise IndexError(f"index {place} is out of bounds for {length} elements")
    return place + length if place < 0 else place""".splitlines()
_NOT_LITERAL = ("inf", "-inf", "nan")


def _lowest(dtype: DType) -> str:
    if dtype.is_floating_point:
        return "-np.inf"
    return "0" if dtype.name == "bool" or not dtype.is_signed else f"np.iinfo({scalar_type(dtype)}).min"


def _parts(expression: Expression) -> list[Expression]:
    """An expression's parts at all depths, each once for every use."""
    found, pending = [], [expression]
    seen: set[Expression] = set()
    while pending:
        at = pending.pop()
        found.append(at)
        if at not in seen:
            seen.add(at)
            pending += [*at.parts(), *index_values(at)]
    return found


def source(kernel: LoopKernel, name: str = "kernel") -> str:
    """A module with one function, ``name(buffers...)``, whose arguments are flat arrays in the order of the buffers."""
    names = [f"{'out' if buffer.written else 'x'}{number}" for number, buffer in enumerate(kernel.buffers)]
    lines = ["import numpy as np"]
    printed, before = [], 0
    for (nest, _, start), phase in zip(kernel.parts, kernel.phases, strict=True):
        printed += ["    # when all of that is done:"] if phase > before else []
        printed += _Printer(nest, names[start:]).print()
        before = phase
    text = "\n".join(printed)
    if "bfloat16" in text:
        lines.append("from ml_dtypes import bfloat16")
    if "erf(" in text:
        lines.append("from minitorch.primitives.erf import erf")
    if "at(" in text.replace("float(", ""):
        lines += ["", "", *AT]
    lines += ["", "", f"def {name}({', '.join(names)}):"]
    for buffer_name, buffer in zip(names, kernel.buffers, strict=True):
        lines.append(f"    # {buffer_name}: {buffer.dtype.short}[{','.join(map(str, buffer.shape))}]")
    return "\n".join([*lines, text, ""])


def compiled(kernel: LoopKernel) -> Any:
    """The function of `source`, to be called."""
    space: dict[str, Any] = {}
    exec(compile(source(kernel), "<kernel>", "exec"), space)
    return space["kernel"]
