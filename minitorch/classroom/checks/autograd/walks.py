"""The way back over a tape: an order for it, and a walk that adds up, leaves out, starts anew and keeps nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random
from typing import Any

from ...asks import autograd as asks
from ...asks.plain import TIMEOUT, Fault, described
from ..smaller import indented
from ..task import Task, by_case, cases_with

Cases = list[tuple[str, Any]]
Notes = Mapping[str, tuple[str, ...]]  # of each result its operands

# --- an order ---------------------------------------------------------------------------------------------------

WALK = {"users first": 8, "each once": 4, "only what the end depends on": 5, "a long tape": 3}
MANY_WAYS = 40  # steps with two ways each: nobody comes to the end of them all
LONG = 3000  # steps: three times as deep as Python's recursion


def _shuffled(random: Random, notes: Notes, end: str) -> tuple[dict[str, tuple[str, ...]], str]:
    """The same notes in another order and with other names: neither is an answer."""
    names = list(notes)
    random.shuffle(names)
    new = {
        name: f"v{number}"
        for name, number in zip(names, random.sample(range(10 * len(names)), len(names)), strict=True)
    }
    return {new[name]: tuple(new.get(each, each) for each in notes[name]) for name in names}, new[end]


def _drawn(random: Random, size: int) -> Notes:
    pool: list[str] = ["x", "y"]
    notes: dict[str, tuple[str, ...]] = {}
    for number in range(size):
        notes[f"v{number}"] = (pool[-1], random.choice(pool)) if random.random() < 0.7 else (pool[-1],)
        pool.append(f"v{number}")
    return notes


def _tapes(seed: int) -> Cases:
    random = Random(seed)
    diamond: Notes = {"a": ("x",), "b": ("a",), "c": ("a", "b"), "end": ("b", "c")}
    uneven: Notes = {"a": ("x",), "b": ("a",), "c": ("b",), "d": ("c",), "end": ("a", "d")}
    ladder, high = (
        {f"v{n}": (f"v{n - 1}", f"v{n - 1}") if n else ("x", "x") for n in range(size)} for size in (6, MANY_WAYS)
    )
    aside: Notes = {"a": ("x",), "b": ("a", "y"), "end": ("a",), "other": ("b", "end")}
    long: Notes = {f"v{n}": (f"v{n - 1}" if n else "x",) for n in range(LONG + random.randrange(100))}
    drawn = [_drawn(random, size) for size in (6, 10)]
    cases: list[tuple[str, Notes, str]] = [
        ("users first", diamond, "end"),
        ("users first", uneven, "end"),
        *(("users first", notes, list(notes)[-1]) for notes in drawn),
        ("each once", diamond, "end"),
        ("each once", ladder, "v5"),
        ("each once", high, f"v{MANY_WAYS - 1}"),
        ("only what the end depends on", aside, "end"),
        ("only what the end depends on", drawn[1], "v4"),
        ("a long tape", long, list(long)[-1]),
    ]
    return [(part, _shuffled(random, notes, end)) for part, notes, end in cases]


def _needed(notes: Notes, end: str) -> set[str]:
    found, pending = set(), [end]
    while pending:
        name = pending.pop()
        if name in notes and name not in found:
            found.add(name)
            pending += notes[name]
    return found


def _wrong_walk(case: Any, answer: Any) -> str | None:
    part, (notes, end) = case
    listing = (
        ""
        if len(notes) > 20
        else "\n" + indented("\n".join(f"{k} was made of {' and '.join(v)}" for k, v in notes.items()))
    )
    where = f"from {end}{listing}"
    if type(answer) is not list or not all(type(name) is str for name in answer):
        return f"a list of names was expected, and it is {described(answer)}, {where}"
    if strange := [name for name in answer if name not in notes]:
        return f"{strange[0]} is in the list, and no operation made it: an input has no shares to hand out, {where}"
    needed, given = _needed(notes, end), set(answer)
    if part == "each once" and (twice := [name for name in answer if answer.count(name) > 1]):
        return f"{twice[0]} is in the list {answer.count(twice[0])} times: it is reached along several ways, {where}"
    if missing := [name for name in notes if name in needed and name not in given]:
        users = {each: [name for name, operands in notes.items() if each in operands] for each in missing}
        missing.sort(key=lambda each: any(name in users for name in users[each]))  # first what waits for none of these
        waits = [name for name in users[missing[0]] if name not in needed]
        twice = [name for name in users[missing[0]] if notes[name].count(missing[0]) > 1]
        why = (
            f"; it is used by {waits[0]} as well, from which no share comes: {end} does not depend on it"
            if waits
            else f"; {twice[0]} uses it twice, and hands out both shares at once"
            if twice
            else ""
        )
        return f"{missing[0]} is missing{why}, {where}"
    if part == "only what the end depends on" and (aside := [name for name in answer if name not in needed]):
        return f"{aside[0]} is in the list, and {end} does not depend on it: no cotangent ever comes there, {where}"
    place = {name: at for at, name in enumerate(answer)}  # the last one of each
    first = {name: at for at, name in reversed(list(enumerate(answer)))}
    for name in answer:
        for operand in notes[name]:
            if name in needed and operand in first and first[operand] < place[name]:
                forward = answer[-1] == end and len(answer) > 1
                turned = ": this is the order of the way forward" if forward else ""
                return f"{operand} comes before {name}, which still has a share for it{turned}, {where}"
    return None


def _judge_walk(cases: Cases, answers: Any) -> Any:
    said = dict(by_case(WALK, [(part, (part, case)) for part, case in cases], answers, _wrong_walk))
    given = [answer for (part, _), answer in zip(cases, answers, strict=True) if part == "each once"]
    if [isinstance(answer, Fault) and answer.kind == TIMEOUT for answer in given] == [False, False, True]:
        said["each once"] = (
            f"a chain of {MANY_WAYS} results, each of which uses the one before twice, takes too long: "
            f"look at each result once, and not at each of the 2 ** {MANY_WAYS} ways to it"
        )
    return said


walk = Task(asks.walk, WALK, _tapes, _judge_walk)

# --- a walk, repaired -------------------------------------------------------------------------------------------

BACKWARD = {
    "a value that is used twice": 7,
    "what the end does not depend on": 5,
    "a second step": 7,
    asks.KEPT: 6,
}
Program = tuple[list[Any], int]

CHAIN: Program = ([("mul", 0, 1), ("exp", 2)], 3)
TWICE: Program = ([("mul", 0, 1), ("exp", 2), ("mul", 3, 2), ("add", 4, 2)], 5)
SQUARE: Program = ([("mul", 0, 0), ("add", 2, 1), ("mul", 3, 3)], 4)
OTHER: Program = ([("exp", 1), ("mul", 2, 0)], 3)
ASIDE: Program = ([("exp", 0), ("exp", 1), ("mul", 2, 3)], 2)
NOUGHT: Program = ([("exp", 0), ("mul", 2, 1)], 3)  # with 0 as the second input
EARLIER: Program = ([("exp", 0), ("mul", 2, 1), ("exp", 2)], 3)


def _programs(seed: int) -> Cases:
    random = Random(seed)
    inputs = [random.uniform(0.3, 0.9), random.uniform(0.3, 0.9)]
    return [
        (part, ([inputs[0], 0.0] if programs == [NOUGHT] else inputs, programs))
        for part, programs in (
            ("a value that is used twice", [TWICE]),
            ("a value that is used twice", [SQUARE]),
            ("what the end does not depend on", [ASIDE]),
            ("what the end does not depend on", [EARLIER]),
            ("what the end does not depend on", [NOUGHT]),
            ("a second step", [CHAIN, CHAIN]),
            ("a second step", [CHAIN, OTHER]),
            (asks.KEPT, [CHAIN]),
            (asks.KEPT, [OTHER, CHAIN]),
        )
    ]


def _gradients(inputs: list[float], program: Program) -> list[float | None]:
    """The derivatives of the end by the inputs; None where it does not depend on one."""
    steps, end = program
    tape, values = asks.Tape(), [asks.Var(value) for value in inputs]
    for name, *places in steps:
        values.append(getattr(tape, name)(*[values[place] for place in places]))
    cotangents: dict[asks.Var, float] = {values[end]: 1.0}
    for entry in reversed(tape.entries):
        if entry.result in cotangents:
            for operand, pull in zip(entry.operands, entry.pulls, strict=True):
                cotangents[operand] = cotangents.get(operand, 0.0) + pull(cotangents[entry.result])
    return [cotangents.get(each) for each in values[: len(inputs)]]


def _wrong_backward(case: Any, answer: Any) -> str | None:
    part, (inputs, programs) = case
    total: list[float | None] = [None] * len(inputs)
    for number, (program, (gradients, entries, alive)) in enumerate(zip(programs, answer, strict=True)):
        now = _gradients(inputs, program)
        total = [old if new is None else new + (old or 0.0) for old, new in zip(total, now, strict=True)]
        where = f"inputs {[float(f'{each:.3g}') for each in inputs]}\n{indented(_listing(program))}"
        for place, (have, wanted) in enumerate(zip(gradients, total, strict=True)):
            if not _same(have, wanted):
                said = f"x{place}.grad is {_number(have)} and should be {_number(wanted)}"
                why = _why(have, wanted, now[place], number, program)
                return f"{said}{why}, {'in the second step, ' * number}{where}"
        if part == asks.KEPT and entries:
            return f"{entries} entries are on the tape afterwards: each keeps its operands and result alive, {where}"
        if part == asks.KEPT and alive:
            return (
                f"{alive} results are alive when the tape has gone: something that outlives the call holds them, "
                f"such as a default argument or a global, {where}"
            )
    return None


def _listing(program: Program) -> str:
    steps, end = program
    name = [f"x{place}" for place in range(2)] + [f"v{place}" for place in range(len(steps))]
    lines = [
        f"{name[at]} = {operation}({', '.join(name[place] for place in places)})"
        for at, (operation, *places) in enumerate(steps, 2)
    ]
    return "\n".join([*lines, f"backward_pass(tape, {name[end]})"])


def _same(have: Any, wanted: float | None) -> bool:
    if have is None or wanted is None:
        return have is wanted
    return type(have) is float and math.isclose(have, wanted, rel_tol=1e-9)


def _number(value: Any) -> str:
    return f"{value:.4g}" if type(value) is float else described(value)


def _why(have: Any, wanted: float | None, now: float | None, number: int, program: Program) -> str:
    if have is None and wanted == 0.0:
        return "; None says that the end does not depend on it, and 0 that a small change of it does nothing"
    if have is None:
        return "; the gradient is the number in `grad` of an input"
    if number and now is not None and type(have) is float:
        if math.isclose(have, now, rel_tol=1e-9):
            return "; the gradient of the step before was replaced: `grad` adds up until somebody clears it"
        return "; the walk began with cotangents of the step before: they belong to one walk"
    if wanted is None:
        return "; the end does not depend on it"
    operands = [place for _, *places in program[0] for place in places]
    if any(operands.count(place) > 1 for place in operands):
        return "; a share replaced the one that came before: shares of all uses add up"
    return ""


backward_pass = Task(
    asks.backward_pass,
    BACKWARD,
    _programs,
    cases_with(BACKWARD, _wrong_backward, with_part=True),
)
