"""Index algebra: simplified expressions have the values of the unsimplified ones."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from minitorch.compiler.loop_ir.index import (
    Index,
    Quotient,
    Remainder,
    Variable,
    linear,
    reshaped,
    unravelled,
    variable,
)

SHAPES = st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple)


def value(index: Index, places: dict[Variable, int]) -> int:
    total = index.constant
    for atom, factor in index.terms:
        if isinstance(atom, Variable):
            total += factor * places[atom]
        elif isinstance(atom, Quotient):
            total += factor * (value(atom.index, places) // atom.divisor)
        elif isinstance(atom, Remainder):
            total += factor * (value(atom.index, places) % atom.divisor)
    return total


@st.composite
def expressions(draw: st.DrawFn) -> tuple[Index, int, dict[Variable, int]]:
    """An expression, the number it should be, and the variables' values."""
    places: dict[Variable, int] = {}
    index, number = Index((), draw(st.integers(-5, 5))), 0
    number = index.constant
    for name in "ijk":
        extent = draw(st.integers(2, 7))
        at = variable(name, extent)
        place = draw(st.integers(0, extent - 1))
        places[Variable(name, extent)] = place
        factor = draw(st.integers(-4, 12))
        index, number = index + at * factor, number + place * factor
        for _ in range(draw(st.integers(0, 3))):
            divisor, offset = draw(st.integers(1, 8)), draw(st.integers(-5, 5))
            if draw(st.booleans()):
                index, number = index // divisor + offset, number // divisor + offset
            else:
                index, number = index % divisor + offset, number % divisor + offset
    return index, number, places


@settings(max_examples=500)
@given(expressions())
def test_simplification_keeps_the_value(drawn: tuple[Index, int, dict[Variable, int]]) -> None:
    index, number, places = drawn
    assert value(index, places) == number
    low, high = index.bounds
    assert low <= number <= high


@given(SHAPES)
def test_unravelling_undoes_linearising(shape: tuple[int, ...]) -> None:
    at = tuple(variable(f"d{number}", length) for number, length in enumerate(shape))
    assert unravelled(linear(at, shape), shape) == at


@given(SHAPES)
def test_one_variable_through_all_dimensions_costs_no_division(shape: tuple[int, ...]) -> None:
    position = variable("p", math.prod(shape))
    assert linear(unravelled(position, shape), shape) == position


def test_what_a_reshape_leaves_over() -> None:
    i, j = variable("i", 4), variable("j", 10)
    assert str((i * 10 + j) // 5) == "2*i + (j) // 5"
    assert (i * 10 + j) // 10 == i
    assert (i * 10 + j) % 10 == j
    assert ((i * 10 + j) // 5) // 2 == i
    assert (i * 6 + variable("k", 6)) // 12 == i // 2


@given(st.integers(2, 5), st.integers(2, 5), st.integers(1, 40))
def test_quotients_and_remainders_of_one_number_are_its_digits(first: int, second: int, step: int) -> None:
    """They are put together again, and a quotient of a quotient is one quotient, whatever is added."""
    x = variable("i", 7) * step + variable("l", 16)
    assert (x // first % second) * first + x % first == x % (first * second)
    assert (x // first) * first + x % first == x
    assert (x // first + variable("j", 3)) // second == (x + variable("j", 3) * first) // (first * second)


@given(st.permutations([2, 3, 2, 5, 1, 1]), st.integers(0, 2), st.integers(0, 2))
def test_another_shape_has_the_same_position(shape: list[int], first: int, second: int) -> None:
    """For any way to take neighbouring dimensions together."""
    wanted = [*shape[:first], math.prod(shape[first : first + 2]), *shape[first + 2 :]]
    wanted = [*wanted[:second], math.prod(wanted[second : second + 3]), *wanted[second + 3 :]]
    at = tuple(variable(f"d{number}", length) for number, length in enumerate(shape))
    assert linear(reshaped(at, tuple(shape), tuple(wanted)), tuple(wanted)) == linear(at, tuple(shape))
    other = tuple(variable(f"d{number}", length) for number, length in enumerate(wanted))
    places = reshaped(other, tuple(wanted), tuple(shape))
    for numbers in itertools.product(*map(range, wanted)):
        named = {Variable(f"d{number}", length): numbers[number] for number, length in enumerate(wanted)}
        assert value(linear(places, tuple(shape)), named) == value(linear(other, tuple(wanted)), named)


def test_dimensions_of_one_element_come_and_go() -> None:
    """Without arithmetic, even outside of what the dimensions hold: padding asks first whether a place is inside."""
    i, j = variable("i", 4) - 1, variable("j", 10) - 1
    assert reshaped((i, j), (4, 10), (4, 1, 10)) == (i, Index(), j)
