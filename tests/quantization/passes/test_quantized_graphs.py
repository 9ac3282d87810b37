"""Random programs in Q/DQ form hold their law in every mode, and wrong rules break it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import count, islice
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest

import minitorch as mt
from fuzz.quantized.generate import generate
from fuzz.quantized.graphs import OPERATIONS, Program
from fuzz.quantized.laws import CHEAP, MODES, Finding, fault, judge
from fuzz.quantized.shrink import shrink
from minitorch import primitives as P
from minitorch.backends import passes_for
from minitorch.graph.build import apply
from minitorch.graph.graph import Graph
from minitorch.ir import Node
from minitorch.passes import Pass
from minitorch_quantization.passes import dequantized, early_quantisation, integer_products, requantised
from minitorch_quantization.passes.dequantized import Dequantized, Found

EXPENSIVE = tuple(mode for mode in MODES if mode not in (*CHEAP, "eager"))


@pytest.mark.sweep(3)
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_passes_keep_the_law(first: int) -> None:
    assert not [str(each) for seed in range(first, first + 20) for each in judge(generate(seed), CHEAP)]


@pytest.mark.parametrize("first", range(0, 8, 2))
def test_compiled_programs_keep_the_law(first: int, sweep: bool) -> None:
    """Plain, frozen and in shadow mode; for the other targets, `python -m fuzz.quantized`."""
    seeds = range(first * (100 if sweep else 1), (first + 2) * (100 if sweep else 1))
    assert not [str(each) for seed in seeds for each in judge(generate(seed), EXPENSIVE)]


def test_programs_are_of_all_kinds() -> None:
    programs = [generate(seed) for seed in range(150)]
    made = Counter(step.name for program in programs for step in program.steps)
    assert set(made) == set(OPERATIONS)
    assert 50 < sum(program.is_exact for program in programs) < 100
    grids = [step.options["grid"] for program in programs for step in program.steps if step.name == "quantize"]
    assert {each.dtype for each in grids} == {"uint8", "int8"} and {each.axis for each in grids} == {None, 1}
    readers = Counter(
        (program.seed, step.operands[0]) for program in programs for step in program.steps if step.name == "quantize"
    )
    assert max(readers.values()) > 1  # two roundings of one value
    given = {name in program.given for program in programs for name in program.arrays if name[0] in "sz"}
    assert given == {True, False}
    assert str(generate(7)) == str(generate(7)) != str(generate(8))


def rounded_program() -> tuple[Program, list[np.ndarray[Any, Any]]]:
    """One that is not exact, whose results are all integers, and what eager mode finds."""
    for seed in count():
        program = generate(seed).observed()
        if not program.is_exact and all(program.steps[place].name == "quantize" for place in program.results):
            return program, [each.numpy() for each in program.function()(*program.arguments())]
    raise AssertionError


def test_the_law_of_rounded_programs_is_narrow() -> None:
    """A step is allowed at a tie alone: of single integers that are changed by one, most break it."""
    program, right = rounded_program()
    assert not fault(program, right)
    (last, *_), broken = right[-1:], 0
    for at in range(last.size):
        wrong = last.copy()
        wrong.flat[at] = wrong.flat[at] + 1 if wrong.flat[at] < 100 else wrong.flat[at] - 1
        broken += bool(fault(program, [*right[:-1], wrong]))
    assert broken >= 0.9 * last.size


# Wrong rules ----------------------------------------------------------------------------------------------------


def padded_with_0(node: Node, value: Dequantized) -> Dequantized:
    return replace(value, integers=apply(P.pad, value.integers, padding=node.params["padding"], value=0))


def turned(value: Dequantized, scale: Node) -> Dequantized | None:
    """The scales in the order of another axis: backwards."""
    dims = tuple(range(scale.spec.ndim))
    return replace(value, scale=apply(P.flip, scale, dims=dims)) if value.scale is None else None


def forgetting_sums(graph: Graph) -> Graph:
    """(p - y) * s + (q - z) * s as (p + q - 2 * y) * s."""

    def rule(node: Node, found: Found) -> tuple[Node, None] | None:
        if node.primitive is not P.add or not all(operand in found for operand in node.inputs):
            return None
        one, other = (found[operand] for operand in node.inputs)
        if one.zero is None or other.zero is None:
            return None
        shifted = integer_products._as_floats(replace(other, zero=one.zero), node)
        return apply(P.add, node.inputs[0], shifted), None

    return dequantized.rewrite_dequantized(graph, rule)


def moved_for_all_readers(graph: Graph) -> Graph:
    """A quantisation moved before a value that somebody else reads, who gets what is dequantised again."""
    users = graph.users()
    for node in graph.nodes:
        if node.primitive is P.cast and node.dtype in dequantized.BYTES and node.inputs[0].dtype is mt.float32:
            cone = early_quantisation._cone(node)
            if cone and len(users[cone[1]]) > 1 and cone[1].dtype is mt.float32:
                return graph.substitute({cone[1]: apply(P.cast, node, dtype=mt.float32)})
    return graph


PLANTED: dict[str, tuple[Any, str, Any]] = {
    "the zero point is forgotten in padding": (dequantized, "_padded", padded_with_0),
    "a zero point that is no byte is padded": (dequantized, "interval", lambda node: (0, 0)),
    "a scale along k is taken out of the sum": (integer_products, "_is_uniform", lambda value, axis: True),
    "a pool is behind a quantisation by a negative scale": (early_quantisation, "_is_positive", lambda node: True),
    "an average is behind a quantisation": (
        early_quantisation,
        "COMMUTING",
        early_quantisation.COMMUTING | {P.reduce_sum},
    ),
    "padding is behind a quantisation": (early_quantisation, "COMMUTING", early_quantisation.COMMUTING | {P.pad}),
    "another zero point is taken for the same": (requantised, "_is_zero", lambda zero, value: True),
    "another scale is taken for the same": (requantised, "_is_inverse", lambda inverse, value: True),
    "fewer integers are taken for all": (requantised, "shifted", lambda number, zero: ANY),
}


def broken_by(*modes: str) -> list[Finding]:
    """Programs that no longer hold their law: the first."""
    found = (finding for seed in range(600) for finding in judge(generate(seed), modes))
    return list(islice(found, 1))


@pytest.mark.sweep(2)
@pytest.mark.parametrize("label", PLANTED)
def test_wrong_rules_are_caught(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name, wrong = PLANTED[label]
    monkeypatch.setattr(module, name, wrong)
    assert broken_by("passes", "frozen passes")


def test_scales_of_the_wrong_axis_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(dequantized._ARITHMETIC, P.mul, turned)
    assert broken_by("passes", "frozen passes")


WRONG = {"a sum of two zero points": forgetting_sums, "a value of two readers": moved_for_all_readers}


@pytest.mark.parametrize("label", WRONG)
def test_wrong_passes_are_caught(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = (Pass(label, WRONG[label], ""), *passes_for("llvm"))
    monkeypatch.setitem(MODES, "planted", lambda program, x: mt.jit(program, backend="interpret", passes=planted)(*x))
    first, *_ = found = broken_by("planted")
    assert found
    small = shrink(
        generate(first.seed), lambda candidate: [each.mode for each in judge(candidate, ["planted"])] == ["planted"]
    )
    assert len(small.steps) < len(generate(first.seed).steps)
