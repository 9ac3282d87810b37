"""The lengths among which those are looked for for which a decision falls otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..writing.polynomials import Polynomial
from ..writing.tracked import Decision, Formula, Quotient

LEAST = 3  # the smallest length that is tried; one of 1 is repeated where others are not
SCANNED = 600  # up to here every length is looked at for the other outcome of a decision
POWERS = 22  # and powers of two up to this one
COARSE = 24  # of two lengths together, those below this one and some others

FAR_POWERS = [(1 << k) + more for k in range(2, POWERS) for more in (0, 1, 1 << k - 1)]


def ladder(decisions: Sequence[Decision]) -> tuple[list[int], list[int]]:
    """The lengths among which the other outcome of a decision is looked for: of one size, and of two together."""
    bounds = bounds_of(decisions)
    lengths = (*range(LEAST, SCANNED), *FAR_POWERS, *bounds), (*range(LEAST, COARSE), *FAR_POWERS[:COARSE], *bounds)
    fine, coarse = (sorted({each for each in part if LEAST <= each <= 1 << POWERS}) for part in lengths)
    return fine, coarse[: SCANNED // 4]


def bounds_of(decisions: Sequence[Decision]) -> set[int]:
    """The numbers in decisions and their products, and those beside them."""
    numbers = {number for decision in decisions for side in (decision.left, decision.right) for number in _in(side)}
    numbers = {number for number in numbers if 0 < number < 1 << POWERS}
    products = {a * b for a in numbers for b in numbers} if len(numbers) <= 32 else set()
    return {number + more for number in numbers | products for more in (-1, 0, 1)}


def _in(formula: Formula) -> Iterator[int]:
    """The whole numbers in a formula."""
    pending = [formula]
    while pending:
        each = pending.pop()
        if isinstance(each, Polynomial):
            for monomial, factor in each.terms:
                yield abs(factor)
                pending += [side for atom in monomial if not isinstance(atom, str) for side in (atom.left, atom.right)]
        elif isinstance(each, Quotient):
            pending += [each.left, each.right]
        else:
            yield abs(int(each))
