"""A tracer: the rows that it writes down are run beside the function, with numbers drawn when the rows are there."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from ...asks import tracing as asks
from ...asks.plain import Fault, described
from ...asks.tracing import REFUSED
from ..samples import unforeseen
from ..smaller import indented
from ..task import Task, by_case

Cases = list[tuple[str, Any]]

TRACE = {"operators": 6, "numbers on the left": 5, "several values": 5, REFUSED: 4}

EVALUATE: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "neg": lambda a: -a,
    "exp": math.exp,
}


# The part and the source of each function; n and m are numbers that the seed draws, `random` is an expression.
SOURCES = (
    ("operators", "lambda x: x * n + x"),
    ("operators", "lambda x: (-x).exp() - n"),
    ("operators", "lambda x: ((x * x) * x) * n"),
    ("numbers on the left", "lambda x: n - x"),
    ("numbers on the left", "lambda x: n - m * x"),
    ("numbers on the left", "lambda x: n + x"),
    ("several values", "lambda x, y: (x + y) * (x - y)"),
    ("several values", "lambda x, y: (lambda z: z * z + z)(x * y)"),
    ("several values", "lambda x: x * x + x * x"),
    ("several values", "lambda x, y: (x * y, x + y)[1]"),
    ("several values", "lambda x, y: y"),
    ("several values", "lambda x, y: random"),
    (REFUSED, "lambda x: x * n if x - 1 else x"),
    (REFUSED, "lambda x: x * n if x * m == 0 else x"),
)


def _cases(seed: int) -> Cases:
    """The source of each function and the number of its arguments."""
    random = Random(seed)
    drawn = "x"
    for _ in range(6):
        drawn = random.choice(("(n - {})", "({} * y)", "(-{})", "(x + {})", "({} - m)", "({} * x)")).format(drawn)
    found = []
    for part, source in SOURCES:
        source = source.replace("random", drawn)
        for number in "nm":
            source = re.sub(rf"\b{number}\b", str(random.choice((2, 3, 0.5, 0.25, 1.5, 5))), source)
        found.append((part, (source, source.partition(":")[0].count(",") + 1)))
    return found


def _wrong(case: tuple[str, tuple[str, int]], answer: Any) -> str | None:
    part, (source, count) = case
    name = source.partition(": ")[2]
    if part == REFUSED:
        return _wrong_decision(name, answer)
    written, function = answer, eval(source, {})
    form = "a pair was expected, the list of rows and the name of the result"
    if type(written) is not tuple or len(written) != 2 or type(written[0]) is not list:
        return f"{name}: {form}, and it is {described(written)}"
    rows, result = written
    drawn = unforeseen().uniform(-2, 2, count).tolist()
    values: dict[str, float] = {f"x{place}": number for place, number in enumerate(drawn)}
    program = asks.traced(function, tuple(map(np.asarray, drawn)))
    right, done = float(asks.run_program(program, [*map(np.asarray, drawn)])), len(program[0])  # type: ignore[arg-type]
    listing = "\n" + indented("\n".join(f"{row}" for row in rows))
    for row in rows:
        if type(row) is not tuple or len(row) != 3 or type(row[0]) is not str or type(row[2]) not in (list, tuple):
            return f"{name}: a row is (name, operation, operands), and not {described(row)}"
        target, operation, operands = row
        if operation not in EVALUATE:
            return f"{name}: the operation {described(operation)} is none of {', '.join(EVALUATE)}{listing}"
        for each in operands:
            if type(each) is str and each not in values:
                return f"{name}: {each} is read before a row has made it{listing}"
            if type(each) not in (str, int, float):
                return f"{name}: an operand is a name or a number, and not {described(each)}{listing}"
        if target in values:
            return f"{name}: two results are called {target}{listing}"
        if len(operands) != (1 if operation in ("neg", "exp") else 2):
            return f"{name}: {operation} has {len(operands)} operands{listing}"
        values[target] = EVALUATE[operation](*[values[each] if type(each) is str else float(each) for each in operands])
    if type(result) is not str or result not in values:
        return f"{name}: the result is {described(result)}, which no row has made{listing}"
    if not math.isclose(values[result], right, rel_tol=1e-9, abs_tol=1e-9):
        turned = "; a number on the left is the first operand" if part == "numbers on the left" and "-" in name else ""
        shown = ", ".join(f"x{place} = {each:.6g}" for place, each in enumerate(drawn))
        return f"{name}: for {shown} the rows give {values[result]:.6g}, and the function {right:.6g}{turned}{listing}"
    if len(rows) != done:
        more = "; a row is written for each operation, when it is met" if len(rows) < done else ""
        return f"{name}: {len(rows)} rows for {done} operations{more}{listing}"
    return None


def _wrong_decision(name: str, answer: Any) -> str | None:
    if type(answer) is tuple and len(answer) == 2 and answer[0] == "TypeError":
        return None
    if type(answer) is tuple and len(answer) == 2 and type(answer[0]) is str:
        return f"{name}: it raises {answer[0]}: {answer[1]}; a TypeError is wanted"
    compared, held = "`==` without `__eq__` compares objects, and is False", "an object without `__bool__` is true"
    how = compared if "==" in name else held
    return f"{name}: one side was traced, and nobody is told; {how}"


def _judge(cases: Cases, answers: Any) -> Any:
    said = dict(by_case(TRACE, [(case[0], case) for case in cases], answers, _wrong))
    if said["operators"] and not said[REFUSED]:
        said[REFUSED] = "it counts when the part 'operators' is right"
    if all(isinstance(answer, Fault) for answer in answers if type(answer) is not tuple) and said["operators"]:
        said = {part: reason or said["operators"] for part, reason in said.items()}
    return said


trace = Task(asks.trace, TRACE, _cases, _judge)
