"""Index algebra: the index of an element, as an integer expression over loop variables.

Every movement primitive becomes arithmetic on these expressions, so a reshape or transpose inside a kernel costs no
memory traffic. An `Index` is affine, ``c0 + c1*v1 + c2*v2 + ...``; a non-affine part (a quotient, a remainder, an index
read from memory) is an *atom* in place of a variable. Quotients and remainders are simplified with the
known ranges of the variables, so the index arithmetic of most reshapes disappears when the expression is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd, prod
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

from ..lengths import Length, UnboundedError, require_within_one

Shape = tuple[int, ...]


class Variable(NamedTuple):
    """A loop variable, from 0 up to `extent` (exclusive); or the length at a place among those that a call gives."""

    name: str
    extent: int
    place: int | None = None

    @property
    def variables(self) -> frozenset[Variable]:
        """Itself."""
        return frozenset((self,))

    @property
    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest value."""
        return 0, max(self.extent - 1, 0)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Division:
    """A quotient or a remainder, where that is not affine."""

    index: Index
    divisor: int

    sign: ClassVar[str]

    def of(self, number: Any) -> Any:
        """Return the quotient or remainder of another number or index."""
        return number // self.divisor if self.sign == "//" else number % self.divisor

    @property
    def variables(self) -> frozenset[Variable]:
        """The variables in it."""
        return self.index.variables

    def __str__(self) -> str:
        return f"({self.index}) {self.sign} {self.divisor}"


class Quotient(Division):
    """``index // divisor``."""

    sign = "//"

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest value."""
        low, high = self.index.bounds
        return low // self.divisor, high // self.divisor


class Remainder(Division):
    """``index % divisor``."""

    sign = "%"

    @property
    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest value."""
        return 0, self.divisor - 1


