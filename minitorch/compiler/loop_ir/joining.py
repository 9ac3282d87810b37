"""Loop collapsing: neighbouring loop variables become one where all indices step evenly across them.

Contiguous rows of a matrix are one row. Longer loops fill vectors, and are packed and stored in longer runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .expressions import Expression, indices_of, moved, rewritten
from .index import NOWHERE, Division, Index, Variable, variable
from .loops import Write

Joinable = tuple[tuple[Write, ...], tuple[Expression, ...]]


def joined(variables: Sequence[Variable], code: Joinable) -> tuple[tuple[Variable, ...], Joinable]:
    """Collapse neighbouring variables that no index distinguishes, and rewrite the code in the new ones.

    An index does not if its step from the last value of the inner variable to the next value of the outer one is its
    step between values of the inner one.
    """
    found = list(variables)
    for place in range(len(found) - 2, -1, -1):
        outer, inner = found[place : place + 2]
        if all(_steps_on(index, outer, inner) for index in _indices(code)):
            both = Variable(outer.name + inner.name, outer.extent * inner.extent)
            found[place : place + 2] = [both]
            code = _renamed(code, {outer: NOWHERE, inner: variable(both.name, both.extent)})
    return tuple(found), code


def _indices(code: Joinable) -> Iterator[Index]:
    stores, expressions = code
    yield from (store.index for store in stores)
    for expression in (*(store.value for store in stores), *expressions):
        for part in expression.all_parts:
            yield from indices_of(part)


def _steps_on(index: Index, outer: Variable, inner: Variable) -> bool:
    divided = [atom.index for atom, _ in index.terms if isinstance(atom, Division)]
    if any(part.depends_on(outer) or part.depends_on(inner) for part in divided):
        return False
    return index.coefficient(outer) == index.coefficient(inner) * inner.extent


def _renamed(code: Joinable, places: Mapping[Variable, Index]) -> Joinable:
    stores, expressions = code
    change, known = moved(places), {}  # type: ignore[var-annotated]
    return (
        tuple(
            Write(store.buffer, store.index.substitute(places), rewritten(store.value, change, known))
            for store in stores
        ),
        tuple(rewritten(expression, change, known) for expression in expressions),
    )
