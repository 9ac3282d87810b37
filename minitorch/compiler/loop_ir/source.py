"""The printer: a procedure of the tiled loop IR as Python that runs, in the order of the machine code.

Every loop, guard, load and store of the procedure is a line, and so is a value that is used more than once. The text of
a kernel's definition is this text, and so is the one after each rewrite of its schedule: it computes the numbers of the
machine code, slowly. Arrays are flat, as memory is. A comment says how a loop is run (in parallel, as lanes of a
vector, unrolled), and where a local array lies (on the stack, in registers).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from ...dtypes import DType
from ...ir import PRIMITIVES
from .expressions import ALWAYS, Apply, Choose, Expression, Inside, Load, Number, Position
from .index import Division, Index, Looked, Variable
from .loops import Buffer, LoopKernel
from .tree import Accumulate, Allocate, Block, For, If, Kind, Local, Place, Prefetch, Procedure, Read, Store, procedure

Array = np.ndarray[Any, Any]

# How numbers are combined, by primitive. Arguments are NumPy scalars, so arithmetic has the element type's rounding and
# overflow.
REDUCTIONS = {"reduce_sum": "{} + {}", "reduce_prod": "{} * {}", "reduce_max": "np.maximum({}, {})"}
LOOPS = {
    Kind.SERIAL: "",
    Kind.PARALLEL: "  # in parallel",
    Kind.VECTOR: "  # vector",
    Kind.UNROLLED: "  # unrolled",
    Kind.OUTLINED: "  # outlined",
}
PLACES = {
    Place.STACK: "on the stack",
    Place.REGISTERS: "in registers",
    Place.LOADED: "filled when the program is loaded",
}

# Nested brackets in a line; deeper values get a line of their own. Python's parser takes up to 200.
DEEPEST = 40

AT = """\
def at(place, length):
    if not -length <= place < length:
        raise IndexError(f"index {place} is out of bounds for {length} elements")
    return place + length if place < 0 else place""".splitlines()


def scalar_type(dtype: DType) -> str:
    """Return the constructor of a number of an element type."""
    return "bfloat16" if dtype.name == "bfloat16" else "np.bool_" if dtype.name == "bool" else f"np.{dtype.name}"


class _Printer:
    """Printer of procedures.

    Args:
        names: of the buffers.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.lines: list[str] = []
        self.known: dict[Expression, str] = {}  # the names of values that have a line
        self.given = 0  # names of values
        self.inside: set[tuple[int, Index, int]] = set()  # conditions that hold where text is being written
        self.depths: dict[Expression, int] = {}

    def block(self, block: Block, depth: int) -> None:
        """Print statements, one after another."""
        rest = list(block)
        while rest:
            run = list(takewhile(lambda each: isinstance(each, (Store, Accumulate)), rest))
            if run:
                self._run(run, depth)  # type: ignore[arg-type]
                del rest[: len(run)]
                continue
            match rest.pop(0):
                case Allocate(local) if local.size != 1:
                    array = f"np.empty({local.size}, {scalar_type(local.dtype)})"
                    self._line(depth, f"{local.name} = {array}  # {PLACES[local.place]}")
                case Prefetch(argument, index):
                    self._line(depth, f"pass  # prefetch {self._element(argument, index)}")
                case For(variable, body, kind):
                    self._line(depth, f"for {variable} in range({variable.extent}):{LOOPS[kind]}")
                    self.block(body or (), depth + 1)
                    if not body:
                        self._line(depth + 1, "pass")
                case If(inside, body):
                    self._line(depth, f"if {self._inside(self._unknown(inside))}:")
                    before = self.inside
                    self.inside = before | set(inside.bounds)
                    self.block(body, depth + 1)
                    self.inside = before

    def _line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def _run(self, run: Sequence[Store | Accumulate], depth: int) -> None:
        """Print statements in a run: a value keeps its name until an array that it reads is written."""
        self.known, self.depths, self.given = {}, {}, 0
        written: list[int | Local] = []
        uses: Counter[tuple[Expression, int]] = Counter()
        for statement in run:
            uses.update((part, self._epoch(part, written)) for part in _parts(statement.value))
            written.append(statement.array)
        for number, statement in enumerate(run):
            self._name_shared(statement.value, uses, written[:number], depth)
            target, value = self._element(statement.array, statement.index), self.text(statement.value)
            if isinstance(statement, Accumulate):
                form = REDUCTIONS[statement.reduction]
                value = form.format(target, bare(value) if form.endswith(")") else value)
            past_caches = isinstance(statement, Store) and statement.past_caches
            self._line(depth, f"{target} = {bare(value)}{'  # past the caches' * past_caches}")
            self.known = {part: name for part, name in self.known.items() if statement.array not in part.reads}
            self.depths = {}

    def _name_shared(
        self,
        expression: Expression,
        uses: Counter[tuple[Expression, int]],
        written: Sequence[int | Local],
        depth: int,
    ) -> None:
        """Give a line to each value that is used more than once or nested too deeply, innermost first."""
        if expression in self.known:
            return
        if not isinstance(expression, Choose):  # a part that is not chosen must not be computed
            for part in (*expression.parts(), *expression.values):
                self._name_shared(part, uses, written, depth)
        if isinstance(expression, Choose) and self._depth(expression) > DEEPEST:
            self._branches(expression, uses, written, depth)
        if not isinstance(expression, (Apply, Load, Read)) or expression in self.known:
            return
        if isinstance(expression, Read) and expression.local.size == 1:
            return  # it is a name
        if uses[expression, self._epoch(expression, written)] > 1 or self._depth(expression) > DEEPEST:
            text = bare(self.text(expression))
            self._line(depth, f"{self._named(expression)} = {text}")

    def _named(self, expression: Expression) -> str:
        name = self.known[expression] = f"t{self.given}"
        self.given += 1
        self.depths[expression] = 0
        return name

    def _branches(
        self, choice: Choose, uses: Counter[tuple[Expression, int]], written: Sequence[int | Local], depth: int
    ) -> None:
        """Print a select as an ``if`` statement, in which each alternative has its own lines."""
        name, inside = self._named(choice), set(choice.inside.bounds)
        for head, part, holds in (
            (f"if {self._inside(choice.inside)}:", choice.here, inside),
            ("else:", choice.elsewhere, set()),
        ):
            known, before, depths = self.known, self.inside, self.depths
            self.known, self.inside, self.depths = dict(known), before | holds, {}
            self._line(depth, head)
            self._name_shared(part, uses, written, depth + 1)
            self._line(depth + 1, f"{name} = {bare(self.text(part))}")
            self.known, self.inside, self.depths = known, before, depths

    def _epoch(self, expression: Expression, written: Sequence[int | Local]) -> int:
        """Return the number of the last statement that wrote to an array that a value reads."""
        return max((number for number, array in enumerate(written) if array in expression.reads), default=-1)

    def _depth(self, expression: Expression) -> int:
        """Return the nesting depth of a value within its line."""
        found = self.depths.get(expression)
        if found is None:
            parts = (self._depth(part) for part in expression.parts() if part not in self.known)
            found = self.depths[expression] = 1 + max(parts, default=0)
        return found

    def _element(self, array: int | Local, index: Index) -> str:
        if isinstance(array, Local) and array.size == 1:
            return array.name
        return f"{array.name if isinstance(array, Local) else self.names[array]}[{self.index(index)}]"

    def index(self, index: Index) -> str:
        """Return an index as Python."""
        parts = []
        for atom, factor in index.terms:
            if isinstance(atom, Division):
                text = f"{self._bracketed(atom.index)} {atom.sign} {atom.divisor}"
            elif isinstance(atom, Looked):
                text = f"at({self.text(atom.value)}, {atom.extent})"
            else:
                text = str(atom)
            text = text if isinstance(atom, (Variable, Looked)) else f"({text})"
            parts.append(text if factor == 1 else f"{factor} * {text}")
        if index.constant or not parts:
            parts.append(str(index.constant))
        return " + ".join(parts).replace("+ -", "- ")

    def _bracketed(self, index: Index) -> str:
        alone = not index.constant and len(index.terms) == 1 and index.terms[0][1] == 1
        return self.index(index) if alone else f"({self.index(index)})"

    def _unknown(self, inside: Inside) -> Inside:
        """Return the conditions that are not known to hold here."""
        return Inside(tuple(bound for bound in inside.bounds if bound not in self.inside))

    def _inside(self, inside: Inside) -> str:
        found = []
        for low, index, high in inside.bounds:
            lowest, highest = index.bounds
            if lengths := [
                (atom, -by) for atom, by in index.terms if isinstance(atom, Variable) and atom.place is not None
            ]:
                end = Index(tuple(lengths), high)
                found.append(f"{self.index(index + (end - high))} < {self.index(end)}")
                continue
            left = f"{low} <= " if lowest < low else ""
            right = f" < {high}" if highest >= high else ""
            found.append(f"{left}{self.index(index)}{right}")
        return " and ".join(found) or "True"

    def text(self, expression: Expression) -> str:
        """Return an expression as Python."""
        if expression in self.known:
            return self.known[expression]
        match expression:
            case Number():
                value = repr(expression.value)
                value = {"inf": "np.inf", "-inf": "-np.inf", "nan": "np.nan"}.get(value, value)
                return f"{scalar_type(expression.dtype)}({value})"
            case Load():
                text, unknown = self._element(expression.buffer, expression.index), self._unknown(expression.inside)
                if unknown != ALWAYS:
                    return f"({text} if {self._inside(unknown)} else {scalar_type(expression.dtype)}(0))"
                return text
            case Read():
                return self._element(expression.local, expression.index)
            case Position():
                return f"{scalar_type(expression.dtype)}({self.index(expression.index)})"
            case Choose():
                elsewhere, before = self.text(expression.elsewhere), self.inside
                unknown = self._unknown(expression.inside)
                self.inside = before | set(expression.inside.bounds)
                here = self.text(expression.here)
                self.inside = before
                return f"({here} if {self._inside(unknown)} else {elsewhere})" if unknown != ALWAYS else here
            case Apply():
                return self._apply(expression)
        raise TypeError(f"{type(expression).__name__} is not an expression of a procedure")

    def _apply(self, expression: Apply) -> str:
        name, arguments = expression.primitive, [self.text(part) for part in expression.arguments]
        if name == "where":
            condition, a, b = arguments
            return f"({a} if {condition} else {b})"
        if name == "cast":
            return f"{scalar_type(expression.dtype)}({bare(arguments[0])})"
        if name == "nearest":
            return f"{scalar_type(expression.dtype)}(np.rint({bare(arguments[0])}))"
        if name == "bitcast":
            return f"{arguments[0]}.view({scalar_type(expression.dtype)})"
        if expression.arguments[0].dtype.name == "bool" and name in ("add", "mul"):
            name = {"add": "bitwise_or", "mul": "bitwise_and"}[name]
        form = "{} * {} + {}" if name == "multiply_add" else PRIMITIVES[name].element
        if form.endswith(")"):  # a call, whose arguments need no brackets
            return form.format(*map(bare, arguments))
        return f"({form.format(*arguments)})"


