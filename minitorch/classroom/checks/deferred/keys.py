"""The key of a lazy run: pairs of recordings that can share a compiled program, and pairs that cannot."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from ...asks import deferred as asks
from ...asks.plain import described
from ..smaller import indented
from ..task import Task, by_case

Cases = list[tuple[str, Any]]
Row = tuple[str, str, tuple[Any, ...]]
Input = tuple[tuple[int, ...], str, int]  # shape, type, and the number of the memory block
Recorded = tuple[list[Row], dict[str, Input], list[str]]

KEY = {"other names": 6, "operations and numbers": 5, "shapes and types": 5, "what is held": 4, "shared memory": 5}


def _recorded(
    start: int,
    blocks: tuple[int, int, int] = (1, 2, 3),
    number: Any = 2.0,
    operation: str = "mul",
    shapes: tuple[int, int, int] = (3, 3, 3),
    dtypes: tuple[str, str, str] = ("float32", "float32", "float32"),
    held: tuple[int, ...] = (3,),
    turned: Iterable[int] = (),
    last: int = 0,
    backwards: bool = False,
) -> Recorded:
    """A recording of four operations on three inputs, with names that count from `start`.

    Args:
        start: the number of the first name.
        blocks, shapes, dtypes: of the inputs.
        number: an operand of the second row.
        operation: of the second row.
        held: the places of the rows whose values are held.
        turned: the places of the rows whose operands change places.
        last: the place of the row that the last one reads, besides the one before it.
        backwards: whether the dict has the last input first.
    """
    a, b, c = names = [f"x{start + at}" for at in range(3)]
    rows = [f"%{start + at}" for at in range(4)]
    operands: list[tuple[Any, Any]] = [(a, b), (rows[0], number), (rows[1], c), (rows[2], rows[last])]
    operations = ["sub", operation, "add", "div"]
    program: list[Row] = [
        (rows[at], operations[at], operands[at][::-1] if at in turned else operands[at]) for at in range(4)
    ]
    about = [(name, ((size,), *rest)) for name, size, *rest in zip(names, shapes, dtypes, blocks, strict=True)]
    inputs: dict[str, Input] = dict(about[::-1] if backwards else about)  # type: ignore[arg-type]
    return program, inputs, [rows[at] for at in held]


def _cases(seed: int) -> Cases:
    random = Random(seed)

    def pair(part: str, one: dict[str, Any], other: dict[str, Any]) -> tuple[str, Any]:
        """Two recordings, each with names and blocks of its own; `shared` says which inputs are in one block."""
        both = []
        for about in (one, other):
            options = dict(about)
            drawn = random.sample(range(100), 3)
            shared = options.pop("shared", (0, 1, 2))
            both.append(
                _recorded(random.randrange(1000), (drawn[shared[0]], drawn[shared[1]], drawn[shared[2]]), **options)
            )
        return part, tuple(both)

    names, numbers, kinds, held, memory = KEY
    k = float(random.randrange(3, 9))
    wide = ("float64", "float32", "float32")
    found = [
        pair(names, {}, {}),
        pair(names, {"backwards": True}, {}),
        pair(names, {"shared": (0, 1, 1)}, {"shared": (0, 1, 1)}),
        pair(numbers, {}, {"number": k}),
        pair(numbers, {}, {"number": 2}),
        pair(numbers, {}, {"operation": "max"}),
        pair(numbers, {}, {"turned": (1,)}),
        pair(numbers, {}, {"turned": (3,)}),
        pair(numbers, {}, {"last": 1}),
        pair(kinds, {}, {"shapes": (1, 3, 3)}),
        pair(kinds, {"shapes": (3, 1, 3)}, {"shapes": (1, 3, 3)}),
        pair(kinds, {}, {"dtypes": wide}),
        pair(kinds, {"dtypes": wide[::-1]}, {"dtypes": wide}),
        pair(held, {}, {"held": (1, 3)}),
        pair(held, {"held": (0, 3)}, {"held": (1, 3)}),
        pair(memory, {}, {"shared": (0, 0, 1)}),
        pair(memory, {"shared": (0, 1, 1)}, {"shared": (0, 0, 1)}),
        pair(memory, {"shared": (0, 1, 0)}, {"shared": (0, 1, 1)}),
    ]
    random.shuffle(found)
    return found


def parts_of(recorded: Recorded) -> dict[str, Any]:
    """What a program depends on, with names replaced by places."""
    rows, inputs, held = recorded
    place: dict[str, Any] = {}
    for target, _, operands in rows:
        for each in operands:
            if type(each) is str and each in inputs:
                place.setdefault(each, f"input {sum(name in inputs for name in place)}")
        place[target] = f"row {sum(name not in inputs for name in place)}"
    used = [name for name in place if name in inputs]
    blocks = list(dict.fromkeys(inputs[name][2] for name in used))
    return {
        "the operations, or where they read from,": [
            (operation, [place[each] if type(each) is str else None for each in operands])
            for _, operation, operands in rows
        ],
        "the numbers": [repr(each) for *_, operands in rows for each in operands if type(each) is not str],
        "the shapes": [inputs[name][0] for name in used],
        "the types": [inputs[name][1] for name in used],
        "the values that are held": [place[name] for name in held],
        "the inputs that share memory": [blocks.index(inputs[name][2]) for name in used],
    }


WHY = {
    "the values that are held": "a program computes what is held, and writes only that into memory",
    "the inputs that share memory": "a write into one would change the other",
    "the numbers": "they are written into the program, with their types",
    "the types": "a program for float32 reads four bytes for each element",
}


def _listing(recorded: Recorded) -> str:
    rows, inputs, held = recorded
    lines = [f"{target} = {operation}({', '.join(map(str, operands))})" for target, operation, operands in rows]
    about = [f"{name}: {dtype}{list(shape)} in block {block}" for name, (shape, dtype, block) in inputs.items()]
    return "; ".join([*about, *lines, f"held: {', '.join(held)}"])


def _wrong(case: Any, answer: Any) -> str | None:
    one, other = case
    listing = "\n" + indented(f"{_listing(one)}\n{_listing(other)}")
    if type(answer) is not bool:
        return f"two keys were to be compared, and that gives {described(answer)}{listing}"
    first, second = parts_of(one), parts_of(other)
    unlike = next((name for name in first if first[name] != second[name]), "")
    if answer and unlike:
        why = f": {WHY[unlike]}" if unlike in WHY else ""
        return f"two recordings have one key, and {unlike} differ{why}{listing}"
    if not answer and not unlike:
        why = "names, the numbers of blocks and the order of `inputs` are no part of the program"
        return f"two recordings have two keys, and can share a program: {why}{listing}"
    return None


def _judge(cases: Cases, answers: Any) -> Any:
    said = dict(by_case(KEY, cases, answers, _wrong))
    if answers and all(answer is True for answer in answers):
        return dict.fromkeys(KEY, "all recordings have one key: nothing is told apart")
    if said["other names"]:  # whatever writes everything down tells all recordings apart
        said = {part: reason or "it counts when the part 'other names' is right" for part, reason in said.items()}
    hint = "; a key has to be hashable, such as a tuple of tuples"
    return {part: f"{why}{hint}" if why and "unhashable" in str(why) else why for part, why in said.items()}


key = Task(asks.key, KEY, _cases, _judge)
