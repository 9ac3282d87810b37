"""Packing in groups of k, for instructions that add several products to each 32-bit lane.

`left[row][k][g]` and `right[tile][k][lane][g]`: the numbers of a group lie beside each other, so one of them is a
32-bit number that is broadcast, and those of some lanes are a vector. Loops over the sums are those of `products`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from ...loop_ir.expressions import Choose, Load
from ...loop_ir.index import Variable, extent_of
from .. import rewrites as R
from ..contractions.gemm import Operand
from ..contractions.gemm_tiling import Tiling
from ..rewrite import Rewrite

# Rows of an image that the elements of a vector may lie in. Raising it makes vectors longer, and of more pieces: one of
# 64 bytes from images of 14 columns took 4 times as long as two of 32.
MOST_RUNS = 4


def left_in_groups(argument: int | None, left: Operand, at: str, cut: Tiling) -> Iterator[Rewrite]:
    """Yield the steps for left[row, k], of which a step of a tile reads one group in each row."""
    assert cut.groups is not None
    size, dtype = cut.groups.size, cut.groups.left.name
    yield R.pack(argument, "left", at, "it", "r", "k", "g", pad=("r", cut.lanes * size), dtype=dtype)
    k, steps = "left_k", cut.steps
    if len(left.ks) > 1 and extent_of(left.ks[-1:]) > size:  # whole runs of channels exist, or none does
        ks = _of_groups(left.ks, size)
        *others, k = yield from apart("left_k", ks, steps)
        steps = ks[-1].extent if others else steps
    if steps > 1:
        yield R.fuse("left_kg", k, "left_g")
    k = "left_kg" if steps > 1 else "left_g"
    length = min(cut.lanes * size, _power_of_two(steps * size))
    yield R.split(k, length, "left_kt", "left_l", cut="left_l")
    yield R.vectorise("left_l")


def right_in_groups(argument: int | None, right: Operand, at: str, cut: Tiling) -> Iterator[Rewrite]:
    """Yield the steps for right[k, lane], of which a step of a tile reads one group for each of its lanes."""
    assert cut.groups is not None
    size, dtype = cut.groups.size, cut.groups.right.name
    loops = [name for name, count in (("right_v", cut.vectors), ("right_l", cut.lanes)) if count > 1]
    if not cut.right_along_k:
        yield R.pack(argument, "right", at, "jt", "k", "v", "l", "g", dtype=dtype)
        if len(loops) > 1:
            yield R.fuse("right_w", *loops)
        ks = yield from apart("right_k", _of_groups(right.ks, size), cut.steps)
        most = 4 * cut.lanes // cut.groups.right.itemsize
        if len(right.across) > 1:
            most = min(most, _power_of_two(MOST_RUNS * right.across[-1].extent) // 2)
        chunk = _power_of_two_in(cut.width, most)
        yield R.split("right_w" if len(loops) > 1 else loops[0], chunk, "right_c", "right_x")
        if len(ks) > 1:
            yield R.reorder(
                "right_jt", "right_c", *in_order(right, _of_groups(right.ks, size), ks), "right_x", "right_g"
            )
        yield R.regroup("square", chunk, ("right_g", "right_x"), ("right_x", "right_g"))
        return
    beyond = -cut.steps % cut.lanes  # so that whole squares are turned
    yield R.pack(argument, "right", at, "jt", "k", "v", "l", "g", pad=("jt", beyond * cut.width * size), dtype=dtype)
    yield R.split("right_k", cut.lanes, "right_kt", "right_ki")
    if cut.steps % cut.lanes:
        yield R.overcompute("right")
    yield R.reorder("right_jt", "right_v", "right_kt", "right_ki", "right_l", "right_g")  # few rows of memory at a time
    yield R.regroup("square", cut.lanes * size, ("right_l", "right_ki", "right_g"), ("right_ki", "right_l", "right_g"))


def _of_groups(ks: tuple[Variable, ...], size: int) -> tuple[Variable, ...]:
    """Return the variables of k, the last of which counts groups; one variable for all of k if groups straddle."""
    *others, last = ks
    if last.extent % size:
        return (Variable(last.name, extent_of(ks)),)
    return (*others, Variable(last.name, last.extent // size))


def _power_of_two(count: int) -> int:
    """Return the smallest power of two that is not below a number."""
    return 1 << (count - 1).bit_length()


def _power_of_two_in(count: int, most: int) -> int:
    """Return the largest power of two, up to a number, that divides another."""
    return min(most, count & -count)


# The loops of packing, where rows, lanes or k are several variables: each in its own loop, in a good order.


def apart(name: str, variables: Sequence[Variable], block: int) -> Generator[Rewrite, None, list[str]]:
    """Cut a loop over a block of variables into one for each that takes all of its values, and return the names."""
    names: list[str] = []
    for length in (extent_of(variables[number:]) for number in range(1, len(variables))):
        if block % length == 0:
            names.append(f"{name}{len(names)}")
            yield R.split(name, length, names[-1], name)
    return [*names, name]


def decides(operand: Operand, variables: Sequence[Variable]) -> list[bool]:
    """Return which variables decide whether an element exists."""
    bounds = [part.inside for part in operand.value.all_parts if isinstance(part, (Load, Choose))]
    return [any(inside.depends_on(each) for inside in bounds) for each in variables]


def in_order(operand: Operand, variables: Sequence[Variable], names: list[str]) -> list[str]:
    """Return the names of loops over variables, those first that decide whether an element exists."""
    found = decides(operand, variables[-len(names) :])
    return [names[at] for at in sorted(range(len(names)), key=lambda at: not found[at])]
