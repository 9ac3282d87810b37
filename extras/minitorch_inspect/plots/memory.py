"""`plot_memory`: live memory over time, node by node, and the memory plan of the compiled program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from minitorch.compiler.fusion.roots import output_base
from minitorch.compiler.kernels.arena import Lifetime, aligned, plan
from minitorch.compiler.kernels.cost import FusedCost
from minitorch.compiler.kernels.ledger import Ledger
from minitorch.compiler.kernels.placement import Placement, place
from minitorch.graph.cost import always, in_units, live_bytes
from minitorch.ir import Node
from minitorch.modes.tracing.explain import counted

from .. import colours
from .plot import Plot, bar, footnote, jitted, legend, short, tidy, write
from .theme import INK, ON_FILL
from .traffic import _scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_STEPS, MOST_BLOCKS = 24, 24

WHERE = {  # the memory of a compiled program's values: its colour, and in words
    "arena": (colours.SKY, "in the arena"),
    "result": (colours.GREEN, "a result"),
    "library call": (colours.GREY, "made by a library call"),
}


@dataclass(frozen=True)
class Step:
    """An operation of the unfused graph.

    Attributes:
        name: of the operation.
        bytes: alive while it runs, inputs and constants included.
    """

    name: str
    bytes: int


@dataclass(frozen=True)
class Block:
    """A value of the compiled program that takes new memory.

    Attributes:
        name: of the operation that computes it.
        where: a key of `WHERE`.
        first, last: the numbers of the kernels that write it and read it last; a result is live until the end.
        offset: bytes from the beginning of the arena; values outside of the arena are drawn above it.
        bytes: its size.
    """

    name: str
    where: str
    first: int
    last: int
    offset: int
    bytes: int


def plot_memory(f: Any, *args: Any, **kwargs: Any) -> Plot:
    """Live bytes over time, node by node, and the compiled program's arena.

    Counted, not measured; the compiled program's memory is that of ``f.cost(*args)``. Inputs and constants are live all
    the time. Node by node (after the passes), each result has memory of its own until its last use. Compiled, fewer
    values are in memory, and values with disjoint live ranges share it.

    Args:
        f: a jitted function; another one is jitted first.

    Returns:
        A `Plot`, whose rows are `Step` (the operations, in order) and `Block` (the values of the compiled program).

    Example:
        >>> import minitorch as mt
        >>> plot = mt.inspect.plot_memory(lambda x: (x * 2).exp() + 1, mt.ones(1000))
        >>> [row.bytes for row in plot.rows if hasattr(row, "first")], max(row.bytes for row in plot.rows)
        ([4000], 12000)
    """
    f = jitted(f)
    program, _ = f.program(*args, **kwargs)
    ledger = f.ledger(*args, **kwargs)
    cost = f.cost(*args, **kwargs)
    steps = [Step(node.primitive.name, alive) for node, alive in live_bytes(ledger.graph).items()]
    placement = place(ledger.graph, ledger.kernels, program.updates, program.donated)
    blocks = list(_blocks(ledger, placement))
    there = always(ledger.graph)
    before = max([step.bytes for step in steps] + [there])
    title = (
        f"Memory of {f.__name__}: at most {in_units(before, 'B')} alive node by node, "
        f"{in_units(cost.peak_in_arena, 'B')} compiled"
    )
    kernels = len(ledger.kernels)
    shown = steps, blocks, there, cost, kernels
    return Plot(title, _text(*shown), (*steps, *blocks), partial(_draw, *shown), 4.2)


def _blocks(ledger: Ledger, placement: Placement) -> Iterator[Block]:
    kept = set(map(output_base, ledger.graph.outputs))
    by_loops = {node for kernel in ledger.kernels if kernel.loops for node in kernel.made}
    top = placement.arena_bytes
    returned: list[Node] = []
    for node, (first, last) in placement.live.items():
        size = node.spec.nbytes
        if node in placement.offsets:
            yield Block(node.primitive.name, "arena", first, last, placement.offsets[node], size)
        elif node in kept and node in by_loops:
            yield Block(node.primitive.name, "result", first, last, top, size)
            top += aligned(size)
        else:
            returned.append(node)
    lives = [Lifetime(node.spec.nbytes, *placement.live[node]) for node in returned]
    for node, life, offset in zip(returned, lives, plan(lives).offsets, strict=True):
        yield Block(node.primitive.name, "library call", life.first, life.last, top + offset, life.size)


def _sampled(steps: Sequence[Step]) -> list[tuple[str, Step]]:
    """At most so many steps, each the largest of its group, with their numbers."""
    length = -(-len(steps) // MOST_STEPS)
    found = []
    for begin in range(0, len(steps), max(length, 1)):
        part = steps[begin : begin + length]
        label = str(begin + 1) if len(part) == 1 else f"{begin + 1}-{begin + len(part)}"
        found.append((label, max(part, key=lambda step: step.bytes)))
    return found


def _text(steps: Sequence[Step], blocks: Sequence[Block], there: int, cost: FusedCost, kernels: int) -> str:
    most = max((step.bytes for step in steps), default=there)
    lines = [f"node by node: {counted(len(steps), 'operation')}; live bytes, : inputs and constants, # computed values"]
    for label, step in _sampled(steps):
        drawn = bar((there, ":"), (step.bytes - there, "#"), most=most)
        lines.append(f"  {label:<9}{step.name:<16}{in_units(step.bytes, 'B'):>10}  {drawn}".rstrip())
    lines.append(
        f"compiled: {kernels} kernel{'s' * (kernels != 1)}, {in_units(cost.intermediate_bytes, 'B')} of intermediate "
        f"values in an arena of {in_units(cost.arena_bytes, 'B')}, {in_units(there, 'B')} of inputs and constants"
    )
    if blocks:
        lines.append(f"  {'value':<16}{'bytes':>10}  {'where':<14}{'from':>10}  alive in kernels")
    for block in sorted(blocks, key=lambda block: -block.bytes)[:MOST_BLOCKS]:
        at = in_units(block.offset, "B") if block.where == "arena" else ""
        until = "the end" if block.last >= kernels else str(block.last + 1)
        span = f"{block.first + 1} to {until}"
        lines.append(f"  {block.name:<16}{in_units(block.bytes, 'B'):>10}  {block.where:<14}{at:>10}  {span}")
    if len(blocks) > MOST_BLOCKS:
        lines.append(f"  and {len(blocks) - MOST_BLOCKS} smaller ones")
    return "\n".join(lines)


def _draw(
    steps: Sequence[Step], blocks: Sequence[Block], there: int, cost: FusedCost, kernels: int, figure: Figure
) -> None:
    left, right = figure.subplots(1, 2, sharey=True)
    top = max([step.bytes for step in steps] + [there + block.offset + block.bytes for block in blocks] + [there, 1])
    size, unit = _scale(top)
    edges = [number + 0.5 for number in range(len(steps) + 1)]
    left.stairs([step.bytes / size for step in steps], edges, fill=True, color=colours.ORANGE, baseline=there / size)
    left.set_xlabel("operation, in program order")
    left.set_ylabel(f"{unit} of memory")
    needed = (colours.ORANGE, "computed, and needed still")
    _title(left, f"node by node: {counted(len(steps), 'operation')}", [needed])
    if steps:
        at, peak = max(enumerate(steps), key=lambda each: each[1].bytes)
        side = ("left", "center", "right")[(at + 0.5 > len(steps) / 3) + (at + 0.5 > len(steps) * 2 / 3)]
        write(left, at + 1, peak.bytes / size, f"{in_units(peak.bytes, 'B')}, in {peak.name}", ha=side)
    found = {block.where for block in blocks}
    names = [name for where, name in WHERE.items() if where in found]
    _title(right, f"compiled: {kernels} kernel{'s' * (kernels != 1)}", names)
    right.set_xlabel("kernel, in the order in which they run")
    for block in blocks:
        begin, width = block.first + 0.5, min(block.last, kernels - 1) + 1 - block.first
        bottom, height = (there + block.offset) / size, block.bytes / size
        style = {"align": "edge", "color": WHERE[block.where][0], "edgecolor": ON_FILL, "linewidth": 0.4}
        right.bar(begin, height, width, bottom, **style)
        if block.bytes > 0.06 * top and width > 0.12 * kernels:
            middle = begin + width / 2, bottom + height / 2
            label = f"{short(block.name, 18)}, {in_units(block.bytes, 'B')}"
            write(right, *middle, label, ha="center", va="center", fontsize=7.5, color=ON_FILL)
    right.axhline(cost.peak_in_arena / size, color=INK, linewidth=0.8, linestyle=":")
    write(right, kernels + 0.5, cost.peak_in_arena / size, in_units(cost.peak_in_arena, "B"), ha="right")
    for axes, length in ((left, len(steps)), (right, kernels)):
        axes.axhspan(0, there / size, facecolor=INK, alpha=0.15, linewidth=0)
        if there > 0.06 * top:
            label = f"inputs and constants, {in_units(there, 'B')}"
            write(axes, 0.5 + length * 0.02, there / size / 2, label, va="center")
        axes.set_xlim(0.5, max(length, 1) + 0.5)
        axes.set_ylim(0, top / size * 1.12)
        axes.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        tidy(axes)
    footnote(
        figure, "counted, not measured; compiled code uses the arena's memory again once a value is needed no more"
    )


def _title(axes: Any, text: str, names: Sequence[tuple[str, str]]) -> None:
    """A title above a legend of colours with their names."""
    axes.set_title(text, loc="left", pad=22, fontsize=9)
    legend(axes, [{"color": colour, "label": name} for colour, name in names], 3, borderaxespad=0)