def bare(text: str) -> str:
    """Return a text without its outer brackets.

    Example:
        >>> bare("(a + (b * c))"), bare("(a + b) * (c + d)")
        ('a + (b * c)', '(a + b) * (c + d)')
    """
    if not text.startswith("("):
        return text
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return text[1:-1] if place == len(text) - 1 else text
    return text


def _parts(expression: Expression) -> list[Expression]:
    """Return an expression's parts at all depths, once for every use."""
    found, pending = [], [expression]
    seen: set[Expression] = set()
    while pending:
        at = pending.pop()
        found.append(at)
        if at not in seen:
            seen.add(at)
            pending += [*at.parts(), *at.values]
    return found


def source(kernel: LoopKernel, name: str = "kernel") -> str:
    """Return the definition of a kernel as Python: every loop as written, without a schedule."""
    return printed(kernel, (procedure(nest, buffers) for nest, buffers, _ in kernel.parts), name)


def printed(kernel: LoopKernel, procedures: Iterable[Procedure], name: str = "kernel") -> str:
    """Return a module with one function, ``name(buffers...)``, of flat arrays in the order of the buffers.

    Args:
        kernel: its buffers and phases.
        procedures: one for each of its nests.
    """
    names = names_of(kernel.buffers)
    body, before = [], 0
    for (_, _, start), phase, one in zip(kernel.parts, kernel.phases, procedures, strict=True):
        body += ["    # when all of that is done:"] if phase > before else []
        printer = _Printer(names[start:])
        for length, number in one.lengths.items():
            printer._line(1, f"{length} = int({names[start + number]}[{length.place}])")
        printer.block(one.body, 1)
        body += printer.lines
        before = phase
    text = "\n".join(body)
    lines = ["import numpy as np"]
    if "bfloat16" in text:
        lines.append("from ml_dtypes import bfloat16")
    if "erf(" in text:
        lines.append("from minitorch.primitives.erf import erf")
    if re.search(r"\bat\(", text):
        lines += ["", "", *AT]
    lines += ["", "", f"def {name}({', '.join(names)}):"]
    for buffer_name, buffer in zip(names, kernel.buffers, strict=True):
        lines.append(f"    # {buffer_name}: {buffer.dtype.short}[{','.join(map(str, buffer.shape))}]")
    return "\n".join([*lines, text, ""])


def names_of(buffers: Iterable[Buffer]) -> list[str]:
    """Return the arguments of a kernel."""
    return [f"{'out' if buffer.written else 'x'}{number}" for number, buffer in enumerate(buffers)]


def compiled(text: str, name: str = "kernel", **known: Any) -> Any:
    """Return the function of a text that `printed` wrote. Like machine code, it does not warn of overflow.

    Args:
        text: the module.
        name: of the function.
        known: further names that the text may use.
    """
    exec(compile(text, f"<{name}>", "exec"), known)
    return np.errstate(all="ignore")(known[name])


def run(kernel: LoopKernel, buffers: Sequence[Array]) -> None:
    """Run the definition of a kernel on flat arrays, one per buffer."""
    compiled(source(kernel))(*buffers)
