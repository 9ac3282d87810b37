"""Local arrays in vector registers: values that only constant indices address."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...loop_ir.index import Division, Index, Variable
from ...loop_ir.tree import Accumulate, Allocate, Block, For, If, Kind, Local, Place, Store, arrays_written, statements
from ..vector_memory import byte_size
from .scopes import Scopes


class Registers:
    """The current value of each register during emission.

    Args:
        scopes: the open ones.
    """

    def __init__(self, scopes: Scopes) -> None:
        self.scopes, self.builder = scopes, scopes.builder
        self.values: dict[tuple[Local, int], Any] = {}

    def carried(self, block: Block) -> list[tuple[Local, int]]:
        """Return the registers that a block changes, but for those that it has for itself."""
        if not any(isinstance(each, Local) and each.place is Place.REGISTERS for each in arrays_written(block)):
            return []
        own = {each.local for each in statements(block) if isinstance(each, Allocate)}
        return [key for key in dict.fromkeys(self._assigned(block, own)) if key in self.values]

    def _assigned(self, block: Block, own: set[Local]) -> Iterator[tuple[Local, int]]:
        """Yield the registers that a block stores to, but for some of its own."""
        for each in block:
            match each:
                case For() if each.kind is Kind.UNROLLED:
                    if arrays_written(each.body) <= own:
                        continue
                    for number in range(each.variable.extent):
                        self.scopes.constants[each.variable] = number
                        yield from self._assigned(each.body, own)
                    del self.scopes.constants[each.variable]
                case For() | If():
                    yield from self._assigned(each.body, own)
                case Store() | Accumulate() if isinstance(each.array, Local) and each.array.place is Place.REGISTERS:
                    if each.array not in own:
                        yield each.array, self.number(each.index)

    def number(self, index: Index) -> int:
        """Return an index of a register in lane 0, which is known."""
        total = index.constant
        for atom, factor in index.terms:
            if isinstance(atom, Variable):
                total += factor * self.scopes.constants.get(atom, 0)
            else:
                assert isinstance(atom, Division)
                total += factor * atom.of(self.number(atom.index))
        return total

    def set(self, key: tuple[Local, int], value: Any, depth: int) -> None:
        """Give a register a value, which it has in the scope of a depth."""
        self.values[key] = value
        self.scopes.register_depths.setdefault(key[0], {})[key[1]] = depth

    def write(self, local: Local, index: Index, value: Any) -> None:
        """Store to an element, or to neighbours in the lanes of one register."""
        if self.scopes.lane is not None and index.depends_on(self.scopes.lane):
            value = self.scopes.vector(value)
        key = local, self.number(index)
        self.set(key, value, self.scopes.innermost)
        self.scopes.versions[local] = self.scopes.versions.get(local, 0) + 1

    def read(self, local: Local, index: Index) -> Any:
        """Read an element, or a vector of neighbours; of a square that was stored row by row, a column."""
        number, step = self.number(index), self.scopes.step(index)
        if self.scopes.lane is None or step in (0, 1):
            return self.values[local, number]
        if step is None or step != self.scopes.lane.extent:
            return self._permuted(local, index)
        from ..tiles import BLOCK, transposed

        places = range(0, local.size, step)

        def columns() -> list[Any]:
            rows = [self.values[local, place] for place in places]
            return transposed(self.builder, rows, BLOCK // max(1, byte_size(rows[0].type.element)))

        depth = max(self.scopes.register_depths[local][place] for place in places)
        return self.scopes.once(("columns", local, self.scopes.versions.get(local, 0)), depth, columns)[number]

    def _permuted(self, local: Local, index: Index) -> Any:
        """Return elements of several registers, in the order in which lanes need them."""
        from ..tiles import interleaved, permuted, transposed_units

        assert self.scopes.lane is not None
        lane, order = self.scopes.lane, []
        for number in range(lane.extent):
            self.scopes.constants[lane] = number
            order.append(self.number(index))
        del self.scopes.constants[lane]
        starts = sorted(place for array, place in self.values if array == local)
        rows = [self.values[local, place] for place in starts]
        depth = max(self.scopes.register_depths[local][place] for place in starts)
        key = "permuted", local, self.scopes.versions.get(local, 0)
        size = len(rows)
        lanes = lane.extent
        unit = _unit(order)
        if unit > 1 and size * unit == lanes and [place // lanes for place in order[::unit]] == list(range(size)):
            squares = self.scopes.once((*key, unit), depth, lambda: transposed_units(self.builder, rows, unit))
            return squares[order[0] // unit]
        part, rest = divmod(order[0] * size, lanes)
        wanted = [place % size * lanes + (part * lanes + place) // size for place in range(lanes)]
        if size & (size - 1) == 0 and not rest and order == wanted:
            return self.scopes.once(key, depth, lambda: interleaved(self.builder, rows))[part]
        return permuted(self.builder, rows, order)


def _unit(order: list[int]) -> int:
    """Return how many neighbours stay beside each other in all of an order."""
    unit = 1
    while 2 * unit <= len(order) and all(
        place % (2 * unit) == 0 and order[at : at + 2 * unit] == list(range(place, place + 2 * unit))
        for at, place in list(enumerate(order))[:: 2 * unit]
    ):
        unit *= 2
    return unit
