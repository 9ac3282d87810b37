"""Making a program that breaks a law small: fewer results, and statements that are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from .graphs import Program


def shrink(program: Program, still_fails: Callable[[Program], bool]) -> Program:
    """The smallest program that is found by leaving out one thing at a time, and that still fails."""
    while True:
        for candidate in _smaller(program):
            if still_fails(candidate):
                program = candidate
                break
        else:
            return program


def _smaller(program: Program) -> Iterator[Program]:
    """Programs with one result, and those without a statement: its readers read one of its operands."""
    if len(program.results) > 1:
        yield from (_live(replace(program, results=(place,))) for place in program.results)
    for place, step in reversed(list(enumerate(program.steps))):
        for operand in dict.fromkeys(step.operands):
            moved = {place: operand}
            steps = tuple(
                replace(each, operands=tuple(moved.get(old, old) for old in each.operands)) for each in program.steps
            )
            results = tuple(dict.fromkeys(moved.get(old, old) for old in program.results))
            yield _live(replace(program, steps=steps, results=results))


def _live(program: Program) -> Program:
    """A program without statements and arrays that nothing reads."""
    needed, pending = set(program.results), list(program.results)
    while pending:
        fresh = [place for place in program.steps[pending.pop()].operands if place not in needed]
        needed.update(fresh)
        pending += fresh
    places = {old: new for new, old in enumerate(sorted(needed))}
    steps = tuple(
        replace(program.steps[old], operands=tuple(places[operand] for operand in program.steps[old].operands))
        for old in places
    )
    read = {name for step in steps for name in _arrays_of(step.options)}
    return replace(
        program,
        steps=steps,
        results=tuple(places[old] for old in program.results),
        largest=tuple(program.largest[old] for old in places),
        arrays={name: array for name, array in program.arrays.items() if name in read},
        given=tuple(name for name in program.given if name in read),
    )


def _arrays_of(options: object) -> Iterator[str]:
    """The names of the arrays that a statement reads."""
    if isinstance(options, dict):
        yield from (str(options[name]) for name in ("name", "weight", "bias", "number") if options.get(name))
        if "grid" in options:
            yield from (options["grid"].scale, options["grid"].zero)
