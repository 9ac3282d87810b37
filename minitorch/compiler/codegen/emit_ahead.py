"""Asking for memory before it is needed: rows whose place is data, which no machine can foresee by itself."""

from __future__ import annotations

import math
from typing import Any

from ..loop_ir.expressions import ALWAYS, Expression, Load, Scratch, Total, looked_up, walk
from .emit_tiles import Tiles
from .instructions import stored_type
from .vector_memory import byte_size, integer, prefetch

ROWS_AHEAD = 3
MOST_LINES = 32  # of a row; after that many the machine has noticed
LINE = 64  # bytes


class Ahead(Tiles):
    """Emits, at the beginning of a row, requests for what a later row looks up."""

    def _look_ahead(self, row: Any) -> None:
        """Ask for the elements that a later row reads at indices that are data."""
        loads = self._rows_looked_up()
        if not loads:
            return
        rows = list(self.nest.rows)
        last = integer(math.prod(variable.extent for variable in rows) - 1)
        self.known.append({})  # what is looked up there is not what is looked up here
        self._place_rows(rows, self._smaller(self.builder.add(row, integer(ROWS_AHEAD)), last))
        for load, extent in loads.items():
            element = stored_type(load.dtype, self.target)
            place = self._scalar_index(load.index)
            start = self.builder.gep(self.pointers[load.buffer], [place], source_etype=element)
            per_line = LINE // byte_size(element)
            for line in range(min(-(-extent // per_line), MOST_LINES)):
                prefetch(self.builder, self.builder.gep(start, [integer(line * per_line)], source_etype=element))
        self.known.pop()

    def _rows_looked_up(self) -> dict[Load, int]:
        """Loads that are dense along the columns, at rows that are data, and the length of these."""
        found: dict[Load, int] = {}
        for loop, statement in self.nest.statements:
            for part in walk(statement.value) if loop.columns else ():
                if not isinstance(part, Load) or part.inside != ALWAYS or part.index.coefficient(loop.columns[-1]) != 1:
                    continue
                values = [atom.value for atom in looked_up(part)]
                columns = {column for loop in self.nest.loops for column in loop.columns}
                if values and not any(self._depends(value) & columns or _is_made_here(value) for value in values):
                    for column in columns:
                        self.places[column] = integer(0)
                    found[part] = loop.columns[-1].extent
        return found


def _is_made_here(value: Expression) -> bool:
    """Whether an index is the result of a loop of this row."""
    return any(isinstance(part, (Total, Scratch)) for part in walk(value))
