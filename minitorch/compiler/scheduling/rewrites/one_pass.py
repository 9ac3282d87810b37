"""The online rewrite: a maximum, and the sums that are measured from it, in one pass.

It makes a softmax the one of Milakov and Gimelshein ("Online normalizer calculation for softmax", 2018), and attention
FlashAttention (Dao et al., 2022).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ....dtypes import bool_, float32, float64
from ...loop_ir.expressions import Apply, Expression, literal
from ...loop_ir.index import NOWHERE
from ...loop_ir.tree import (
    Accumulate,
    Allocate,
    Block,
    For,
    Kind,
    Local,
    Procedure,
    Read,
    Statement,
    Store,
    arrays_written,
    mapped,
    statements,
    with_body,
)
from ..analysis.dependences import are_elements
from ..analysis.finding import (
    for_elements,
    is_zero,
    local_named,
    names_of,
    stores_of,
    with_inner,
)
from ..rewrite import check_fresh, refused, step
from .gathering import between, guarded, without_guard

LAW = "exp(x - a) * exp(a - b) = exp(x - b): "


@step
def online(procedure: Procedure, loop: str, *maxima: str) -> Procedure:
    """Join a loop that takes maxima with the loops after it that sum up ``exp(x - maximum)`` (online softmax).

    ::

        for j: m = max(m, x[j])              for j:
        for j: s = s + exp(x[j] - m)             before = m
                                                 m = max(m, x[j])
                                                 s = s * exp(before - m)
                                                 s = s + exp(x[j] - m)

    A maximum that is still -inf is taken for 0 where it is subtracted, since ``-inf - -inf`` is NaN. If it is -inf at
    the end and the loops subtract it as it is, the sum is made NaN.

    Args:
        procedure: the kernel.
        loop: the name of the loops. They have the same extent.
        maxima: the arrays of one element that the maxima are in.

    Law: ``exp(x - a) * exp(a - b) = exp(x - b)``. Every term of the sums has one factor ``exp(x - m)``, where x depends
    on no maximum. The sums begin with 0, and nothing reads them in the loops. A term may have other factors beside.
    If these are very large, they overflow before a later maximum would have made the term small.
    """
    arrays = [local_named(procedure, name) for name in maxima]
    changer = _Online(arrays, f"online({', '.join(map(repr, (loop, *maxima)))})")
    check_fresh(procedure, *(each.name for one in changer.maxima for each in one.own))
    changed = False

    def within(block: Block) -> Block:
        nonlocal changed
        for place, each in enumerate(block):
            if isinstance(each, For) and each.variable.name == loop and set(arrays) <= arrays_written(each.body):
                changed = True
                return (*block[:place], *changer.in_one(block[:place], each, block[place + 1 :]))
        return with_inner(block, within)

    body = within(procedure.body)
    if not arrays or not changed:
        raise refused(f"{changer.what}: there is no loop {loop!r} that takes the maxima", "a maximum is taken first")
    return replace(procedure, body=body)


@dataclass(frozen=True)
class _Maximum:
    """A maximum, the one before an iteration, the number subtracted for it, and the factor for sums so far."""

    array: Local
    before: Local
    shift: Local
    factor: Local

    @property
    def own(self) -> tuple[Local, ...]:
        """The arrays that an iteration has for itself."""
        return self.before, self.shift, self.factor

    @property
    def now(self) -> Expression:
        """The maximum so far."""
        return Read(self.array.dtype, self.array)

    def number(self, value: float) -> Expression:
        """Return a constant of its type."""
        return literal(self.array.dtype, value)

    @property
    def is_lowest(self) -> Expression:
        """Whether it is that of no numbers."""
        return Apply(bool_, "equal", (self.now, self.number(-math.inf)))

    @property
    def finite(self) -> Expression:
        """The maximum that is subtracted: 0 in place of that of no numbers."""
        return Apply(self.array.dtype, "where", (self.is_lowest, self.number(0.0), self.now))

    @property
    def correction(self) -> Expression:
        """The factor that makes a sum that is measured from the maximum before one that is measured from this."""
        dtype, before = self.array.dtype, Read(self.array.dtype, self.before)
        less = Apply(dtype, "exp", (Apply(dtype, "sub", (before, Read(dtype, self.shift))),))
        return Apply(dtype, "where", (Apply(bool_, "equal", (before, self.now)), self.number(1.0), less))

    def is_kept_finite(self, shift: Expression) -> bool:
        """Return whether a value is the maximum, but for one that is infinite."""
        if not isinstance(shift, Apply) or shift.primitive != "where":
            return False
        condition, here, elsewhere = shift.arguments
        size = Apply(self.array.dtype, "abs", (self.now,))
        is_finite = Apply(bool_, "less", (size, self.number(math.inf)))
        return (condition, elsewhere) == (self.is_lowest, self.now) or (condition, here) == (is_finite, self.now)


@dataclass(frozen=True)
class _Sum:
    """A sum that is measured from a maximum, which may be subtracted even if it is -inf."""

    array: Local
    added: Accumulate
    within: Block
    maximum: _Maximum
    is_plain: bool

    @property
    def now(self) -> Expression:
        """The sum so far."""
        return Read(self.array.dtype, self.array, self.added.index)

    def store(self, primitive: str, *arguments: Expression) -> Block:
        """Return a store of a value to all elements."""
        return for_elements(self.within, self.added, Apply(self.array.dtype, primitive, arguments))


class _Online:
    """The joining of loops into an online softmax."""

    def __init__(self, arrays: list[Local], what: str) -> None:
        self.what = what
        if any(each.size != 1 or each.dtype not in (float32, float64) for each in arrays):
            raise refused(f"{what} of {names_of(arrays)}", "a maximum is one number, and float32 or float64")
        names = ("before", "shift", "factor")
        self.maxima = [
            _Maximum(each, *(replace(each, name=f"{each.name}_{name}") for name in names)) for each in arrays
        ]
        self.arrays: set[int | Local] = {*arrays}

    def in_one(self, before: Block, first: For, rest: Block) -> Block:
        """Join the loop that takes the maxima with the loops after it; return it, and the statements after them."""
        self.check(first)

        def joins(each: For, written: set[int | Local]) -> bool:
            return bool(_reads(each) & self.arrays) and not _reads(each) & (written - self.arrays)

        ahead, (_, *taken), behind = between(first, rest, joins)
        guard, (maxima, *parts) = without_guard([first, *taken])
        sums = dict[Local, _Sum]()
        bodies = [(list(self.sums(each, [*before, *ahead])), part) for each, part in zip(taken, parts, strict=True)]
        if any(sums.setdefault(one.array, one) != one for found, _ in bodies for one in found):
            raise refused(f"{self.what}: different terms for one sum", LAW + "a sum has terms of one kind")
        if not bodies:
            raise refused(f"{self.what}: no loop after it reads the maxima", LAW + "a sum of exp(x - m) comes next")
        shifts = {one.array: Read(one.shift.dtype, one.shift) for one in self.maxima}
        inner: list[Statement] = [Allocate(local) for one in self.maxima for local in one.own]
        inner += [*(Store(one.before, NOWHERE, one.now) for one in self.maxima), *maxima]
        for one in self.maxima:
            inner += [Store(one.shift, NOWHERE, one.finite), Store(one.factor, NOWHERE, one.correction)]
        for found, body in bodies:
            for total in found:
                inner += total.store("mul", total.now, Read(total.array.dtype, total.maximum.factor))
            inner += mapped(body, lambda part: shifts.get(part.local, part) if isinstance(part, Read) else part)
        after: list[Statement] = []
        for total in sums.values():
            if total.is_plain:
                after += total.store("where", total.maximum.is_lowest, total.maximum.number(math.nan), total.now)
        return (*ahead, with_body(first, guarded(guard, [tuple(inner)])), *after, *behind)

    def check(self, first: For) -> None:
        """Refuse a loop that does more than take maxima."""
        own = _own(first)
        for each in stores_of(first.body):
            is_maximum = isinstance(each, Accumulate) and each.reduction == "reduce_max" and each.array in self.arrays
            if first.kind is not Kind.SERIAL or not (is_maximum or each.array in own) or each.value.reads & self.arrays:
                raise refused(
                    f"{self.what}: {first.variable.name!r} does more than take maxima", LAW + "m is a maximum"
                )

    def sums(self, loop: For, before: list[Statement]) -> Iterator[_Sum]:
        """Yield the sums of a loop that are measured from a maximum."""
        own = _own(loop)
        inner = dict.fromkeys(each.variable for each in statements(loop.body) if isinstance(each, For))
        for each in stores_of(loop.body):
            if each.array in own and not each.value.reads & self.arrays:
                continue
            found = self.measured(each.value)
            if (
                found is None
                or loop.kind is not Kind.SERIAL
                or not isinstance(each, Accumulate)
                or each.reduction != "reduce_sum"
                or not isinstance(each.array, Local)
                or each.array in own
                or each.array.dtype != found[0].array.dtype
            ):
                raise refused(f"{self.what}: {loop.variable.name!r} does more than sum up exp(x - m)", LAW + "no more")
            loops = tuple(one for one in inner if each.index.depends_on(one))
            is_own = are_elements(each.index, each.array, loops) and not each.index.depends_on(loop.variable)
            if not is_own or not is_zero(each.array, tuple(before)):
                raise refused(
                    f"{self.what}: the sum into {each.array.name}[{each.index}]",
                    LAW + "the sum goes on in every iteration, and begins with 0",
                )
            yield _Sum(each.array, each, loop.body, *found)

    def measured(self, value: Expression) -> tuple[_Maximum, bool] | None:
        """Return the maximum in a term's one factor ``exp(x - maximum)``, and whether it is subtracted as it is."""
        while isinstance(value, Apply) and value.primitive in ("mul", "neg", "div", "cast"):
            inside = [part for part in value.arguments if self.mentions(part)]
            if len(inside) != 1 or (value.primitive == "div" and inside[0] is value.arguments[1]):
                return None
            (value,) = inside
        if not isinstance(value, Apply) or value.primitive != "exp" or value.dtype not in (float32, float64):
            return None
        (difference,) = value.arguments
        if not isinstance(difference, Apply) or difference.primitive != "sub":
            return None
        x, shift = difference.arguments
        if self.mentions(x):
            return None
        for each in self.maxima:
            if shift == each.now or each.is_kept_finite(shift):
                return each, shift == each.now
        return None

    def mentions(self, value: Expression) -> bool:
        """Return whether a value depends on a maximum."""
        return any(isinstance(part, Read) and part.local in self.arrays for part in value.all_parts)


def _own(loop: For) -> set[int | Local]:
    return {each.local for each in statements(loop.body) if isinstance(each, Allocate)}


def _reads(*block: Statement) -> set[int | Local]:
    return {array for each in stores_of(block) for array in each.value.reads}