@dataclass(frozen=True)
class Looked:
    """A data-dependent index, as of a gather. It is below `extent`; negative ones count from the end."""

    value: Any  # a `minitorch.compiler.loop_ir.expressions.Expression`
    extent: int

    @property
    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest value."""
        return 0, max(self.extent - 1, 0)

    @property
    def variables(self) -> frozenset[Variable]:
        """The variables in it."""
        found: frozenset[Variable] = self.value.variables
        return found

    def __str__(self) -> str:
        return f"at({self.value}, {self.extent})"


Atom = Variable | Quotient | Remainder | Looked
VARIABLES = attrgetter("variables")


@dataclass(frozen=True)
class Index:
    """An affine expression: ``constant`` plus the sum of the atoms times their coefficients.

    Example:
        >>> i, j = variable("i", 4), variable("j", 10)
        >>> linear = i * 10 + j
        >>> print(linear, "|", linear // 10, "|", linear % 10, "|", linear // 5)
        10*i + j | i | j | 2*i + (j) // 5
    """

    terms: tuple[tuple[Atom, int], ...] = ()
    constant: int = 0

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest value that the expression can have."""
        low = high = self.constant
        for atom, factor in self.terms:
            ends = [end * factor for end in atom.bounds]
            low, high = low + min(ends), high + max(ends)
        return low, high

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.terms, self.constant))

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, Length):
            return self + length_of(other)
        if isinstance(other, int):
            return Index(self.terms, self.constant + other) if other else self
        if not other.terms:
            return self + other.constant
        factors = dict(self.terms)
        for atom, factor in other.terms:
            factors[atom] = factors.get(atom, 0) + factor
        return _made(factors, self.constant + other.constant)

    def __sub__(self, other: Index | int) -> Index:
        return self + (length_of(other) if isinstance(other, Length) else other) * -1

    def __mul__(self, factor: int) -> Index:
        if factor == 1:
            return self
        return _made({atom: by * factor for atom, by in self.terms}, self.constant * factor)

    def _divided(self, divisor: int) -> tuple[Index, Index]:
        """Return quotient and rest by a divisor, as far as the coefficients are multiples of it."""
        whole: dict[Atom, int] = {}
        rest: dict[Atom, int] = {}
        for atom, factor in self.terms:
            if factor % divisor == 0:
                whole[atom] = factor // divisor
            else:
                rest[atom] = factor
        return _made(whole, self.constant // divisor), _made(rest, self.constant % divisor)

    @lru_cache(4096)  # noqa: B019  # of equal ones, it keeps one
    def __floordiv__(self, divisor: int) -> Index:
        if isinstance(divisor, Length):
            raise UnboundedError(f"an index is divided by {divisor.size}")
        if divisor == 1:
            return self
        whole, rest = self._divided(divisor)
        low, high = rest.bounds
        if low // divisor == high // divisor:
            return whole + low // divisor
        for step, coarse, _ in rest._split(divisor):  # (a * x + y) // (a * b) = x // b, where y is below a
            return whole + coarse // (divisor // step)
        for atom, factor in rest.terms:
            if factor == 1 and isinstance(atom, Quotient):  # (x // a + y) // b = (x + a * y) // (a * b)
                others = rest - Index(((atom, 1),))
                return whole + (atom.index + others * atom.divisor) // (atom.divisor * divisor)
        return whole + _atom(Quotient(rest, divisor))

    @lru_cache(4096)  # noqa: B019
    def __mod__(self, divisor: int) -> Index:
        if isinstance(divisor, Length):
            raise UnboundedError(f"an index is divided by {divisor.size}")
        if divisor == 1:
            return NOWHERE
        _, rest = self._divided(divisor)
        low, high = rest.bounds
        if low // divisor == high // divisor:
            return rest - low // divisor * divisor
        for step, coarse, fine in rest._split(divisor):
            return coarse % (divisor // step) * step + fine
        return _atom(Remainder(rest, divisor))

    def _split(self, divisor: int) -> Iterator[tuple[int, Index, Index]]:
        """Yield the common steps of a divisor and the coefficients, with the expression as whole steps and a rest."""
        for step in sorted({gcd(factor, divisor) for _, factor in self.terms} - {1}, reverse=True):
            coarse = {atom: factor // step for atom, factor in self.terms if factor % step == 0}
            fine = _made({atom: factor for atom, factor in self.terms if factor % step}, self.constant % step)
            low, high = fine.bounds
            if coarse and low >= 0 and high < step:
                yield step, _made(coarse, self.constant // step), fine

    def coefficient(self, atom: Atom) -> int:
        """Return the coefficient of an atom."""
        return next((factor for known, factor in self.terms if known == atom), 0)

    @cached_property
    def is_affine(self) -> bool:
        """Whether it is a sum of multiples of variables."""
        return all(isinstance(atom, Variable) for atom, _ in self.terms)

    @cached_property
    def variables(self) -> frozenset[Variable]:
        """The variables anywhere in the expression."""
        return frozenset[Variable]().union(*(atom.variables for atom, _ in self.terms))

    def depends_on(self, wanted: Variable) -> bool:
        """Return whether the variable appears anywhere in the expression."""
        return wanted in self.variables

    @property
    def as_variable(self) -> Variable | None:
        """The variable that the expression equals, if it is one."""
        if self.constant == 0 and len(self.terms) == 1:
            atom, factor = self.terms[0]
            if factor == 1 and isinstance(atom, Variable):
                return atom
        return None

    def substitute(self, places: Mapping[Variable, Index]) -> Index:
        """Return the expression with others in place of variables, simplified."""
        if self.variables.isdisjoint(places):
            return self
        return self._rebuilt(places, lambda value: value.substitute(places))

    @cached_property
    def is_data(self) -> bool:
        """Whether it contains an index that is read from memory."""
        return any(
            isinstance(atom, Looked) or (not isinstance(atom, Variable) and atom.index.is_data)
            for atom, _ in self.terms
        )

    def with_values(self, change: Callable[[Any], Any]) -> Index:
        """Return the expression with a change made to every value that is an index in it."""
        return self._rebuilt({}, change)

    def _rebuilt(self, places: Mapping[Variable, Index], change: Callable[[Any], Any]) -> Index:
        """Return the expression with others in place of variables and of values that are indices, simplified."""
        if self.variables.isdisjoint(places) and not self.is_data:
            return self

        def rebuilt(atom: Atom) -> Index:
            if isinstance(atom, Variable):
                return places.get(atom, _atom(atom))
            if isinstance(atom, Looked):
                return looked(change(atom.value), atom.extent)
            found: Index = atom.of(atom.index._rebuilt(places, change))
            return found

        return _sum(((rebuilt(atom), factor) for atom, factor in self.terms), self.constant)

    def __str__(self) -> str:
        parts = [str(atom) if factor == 1 else f"{factor}*{_bracketed(atom)}" for atom, factor in self.terms]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")


NOWHERE = Index()


def _bracketed(atom: Atom) -> str:
    return str(atom) if isinstance(atom, (Variable, Looked)) else f"({atom})"


def _order(item: tuple[Atom, int]) -> tuple[int, str]:
    atom, factor = item
    return -abs(factor), str(atom)


def _made(factors: Mapping[Atom, int], constant: int) -> Index:
    joined = _joined(factors)
    if joined is not None:
        return joined + constant
    terms = [(atom, factor) for atom, factor in factors.items() if factor]
    return Index(tuple(sorted(terms, key=_order)) if len(terms) > 1 else tuple(terms), constant)


def _joined(factors: Mapping[Atom, int]) -> Index | None:
    """Replace ``d * (x // d) + x % d`` by x, and ``d * ((x // d) % e) + x % d`` by ``x % (d * e)``."""
    for atom, factor in factors.items():
        if not isinstance(atom, Remainder) or not factor:
            continue
        quotient = atom.index // atom.divisor
        whole = quotient.terms[0][0] if len(quotient.terms) == 1 and quotient == _atom(quotient.terms[0][0]) else None
        for known, by in factors.items():
            if by != factor * atom.divisor:
                continue
            if known == whole:
                joined = atom.index
            elif isinstance(known, Remainder) and (ahead := known.index - quotient).is_affine:
                joined = (atom.index + ahead * atom.divisor) % (atom.divisor * known.divisor)
            else:
                continue
            return (
                _made({other: by for other, by in factors.items() if other not in (atom, known)}, 0) + joined * factor
            )
    return None


def _sum(products: Iterable[tuple[Index, int]], constant: int) -> Index:
    """Return the sum of some expressions times factors, and a constant."""
    factors: dict[Atom, int] = {}
    for index, by in products:
        constant += index.constant * by
        for atom, factor in index.terms:
            factors[atom] = factors.get(atom, 0) + factor * by
    return _made(factors, constant)


def _atom(atom: Atom) -> Index:
    return Index(((atom, 1),))


def variable(name: str, extent: int) -> Index:
    """Return a loop variable as an expression; a variable of one value is that value."""
    return NOWHERE if extent == 1 else _atom(Variable(name, extent))


def length_of(length: int) -> Index:
    """Return a length as an expression, of the numbers that a call gives."""
    if not isinstance(length, Length):
        return Index((), length)
    place, factor, added = length.parts
    return Index(((Variable(f"n{place}", (int(length) - added) // factor + 1, place), factor),), added)


def extent_of(variables: Iterable[Variable]) -> int:
    """Return how many values some variables take together."""
    return prod(each.extent for each in variables)


def place_in(variables: Sequence[Variable]) -> Index:
    """Return the number of an iteration among all iterations of some loops, the outermost first."""
    return linear((variable(each.name, each.extent) for each in variables), tuple(each.extent for each in variables))


def looked(value: Any, extent: int) -> Index:
    """Return an index read from memory or computed from data."""
    return _atom(Looked(value, extent))


def strides(shape: Shape) -> Shape:
    """Return the strides of a dense array, in elements; of one whose lengths vary, those for their bounds.

    Example:
        >>> strides((2, 3, 4))
        (12, 4, 1)
    """
    result, size = [], 1
    for length in reversed(shape):
        result.append(size)
        size *= int(length)
    return tuple(reversed(result))


def linear(indices: Iterable[Index], shape: Shape) -> Index:
    """Return the row-major offset of the element at these indices."""
    return _sum(zip(indices, strides(shape), strict=True), 0)


def unravelled(position: Index, shape: Shape) -> tuple[Index, ...]:
    """Return the indices of the element at an offset: the inverse of `linear`."""
    result = []
    is_outermost = True  # of those that are not of length 1: it needs no remainder
    for length, stride in zip(shape, strides(shape), strict=True):
        index = position // stride if stride else position
        result.append(NOWHERE if length <= 1 else index if is_outermost else index % length)
        is_outermost &= length <= 1
    return tuple(result)


def reshaped(indices: tuple[Index, ...], shape: Shape, wanted: Shape) -> tuple[Index, ...]:
    """Return the indices of the same element in another shape.

    Dimensions are taken together only where that is needed, so those of length 1 come and go without arithmetic.

    Example:
        >>> i, j = variable("i", 6), variable("j", 5)
        >>> [str(index) for index in reshaped((i, j), (6, 5), (1, 2, 3, 5))]
        ['0', '(i) // 3', '(i) % 3', 'j']
    """
    if 0 in shape:
        return unravelled(linear(indices, shape), wanted)
    old = [(length, index) for length, index in zip(shape, indices, strict=True) if length > 1]
    new = [length for length in wanted if length > 1]
    found: list[Index] = []
    while new:
        if not old:
            raise UnboundedError(f"a reshape from {shape} to {wanted}")
        taken, made = [old.pop(0)], [new.pop(0)]
        while (have := prod(length for length, _ in taken)) != (want := prod(made)):
            if not (old if have < want else new):  # formulas that are equal for the bounds alone
                raise UnboundedError(f"a reshape from {shape} to {wanted}")
            if have < want:
                taken.append(old.pop(0))
            else:
                made.append(new.pop(0))
        lengths, places = zip(*taken, strict=True)
        if len(taken) + len(made) > 2:
            require_within_one(lengths)
            require_within_one(tuple(made))
        found += places if len(taken) == len(made) == 1 else unravelled(linear(places, lengths), tuple(made))
    return tuple(found.pop(0) if length > 1 else NOWHERE for length in wanted)
