"""Drivers of exercise 02: a tape of numbers, the notes of a program, and a function to differentiate."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .driver import Driver, call_purely, driver
from .garbage import young
from .limit import Limited
from .needs import EAGER as NEEDS
from .plain import Fault

# --- what the notebook works with, too --------------------------------------------------------------------------


class Var:
    """A number in a program; `grad` is None until a way back has come to it."""

    __slots__ = ("__weakref__", "grad", "value")

    def __init__(self, value: float) -> None:
        self.value = float(value)
        self.grad: float | None = None

    def __repr__(self) -> str:
        return f"Var({self.value:g})"


@dataclass(frozen=True, eq=False)
class Entry:
    """What a tape notes about an operation.

    Attributes:
        result: what it made.
        operands: of what.
        pulls: of each operand, the function from the cotangent of the result to the operand's share.
    """

    result: Var
    operands: tuple[Var, ...]
    pulls: tuple[Callable[[float], float], ...]


class Tape:
    """The operations of a program, in the order in which they ran.

    Example:
        >>> tape, x = Tape(), Var(3)
        >>> y = tape.mul(x, x)
        >>> y, [pull(1.0) for pull in tape.entries[0].pulls]
        (Var(9), [3.0, 3.0])
    """

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def _noted(self, value: float, operands: tuple[Var, ...], *pulls: Callable[[float], float]) -> Var:
        result = Var(value)
        self.entries.append(Entry(result, operands, pulls))
        return result

    def add(self, a: Var, b: Var) -> Var:
        """The sum."""
        return self._noted(a.value + b.value, (a, b), lambda g: g, lambda g: g)

    def mul(self, a: Var, b: Var) -> Var:
        """The product."""
        x, y = a.value, b.value
        return self._noted(x * y, (a, b), lambda g: g * y, lambda g: g * x)

    def exp(self, a: Var) -> Var:
        """The exponential."""
        y = math.exp(a.value)
        return self._noted(y, (a,), lambda g: g * y)

    def tanh(self, a: Var) -> Var:
        """The hyperbolic tangent."""
        y = math.tanh(a.value)
        return self._noted(y, (a,), lambda g: g * (1 - y * y))


HIDDEN, WEIGHTS = 4, 17  # hidden units of the network that `train` trains, and its weights: 4 for each, and a bias


def loss(tape: Tape, weights: Sequence[Var], points: Iterable[Sequence[float]], labels: Sequence[float]) -> Var:
    """The mean squared error of a network with two inputs, four hidden units with tanh, and one output.

    Args:
        tape: notes the operations.
        weights: for each hidden unit the factors of both inputs, its bias and the factor of its result; last the bias
            of the output.
        points: the two inputs of each example.
        labels: the output that each example should have.

    Example:
        >>> loss(Tape(), [Var(0.0)] * WEIGHTS, [(1.0, 2.0), (3.0, 4.0)], [1.0, -3.0])
        Var(5)
    """
    total = Var(0.0)
    for (x, y), label in zip(points, labels, strict=True):
        output = weights[-1]
        for unit in range(HIDDEN):
            a, b, bias, factor = weights[4 * unit : 4 * unit + 4]
            inside = tape.add(tape.add(tape.mul(a, Var(x)), tape.mul(b, Var(y))), bias)
            output = tape.add(output, tape.mul(factor, tape.tanh(inside)))
        error = tape.add(output, Var(-label))
        total = tape.add(total, tape.mul(error, error))
    return tape.mul(total, Var(1 / len(labels)))


Step = tuple[str, str, tuple[str, ...]]  # an operation, its result and its operands, by name


def alternatives(step: Step) -> list[set[str]]:
    """The sets of values that are enough for the way back through a step: one of them has to be kept.

    Example:
        >>> alternatives(("mul", "y", ("a", "b"))) == [{"a", "b"}]
        True
        >>> alternatives(("exp", "y", ("a",))) == [{"y"}, {"a"}]
        True
        >>> alternatives(("add", "y", ("a", "b")))
        [set()]
    """
    name, result, operands = step
    if name in ("add", "sub", "neg", "sum"):
        return [set()]
    if name == "mul":
        return [set(operands)]
    if name == "div":  # g / b, and -g * result / b or -g * a / b**2
        return [{operands[1], result}, set(operands)]
    return [{result}, {operands[0]}]  # exp, sqrt, tanh, relu: by the result, or from the operand again


# --- shares, train, saved ---------------------------------------------------------------------------------------

shares, train, saved = (Driver(f"autograd.{name}", call_purely, NEEDS) for name in ("shares", "train", "saved"))

# --- difference -------------------------------------------------------------------------------------------------


@driver("autograd.difference", NEEDS)
def difference(call: Limited, case: tuple[str, list[float]]) -> Any:
    """A point; the judge computes the function. The answer has the gradient, and the numbers afterwards."""
    given = list(case[1])
    answer = call(lambda at: call.consult([float(each) for each in at]), given)
    return answer if isinstance(answer, Fault) else (answer, given)


# --- backward_pass ----------------------------------------------------------------------------------------------


KEPT = "nothing is kept"  # the part of the task in which what is alive is counted


def _walked(backward_pass: Any, part: str, inputs: list[float], programs: list[tuple[list[Any], int]]) -> Any:
    """After each program: the gradients of the inputs, entries on the tape, and results that are still alive."""
    variables = [Var(value) for value in inputs]
    found = []
    for steps, end in programs:
        with young() as collect:
            tape, values = Tape(), list(variables)
            for name, *places in steps:
                values.append(getattr(tape, name)(*[values[place] for place in places]))
            watched = [weakref.ref(each) for each in values[len(inputs) :]]
            backward_pass(tape, values[end])
            gradients = [each.grad for each in variables]
            entries = len(tape.entries)
            del tape, values  # what is still alive then, somebody else holds
            if part == KEPT:
                collect()
        found.append((gradients, entries, sum(each() is not None for each in watched)))
    return found


@driver("autograd.backward_pass", NEEDS)
def backward_pass(call: Limited, case: tuple[str, Any]) -> Any:
    """Inputs, and programs that are run one after another with them, each with the place of its end."""
    return call.within(_walked, case[0], *case[1])
