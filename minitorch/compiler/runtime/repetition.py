"""The repetitions of a scan: its body's kernels, run again and again where the values of each repetition are.

What the body reads and writes is found by its *places*, the addresses of its arrays. From one repetition to the next a
slice's address moves on by its size. A carried value has two arrays, which change places; if all its values are a
result, too, it moves through that, and nothing is ever copied.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...ir import Node
from ..fusion.roots import output_base
from ..kernels.arena import ALIGNMENT
from .memory_pool import Array, address, pool
from .program_steps import Call, CallMemory, KernelRun, Program


@dataclass
class Track:
    """The way of a carried value: through two arrays, or through one that has room for each repetition and the first.

    Attributes:
        begin, end: the places of the value that a repetition is given, and of the next one.
        shape, dtype: of the value.
        before, after: the results that are all values given, and all values made.
    """

    begin: int
    end: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)


class Repetition:
    """A scan whose body is made of kernels alone.

    Args:
        node: one of the scan's results.
        body: the compiled body.
        tracks: the ways of the carried values.
        rows: of the other results, the number and the place.
    """

    def __init__(self, node: Node, body: Program, tracks: list[Track], rows: list[tuple[int, int]]) -> None:
        self.body, self.tracks, self.rows = body, tracks, rows
        self.length, self.reverse = node.params["length"], node.params["reverse"]
        self.carried, self.sliced = node.params["carried"], node.params["sliced"]
        self.steps = [step for step, _ in body.program.steps]

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """Run all repetitions; return the results in order. Results that are all values of a track share its memory."""
        memory, length, outputs = self.body.call_memory, self.length, self.body.graph.outputs
        places, turns = (ctypes.c_int64 * memory.count)(), np.zeros((2, memory.count), np.int64)
        results: list[Any] = [None] * len(outputs)
        arena, ends = memory.make_arena(), []
        places[memory.arena] = address(arena) + -address(arena) % ALIGNMENT

        def walk(place: int, array: Array, size: int, first: int = 0) -> None:
            """Begin with a part of an array, and go on to the next one in each repetition."""
            places[place] = address(array) + size * (max(length - 1, 0) + 1 - first if self.reverse else first)
            turns[:, place] = -size if self.reverse else size

        for place, array in enumerate(arrays):
            if self.carried <= place < self.carried + self.sliced:
                walk(1 + place, array, array.nbytes // max(length, 1), int(self.reverse))
            else:
                places[1 + place] = address(array)
        for number, place in self.rows:
            results[number] = pool.array((length, *outputs[number].shape), outputs[number].dtype.numpy)
            walk(place, results[number], outputs[number].spec.nbytes, int(self.reverse))
        for track, first in zip(self.tracks, arrays, strict=False):
            is_kept = bool(track.before or track.after)
            array = pool.array((length + 1 if is_kept else 2, *track.shape), track.dtype)
            array[-1 if is_kept and self.reverse else 0] = first
            if is_kept:
                walk(track.begin, array, first.nbytes)
                walk(track.end, array, first.nbytes, 1)
                results_before, results_after = (array[1:], array[:-1]) if self.reverse else (array[:-1], array[1:])
                for numbers, result in ((track.before, results_before), (track.after, results_after)):
                    for number in numbers:
                        results[number] = result
                ends.append(array[0 if self.reverse else -1, ...])
            else:
                places[track.begin], places[track.end] = address(array), address(array) + first.nbytes
                turns[:, track.begin] = first.nbytes, -first.nbytes
                turns[:, track.end] = -first.nbytes, first.nbytes
                ends.append(array[length % 2, ...])
        self._run(places, turns)
        results[: self.carried] = map(np.array, ends)
        return results

    def _run(self, places: Any, turns: Array) -> None:
        if len(self.steps) == 1 and isinstance(self.steps[0], KernelRun):
            self.steps[0].repeat(places, turns, self.length)
            return
        now = np.ctypeslib.as_array(places)
        for trip in range(self.length):
            for step in self.steps:
                step.run([], places)
            now += turns[trip % 2]


def repetition_of(node: Node, body: Program) -> Repetition | None:
    """Return how a scan is repeated without Python's arrays; None if a step of it needs these, or a copy is needed."""
    memory, graph = body.call_memory, body.graph
    if any(isinstance(step, Call) for step, _ in body.program.steps):
        return None
    inputs = {each: place for place, each in enumerate(graph.inputs)}
    bases = [output_base(output) for output in graph.outputs]
    carried = node.params["carried"]
    tracks, seen = [], set()
    for place, base in enumerate(bases[:carried]):
        if base in inputs or base in seen or not _is_written(memory, base):
            return None
        seen.add(base)
        spec = graph.inputs[place].spec
        tracks.append(Track(1 + place, memory.where(base)[0], spec.shape, spec.dtype.numpy))
    ends = {base: place for place, base in enumerate(bases[:carried])}
    rows = []
    for number, base in enumerate(bases[carried:], carried):
        if base in ends:
            tracks[ends[base]].after.append(number)
        elif inputs.get(base, carried) < carried:
            tracks[inputs[base]].before.append(number)
        elif base in inputs or base in seen or not _is_written(memory, base):
            return None
        else:
            seen.add(base)
            rows.append((number, memory.where(base)[0]))
    return Repetition(node, body, tracks, rows)


def _is_written(memory: CallMemory, node: Node) -> bool:
    """Return whether kernels write a value into an array of the call."""
    place, offset = memory.where(node)
    return 0 < place < memory.arena and not offset
