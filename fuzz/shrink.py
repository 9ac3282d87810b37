"""A failing program made small: delta debugging over statements, arguments and their values.

Each candidate is run; it replaces the program if it still fails in the same way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from .program import Program, Statement
from .values import FLOATS, Input

StillFails = Callable[[Program], bool]


def shrink(
    program: Program, still_fails: StillFails, specs: dict[str, tuple[tuple[int, ...], str]], seconds: float = 15
) -> Program:
    """The smallest program that is found within some seconds.

    Args:
        program: one that fails.
        still_fails: whether another one fails in the same way.
        specs: shapes and types of values, by name, so that an argument can take a statement's place.
        seconds: for all of it.
    """
    end = time.monotonic() + seconds
    improved = True
    while improved and time.monotonic() < end:
        improved = False
        for candidate in candidates(program, specs):
            if time.monotonic() > end:
                break
            if candidate != program and still_fails(candidate):
                program, improved = candidate, True
                break
    return program


def candidates(program: Program, specs: dict[str, tuple[tuple[int, ...], str]]) -> Iterator[Program]:
    """Programs that are a little smaller, the much smaller ones first."""
    yield from fewer_statements(program)
    yield from fewer_results(program)
    yield from arguments_instead(program, specs)
    yield from plainer(program)
    for each in program.inputs:
        for other in simpler(each):
            yield replace(program, inputs=tuple(other if one is each else one for one in program.inputs))
    for place, statement in enumerate(program.body):
        for name in statement.kwargs:
            kwargs = {key: value for key, value in statement.kwargs.items() if key != name}
            yield with_statement(program, place, replace(statement, kwargs=kwargs))
    for line in range(len(program.setup)):
        yield from fewer_layers(program, line)


def fewer_statements(program: Program) -> Iterator[Program]:
    """Without the last half, the first half, and each statement, always with what depends on it."""
    count = len(program.body)
    size = count // 2
    while size:
        for start in range(0, count, size):
            yield without(program, set(range(start, min(start + size, count))))
        size //= 2


def without(program: Program, dropped: set[int]) -> Program:
    """A program without some statements, and without those that read their results."""
    gone: set[str] = set()
    kept: list[Statement] = []
    for place, statement in enumerate(program.body):
        if place in dropped or statement.takes & gone:
            gone.update(statement.gives)
        else:
            kept.append(statement)
    given = {name for statement in kept for name in statement.gives} | {each.name for each in program.inputs}
    last = [kept[-1].gives[0]] if kept and kept[-1].gives else []
    results = tuple(dict.fromkeys([name for name in program.results if name in given] or last))
    return replace(program, body=tuple(kept), results=results).without_unused()


def fewer_results(program: Program) -> Iterator[Program]:
    """No result, the last value alone, each result alone, and without each."""
    last = program.body[-1].gives[:1] if program.body else ()
    if program.results and program.results != last:
        yield replace(program, results=last).without_unused()
    if program.results:
        yield replace(program, results=()).without_unused()
    if len(program.results) > 1:
        for name in program.results:
            yield replace(program, results=(name,)).without_unused()
        for name in program.results:
            yield replace(program, results=tuple(one for one in program.results if one != name)).without_unused()


def arguments_instead(program: Program, specs: dict[str, tuple[tuple[int, ...], str]]) -> Iterator[Program]:
    """An argument in the place of each value that a statement computes."""
    for place, statement in enumerate(program.body):
        if not statement.takes or not specs.keys() >= {*statement.gives}:
            continue
        body = program.body[:place] + program.body[place + 1 :]
        read = [name for name in statement.gives if any(name in each.takes for each in body)]
        if not read:
            continue
        grad = any(each.requires_grad for each in program.inputs)
        results = tuple(one for one in program.results if one not in statement.gives) or program.results
        for wants in {grad, False}:
            made = [
                Input(name, shape, dtype, "normal", 0, requires_grad=wants and dtype in FLOATS)
                for name, (shape, dtype) in ((name, specs[name]) for name in statement.gives)
            ]
            yield replace(program, inputs=(*program.inputs, *made), body=body, results=results).without_unused()


def plainer(program: Program) -> Iterator[Program]:
    """Called once, not warmed up, without gradients."""
    if program.calls > 1:
        yield replace(program, calls=1)
    if program.warm:
        yield replace(program, warm=False)
    if program.backward:
        yield replace(program, backward=False)


def simpler(given: Input) -> Iterator[Input]:
    """Arguments that are plainer, shorter, or of a more usual type."""
    if given.requires_grad:
        yield replace(given, requires_grad=False)
    if given.view and not given.view_of and ".expand" not in given.view:
        yield replace(given, view="")
    for dim, length in enumerate(given.shape):
        for shorter in (1, 2, length // 2, length - 1):
            if 0 < shorter < length and not given.view.startswith((".expand", ".permute")):
                yield replace(given, shape=(*given.shape[:dim], shorter, *given.shape[dim + 1 :]))
    if given.kind != "whole" and not given.kind.startswith(("below", "permuted", "sorted")):
        yield replace(given, kind="whole", seed=0)
    if given.seed:
        yield replace(given, seed=0)
    if given.dtype not in ("float32", "int64", "bool"):
        yield replace(given, dtype="float32" if given.dtype in FLOATS else "int64")


def with_statement(program: Program, place: int, statement: Statement) -> Program:
    """A program with another statement at a place."""
    return replace(program, body=(*program.body[:place], statement, *program.body[place + 1 :]))


def fewer_layers(program: Program, line: int) -> Iterator[Program]:
    """A model without one of its layers."""
    text = program.setup[line]
    head, found, tail = text.partition("Sequential(")
    if found:
        inside, _, rest = tail.partition(").to(")
        layers = inside.split(", mt.nn.")
        for place in range(len(layers)):
            left = [layer.removeprefix("mt.nn.") for number, layer in enumerate(layers) if number != place]
            made = f"{head}{found}{', '.join('mt.nn.' + layer for layer in left)}).to({rest}"
            yield replace(program, setup=(*program.setup[:line], made, *program.setup[line + 1 :]))
