"""Exercise 01, eager execution: what one operation costs, and what goes wrong between two of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from minitorch.ir import Primitive

from ..harness import eager as harness
from ..harness.eager import ENGINE, PROGRAMS, REFUSED, observed, records_of
from ..harness.plain import Array, Fault, Value, described
from .compare import wrong_tensor
from .reasons import expect, hint, recognised
from .samples import in_parts
from .task import Cases, Task, Verdict

# --- mean_squared_error -----------------------------------------------------------------------------------------

LOSS = {"equal shapes": 6, REFUSED: 9}
SHAPES = {
    "equal shapes": [((4,), (4,)), ((4, 1), (4, 1)), ((2, 3), (2, 3))],
    REFUSED: [((4, 1), (4,)), ((4,), (1,)), ((3,), (2, 3)), ((4,), ())],
}


def _losses(random: np.random.Generator) -> Cases:
    return in_parts(SHAPES, lambda shapes: tuple(random.normal(size=shape).astype(np.float32) for shape in shapes))


def _shapes(case: tuple[Array, Array]) -> str:
    return f"prediction of shape {list(case[0].shape)}, target of shape {list(case[1].shape)}"


def _wrong_loss(part: str, case: tuple[Array, Array], answer: Any) -> str | None:
    prediction, target = case
    if part == REFUSED:
        return _wrong_refusal(case, answer)
    squares = (prediction - target) ** 2
    reason = wrong_tensor(answer, np.asarray(squares.mean(dtype=np.float32)))
    if reason is None or type(answer) is not Value or answer.array.shape != ():
        return reason
    known = (
        ("that is the sum; the mean divides by the number of elements", squares.sum()),
        ("that is the mean of the absolute differences; they are to be squared", np.abs(prediction - target).mean()),
        ("that is the root of the mean square", np.sqrt(squares.mean())),
    )
    return reason + recognised(known, lambda wrong: bool(np.isclose(answer.array, wrong)))


def _wrong_refusal(case: tuple[Array, Array], answer: Any) -> str | None:
    if type(answer) is not tuple:
        lengths = "×".join(map(str, np.broadcast_shapes(*(each.shape for each in case))))
        return f"no ValueError is raised; the difference is {lengths} numbers, and nobody notices"
    if answer[0] != "ValueError":
        return f"it raises {answer[0]}: {answer[1]}; a ValueError is wanted, for callers to catch"
    text = str(answer[1]).replace(" ", "").replace(",)", ")").replace("(", "[").replace(")", "]")
    missing = [list(each.shape) for each in case if str(list(each.shape)).replace(" ", "") not in text]
    return f"the message should name both shapes; it lacks {missing[0]}" if missing else None


def _without_refusing_all(said: dict[str, Verdict], answers: list[Any]) -> dict[str, Verdict]:
    if not said[REFUSED] and any(isinstance(answer, Fault) for answer in answers[: len(SHAPES["equal shapes"])]):
        said[REFUSED] = "it counts when equal shapes are not refused"
    return said


mean_squared_error = Task(
    harness.mean_squared_error,
    LOSS,
    _losses,
    _wrong_loss,
    draws=np.random.default_rng,
    about=_shapes,
    refine=_without_refusing_all,
)

# --- first_bad --------------------------------------------------------------------------------------------------

MADE, INFINITE, BEFORE = "a NaN that an operation makes", "an infinity", "a NaN that was there before"
FIRST_BAD = {MADE: 8, INFINITE: 5, BEFORE: 7}

# Programs of one operation a step: name, which values it reads (0 and 1 are the inputs), and the numbers in x and y.
_RUNS: tuple[tuple[str, tuple[tuple[str, tuple[int, ...]], ...], list[float], list[float]], ...] = (
    (MADE, (("sub", (0, 0)), ("div", (2, 2)), ("add", (3, 1)), ("sum", (4,))), [1, 2], [1, 2]),
    (MADE, (("add", (0, 1)), ("sqrt", (2,)), ("mul", (3, 1))), [-5, 2], [1, 2]),
    (MADE, (("sqrt", (0,)), ("sqrt", (1,)), ("add", (2, 3))), [-5, 2], [-1, 2]),
    (INFINITE, (("mul", (0, 1)), ("log", (2,)), ("exp", (3,)), ("add", (4, 1))), [0, 2], [1, 2]),
    (INFINITE, (("add", (0, 1)), ("exp", (2,)), ("sub", (3, 3))), [1000, 2], [1, 2]),
    (BEFORE, (("add", (0, 1)), ("sum", (2,))), [math.nan, 1], [1, 2]),
    (BEFORE, (("add", (0, 1)), ("sub", (1, 1)), ("div", (3, 3))), [math.nan, 1], [1, 2]),
    (BEFORE, (("add", (0, 1)), ("mul", (2, 2))), [1, 2], [3, 4]),
    (BEFORE, (("add", (0, 1)), ("sum", (2,))), [1, 2], [math.nan, 4]),
)


def _runs(seed: int) -> Cases:
    random = np.random.default_rng(seed)
    cases: Cases = []
    for part, steps, x, y in _RUNS:
        # In front, steps that do no harm; behind the numbers, others that do none.
        more = random.integers(1, 9, int(random.integers(0, 3))).tolist()
        before = [("mul", [1, 1])] * int(random.integers(0, 4)) if seed else []
        moved = [(name, [at + len(before) if at > 1 else at for at in reads]) for name, reads in steps]
        cases.append((part, (before + moved, [*x, *more], [*y, *more])))
    return cases


def _bad(array: Array) -> bool:
    return not np.isfinite(array).all()


def _shown(array: Array) -> str:
    return str(np.round(array.astype(np.float64), 4).tolist())


def _steps(case: Any) -> str:
    lines = [
        f"{place}: {name} of {' and '.join(map(_shown, operands))} gives {_shown(made)}"
        for place, (name, operands, made) in enumerate(records_of(case))
    ]
    return "\n".join(["", *lines])


def _wrong_first_bad(part: str, case: Any, answer: Any) -> str | None:
    records = records_of(case)
    makers = [place for place, (_, reads, made) in enumerate(records) if _bad(made) and not any(map(_bad, reads))]
    right = makers[0] if makers else None
    if type(answer) is type(right) and answer == right:
        return None
    expect(answer, int | None, "a position or None")
    if answer is not None and 0 <= answer < len(records) and any(map(_bad, records[answer][1])):
        first = "no operation makes it" if right is None else f"the first that makes it is {right}"
        return f"operation {answer} only passes on what it got; {first}"
    if right is None:
        return f"no operation makes a NaN or an infinity of finite numbers, so it is None, not {answer}"
    if answer is not None and right < answer < len(records):
        return f"operation {answer} makes one, too, but {right} is the first"
    return f"it is operation {right}, not {answer}" + hint(np.isinf(records[right][2]).any(), "an infinity counts, too")


first_bad = Task(harness.first_bad, FIRST_BAD, _runs, _wrong_first_bad, draws=int, about=_steps)

# --- observe ----------------------------------------------------------------------------------------------------

OBSERVE = {
    "dispatches": 8,
    "bytes of elementwise operations": 9,
    "bytes of other operations": 4,
    "views move nothing": 7,
    "an operand that is used twice": 7,
}
Operands = Sequence[Array]


def _programs(random: np.random.Generator) -> Cases:
    shape = int(random.integers(2, 6)), int(random.integers(3, 9))
    x, y = (random.random(shape).astype(np.float32) for _ in range(2))
    return [
        ("dispatches", ("all of them", x, y)),
        *((part, (name, x, y)) for name, (part, _) in PROGRAMS.items()),
        ("an operand that is used twice", ("x + y", x, x.copy())),  # two arrays, with the same numbers
    ]


def _once(operands: Operands) -> Operands:
    return list({id(operand): operand for operand in operands}.values())


def _observer(read: Callable[[Operands], Operands], views: bool = False) -> Callable[..., None]:
    """An observer that notes the bytes of what `read` leaves of the operands, and of views if it is told to."""

    def note(ledger: dict[str, int], primitive: Primitive, operands: Operands, value: Array) -> None:
        ledger["dispatches"] += 1
        if views or not primitive.is_view:
            ledger["read"] += sum(operand.nbytes for operand in read(operands))
            ledger["written"] += value.nbytes

    return note


# Common mistakes: a sentence, and the observer that makes it, by whose ledger it is recognised.
VIEWS = "a view (primitive.is_view) only says how to look at memory, nothing of which moves"
MISTAKES = (
    (VIEWS, _observer(_once, views=True)),
    ("the two operands are one array, which is read once: compare with `is`", _observer(lambda operands: operands)),
    (VIEWS, _observer(lambda operands: operands, views=True)),
    ("every operand is read, not only the first", _observer(lambda operands: operands[:1])),
)


def _wrong_observe(part: str, case: tuple[str, Array, Array], answer: Any) -> str | None:
    name, x, y = case
    right = observed(_observer(_once), *case)
    if type(answer) is not dict or not all(type(answer.get(key)) is int for key in right):
        return f"the ledger has to keep three whole numbers, and is {described(answer)}"
    if part == "dispatches":
        given, wanted = answer["dispatches"], right["dispatches"]
        more = ": a view is a dispatch, too; nothing is moved, but Python has to call it" if given < wanted else ""
        return None if given == wanted else f"{given} dispatches were counted, and it is {wanted}{more}"

    def is_that_of(ledger: Any) -> bool:
        return all(answer[key] == ledger[key] for key in ("read", "written"))

    if is_that_of(right):
        return None
    shown = ", ".join(f"{answer[key]} {key} instead of {right[key]}" for key in ("read", "written"))
    elements = any(answer[key] * x.itemsize == right[key] for key in ("read", "written"))
    same = "have the same numbers, and are two arrays" if x.tobytes() == y.tobytes() else "are two arrays"
    return f"{name} on float32 of shape {list(x.shape)}: {shown} bytes" + hint(
        elements,
        f"these are elements, and an element of float32 is {x.itemsize} bytes",
        name == "x + y" and answer["read"] == x.nbytes,
        f"x and y {same}: both are read (`is` tells arrays apart, `==` compares numbers)",
        *chain(*((is_that_of(observed(observer, *case)), why) for why, observer in MISTAKES)),
    )


observe = Task(harness.observe, OBSERVE, _programs, _wrong_observe, draws=np.random.default_rng)

# --- unbroadcast ------------------------------------------------------------------------------------------------

UNBROADCAST = {"new dimensions in front": 9, "dimensions of length 1": 9, "both, or neither": 6, ENGINE: 6}
_SHAPES: dict[str, list[Any]] = {  # of each part pairs of shapes: from which, to which
    "both, or neither": [((2, 3), (2, 3)), ((), ()), ((2, 1), (3, 2, 4)), ((1,), (3, 2))],
    "new dimensions in front": [((3,), (2, 3)), ((), (2, 2)), ((2, 3), (4, 2, 3))],
    "dimensions of length 1": [((2, 1), (2, 3)), ((1, 3), (2, 3)), ((1, 1), (2, 3))],
}


def _broadcasts(seed: int) -> Cases:
    random = np.random.default_rng(seed)
    cases = []
    for part, pair in in_parts(_SHAPES):
        # Lengths that are not 1 grow with the seed, so that none of them can be counted on.
        more = int(random.integers(0, 3)) if seed else 0
        old, new = (tuple(n + more if n > 1 else n for n in shape) for shape in pair)
        cases.append((part, (random.integers(1, 10, new).astype(np.float32), old)))
    column, row = random.integers(1, 10, (3, 1)).astype(np.float32), random.integers(1, 10, 4).astype(np.float32)
    return [*cases, (ENGINE, (column, row)), (ENGINE, (row, column))]


def _sum_to(gradient: Array, shape: tuple[int, ...]) -> Array:
    front = gradient.ndim - len(shape)
    dims = (*range(front), *(front + i for i, n in enumerate(shape) if n == 1 and gradient.shape[front + i] > 1))
    return np.asarray(gradient.sum(axis=dims, dtype=np.float32).reshape(shape))


def _where(case: tuple[Array, Any]) -> str:
    gradient, shape = case
    if isinstance(shape, np.ndarray):
        return f"(a * b).sum() with shapes {list(gradient.shape)} and {list(shape.shape)}, by a"
    return f"{list(gradient.shape)} back to {list(shape)}"


def _wrong_unbroadcast(part: str, case: tuple[Array, Any], answer: Any) -> str | None:
    gradient, shape = case
    if part == ENGINE:
        factor = np.broadcast_to(shape, np.broadcast_shapes(gradient.shape, shape.shape))
        return wrong_tensor(answer, _sum_to(factor, gradient.shape))
    right = _sum_to(gradient, shape)
    reason = wrong_tensor(answer, right)
    if reason is None or type(answer) is not Value or not answer.is_tensor:
        return reason
    given, copies = answer.array, gradient.size // max(right.size, 1)
    fits = given.shape == shape
    return reason + hint(
        given.shape == gradient.shape != shape,
        "the gradient still has the shape of the broadcast; every copy of an element gave a share of it",
        not fits and given.size == right.size,
        "a dimension of length 1 is lost; sum with keepdim=True, or reshape at the end",
        fits and copies > 1 and np.allclose(given * copies, right),
        "the shares were averaged; each copy changes the result by its whole share, so they add up",
        fits and copies > 1 and given.size and given.flat[0] == gradient.flat[0],
        f"the share of one copy was kept, and those of the other {copies - 1} left out; add them up",
        given.ndim == len(shape) and any(have != want != 1 for have, want in zip(given.shape, shape, strict=True)),
        "a dimension was summed that was not expanded: new ones are in front, stretched ones had length 1 before",
        not fits,
        "not every dimension that was expanded is summed",
    )


unbroadcast = Task(harness.unbroadcast, UNBROADCAST, _broadcasts, _wrong_unbroadcast, draws=int, about=_where)

TASKS = (mean_squared_error, first_bad, observe, unbroadcast)
