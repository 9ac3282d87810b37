"""Symbolic sizes: formulas give the same for other lengths, and what is decided without a guard holds for all."""

from __future__ import annotations

import operator
from random import Random

import pytest

from minitorch.polynomials import least
from minitorch.sizes import Guards, Size, UndecidedError, hint_of, is_symbolic, larger, same, smaller, value_at

OPERATIONS = [
    operator.add,
    operator.sub,
    operator.mul,
    smaller,
    larger,
    operator.floordiv,
    operator.mod,
    operator.truediv,
]
DIVISIONS = OPERATIONS[5:]
COMPARISONS = [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]


@pytest.mark.parametrize("seed", range(10))
def test_arithmetic_and_comparisons_hold_for_other_lengths(seed):
    choose = Random(seed)
    for _ in range(100):
        guards = Guards()
        hints, others = ({name: choose.randrange(3, 60) for name in "nm"} for _ in range(2))
        numbers = [(guards.symbol(name, hints[name], 3), others[name]) for name in "nm"]
        numbers += [(number, number) for number in (1, 2, 5)]
        for _ in range(6):
            (a, c), (b, d) = choose.choice(numbers), choose.choice(numbers)
            apply = choose.choice(OPERATIONS)
            if apply in DIVISIONS and (hint_of(b) == 0 or d == 0):
                continue
            found, other = apply(a, b), apply(c, d)
            assert hint_of(found) == apply(hint_of(a), hint_of(b))
            assert value_at(found, others) == other and value_at(found, hints) == hint_of(found), found
            if type(found) is Size:
                assert least(found.polynomial) <= min(other, hint_of(found)), found
            if isinstance(found, int):
                numbers.append((found, other))
            for compare in COMPARISONS:
                before = len(guards.found)
                outcome = compare(a, b)
                assert outcome == compare(hint_of(a), hint_of(b))
                if (
                    is_symbolic(a)
                    and len(guards.found) == before
                    and all(each.holds(others) for each in guards.found.values())
                ):
                    assert outcome == compare(c, d), (a, compare, b)


def test_questions_are_remembered_once_unless_the_answer_is_the_same_for_all():
    guards = Guards()
    n, m = guards.symbol("n", 8, 3), guards.symbol("m", 16, 3)
    for _ in range(2):
        assert n < 100 and not n * 2 > m + 1 and n % 4 != 2
    assert n + 1 > n and n * 2 - n == n and (n * m) // m == n and n != 2 and -(-n // 2) < n and 2 * -(-n // 2) >= n
    assert [str(each) for each in guards.found.values()] == ["n < 100", "2 * n > m + 1", "-4 * (n // 4) + n == 2"]
    assert [each.holds({"n": 100, "m": 2}) for each in guards.found.values()] == [False, False, True]
    assert all(each.source is not None and each.source.file == __file__ for each in guards.found.values())


def test_a_size_is_an_int_and_becomes_a_plain_one_where_python_needs_it():
    guards = Guards()
    n = guards.symbol("n", 5)
    assert isinstance(n, int) and not isinstance(n / 2, int) and isinstance(n / 2, float)
    assert same(n + 1, 1 + n) and not same(n, 5) and not guards.found
    assert [len(range(n)), [7] * n, {5: 1}[n], n & 4, n.bit_length()] == [5, [7] * 5, 1, 4, 3]
    assert [str(each) for each in guards.found.values()] == ["n == 5"]


def test_passes_take_sizes_for_different_that_are_equal_by_coincidence():
    guards = Guards()
    n, m = guards.symbol("n", 5), guards.symbol("m", 5)
    assert n == 5
    with guards.settled():
        assert n == 5 and n + 1 == 6 and n != m and len(guards.found) == 1
        with pytest.raises(UndecidedError, match="n < 9"):
            _ = n < 9
        with pytest.raises(UndecidedError, match="m becomes a plain number"):
            range(m)
    assert n == m
