"""The loops of packing, where rows, lanes or k are several variables: each in its own loop, in a good order."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from ...loop_ir.expressions import Choose, Load
from ...loop_ir.index import Variable
from ..contractions.gemm import Operand, extent
from ..rewrites import Rewrite, split


def apart(name: str, variables: Sequence[Variable], block: int) -> Generator[Rewrite, None, list[str]]:
    """Cut a loop over a block of variables into one for each that takes all of its values, and return the names."""
    names: list[str] = []
    for length in (extent(variables[number:]) for number in range(1, len(variables))):
        if block % length == 0:
            names.append(f"{name}{len(names)}")
            yield split(name, length, names[-1], name)
    return [*names, name]


def decides(operand: Operand, variables: Sequence[Variable]) -> list[bool]:
    """Return which variables decide whether an element exists."""
    bounds = [part.inside for part in operand.value.all_parts if isinstance(part, (Load, Choose))]
    return [any(inside.depends_on(each) for inside in bounds) for each in variables]


def in_order(operand: Operand, variables: Sequence[Variable], names: list[str]) -> list[str]:
    """Return the names of loops over variables, those first that decide whether an element exists."""
    found = decides(operand, variables[-len(names) :])
    return [names[at] for at in sorted(range(len(names)), key=lambda at: not found[at])]
