"""Exercise 02, autograd: rules, finite differences, a walk that is repaired, training, and what is saved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random
from typing import Any

import numpy as np

from minitorch.primitives import PRIMITIVES

from ..harness import autograd as harness
from ..harness.autograd import KEPT, Step, alternatives
from ..harness.plain import Array, described
from .golf import Golf
from .reasons import expect, hint
from .samples import in_parts
from .task import Cases, Task


def _few(numbers: Iterable[float]) -> str:
    return ", ".join(f"{each:.4g}" for each in numbers)


# --- shares -----------------------------------------------------------------------------------------------------

SHARES = {"sums": 4, "products and quotients": 6, "by the result": 5}

# From the cotangent, the operands and the result to the shares.
RULES: dict[str, Callable[..., tuple[float, ...]]] = {
    "add": lambda g, a, b, y: (g, g),
    "sub": lambda g, a, b, y: (g, -g),
    "neg": lambda g, a, y: (-g,),
    "mul": lambda g, a, b, y: (g * b, g * a),
    "div": lambda g, a, b, y: (g / b, -g * a / (b * b)),
    "exp": lambda g, a, y: (g * y,),
    "sqrt": lambda g, a, y: (g / (2 * y),),
    "tanh": lambda g, a, y: (g * (1 - y * y),),
}


def _rules(random: Random) -> Cases:
    """A name, a cotangent, and what the tape has kept: operands or result, the other is None."""
    found: Cases = []
    for name, rule in RULES.items():
        g = random.uniform(1.5, 3.0)
        operands = [random.uniform(0.5, 2.0) for _ in range(rule.__code__.co_argcount - 2)]
        if name in ("add", "sub", "neg"):
            found.append(("sums", (name, g, None, None)))
        elif name in ("mul", "div"):
            found.append(("products and quotients", (name, g, (operands[0], -operands[1]), None)))
        else:
            found.append(("by the result", (name, g, None, float(PRIMITIVES[name].evaluate(*operands)))))
    return found


def _about_rule(case: Any) -> str:
    name, g, operands, result = case
    kept = f", operands ({_few(operands)})" if operands else f", result {result:.4g}" if result is not None else ""
    return f"{name} with g = {g:.4g}{kept}"


def _wrong_shares(part: str, case: Any, answer: Any) -> str | None:
    name, g, operands, result = case
    count = RULES[name].__code__.co_argcount - 2
    expect(answer, tuple[float, ...], count=count)
    y = math.nan if result is None else result
    right = RULES[name](g, *(operands or (math.nan,) * count), y)

    def near(*shares: float) -> bool:
        return all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(answer, shares, strict=True))

    if near(*right):
        return None
    again = (g, y, float(PRIMITIVES[name].evaluate(y))) if part == "by the result" else None
    return f"it is ({_few(answer)}) and should be ({_few(right)})" + hint(
        near(*(each / g for each in right)),
        "that is the derivative alone: a share is the cotangent times the derivative",
        name == "mul" and near(g * operands[0], g * operands[1]),
        "the share of one factor is the cotangent times the *other* factor",
        count == 2 and near(*right[::-1]),
        "the shares are in the wrong order: one for each operand, in the order of the operands",
        name in ("sub", "neg", "div") and [*map(abs, answer)] == [*map(abs, right)],
        "a sign is wrong: if this operand grows, the result becomes smaller",
        again and near(*RULES[name](*again)),
        "the number that was kept is the result already: the function is applied twice",
    )


shares = Task(harness.shares, SHARES, _rules, _wrong_shares, about=_about_rule)

# --- difference -------------------------------------------------------------------------------------------------

COPIED = "the numbers as they were"
DIFFERENCE = {"one number": 4, "several numbers": 5, "large numbers": 3, COPIED: 3}
TOLERANCE = 5e-9  # of the gradient: a difference to both sides has a tenth of it, one to one side several times as much

# Of each function: what it computes, and its derivatives by all but c, which the seed draws.
FUNCTIONS: dict[str, tuple[Callable[..., float], Callable[..., list[float]]]] = {
    "exp(c * x)": (lambda c, x: math.exp(c * x), lambda c, x: [c * math.exp(c * x)]),
    "c * x ** 3": (lambda c, x: c * x * x * x, lambda c, x: [3 * c * x * x]),
    "c * sin(x) * y + z * z": (
        lambda c, x, y, z: c * math.sin(x) * y + z * z,
        lambda c, x, y, z: [c * math.cos(x) * y, c * math.sin(x), 2 * z],
    ),
    "c * x * y * y": (lambda c, x, y: c * x * y * y, lambda c, x, y: [c * y * y, 2 * c * x * y]),
    "c * x * x": (lambda c, x: c * x * x, lambda c, x: [2 * c * x]),
    "c * x * exp(y)": (lambda c, x, y: c * x * math.exp(y), lambda c, x, y: [c * math.exp(y), c * x * math.exp(y)]),
}


def _points(random: Random) -> list[tuple[str, list[float], tuple[str, float]]]:
    """The part and the point; not sent are the name of the function, and c."""

    def numbers(count: int) -> list[float]:
        return [random.uniform(1, 2) for _ in range(count)]

    found = [
        ("one number", "exp(c * x)", numbers(1)),
        ("one number", "c * x ** 3", numbers(1)),
        ("several numbers", "c * sin(x) * y + z * z", numbers(3)),
        ("several numbers", "c * x * y * y", numbers(2)),
        ("several numbers", "c * sin(x) * y + z * z", [0.0, *numbers(2)]),
        ("large numbers", "c * x * x", [random.uniform(1e6, 2e6)]),
        ("large numbers", "c * x * y * y", [random.uniform(-2e6, -1e6), *numbers(1)]),
        ("large numbers", "c * x * exp(y)", [random.uniform(1e6, 2e6), *numbers(1)]),
        *((COPIED, "c * sin(x) * y + z * z", numbers(3)) for _ in range(4)),
    ]
    return [(part, at, (name, random.uniform(0.7, 1.2))) for part, name, at in found]


class Function:
    """The function of a case; of it is seen what it is, and at which points it was called."""

    def __init__(self, case: tuple[str, list[float], tuple[str, float]]) -> None:
        _, self._numbers, (self._name, self._c) = case
        self.seen: tuple[str, float, list[list[float]]] = self._name, self._c, []

    def reply(self, point: Any) -> float:
        """The value at a point."""
        if len(point) != len(self._numbers):
            raise ValueError(f"f takes a list of {len(self._numbers)} numbers, and got {len(point)}")
        self.seen[2].append(point)
        return FUNCTIONS[self._name][0](self._c, *point)


def _about_point(numbers: list[float]) -> str:
    return f"at {[float(f'{each:.6g}') for each in numbers]}"


def _wrong_difference(part: str, numbers: list[float], answer: Any) -> str | None:
    (gradient, after), (name, c, points) = answer
    where = f"with f = {name} and c = {c:.3g}, "
    if part == COPIED and after != numbers:
        return f"{where}afterwards the list is {after}; move a copy, the list is the caller's"
    expect(gradient, list[float], f"{where}a list of {len(numbers)} floats", count=len(numbers))
    function, derivatives = FUNCTIONS[name]
    for place, (have, wanted) in enumerate(zip(gradient, derivatives(c, *numbers), strict=True)):
        if not _is_near(have, wanted):
            why = _why_off(partial(function, c), numbers, place, wanted, points)
            return f"{where}element {place} is {have:.10g} and should be {wanted:.10g}{why}"
    return None if points else f"{where}f was never called"


def _is_near(have: float, wanted: float) -> bool:
    return abs(have - wanted) <= TOLERANCE * max(1.0, abs(wanted))


def _why_off(
    f: Callable[..., float], numbers: list[float], place: int, wanted: float, points: list[list[float]]
) -> str:
    """What the points at which f was called say about the error."""
    moved = [{at: point[at] - number for at, number in enumerate(numbers) if point[at] != number} for point in points]
    steps = [each[place] for each in moved if place in each]
    several = any(len(each) > 1 for each in moved)
    if several or not steps:
        return hint(
            several,
            "several elements were moved at once: put each back before the next one is moved",
            True,
            "f was never called with this element moved, or the step is lost in rounding beside so large a number",
        )
    step = max(map(abs, steps))
    one_sided = min(steps) > 0 or max(steps) < 0
    right, wider, narrower = (_is_near(_central(f, numbers, place, step * by), wanted) for by in (1, 10, 0.1))
    size = f"the step is {step:.1g}{', and to one side only' * one_sided}"
    return hint(
        right and one_sided,
        "f was called on one side only: with a step to both sides the error is far smaller",
        right,
        f"the step, {step:.1g}, would do: subtract the value on the left, and divide by both steps together",
        wider or (not narrower and step < 1e-5 * max(1.0, abs(numbers[place]))),
        f"{size}: so small beside the number that rounding is most of it",
        True,
        f"{size}: so wide that the curve is cut off",
    )


def _central(f: Callable[..., float], numbers: list[float], place: int, step: float) -> float:
    """The difference to both sides, as it should be."""
    left, right = ([*numbers[:place], numbers[place] + by, *numbers[place + 1 :]] for by in (-step, step))
    try:
        return (f(*right) - f(*left)) / (2 * step)
    except (OverflowError, ZeroDivisionError):
        return math.inf


difference = Task(harness.difference, DIFFERENCE, _points, _wrong_difference, about=_about_point, oracle=Function)

# --- backward_pass: a walk, repaired ----------------------------------------------------------------------------

TWO_USES, UNUSED, SECOND = "a value that is used twice", "what the end does not depend on", "a second step"
BACKWARD = {TWO_USES: 7, UNUSED: 5, SECOND: 7, KEPT: 6}
Program = tuple[list[Any], int]

CHAIN: Program = ([("mul", 0, 1), ("exp", 2)], 3)
TWICE: Program = ([("mul", 0, 1), ("exp", 2), ("mul", 3, 2), ("add", 4, 2)], 5)
SQUARE: Program = ([("mul", 0, 0), ("add", 2, 1), ("mul", 3, 3)], 4)
OTHER: Program = ([("exp", 1), ("mul", 2, 0)], 3)
ASIDE: Program = ([("exp", 0), ("exp", 1), ("mul", 2, 3)], 2)
NOUGHT: Program = ([("exp", 0), ("mul", 2, 1)], 3)  # with 0 as the second input
EARLIER: Program = ([("exp", 0), ("mul", 2, 1), ("exp", 2)], 3)
PROGRAMS = {
    TWO_USES: [[TWICE], [SQUARE]],
    UNUSED: [[ASIDE], [EARLIER], [NOUGHT]],
    SECOND: [[CHAIN, CHAIN], [CHAIN, OTHER]],
    KEPT: [[CHAIN], [OTHER, CHAIN]],
}


def _programs(random: Random) -> Cases:
    x, y = random.uniform(0.3, 0.9), random.uniform(0.3, 0.9)
    return in_parts(PROGRAMS, lambda programs: ([x, 0.0 if programs == [NOUGHT] else y], programs))


def _gradients(inputs: list[float], program: Program) -> list[float | None]:
    """The derivatives of the end by the inputs; None where it does not depend on one."""
    steps, end = program
    tape, values = harness.Tape(), [harness.Var(value) for value in inputs]
    for name, *places in steps:
        values.append(getattr(tape, name)(*[values[place] for place in places]))
    cotangents = _cotangents(tape, values[end])
    return [cotangents.get(each) for each in values[: len(inputs)]]


def _cotangents(tape: harness.Tape, end: harness.Var, adds: bool = True) -> dict[harness.Var, float]:
    """The derivative of the end by each value; with `adds` off, a share replaces the one before, which is wrong."""
    found: dict[harness.Var, float] = {end: 1.0}
    for entry in reversed(tape.entries):
        if entry.result in found:
            for operand, pull in zip(entry.operands, entry.pulls, strict=True):
                found[operand] = adds * found.get(operand, 0.0) + pull(found[entry.result])
    return found


def _about_programs(case: tuple[list[float], list[Program]]) -> str:
    """The inputs, and the steps of all programs."""
    inputs, programs = case
    lines = [f"inputs {[float(f'{each:.3g}') for each in inputs]}"]
    for steps, end in programs:
        name = ["x0", "x1", *(f"v{place}" for place in range(len(steps)))]
        for at, (operation, *places) in enumerate(steps, 2):
            lines.append(f"{name[at]} = {operation}({', '.join(name[place] for place in places)})")
        lines.append(f"backward_pass(tape, {name[end]})")
    return "\n".join(lines)


def _wrong_backward(part: str, case: tuple[list[float], list[Program]], answer: Any) -> str | None:
    inputs, programs = case
    total: list[float | None] = [None] * len(inputs)
    for step, (program, (gradients, entries, alive)) in enumerate(zip(programs, answer, strict=True)):
        now = _gradients(inputs, program)
        total = [old if new is None else new + (old or 0.0) for old, new in zip(total, now, strict=True)]
        for place, (have, wanted) in enumerate(zip(gradients, total, strict=True)):
            if not _same(have, wanted):
                why = _why_gradient(have, wanted, now[place] if step else None, program)
                when = "in the second step " * step
                return f"{when}x{place}.grad is {_number(have)} and should be {_number(wanted)}{why}"
        if part == KEPT and entries:
            return f"{entries} entries are on the tape afterwards: each keeps its operands and result alive"
        if part == KEPT and alive:
            held = "something that outlives the call holds them, such as a default argument or a global"
            return f"{alive} results are alive when the tape has gone: {held}"
    return None


def _same(have: Any, wanted: float | None) -> bool:
    if have is None or wanted is None:
        return have is wanted
    return type(have) is float and math.isclose(have, wanted, rel_tol=1e-9)


def _number(value: Any) -> str:
    return f"{value:.4g}" if type(value) is float else described(value)


def _why_gradient(have: Any, wanted: float | None, now: float | None, program: Program) -> str:
    """The misconception; `now` is the gradient of the second step alone, if it is that."""
    operands = [place for _, *places in program[0] for place in places]
    return hint(
        have is None and wanted == 0.0,
        "None says that the end does not depend on it, and 0 that a small change of it does nothing",
        have is None,
        "the gradient is the number in `grad` of an input",
        now is not None and _same(have, now),
        "the gradient of the step before was replaced: `grad` adds up until somebody clears it",
        now is not None and type(have) is float,
        "the walk began with cotangents of the step before: they belong to one walk",
        wanted is None,
        "the end does not depend on it",
        any(operands.count(place) > 1 for place in operands),
        "a share replaced the one that came before: shares of all uses add up",
    )


backward_pass = Task(harness.backward_pass, BACKWARD, _programs, _wrong_backward, about=_about_programs)

# --- train ------------------------------------------------------------------------------------------------------

LEARNED = "XOR is learned"
TRAIN = {"the first step": 8, "further steps": 6, LEARNED: 6}
STEPS = dict(zip(TRAIN, (1, 3, 60), strict=True))
# From near these weights, the loss comes below the bound with any rate from 0.08 to 0.55, and with none beyond 0.05 and
# 0.65: few rates are right on some points and wrong on others.
START = (0.3, -0.1, 0.4, -0.9, 0.4, -0.3, 0.2, -0.7, -0.3, -0.5, -0.3, 0.5, -0.1, 0.9, 0.2, -0.6, 0.2)
BOUND = 0.1  # of the loss; the labels are 1 and -1, so that 1 is what zeros have
Training = tuple[list[list[float]], list[float], list[float], int]


def _corners(random: Random) -> Cases:
    """Two points near each corner of a square, labels that differ from corner to corner, weights, and steps."""
    cases: Cases = []
    for part, steps in STEPS.items():
        places = [(x, y) for x in (-1, 1) for y in (-1, 1) for _ in range(2)]
        points = [[x + random.uniform(-0.1, 0.1), y + random.uniform(-0.1, 0.1)] for x, y in places]
        weights = [each + random.uniform(-0.05, 0.05) for each in START]
        cases.append((part, (points, [-float(x * y) for x, y in places], weights, steps)))
    return cases


def _sloped(case: Training, weights: Sequence[float], adds: bool = True) -> tuple[float, Array]:
    """The loss and its gradient by the weights; see `_cotangents`."""
    tape, variables = harness.Tape(), [harness.Var(each) for each in weights]
    end = harness.loss(tape, variables, *case[:2])
    cotangents = _cotangents(tape, end, adds)
    return end.value, np.array([cotangents[each] for each in variables])


def _wrong_train(part: str, case: Training, answer: Any) -> str | None:
    *_, before, steps = case
    expect(answer, list[list[Any]], more="the weights after each step", count=steps)
    for each in answer:
        expect(each, list[float], count=harness.WEIGHTS)
    if steps > 1 and all(each == answer[0] for each in answer):
        return "all elements of the list are equal: put a new list of weights into it after each step"
    slopes: list[Array] = []
    for step, weights in enumerate(answer, 1):
        if not np.isfinite(weights).all():
            return f"step {step} leaves the numbers behind: the rate is so large that each step goes further up"
        slopes.append(_sloped(case, before)[1])
        moved = np.subtract(weights, before)
        if not _is_along(moved, -slopes[-1]):
            return f"step {step} does not go down the gradient" + _why_step(
                moved, slopes, _sloped(case, before, False)[1]
            )
        before = weights
    loss, began = _sloped(case, before)[0], _sloped(case, case[2])[0]
    if part == LEARNED and loss > BOUND:
        return f"the loss is {loss:.3g} after {steps} steps, and was {began:.3g}; at most {BOUND} is wanted" + hint(
            loss > began, "the rate is too large", True, "try larger and smaller rates"
        )
    return None


def _is_along(moved: Array, direction: Array) -> bool:
    """Whether one is the other times a positive number."""
    factor = moved @ direction / (direction @ direction)
    return bool(factor > 0 and np.linalg.norm(moved - factor * direction) <= 1e-6 * np.linalg.norm(moved))


def _why_step(moved: Array, slopes: list[Array], replaced: Array) -> str:
    """The misconception; the last of the gradients is that of the step, and `replaced` that of a walk without sums."""
    return hint(
        not moved.any(),
        "no weight has changed: each list is of the weights after its step, and not before it",
        _is_along(moved, slopes[-1]),
        "it goes up: subtract",
        _is_along(moved, -sum(slopes)),  # type: ignore[arg-type]
        "the gradients of the steps before are in it: begin each step with none",
        len(slopes) > 1 and _is_along(moved, -slopes[-2]),
        "it is the gradient of the step before: compute the loss again, with the new weights",
        _is_along(moved, -replaced),
        "a share replaced the one that came before, or one point alone is in the loss: shares of all uses add up",
        True,
        "it has to be the gradient of the loss of all points, at the weights before it, times one number",
    )


train = Task(harness.train, TRAIN, _corners, _wrong_train, after={LEARNED: list(TRAIN)[:2]})

# --- saved ------------------------------------------------------------------------------------------------------

ENOUGH, FEW = "enough for the way back", "few bytes"
SAVED = {ENOUGH: 8, FEW: 17}
Sizes = dict[str, int]

# Programs that are the same for everybody but for the names: operations on earlier results by their numbers, or on the
# inputs x and y; and the bytes of the results.
Shape = tuple[str, list[int]]
SHAPES: tuple[Shape, ...] = (
    # a chain: of two neighbours one is enough
    ("exp x, tanh 0, sqrt 1, relu 2, exp 3, sum 4", [400, 400, 400, 400, 400, 4]),
    # a product keeps its operands anyway
    ("mul x y, exp 0, mul 1 y, tanh 2, mul 3 1, sum 4", [400, 400, 400, 400, 400, 4]),
    # two branches from one value, and a quotient
    ("mul x y, exp 0, relu 0, sqrt 0, add 1 2, tanh 4, sum 5, div 5 3", [800, 800, 800, 800, 800, 800, 8, 800]),
    # two values with three users each
    ("add x y, exp 0, tanh 0, relu 0, sub 1 2, exp 4, relu 4, tanh 4", [400] * 8),
    # sizes differ
    ("relu x, sum 0, exp 1, tanh 2, add 3 1, sqrt 4", [4000, 40, 40, 40, 40, 40]),
)
# Of these together. Start: all values. Par: what each operation in turn adds to what is kept. Best: by trying all.
BYTES = Golf("bytes", start=17016, par=7280, best=4880)


def _named(random: Random, shape: Shape) -> tuple[list[Step], Sizes]:
    """A program and the bytes of its values under names that are drawn."""
    steps, sizes = [step.split() for step in shape[0].split(", ")], shape[1]
    names = random.sample("abcdefghijkmnpqrstuvw", len(steps))
    place = {"x": "x", "y": "y"} | {str(at): name for at, name in enumerate(names)}
    program = [(step, name, tuple(place[each] for each in of)) for name, (step, *of) in zip(names, steps, strict=True)]
    return program, {"x": 0, "y": 0} | dict(zip(names, sizes, strict=True))


def _drawn_shape(random: Random, size: int) -> Shape:
    steps = []
    for at in range(size):
        name = random.choice(("add", "mul", "div", "exp", "tanh", "relu", "sub", "sqrt"))
        pool = ["x", "y", *map(str, range(max(0, at - 3), at))]
        operands = random.choices(pool, k=2 if name in ("add", "mul", "div", "sub") else 1)
        steps.append(" ".join([name, *operands]))
    return ", ".join(steps), random.choices((40, 400), k=size)


def _keeping(random: Random) -> Cases:
    shapes = [("mul x y, div 0 x, add 0 1", [40, 40, 40]), *(_drawn_shape(random, size) for size in (4, 6, 8))]
    return in_parts({ENOUGH: shapes, FEW: SHAPES}, lambda shape: _named(random, shape))


def _about_keeping(case: tuple[list[Step], Sizes]) -> str:
    return "\n".join(["", *(f"{result} = {name}({', '.join(operands)})" for name, result, operands in case[0])])


def _wrong_saved(part: str, case: tuple[list[Step], Sizes], answer: Any) -> str | None:
    program, sizes = case
    expect(answer, list[str])
    if strange := [each for each in answer if each not in sizes]:
        return f"{strange[0]!r} is no value of the program"
    kept = set(answer)
    for step in program:
        ways = alternatives(step)
        if not any(way <= kept for way in ways):
            wanted = " or ".join(" and ".join(sorted(way)) for way in ways)
            have = f"kept is {', '.join(sorted(kept))}" if kept else "nothing is kept"
            return f"the way back through {step[1]} = {step[0]}(...) needs {wanted}, and {have}"
    return None


def _weight(part: str, case: tuple[list[Step], Sizes], kept: list[str]) -> int:
    """The bytes of what is kept, each value once."""
    return sum(case[1][each] for each in set(kept))


saved = Task(harness.saved, SAVED, _keeping, _wrong_saved, about=_about_keeping, golf={FEW: BYTES}, count=_weight)

TASKS = (shares, difference, backward_pass, train, saved)
