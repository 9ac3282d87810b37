"""Counting what eager mode does: an observer that the engine calls after every operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir import Primitive
from ...asks import eager as asks
from ...asks.eager import PROGRAMS, observed
from ...asks.plain import Array, described
from ..task import Task, by_case

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
    return whole + [(part, (name, x, y)) for name, (part, _) in PROGRAMS.items()]


def _note(ledger: dict[str, int], primitive: Primitive, operands: Sequence[Array], value: Array) -> None:
    ledger["dispatches"] += 1
    if not primitive.is_view:
        ledger["read"] += sum({id(operand): operand.nbytes for operand in operands}.values())
        ledger["written"] += value.nbytes


def _note_views(ledger: dict[str, int], primitive: Primitive, operands: Sequence[Array], value: Array) -> None:
    ledger["read"] += sum({id(operand): operand.nbytes for operand in operands}.values())
    ledger["written"] += value.nbytes


def _note_twice(ledger: dict[str, int], primitive: Primitive, operands: Sequence[Array], value: Array) -> None:
    if not primitive.is_view:
        ledger["read"] += sum(operand.nbytes for operand in operands)
        ledger["written"] += value.nbytes


def _note_views_twice(ledger: dict[str, int], primitive: Primitive, operands: Sequence[Array], value: Array) -> None:
    ledger["read"] += sum(operand.nbytes for operand in operands)
    ledger["written"] += value.nbytes


def _note_first(ledger: dict[str, int], primitive: Primitive, operands: Sequence[Array], value: Array) -> None:
    if not primitive.is_view:
        ledger["read"] += operands[0].nbytes
        ledger["written"] += value.nbytes


# The results of common mistakes, so that a ledger can be recognised.
VIEWS = "a view (primitive.is_view) only says how to look at memory, nothing of which moves"
ONCE = "the two operands are one array, which is read once: compare with `is`"
MISTAKES = (
    (VIEWS, _note_views),
    (ONCE, _note_twice),
    (VIEWS, _note_views_twice),
    ("every operand is read, not only the first", _note_first),
)


def _wrong_observe(case: tuple[str, Array, Array], answer: Any) -> str | None:
    name, x, _ = case
    right = observed(_note, *case)
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
    for sentence, note in MISTAKES:
        mistaken = observed(note, *case)
        if all(answer[key] == mistaken[key] for key in ("read", "written")):
            return f"{where}; {sentence}"
    return where


def _judge_observe(cases: Cases, answers: Any) -> Any:
    return by_case(OBSERVE, cases, answers, _wrong_observe)


observe = Task(asks.observe, OBSERVE, _programs, _judge_observe)
