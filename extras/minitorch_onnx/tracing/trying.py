"""The sizes that a function is traced with: those for which one of its decisions falls otherwise, and some others.

    first sizes ──trace──► decisions ──► sizes for which one falls otherwise ──trace──► further decisions ──► ...

This is concolic testing (Sen, Marinov and Agha, 2005) of what a function does with sizes. A decision is *covered* when
traces have reached it with both outcomes, or when the sizes for the other outcome are such that the function raises: it
is then taken for one that all sizes of the model have to meet. Sizes that hide from us, as in ``int(n)``, are the
reason for the others: near the first ones, far from them, and the largest that the function takes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minitorch.errors import TranslationError
from minitorch.ir import Node

from ..writing.sizes import Values, lined_up, named, refused
from ..writing.tracked import Decision, falling
from .lengths import COARSE, FAR_POWERS, LEAST, bounds_of, ladder
from .sized import Traced

Array = np.ndarray[Any, Any]

NEAR = (1, 2, 3)  # what is added to a first size: with it, all rests of divisions by 2, 3 and 4
FAR = (3, 5, 529, 1031)
FAR_OF_LOOPS = (3, 5, 61, 131)  # where each turn of a loop as long as the dimension is recorded
PATH = 24  # decisions before one, of which sizes are wanted for which they fall as they did
ATTEMPTS = 12  # sizes that are tried for one outcome of a decision
ENOUGH = 3  # of which the function takes so many
CHOICE = 40  # and among how many these are chosen
POOL = 256  # sizes among which those are chosen for which many decisions fall otherwise
FRUITLESS = 6  # sizes at random that reach no further outcome, before they are given up
MOST = 64  # traces for the sake of decisions


Traces = Callable[[Values, dict[Decision, None]], Traced]
"""Traces with some sizes, and notes decisions, or raises whatever the function does."""


Missing = tuple[Decision, bool, Values]
"""A decision, the outcome that is to be reached, and sizes with the other one."""


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
        trace: traces with some sizes.
        far: lengths far from the first ones.

    Attributes:
        found: the traces by their sizes, the first one first.
        whole: the trace with the most operations: some are not there if they change nothing.
        failed: what was raised, by sizes.
        required: decisions that fall alike for all sizes that the function takes.
    """

    def __init__(self, symbols: Sequence[str], first: Values, trace: Traces, far: Sequence[int] = FAR) -> None:
        self.symbols, self.first, self._trace, self._far = symbols, first, trace, far
        self.whole = Trial(first, trace(first, {}))
        self.found: dict[Values, Trial] = {first: self.whole}
        self.failed: dict[Values, Exception] = {}
        self.required: list[tuple[Decision, bool]] = []
        self._fruitless = 0  # sizes at random that the function did not take, or that reached no further outcome
        self._rows: dict[Values, list[Node]] = {}
        self._given_up: set[Decision] = set()
        self._pool: Array = np.zeros((0, len(symbols)))
        self._unused: Array = np.ones(POOL, int)  # the rows of the pool that were not tried
        self._outcomes: dict[Decision, list[Array]] = {}  # for the pool
        self._stops: dict[Values, tuple[Decision, bool]] = {}  # why sizes seem to have failed

    def attempt(self, sizes: Values, why: Decision | None = None) -> Trial | None:
        """Trace with these sizes, unless that was done; None if the function raises.

        Raises:
            TranslationError: for a function that cannot be exported with these sizes, or has other operations.
        """
        if sizes in self.found or sizes in self.failed:
            return self.found.get(sizes)
        noted: dict[Decision, None] = {}
        try:
            found = Trial(sizes, self._trace(sizes, noted), why)
        except TranslationError:
            raise
        except Exception as error:  # whatever the user's function raises for sizes that it does not take
            self.failed[sizes] = error
            self._note_stop(sizes, noted)
            return None
        self.found[sizes], other = found, found
        if len(found.trace.graph.nodes) > len(self.whole.trace.graph.nodes):
            self.whole, other, self._rows = found, self.whole, {}
        try:
            self.lined_up(other)
        except TranslationError:
            if why is None:
                raise
            what = f"for {named(self.symbols, sizes)} the operations are others than for "
            raise undecided(why, f"{what}{named(self.symbols, self.first)}, since {why} falls otherwise") from None
        return found

    def _note_stop(self, sizes: Values, noted: dict[Decision, None]) -> None:
        """Note the last decision before a function raised, if it fell as in no trace: that is probably the reason."""
        last = next(reversed(noted), None)
        if last is not None:
            outcome = last(self.named(sizes))
            fell = {last(self.named(each)) for each, trial in self.found.items() if last in trial.trace.decisions}
            if fell == {not outcome}:
                self._stops[sizes] = last, not outcome

    def lined_up(self, trial: Trial) -> list[Node]:
        """The inputs and nodes of a trace, in the order of those of the whole one."""
        if trial.sizes not in self._rows:
            self._rows[trial.sizes] = lined_up(self.whole.trace.graph, trial.trace.graph)
        return self._rows[trial.sizes]

    def make(self) -> None:
        """Trace with all sizes that are to be tried.

        Raises:
            TranslationError: if the function takes too few sizes, or decides by too much (``MT803``).
        """
        for turn in range(len(NEAR)):
            self._together([own + NEAR[(turn + at) % len(NEAR)] for at, own in enumerate(self.first)])
        self._decide()
        for turn in range(len(self._far)):
            self._together([self._far[(turn + at) % len(self._far)] for at in range(len(self.symbols))])
        for at in range(len(self.symbols)):
            self._vary(at)
        self._decide()
        for chosen in itertools.chain(*(self._chosen(count) for count in range(2, len(self.symbols) + 1))):
            for turn in (1, 2) if sum(self._differ(sizes, chosen) for sizes in self.found) < 2 else ():
                sizes = list(self.first)
                for at in chosen:
                    others = self.lengths(at)
                    sizes[at] = others[turn % len(others)]
                self.attempt(tuple(sizes))
        self._decide()

    def _together(self, lengths: Sequence[int]) -> None:
        """Trace with some lengths, with each of them alone if the function does not take them together."""
        each = [self.with_length(at, max(length, LEAST)) for at, length in enumerate(lengths)]
        fits = [self.meets(sizes) for sizes in each]
        sizes = tuple([length if fit else own for length, fit, own in zip(lengths, fits, self.first, strict=True)])
        if not self.meets(sizes) or self.attempt(sizes) is None:
            for alone, fit in zip(each, fits, strict=True):
                if fit:
                    self.attempt(alone)

    def _differ(self, sizes: Values, chosen: Sequence[int]) -> bool:
        """Whether some of the sizes are none of the first ones."""
        return all(sizes[at] != self.first[at] for at in chosen)

    def lengths(self, at: int) -> list[int]:
        """The lengths of one size that were tried with success."""
        return [*dict.fromkeys(sizes[at] for sizes in self.found)]

    def _chosen(self, count: int) -> Iterator[tuple[int, ...]]:
        return itertools.combinations(range(len(self.symbols)), count)

    def meets(self, sizes: Values) -> bool:
        """Whether sizes are such as the function takes, as far as its decisions tell."""
        named = self.named(sizes)
        return all(decision(named) == outcome for decision, outcome in self.required)

    def named(self, sizes: Values) -> dict[str, int]:
        """Sizes by the names of their symbols."""
        return dict(zip(self.symbols, sizes, strict=True))

    @property
    def _likely(self) -> list[tuple[Decision, bool]]:
        """The decisions that seem to be why the function raised, as they fall for the sizes that it takes."""
        return [*dict.fromkeys(self._stops.values())]

    def with_length(self, at: int, length: int, sizes: Values | None = None) -> Values:
        """The first sizes, or others, but for one."""
        found = list(sizes or self.first)
        found[at] = length
        return tuple(found)

    # Near and far ---------------------------------------------------------------------------------------

    def _vary(self, at: int) -> None:
        """Lengths of one size that are far from the first one, and the largest that the function takes."""
        own = self.first[at]
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
        """Trace until each decision is covered: with sizes for which many fall otherwise, then for one that is left."""
        while missing := self._cover_many(self._missing):
            decision, outcome, sizes = missing[0]
            self._given_up.add(decision)  # or it is covered
            before = len(self.found)
            tried = list(itertools.islice(self._falling(decision, outcome, sizes), ATTEMPTS))
            reached = taken = stopped = 0
            for each in tried:
                found = self.attempt(each, decision)
                taken += found is not None
                reached += found is not None and decision in found.trace.decisions
                stopped += self._stops.get(each) == (decision, not outcome)
                # The first one lies on the bound, where the smaller of two numbers is the larger.
                if reached == 2 or taken == ENOUGH or stopped == ENOUGH:
                    break
            if tried and len(self.found) == before and not taken:
                self.required.append((decision, not outcome))
            if len(self.found) + len(self.failed) > MOST * len(self.symbols):
                raise undecided(decision, f"it makes more decisions than {MOST} traces can cover")

    def _cover_many(self, missing: Callable[[], list[Missing]]) -> list[Missing]:
        """Trace with sizes for which as many decisions as possible fall as they have not yet; what is missing then."""
        while len(pending := missing()) > 1 and self._fruitless < FRUITLESS:
            if not len(self._pool):
                self._pool = self._at_random([decision for decision, *_ in pending])
            fits = math.prod([self._falls(*each) for each in (*self.required, *self._likely)])
            counts = self._unused * fits * sum(self._falls(decision, outcome) for decision, outcome, _ in pending)
            best = int(np.argmax(counts))
            if counts[best] < 2:
                break
            sizes, self._unused[best] = tuple(map(int, self._pool[best])), 0
            try:
                trial = self.attempt(sizes)
            except TranslationError:  # which of the decisions is the reason, trying each for itself says
                self.found.pop(sizes, None)
                break
            self._fruitless += trial is None or len(missing()) >= len(pending)
        return missing()

    def _falls(self, decision: Decision, outcome: bool) -> Array:
        """Whether a decision falls so for the sizes of the pool: 1 or 0."""
        if decision not in self._outcomes:
            columns = dict(zip(self.symbols, self._pool.T.astype(float), strict=True))
            self._outcomes[decision] = [falling(decision, each, columns).astype(int) for each in (False, True)]
        return self._outcomes[decision][outcome]

    def _at_random(self, decisions: Sequence[Decision]) -> Array:
        """Sizes at random, near the first ones and near the bounds of decisions: a row for each trace."""
        random = np.random.default_rng(0)
        bounds = sorted({*range(LEAST, COARSE), *(each for each in bounds_of(decisions) if each >= LEAST), *FAR_POWERS})
        columns = []
        for own in self.first:
            near = [own + more for more in range(-COARSE, COARSE) if own + more >= LEAST]
            columns.append(np.where(random.random(POOL) < 0.5, *(random.choice(each, POOL) for each in (near, bounds))))
        return np.array(columns).T

    def cover(self, decisions: Sequence[Decision], sizes: Values, worth: Callable[[Values], int], least: int) -> None:
        """Trace with sizes for which decisions that passes have made fall otherwise than for these.

        Args:
            worth: how much it is worth to trace with some sizes.
            least: how much a trace has to be worth.
        """
        outcomes = [decision(self.named(sizes)) for decision in decisions]

        def missing() -> list[Missing]:
            found = [self.named(each) for each in self.found if worth(each) >= least]
            return [
                (decision, not outcome, sizes)
                for decision, outcome in zip(decisions, outcomes, strict=True)
                if not any(decision(each) != outcome for each in found)
            ]

        for decision, outcome, _ in self._cover_many(missing):
            self._cover(decision, outcome, sizes, worth)

    def _cover(self, decision: Decision, outcome: bool, sizes: Values, worth: Callable[[Values], int]) -> None:
        others = sorted(itertools.islice(self._falling(decision, outcome, sizes), ATTEMPTS), key=worth, reverse=True)
        for each in others[:ENOUGH]:
            if self.attempt(each) is not None:
                return

    def _missing(self) -> list[Missing]:
        """The decisions of which one outcome was not reached, that outcome, and the sizes of the other one."""
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
        return [(decision, not outcome, sizes) for decision, outcome, sizes in pending]

    def _falling(self, decision: Decision, outcome: bool, near: Values) -> Iterator[Values]:
        """Sizes for which a decision has an outcome, and those before it fall as they did: near ones first."""
        before = list(itertools.takewhile(lambda each: each != decision, self.found[near].trace.decisions))[-PATH:]
        path = [(each, fell) for each in before if (fell := each(self.named(near))) is not None]
        moved = [at for at, name in enumerate(self.symbols) if name in decision.symbols]
        fine, coarse = map(np.array, ladder((decision, *before)))

        def varied(lengths: Mapping[int, Array]) -> Array:
            """The near sizes with other lengths of some of them: a row for each."""
            count = len(next(iter(lengths.values())))
            return np.stack([lengths.get(at, np.full(count, own)) for at, own in enumerate(near)], 1)

        def alone() -> Array:
            ordered = [{at: fine[np.argsort(abs(fine - near[at]), kind="stable")]} for at in moved]
            return np.concatenate([varied(each) for each in (*ordered, dict.fromkeys(moved, fine))])

        def together() -> Array:
            left, right = np.repeat(coarse, len(coarse)), np.tile(coarse, len(coarse))
            chosen = itertools.combinations(range(len(near)), 2) if len(before) < PATH else ()
            rows = [varied({one: left, other: right}) for one, other in chosen]
            return np.concatenate([np.zeros((0, len(near)), int), *rows])

        anywhere = self._hits(alone(), [(decision, outcome)])
        if not len(anywhere) and len(moved) < 2:  # it is the same for all sizes
            return
        likely = [each for each in self._likely if each[0] != decision]
        for candidates, kept in (
            (alone, (*path, *likely)), (alone, path), (together, path), (lambda: anywhere, likely),
            (lambda: anywhere, ()), (together, ()),
        ):  # fmt: skip
            found = [tuple(map(int, row)) for row in self._hits(candidates(), [(decision, outcome), *kept])]
            if found:
                yield from dict.fromkeys([*found[:2], *found[len(found) // 2 :], *found[2:]])
                return

    def _hits(self, rows: Array, outcomes: Sequence[tuple[Decision, bool]]) -> Array:
        """The first sizes, of which each is a row, that the function takes and for which decisions fall so."""
        for decision, outcome in (*outcomes, *self.required):
            if len(rows):
                columns = dict(zip(self.symbols, rows.T.astype(float), strict=True))
                rows = rows[falling(decision, outcome, columns)]
        return rows[:CHOICE]


def undecided(decision: Decision, what: str) -> TranslationError:
    """The error for a decision by a dynamic size."""
    found = refused(None, what)
    if decision.source is not None:
        found.locate(str(decision.source))
    return found
