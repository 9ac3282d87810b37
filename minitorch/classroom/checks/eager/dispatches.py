"""Counting what eager mode does: an observer that the engine calls after every operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ....ir import Primitive
from ...asks import eager as asks
from ...asks.eager import PROGRAMS, observed
from ...asks.plain import Array, described
from ..task import Task, cases_with

Cases = list[tuple[str, Any]]

OBSERVE = {
    "dispatches": 8,
    "bytes of elementwise operations": 9,
    "bytes of other operations": 4,
    "views move nothing": 7,
    "an operand that is used twice": 7,
}


def _programs(seed: int) -> Cases:
    random = np.random.default_rng(seed)
    rows, columns = int(random.integers(2, 6)), int(random.integers(3, 9))
    x, y = (random.random((rows, columns)).astype(np.float32) for _ in range(2))
    whole: Cases = [("dispatches", ("all of them", x, y))]
    equal: Cases = [("an operand that is used twice", ("x + y", x, x.copy()))]  # two arrays, with the same numbers
    return whole + [(part, (name, x, y)) for name, (part, _) in PROGRAMS.items()] + equal


Operands = Sequence[Array]


def _once(operands: Operands) -> Operands:
    return list({id(operand): operand for operand in operands}.values())


def _note(
    read: Callable[[Operands], Operands],
    views: bool,
    ledger: dict[str, int],
    primitive: Primitive,
    operands: Operands,
    value: Array,
) -> None:
    ledger["dispatches"] += 1
    if views or not primitive.is_view:
        ledger["read"] += sum(operand.nbytes for operand in read(operands))
        ledger["written"] += value.nbytes


# What is said of common mistakes, by whose results a ledger is recognised.
VIEWS = "a view (primitive.is_view) only says how to look at memory, nothing of which moves"
ONCE = "the two operands are one array, which is read once: compare with `is`"
MISTAKES: tuple[tuple[str, Callable[[Operands], Operands], bool], ...] = (
    (VIEWS, _once, True),
    (ONCE, lambda operands: operands, False),
    (VIEWS, lambda operands: operands, True),
    ("every operand is read, not only the first", lambda operands: operands[:1], False),
)


def _wrong_observe(case: tuple[str, Array, Array], answer: Any) -> str | None:
    name, x, y = case
    right = observed(partial(_note, _once, False), *case)
    if type(answer) is not dict or not all(type(answer.get(key)) is int for key in right):
        return f"the ledger has to keep three whole numbers, and is {described(answer)}"
    if name not in PROGRAMS:
        given, wanted = answer["dispatches"], right["dispatches"]
        more = ": a view is a dispatch, too; nothing is moved, but Python has to call it" if given < wanted else ""
        return None if given == wanted else f"{given} dispatches were counted, and it is {wanted}{more}"
    if all(answer[key] == right[key] for key in ("read", "written")):
        return None
    shown = ", ".join(f"{answer[key]} {key} instead of {right[key]}" for key in ("read", "written"))
    where = f"{name} on float32 of shape {list(x.shape)}: {shown} bytes"
    if answer["read"] * x.itemsize == right["read"] or answer["written"] * x.itemsize == right["written"]:
        return f"{where}; these are elements, and an element of float32 is {x.itemsize} bytes"
    if name == "x + y" and answer["read"] == x.nbytes:
        same = "have the same numbers, and are two arrays" if x.tobytes() == y.tobytes() else "are two arrays"
        return f"{where}; x and y {same}: both are read (`is` tells arrays apart, `==` compares numbers)"
    for sentence, read, views in MISTAKES:
        mistaken = observed(partial(_note, read, views), *case)
        if all(answer[key] == mistaken[key] for key in ("read", "written")):
            return f"{where}; {sentence}"
    return where


observe = Task(asks.observe, OBSERVE, _programs, cases_with(OBSERVE, _wrong_observe))
