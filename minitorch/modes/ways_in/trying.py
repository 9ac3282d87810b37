"""The sizes that a function is traced with: those for which one of its decisions falls otherwise, and some others.

    first sizes ──trace──► decisions ──► sizes for which one falls otherwise ──trace──► further decisions ──► ...

This is concolic testing (Sen, Marinov and Agha, 2005) of what a function does with sizes. A decision is *covered* when
traces have reached it with both outcomes, or when the sizes for the other outcome are such that the function raises: it
is then taken for one that all sizes of the model have to meet. Sizes that hide from us, as in ``int(n)``, are the
reason for the others: near the first ones, far from them, and the largest that the function takes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ...errors import TranslationError
from ...export.onnx_format.writing.polynomials import Polynomial
from ...export.onnx_format.writing.sizes import Values, lined_up, named, refused
from ...export.onnx_format.writing.tracked import Decision, Formula, Quotient
from ..tracing.sized import Traced

LEAST = 3  # the smallest length that is tried; one of 1 is repeated where others are not
NEAR = (1, 2, -1, -2, 3, -3)  # what is added to a first size
FAR = (3, 4, 5, 529, 1031)
SCANNED = 600  # up to here every length is looked at for the other outcome of a decision
POWERS = 22  # and powers of two up to this one
PATH = 24  # decisions before one, of which sizes are wanted for which they fall as they did
COARSE = 24  # of two lengths together, those below this one and some others
ATTEMPTS = 12  # sizes that are tried for one outcome of a decision
ENOUGH = 3  # of which the function takes so many
CHOICE = 40  # and among how many these are chosen
MOST = 64  # traces for the sake of decisions


@dataclass(frozen=True)
class Trial:
    """One trace.

    Attributes:
        sizes: in the order of the symbols.
        trace: what came of it.
        why: the decision for whose sake it was made, if there is one.
    """

    sizes: Values
    trace: Traced
    why: Decision | None = None


class Trials:
    """The traces of a function with several sizes.

    Args:
        symbols: the names of the sizes.
        first: the sizes to begin with.
        trace: traces with some sizes, or raises whatever the function does.

    Attributes:
        found: the traces by their sizes, the first one first.
        whole: the trace with the most operations: some are not there if they change nothing.
        failed: what was raised, by sizes.
        required: decisions that fall alike for all sizes that the function takes.
    """

    def __init__(self, symbols: Sequence[str], first: Values, trace: Callable[[Values], Traced]) -> None:
        self.symbols, self.first, self._trace = symbols, first, trace
        self.whole = Trial(first, trace(first))
        self.found: dict[Values, Trial] = {first: self.whole}
        self.failed: dict[Values, Exception] = {}
        self.required: list[tuple[Decision, bool]] = []
        self._given_up: set[Decision] = set()

    def attempt(self, sizes: Values, why: Decision | None = None) -> Trial | None:
        """Trace with these sizes, unless that was done; None if the function raises.

        Raises:
            TranslationError: for a function that cannot be exported with these sizes, or has other operations.
        """
        if sizes in self.found or sizes in self.failed:
            return self.found.get(sizes)
        try:
            found = Trial(sizes, self._trace(sizes), why)
        except TranslationError:
            raise
        except Exception as error:  # whatever the user's function raises for sizes that it does not take
            self.failed[sizes] = error
            return None
        self.found[sizes], other = found, found
        if len(found.trace.graph.nodes) > len(self.whole.trace.graph.nodes):
            self.whole, other = found, self.whole
        try:
            lined_up(self.whole.trace.graph, other.trace.graph)
        except TranslationError:
            if why is None:
                raise
            what = f"for {named(self.symbols, sizes)} the operations are others than for "
            raise undecided(why, f"{what}{named(self.symbols, self.first)}, since {why} falls otherwise") from None
        return found

    def make(self) -> None:
        """Trace with all sizes that are to be tried.

        Raises:
            TranslationError: if the function takes too few sizes, or decides by too much (``MT803``).
        """
        for at, length in itertools.product(range(len(self.symbols)), NEAR):
            if self.first[at] + length >= LEAST:
                self.attempt(self.with_length(at, self.first[at] + length))
        self._decide()
        for at in range(len(self.symbols)):
            self._vary(at)
            self._decide()
        for chosen in itertools.chain(*(self._chosen(count) for count in range(2, len(self.symbols) + 1))):
            for turn in (1, 2):
                sizes = list(self.first)
                for at in chosen:
                    others = self.lengths(at)
                    sizes[at] = others[turn % len(others)]
                self.attempt(tuple(sizes))
        self._decide()

    def lengths(self, at: int) -> list[int]:
        """The lengths of one size that were tried with success while the others were the first ones."""
        return [
            sizes[at]
            for sizes in self.found
            if all(sizes[other] == self.first[other] for other in range(len(sizes)) if other != at)
        ]

    def _chosen(self, count: int) -> Iterator[tuple[int, ...]]:
        return itertools.combinations(range(len(self.symbols)), count)

    def meets(self, sizes: Values) -> bool:
        """Whether sizes are such as the function takes, as far as its decisions tell."""
        named = self.named(sizes)
        return all(decision(named) == outcome for decision, outcome in self.required)

    def named(self, sizes: Values) -> dict[str, int]:
        """Sizes by the names of their symbols."""
        return dict(zip(self.symbols, sizes, strict=True))

    def with_length(self, at: int, length: int, sizes: Values | None = None) -> Values:
        """The first sizes, or others, but for one."""
        found = list(sizes or self.first)
        found[at] = length
        return tuple(found)

    # Near and far ---------------------------------------------------------------------------------------

    def _vary(self, at: int) -> None:
        """Lengths of one size that are far from the first one, and the largest that the function takes."""
        own = self.first[at]
        for length in FAR:
            if self.meets(self.with_length(at, length)):
                self.attempt(self.with_length(at, length))
        for length in itertools.chain(*((own + (1 << k), own - (1 << k), own * (k + 2)) for k in range(8))):
            if len(self.lengths(at)) >= 5:
                break
            if length >= LEAST and self.meets(self.with_length(at, length)):
                self.attempt(self.with_length(at, length))
        low = max(self.lengths(at))
        beyond = [sizes[at] for sizes in self.failed if sizes[at] > low and sizes == self.with_length(at, sizes[at])]
        between = [each for each in range(low, min(beyond, default=low)) if self.meets(self.with_length(at, each))]
        while len(between) > 1:
            middle = len(between) // 2
            fits = self.attempt(self.with_length(at, between[middle])) is not None
            between = between[middle:] if fits else between[:middle]
        if len(self.lengths(at)) < 3:
            error = next(iter(self.failed.items()), None)
            text = f"; with {error[0][at]} it raises {type(error[1]).__name__}: {error[1]}" if error else ""
            raise refused(None, f"there are no three lengths of {self.symbols[at]!r} that the function takes{text}")

    # Decisions ------------------------------------------------------------------------------------------

    def _decide(self) -> None:
        """Trace until each decision is covered."""
        while (missing := self._missing()) is not None:
            decision, outcome, sizes = missing
            self._given_up.add(decision)  # or it is covered
            before = len(self.found)
            tried = list(itertools.islice(self._falling(decision, outcome, sizes), ATTEMPTS))
            reached = taken = 0
            for each in tried:
                found = self.attempt(each, decision)
                taken += found is not None
                reached += found is not None and decision in found.trace.decisions
                # The first one lies on the bound, where the smaller of two numbers is the larger.
                if reached == 2 or taken == ENOUGH:
                    break
            if tried and len(self.found) == before and all(each in self.failed for each in tried):
                self.required.append((decision, not outcome))
            if len(self.found) + len(self.failed) > MOST * len(self.symbols):
                raise undecided(decision, f"it makes more decisions than {MOST} traces can cover")

    def cover(self, decision: Decision, sizes: Values, worth: Callable[[Values], int]) -> None:
        """Trace with sizes for which a decision that passes have made falls otherwise than for these.

        Args:
            worth: how much it is worth to trace with some sizes.
        """
        outcome = decision(self.named(sizes))
        for each in self.found:
            if decision(self.named(each)) != outcome and worth(each) >= worth(sizes):
                return
        others = sorted(
            itertools.islice(self._falling(decision, not outcome, sizes), ATTEMPTS), key=worth, reverse=True
        )
        for each in others[:ENOUGH]:
            if self.attempt(each) is not None:
                return

    def _missing(self) -> tuple[Decision, bool, Values] | None:
        """A decision of which one outcome was not reached, that outcome, and the sizes of the other one."""
        reached: dict[Decision, dict[bool | None, Values]] = {}
        for sizes, trial in self.found.items():
            named = self.named(sizes)
            for decision in trial.trace.decisions:
                if decision not in self._given_up:
                    reached.setdefault(decision, {}).setdefault(decision(named), sizes)
        pending = [
            (decision, outcome, sizes)
            for decision, outcomes in reached.items()
            if len(outcomes) == 1
            for outcome, sizes in outcomes.items()
        ]
        # Equalities that hold come first: they are often required, and fewer sizes are then tried in vain.
        pending.sort(key=lambda each: each[0].kind not in ("==", "!=") or each[1] != (each[0].kind == "=="))
        if not pending:
            return None
        decision, outcome, sizes = pending[0]
        return decision, not outcome, sizes

    def _falling(self, decision: Decision, outcome: bool, near: Values) -> Iterator[Values]:
        """Sizes for which a decision has an outcome, and those before it fall as they did: near ones first."""
        before = list(itertools.takewhile(lambda each: each != decision, self.found[near].trace.decisions))[-PATH:]
        path = [(each, each(self.named(near))) for each in before]
        moved = [at for at, name in enumerate(self.symbols) if name in decision.symbols]
        fine, coarse = _ladder((decision, *before))

        def hits(candidates: Iterator[Values], kept: Sequence[tuple[Decision, bool | None]]) -> Iterator[Values]:
            for sizes in candidates:
                named = self.named(sizes)
                falls = decision(named) == outcome and self.meets(sizes)
                if falls and all(each(named) == fell for each, fell in kept):
                    yield sizes

        def alone() -> Iterator[Values]:
            for at in moved:
                for length in sorted(fine, key=lambda length: abs(length - near[at])):
                    yield self.with_length(at, length, near)
            for length in fine if len(moved) > 1 else ():
                yield tuple([length if at in moved else size for at, size in enumerate(near)])

        def together() -> Iterator[Values]:
            for one, other in itertools.combinations(range(len(self.symbols)), 2) if len(before) < PATH else ():
                for pair in itertools.product(coarse, repeat=2):
                    yield self.with_length(one, pair[0], self.with_length(other, pair[1], near))

        anywhere = list(itertools.islice(hits(alone(), ()), CHOICE))
        if not anywhere and len(moved) < 2:  # it is the same for all sizes
            return
        for candidates, kept in ((alone(), path), (together(), path), (iter(anywhere), ()), (together(), ())):
            found = list(itertools.islice(hits(candidates, kept), CHOICE))
            if found:
                yield from dict.fromkeys([*found[:2], *found[len(found) // 2 :], *found[2:]])
                return


def _ladder(decisions: Sequence[Decision]) -> tuple[list[int], list[int]]:
    """The lengths among which the other outcome of a decision is looked for: of one size, and of two together."""
    powers = [(1 << k) + more for k in range(2, POWERS) for more in (0, 1, 1 << k - 1)]
    numbers = {number for decision in decisions for side in (decision.left, decision.right) for number in _in(side)}
    numbers = {number for number in numbers if 0 < number < 1 << POWERS}
    products = {a * b for a in numbers for b in numbers} if len(numbers) <= 32 else set()
    bounds = {number + more for number in numbers | products for more in (-1, 0, 1)}
    lengths = (*range(LEAST, SCANNED), *powers, *bounds), (*range(LEAST, COARSE), *powers[:COARSE], *bounds)
    fine, coarse = (sorted({each for each in part if LEAST <= each <= 1 << POWERS}) for part in lengths)
    return fine, coarse[: SCANNED // 4]


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


def undecided(decision: Decision, what: str) -> TranslationError:
    """The error for a decision by a dynamic size."""
    found = refused(None, what)
    if decision.source is not None:
        found.locate(str(decision.source))
    return found
