"""Calls of many sizes: which dimensions vary from call to call, and the traces that are right for all their lengths.

The calls of one *family* differ in the lengths of dimensions alone. Dimensions that the user has named, or whose length
differs among three calls of a family, get symbols when the next call is traced (`minitorch.modes.tracing.sized`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError
from ...ir import Shape
from ...sizes import Guard
from ...tensor import Tensor
from ..guards.signature import Call

if TYPE_CHECKING:
    from ..tracing.explain import SignatureReport
    from ..tracing.sized import Symbols
    from ..tracing.traced import Traced

SIZES_APART = 2  # calls that get traces of their own before their dimensions get symbols
SHORTEST = 2  # a length of 0 or 1 is a case of its own: an empty array, or an operand that is repeated

Given = Mapping[str, Mapping[int, str]]


@dataclass(frozen=True)
class _Member:
    """A trace for many sizes."""

    traced: Traced
    shapes: list[Shape]  # of the call that was traced
    symbols: dict[tuple[int, int], str]  # by tensor and dimension
    guards: Sequence[Guard]

    def is_for(self, shapes: Sequence[Shape]) -> bool:
        """Return whether the trace is right for arguments of these shapes."""
        sizes: dict[str, int] = {}
        for place, (now, then) in enumerate(zip(shapes, self.shapes, strict=True)):
            for axis, length in enumerate(now):
                symbol = self.symbols.get((place, axis))
                expected = then[axis] if symbol is None else sizes.setdefault(symbol, length)
                if length != expected:
                    return False
        return all(size >= SHORTEST for size in sizes.values()) and all(guard.holds(sizes) for guard in self.guards)


class ManySizes:
    """The families of a function's calls.

    Args:
        given: the symbols that the user gives to dimensions, by the names of arguments; None to find them.
        name: of the function.
    """

    def __init__(self, given: Given | None, name: str) -> None:
        self.given, self._name = given, name
        self._seen: dict[Any, list[list[Shape]]] = {}
        self._members: dict[Any, list[_Member]] = {}
        self._apart: set[Any] = set()  # families whose programs depend on sizes

    def known(self, call: Call) -> Traced | None:
        """Return a trace for many sizes that is right for a call, if there is one."""
        if not self._members:
            return None
        shapes = _shapes(call)
        for member in self._members.get(call.family, ()):
            if member.is_for(shapes) and member.traced.is_current(call.tensors):
                return member.traced
        return None

    def symbols(self, call: Call, names: Sequence[str]) -> Symbols:
        """Return the symbols of a call's dimensions that is about to be traced, by the names of its arguments."""
        first: dict[int, str] = {}
        for name, leaf in zip(names, call.leaves, strict=True):
            if isinstance(leaf, Tensor):
                first.setdefault(id(leaf), name)
        named = [first[id(tensor)] for tensor in call.tensors]
        shapes = _shapes(call)
        if self.given is None:
            found = self._varying(call.family, shapes, named)
        else:  # of a tensor that is given twice, the first name; nothing for an argument that is no tensor
            own = {name: first.get(id(leaf), "") for name, leaf in zip(names, call.leaves, strict=True)}
            found = self._named({own.get(name, name): axes for name, axes in self.given.items()}, named, shapes)
        if any(shapes[named.index(name)][axis] < SHORTEST for name, axes in found.items() for axis in axes):
            return {}
        return found

    def _varying(self, family: Any, shapes: list[Shape], names: list[str]) -> Symbols:
        seen = self._seen.setdefault(family, [])
        if family in self._apart or len(seen) < SIZES_APART:
            seen.append(shapes)
            return {}
        found: dict[str, dict[int, str]] = {}
        symbols: dict[tuple[int, ...], str] = {}  # of dimensions that had equal lengths in all calls
        for place, shape in enumerate(shapes):
            for axis, length in enumerate(shape):
                lengths = (*(each[place][axis] for each in seen), length)
                if len(set(lengths)) > 1:
                    found.setdefault(names[place], {})[axis] = symbols.setdefault(lengths, f"s{len(symbols)}")
        return found

    def _named(self, given: Given, names: list[str], shapes: list[Shape]) -> Symbols:
        found: dict[str, dict[int, str]] = {}
        lengths: dict[str, int] = {}
        for name, axes in given.items():
            if not name:
                continue
            if name not in names:
                raise ArgumentError(
                    "MT108",
                    f"dynamic_shapes names `{name}`, which is no tensor among the arguments of {self._name}",
                    why=f"its tensors are {', '.join(f'`{each}`' for each in names) or 'none'}",
                    fix="name arguments as explain() does: dynamic_shapes={'x': {0: 'batch'}}",
                )
            rank = len(shapes[names.index(name)])
            for axis, symbol in axes.items():
                if not -rank <= axis < rank:
                    raise ArgumentError(
                        "MT108",
                        f"dynamic_shapes names dimension {axis} of `{name}`, which has {rank} in {self._name}",
                        fix="number dimensions from 0",
                    )
                length = shapes[names.index(name)][axis]
                if lengths.setdefault(symbol, length) != length:
                    raise ArgumentError(
                        "MT108",
                        f"dynamic_shapes: `{symbol}` is the name of dimensions of {lengths[symbol]} and of {length}",
                        why=f"dimensions of one name have one length in every call of {self._name}",
                        fix="give them names of their own",
                    )
                found.setdefault(name, {})[axis % rank] = symbol
        return found

    def keep_apart(self, call: Call) -> None:
        """Give every size of this family a trace of its own from now on."""
        self._apart.add(call.family)

    def add(self, call: Call, names: Sequence[str], symbols: Symbols, traced: Traced, guards: Sequence[Guard]) -> None:
        """Keep a trace for many sizes."""
        ids = list(map(id, call.tensors))
        places = {
            (ids.index(id(leaf)), axis): symbol
            for name, leaf in zip(names, call.leaves, strict=True)
            for axis, symbol in symbols.get(name, {}).items()
        }
        self._members.setdefault(call.family, []).append(_Member(traced, _shapes(call), places, guards))

    def forget(self, reports: Sequence[SignatureReport]) -> None:
        """Forget the traces with these reports."""
        for family, members in list(self._members.items()):
            members[:] = [each for each in members if not any(each.traced.report is gone for gone in reports)]
            if not members:
                del self._members[family]
                self._seen.pop(family, None)


def _shapes(call: Call) -> list[Shape]:
    return [tensor._value.shape for tensor in call.tensors]
