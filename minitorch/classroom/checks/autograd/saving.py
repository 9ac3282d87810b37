"""What a program keeps for the way back: any set that is enough, scored by its bytes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import product
from random import Random
from typing import Any

from ...asks import autograd as asks
from ...asks.autograd import Step, alternatives
from ...asks.plain import described
from ..golf import Golf, played
from ..smaller import indented
from ..task import Task, by_case

Cases = list[tuple[str, Any]]
Program = list[Step]
Sizes = dict[str, int]

SAVED = {"enough for the way back": 8, "few bytes": 17}

# Programs that are the same for everybody but for the names: results are numbered, -1 and -2 are the inputs.
Shape = tuple[tuple[tuple[str, tuple[int, ...]], ...], tuple[int, ...]]  # operations; the bytes of their results
GOLF: tuple[Shape, ...] = (
    # a chain: of two neighbours one is enough
    (
        (("exp", (-1,)), ("tanh", (0,)), ("sqrt", (1,)), ("relu", (2,)), ("exp", (3,)), ("sum", (4,))),
        (400, 400, 400, 400, 400, 4),
    ),
    # a product keeps its operands anyway
    (
        (("mul", (-1, -2)), ("exp", (0,)), ("mul", (1, -2)), ("tanh", (2,)), ("mul", (3, 1)), ("sum", (4,))),
        (400, 400, 400, 400, 400, 4),
    ),
    # two branches from one value, and a quotient
    (
        (
            ("mul", (-1, -2)),
            ("exp", (0,)),
            ("relu", (0,)),
            ("sqrt", (0,)),
            ("add", (1, 2)),
            ("tanh", (4,)),
            ("sum", (5,)),
            ("div", (5, 3)),
        ),
        (800, 800, 800, 800, 800, 800, 8, 800),
    ),
    # two values with three users each
    (
        (
            ("add", (-1, -2)),
            ("exp", (0,)),
            ("tanh", (0,)),
            ("relu", (0,)),
            ("sub", (1, 2)),
            ("exp", (4,)),
            ("relu", (4,)),
            ("tanh", (4,)),
        ),
        (400, 400, 400, 400, 400, 400, 400, 400),
    ),
    # sizes differ
    (
        (("relu", (-1,)), ("sum", (0,)), ("exp", (1,)), ("tanh", (2,)), ("add", (3, 1)), ("sqrt", (4,))),
        (4000, 40, 40, 40, 40, 40),
    ),
)


def _named(random: Random, shape: Shape) -> tuple[Program, Sizes]:
    """A program and the bytes of its values under names that are drawn."""
    steps, sizes = shape
    names = random.sample("abcdefghijkmnpqrstuvw", len(steps))
    place = {-1: "x", -2: "y"} | dict(enumerate(names))
    program = [(name, place[at], tuple(place[each] for each in operands)) for at, (name, operands) in enumerate(steps)]
    return program, {"x": 0, "y": 0} | {place[at]: size for at, size in enumerate(sizes)}


def _drawn(random: Random, size: int) -> Shape:
    steps: list[tuple[str, tuple[int, ...]]] = []
    for at in range(size):
        name = random.choice(("add", "mul", "div", "exp", "tanh", "relu", "sub", "sqrt"))
        pool = [-1, -2, *range(max(0, at - 3), at)]
        count = 2 if name in ("add", "mul", "div", "sub") else 1
        steps.append((name, tuple(random.choice(pool) for _ in range(count))))
    return tuple(steps), tuple(random.choice((40, 400)) for _ in range(size))


def _programs(seed: int) -> Cases:
    random = Random(seed)
    one: Shape = ((("mul", (-1, -2)), ("div", (0, -1)), ("add", (0, 1))), (40, 40, 40))
    shapes = [one, *(_drawn(random, size) for size in (4, 6, 8))]
    cases: Cases = [("enough for the way back", _named(random, shape)) for shape in shapes]
    return cases + [("few bytes", _named(random, shape)) for shape in GOLF]


def _wrong(case: tuple[Program, Sizes], answer: Any) -> str | None:
    program, sizes = case
    lines = "\n".join(f"{result} = {name}({', '.join(operands)})" for name, result, operands in program)
    listing = f" in\n{indented(lines)}"
    if type(answer) is not list or not all(type(each) is str for each in answer):
        return f"a list of names was expected, and it is {described(answer)}{listing}"
    if strange := [each for each in answer if each not in sizes]:
        return f"{strange[0]!r} is no value of the program{listing}"
    kept = set(answer)
    for step in program:
        ways = alternatives(step)
        if not any(way <= kept for way in ways):
            wanted = " or ".join(" and ".join(sorted(way)) for way in ways)
            have = f"kept is {', '.join(sorted(kept))}" if kept else "nothing is kept"
            return f"the way back through {step[1]} = {step[0]}(...) needs {wanted}, and {have}{listing}"
    return None


def weight(kept: Iterable[str], sizes: Sizes) -> int:
    """The bytes of what is kept, each value once."""
    return sum(sizes[each] for each in set(kept))


def fewest(program: Program, sizes: Sizes) -> int:
    """The bytes of the best set: by trying all alternatives of all steps together."""
    free = {name for name, size in sizes.items() if not size}
    choices = [[way - free for way in alternatives(step)] for step in program]
    return min(weight(set().union(*chosen), sizes) for chosen in product(*choices))


def _one_after_another(program: Program, sizes: Sizes) -> set[str]:
    """What is kept if each operation in turn adds as little as it can to what is kept already."""
    kept: set[str] = set()
    for step in program:
        kept |= min(alternatives(step), key=lambda way: weight(way - kept, sizes))
    return kept


@cache
def golf() -> Golf:
    """Bytes of the programs above together: all values, what operations keep one after another, and the fewest."""
    programs = [_named(Random(0), shape) for shape in GOLF]
    return Golf(
        "bytes",
        start=sum(weight(sizes, sizes) for _, sizes in programs),
        par=sum(weight(_one_after_another(program, sizes), sizes) for program, sizes in programs),
        best=sum(fewest(*program) for program in programs),
    )


def _judge(cases: Cases, answers: Any) -> Any:
    said = by_case(SAVED, cases, answers, _wrong)
    pairs = zip(cases, answers, strict=True)
    counts = (weight(answer, sizes) for (part, (_, sizes)), answer in pairs if part == "few bytes")
    return played(said, "few bytes", golf(), counts, after=["enough for the way back"])


saved = Task(asks.saved, SAVED, _programs, _judge)
