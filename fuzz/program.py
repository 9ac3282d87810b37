"""A program as data: arguments, statements, results; and its text, Python for minitorch and PyTorch alike.

Statements refer to values by name, so one of them can be taken out, or put in another place, without a parser.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from .values import DTYPES, Input


@dataclass(frozen=True)
class Ref:
    """The value of that name."""

    name: str


@dataclass(frozen=True)
class Code:
    """An expression that is written as it stands, such as ``mt.float32``."""

    text: str


def text_of(operand: Any) -> str:
    """An operand as Python.

    Example:
        >>> text_of([Ref("x0"), (1, math.inf), Code("mt.int8")])
        '[x0, (1, mt.inf), mt.int8]'
    """
    if isinstance(operand, Ref):
        return operand.name
    if isinstance(operand, Code):
        return operand.text
    if isinstance(operand, slice):
        parts = ["" if each is None else str(each) for each in (operand.start, operand.stop)]
        return ":".join(parts) + (f":{operand.step}" if operand.step is not None else "")
    if operand is Ellipsis:
        return "..."
    if isinstance(operand, tuple):
        return "(" + ", ".join(map(text_of, operand)) + ("," if len(operand) == 1 else "") + ")"
    if isinstance(operand, list):
        return "[" + ", ".join(map(text_of, operand)) + "]"
    if isinstance(operand, float) and not math.isfinite(operand):
        return "mt.nan" if math.isnan(operand) else "mt.inf" if operand > 0 else "-mt.inf"
    return repr(operand)


def names_in(operand: Any) -> Iterator[str]:
    """The names that an operand reads."""
    if isinstance(operand, Ref):
        yield operand.name
    elif isinstance(operand, (tuple, list)):
        for each in operand:
            yield from names_in(each)


@dataclass(frozen=True)
class Statement:
    """A call, and the names of its results.

    Attributes:
        gives: names of the results; none if the call is made for what it changes.
        callee: ``"mt.add"``, ``"F.relu"``; ``".add_"``, a method of the first operand; ``"{} + {}"``, a form.
        args: operands: `Ref`, `Code`, numbers, strings, and tuples and lists of these.
        kwargs: operands that are given by name.
        unpacks: whether the result is a tuple, of which each element gets a name.
    """

    gives: tuple[str, ...]
    callee: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    unpacks: bool = False

    @property
    def takes(self) -> set[str]:
        """The names that are read."""
        return set(names_in([*self.args, *self.kwargs.values()]))

    @property
    def text(self) -> str:
        """The line."""
        args = [text_of(each) for each in self.args]
        named = [f"{name}={text_of(each)}" for name, each in self.kwargs.items()]
        if "{" in self.callee:
            call = self.callee.format(*args)
        elif self.callee.startswith("."):
            call = f"{args[0]}{self.callee}({', '.join([*args[1:], *named])})"
        else:
            call = f"{self.callee}({', '.join([*args, *named])})"
        if not self.gives:
            return call
        return f"{', '.join(self.gives)}{',' if self.unpacks else ''} = {call}"


@dataclass(frozen=True)
class Program:
    """What is run.

    Attributes:
        inputs: the arguments.
        body: statements of the function.
        results: names of what it returns.
        setup: lines before the function: models and optimisers.
        state: expressions for tensors outside of the function that are compared, too.
        calls: how often the function is called.
        backward: whether gradients are taken of the results, from outside of the function.
        warm: whether it is called with copies before, which have the same numbers and lie in memory in order.
    """

    inputs: tuple[Input, ...]
    body: tuple[Statement, ...]
    results: tuple[str, ...]
    setup: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    calls: int = 1
    backward: bool = False
    warm: bool = False

    @property
    def callees(self) -> list[str]:
        """What is called, in order."""
        return [statement.callee for statement in self.body]

    @property
    def text(self) -> str:
        """The definition of ``make(mt, F)``, which returns the function and what it changes outside of itself."""
        inner = [statement.text for statement in self.body]
        returned = f"return ({''.join(name + ', ' for name in self.results)})" if self.results else "return ()"
        lines = ["def make(mt, F):", *(f"    {line}" for line in self.setup)]
        lines += [f"    def program({', '.join(each.name for each in self.inputs)}):"]
        lines += [f"        {line}" for line in [*inner, returned]]
        lines += [f"    return program, lambda: [{', '.join(self.state)}]"]
        return "\n".join(lines) + "\n"

    @property
    def types(self) -> set[str]:
        """The types that are mentioned."""
        return {each.dtype for each in self.inputs} | set(re.findall(r"mt\.(\w+)", self.text)) & set(DTYPES)

    @property
    def returning_all(self) -> Program:
        """The program with every value that it computes as a result."""
        return replace(self, results=tuple(name for statement in self.body for name in statement.gives))

    def without_unused(self) -> Program:
        """The program without arguments that nothing reads."""
        used = set(self.results).union(*[statement.takes for statement in self.body])
        used |= {each.view_of for each in self.inputs if each.name in used and each.view_of}
        return replace(self, inputs=tuple(each for each in self.inputs if each.name in used))
