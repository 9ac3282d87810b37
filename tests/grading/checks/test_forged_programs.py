"""Answers that lie: the student's process may say anything, and gets points for nothing but programs that are right.

Each of these had all points of its task once. The numbers on which a program was tried were drawn from the CRC-32 of
its text, which is linear: 64 letters that mean nothing make any text have any CRC.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minitorch.graph import Graph
from minitorch_grading.checks import TASKS
from minitorch_grading.checks.machines.kernel_source import Array, Machine, NotRunError
from minitorch_grading.checks.primitives import _LENGTH, _MISH, _NORM, Operator, near
from minitorch_grading.checks.reductions import _ROW
from minitorch_grading.harness.plain import arrays, decode, encode
from tests.grading.checks.examining import examined

KNOWN = 12345  # the CRC of every forged text
SEEDS = (20, 21)


def steered(text: str, filling: str, rest: str) -> str:
    """A text whose CRC is known: between two pieces of it are 64 letters, each one of two."""

    def crc(chosen: int) -> int:
        return zlib.crc32((text + "".join(filling[chosen >> i & 1] for i in range(64)) + rest).encode())

    basis: dict[int, tuple[int, int]] = {}

    def reduced(value: int, chosen: int) -> tuple[int, int]:
        while value and (found := basis.get(value.bit_length())):
            value, chosen = value ^ found[0], chosen ^ found[1]
        return value, chosen

    for i in range(64):
        value, chosen = reduced(crc(1 << i) ^ crc(0), 1 << i)
        if value:
            basis[value.bit_length()] = value, chosen
    _, chosen = reduced(KNOWN ^ crc(0), 0)
    assert crc(chosen) == KNOWN
    return text + "".join(filling[chosen >> i & 1] for i in range(64)) + rest


def a_record_of_results(case: Any) -> str:
    part, shapes = case
    random = np.random.default_rng(KNOWN)
    numbers = {name: _ROW.draws[part](random, math.prod(shapes[name])) for name in ("q", "keys", "values")}
    right = _ROW.right({name: array.reshape(shapes[name]) for name, array in numbers.items()})
    return steered("add 1 0.", "01", "".join(f"\nstore out {i} {float(value)!r}" for i, value in enumerate(right)))


def a_graph_of_results(operator: Operator) -> Callable[[Any], str]:
    """The tangent of the function at numbers that are known: two operations, with the right values and gradients."""

    def answer(case: Any) -> str:
        part, shape = case
        x = operator.draws.get(part, near)(np.random.default_rng(KNOWN), tuple(shape)).astype(np.float32)
        value, slope = operator.value(x), operator.gradient(x)
        sums = value.shape != x.shape
        slope = np.zeros_like(x) if operator is _NORM else slope.astype(np.float32)
        rest = value - ((slope * x).sum(-1) if sums else slope * x)
        lines = [f"graph(x: f32{list(x.shape)}):", f"%0 = constant({slope.tolist()}) : f32{list(x.shape)}"]
        lines += ["%1 = mul(x, %0)", "%2 = reduce_sum(%1, dims=[1])" if sums else "%2 = mul(%1, 1.0)"]
        lines += [f"%3 = constant({rest.tolist()}) : f32{list(rest.shape)}", "%4 = add(%2, %3)", "return %4"]
        return steered("\n".join(lines), " \n", "")

    return answer


def a_copy(case: Any) -> str:
    return "def kernel(x, y, out):\n    for i in range(len(out)):\n        out[i] = x[i]"


def a_copy_with_results(case: Any) -> Any:
    return a_copy(case), [0.0] * 5


def what_was_expected(case: Any) -> Any:
    """The case of an expression once said how many operations are left of it."""
    return Graph.parse(case[1]).inputs and case[1].splitlines()[0] + "\nreturn x"


LIES: dict[str, tuple[str, Callable[[Any], Any], float]] = {
    "a source and its results": ("fusion.generate", a_copy_with_results, 0),
    "a source that does nothing": ("fusion.generate", a_copy, 0),
    "what becomes of an expression": ("rewriting.laws", what_was_expected, 12),  # three parts, by always saying x
    "a record of results": ("reductions.attention_row", a_record_of_results, 0),
    "a graph of results": ("primitives.mish", a_graph_of_results(_MISH), 0),
    "a graph of lengths": ("primitives.lengths", a_graph_of_results(_LENGTH), 0),
    "a graph of rows": ("primitives.layer_norm", a_graph_of_results(_NORM), 0),
}


@pytest.mark.parametrize(("task", "lie", "points"), LIES.values(), ids=LIES)
def test_a_lie_has_no_points_and_no_count(task: str, lie: Callable[[Any], Any], points: float) -> None:
    score = examined(TASKS[task], lambda send: lambda case: encode(lie(arrays(decode(case)))), SEEDS)
    assert score.points <= points, score
    assert not any(part.count for part in score.parts), score


def test_a_case_does_not_say_what_is_expected() -> None:
    for part, text in TASKS["rewriting.laws"].inputs(5):
        assert (part, type(text)) == ("an expression", str)


# Sources --------------------------------------------------------------------------------------------------------


def ran(source: str, *numbers: list[float]) -> tuple[list[Array], Machine]:
    machine, found = Machine(), [Array(list(each)) for each in numbers]
    machine.run(source, found)
    return found, machine


def test_loads_and_operations_of_a_kernel_are_counted() -> None:
    for body in (
        "for i in range(len(x)):\n  v = x[i]\n  out[i] = math.exp(v) * v + 2.0",
        "i = 0\n while i < len(x):\n  v = x[i]\n  out[i] = max(v * v, v) + 1.0\n  i += 1",
        "out[:] = [v * v * v - 1.0 for v in x]",
        "twice = lambda a: a + a\n for i, v in enumerate(x):\n  out[i] = twice(v)\n  out[i] += v\n  out[i] *= 1.0",
    ):
        (x, _), machine = ran(f"import math\ndef kernel(x, out):\n {body}", [1.0, 2.0], [0.0, 0.0])
        assert machine.operations == 6 and x.loads == {0: 1, 1: 1}, body


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("while True: pass", "does a loop never end"),
        ("[0 for a in range(9) for b in range(9999)]", "does a loop never end"),
        ("x = 3\nwhile True: x = x * x", "a whole number of more than"),
        ("x = 9 ** 9 ** 9", "the source uses `9 ** 9 ** 9`"),
        ("x = [0] * 10000000000", "a list of more than"),
        ("x = 'a' * 3000000", "a list of more than"),
        ("x = [*range(10000000000)]", "it loops over more than"),
        ("def f(): return f()\nf()", "it raises RecursionError"),
        (f"x = {'(' * 300}{')' * 300}", "it raises SyntaxError"),
        (f"x = {'-' * 9000}1", "it raises"),
        ("x = ().__class__", "the source uses ().__class__"),
        ("from math import sys", "it raises ImportError"),
        ("import math as _step", "the source uses _step"),
        ("_operation = 1", "the source uses _operation"),
        ("import os", "the source uses import os"),
        ("open('/etc/passwd')", "it raises NameError: name 'open' is not defined"),
        ("class A: pass", "the source uses `class A:"),
        ("x = f'{1}'", "the source uses `f'{1}'`"),
        ("kernel = 1", "the source defines no function `kernel`"),
    ],
)
def test_a_source_reaches_nothing_but_its_arrays(source: str, says: str) -> None:
    with pytest.raises(NotRunError, match=re.escape(says)):
        ran(source)
