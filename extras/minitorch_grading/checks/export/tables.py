"""Tables that the student makes: formulas of the numbers in several exports, and which weight is which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from ...harness import export as harness
from ...harness.plain import described
from ..reasons import expect
from ..task import Cases, Task

Exports = Sequence[tuple[int, Mapping[str, Sequence[int]]]]
Formulas = dict[str, list[tuple[int, int]] | None]

# --- formulas ---------------------------------------------------------------------------------------------------

FORMULAS = {"which change": 6, "formulas": 8, "without a formula": 6}


def computed(exports: Exports) -> Formulas:
    """The right answer."""
    found: Formulas = {}
    for name in exports[0][1]:
        rows = [(batch, list(arrays[name])) for batch, arrays in exports]
        if all(row == rows[0][1] for _, row in rows):
            continue
        (one, first), (two, second), *_ = rows
        lines: list[tuple[int, int]] | None = []
        for at, (here, there) in enumerate(zip(first, second, strict=False)):
            slope = (there - here) // (two - one)
            offset = here - slope * one
            fits = all(len(row) == len(first) and row[at] == slope * batch + offset for batch, row in rows)
            lines = [*lines, (slope, offset)] if fits and lines is not None else None
        found[name] = lines
    return found


def _exports(random: Random, part: str) -> Exports:
    even = part == "without a formula"
    batches = random.sample(range(2, 14, 2) if even else range(2, 14), 3)
    width, depth = random.randint(15, 40), random.randint(3, 9)
    shift = random.randint(1, 5)

    def arrays(batch: int) -> dict[str, list[int]]:
        found = {
            "rows": [batch * depth, width],
            "fixed": [batches[0], width],  # the same in all exports, and the batch of the first one
            "heads": [batch, depth, width],
        }
        if part != "which change":
            found |= {"padded": [batch + shift, depth * batch - shift], "left": [30 - 2 * batch]}
        if even:
            found |= {"starts": [depth * at for at in range(batch)], "pairs": [batch * (batch + 1), 1]}
            found |= {"half": [batch // 2, depth], "square": [batch, batch * batch]}
        return found

    return [(batch, arrays(batch)) for batch in batches]


def _formula_cases(random: Random) -> Cases:
    return [(part, (_exports(random, part),)) for part in FORMULAS for _ in range(2)]


def _wrong_formulas(part: str, case: Any, answer: Any) -> str | None:
    (exports,) = case
    right = computed(exports)
    expect(answer, dict, "a dictionary")
    told = {
        name: f"{name!r} is {' and '.join(f'{list(arrays[name])} at {batch}' for batch, arrays in exports)}"
        for name in exports[0][1]
    }
    for name in (name for name in answer if name not in right):
        if name not in told:
            return f"there is no array {described(name)}"
        return f"{told[name]}: it does not depend on the batch, even if a number in it equals one"
    for name, lines in right.items():
        if name not in answer:
            return f"{told[name]}, and is not in the answer"
        if part != "which change" and (why := _wrong_lines(answer[name], lines)):
            first, numbers = exports[0][0], exports[0][1][name]
            if lines is not None and _pairs(answer[name]) == [(number // first, 0) for number in numbers]:
                why += "; a number divided by the batch is its slope only if the offset is 0"
            return f"{told[name]}, {why}"
    return None


def _pairs(given: Any) -> Any:
    if type(given) not in (list, tuple):
        return given
    return [tuple(each) if type(each) in (list, tuple) else each for each in given]


def _wrong_lines(given: Any, lines: list[tuple[int, int]] | None) -> str:
    """Why formulas are wrong; empty if they are right."""
    if lines is None:
        said = f"no formula with whole numbers gives all of it, and there is {described(given)}"
        return "" if given is None else said
    pairs = _pairs(given)
    if pairs == lines and all(type(each) is int for pair in pairs for each in pair):
        return ""
    spoken = ", ".join(f"{slope} * batch + {offset}" for slope, offset in lines)
    return f"which is [{spoken}], that is {lines}, and there is {described(given)}"


formulas = Task(harness.formulas, FORMULAS, _formula_cases, _wrong_formulas)

# --- name_table -------------------------------------------------------------------------------------------------

NAMES = {"names": 6, "transposed": 7, "left over": 7}
Shapes = Mapping[str, Sequence[int]]


def matched(wanted: Shapes, found: Shapes) -> tuple[dict[str, tuple[str, bool]], list[str]]:
    """The right answer."""
    prefixes = {name[: -len(end)] for name in found for end in wanted if name.endswith(end)}
    prefix = max(sorted(prefixes), key=lambda each: sum(each + name in found for name in wanted), default="")
    pairs = {name: prefix + name for name in wanted if prefix + name in found}
    turned = any(
        list(wanted[name]) == list(found[other])[::-1] != list(found[other]) and len(wanted[name]) == 2
        for name, other in pairs.items()
    )
    table = {}
    for name, other in pairs.items():
        here, there = list(wanted[name]), list(found[other])
        is_turned = turned and len(here) == 2
        if here == (there[::-1] if is_turned else there):
            table[name] = other, is_turned
    taken = {other for other, _ in table.values()}
    return table, sorted(
        [*(name for name in wanted if name not in table), *(name for name in found if name not in taken)]
    )


def _checkpoint(random: Random, part: str) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """A model and a checkpoint, as names with shapes."""
    width, wide, classes = random.sample(range(8, 40), 3)
    root = random.choice(["encoder.", "body.", ""])
    wanted: dict[str, list[int]] = {}
    for layer in range(2):
        wanted |= {f"{root}{layer}.mix.weight": [width, width], f"{root}{layer}.mix.bias": [width]}
        wanted |= {f"{root}{layer}.up.weight": [wide, width], f"{root}{layer}.up.bias": [wide]}
        wanted |= {f"{root}{layer}.down.weight": [width, wide]}
    wanted[f"{root}last.weight"] = [classes, width]
    prefix = random.choice(["module.", "model.net.", "student."])
    turned = part == "transposed"
    found = {f"{prefix}{name}": shape[::-1] if turned else list(shape) for name, shape in wanted.items()}
    if part == "left over":
        del found[f"{prefix}{root}0.up.bias"]
        found[f"{prefix}{root}last.weight"] = [classes + 1, width]
        found[f"{prefix}step"] = []
        found[f"{prefix}old.{root}last.weight"] = [classes, width]  # this prefix fits one name, and the other one most
        if random.random() < 0.5:  # all of them are transposed, and one has another length besides
            found = {name: shape[::-1] for name, shape in found.items()}
    names = list(found)
    random.shuffle(names)
    return wanted, {name: found[name] for name in names}


def _name_cases(random: Random) -> Cases:
    return [(part, _checkpoint(random, part)) for part in NAMES for _ in range(2)]


def _wrong_names(part: str, case: Any, answer: Any) -> str | None:
    wanted, found = case
    table, left = matched(wanted, found)
    if type(answer) not in (tuple, list) or len(answer) != 2 or type(answer[0]) is not dict:
        return f"a dictionary and a list were expected, and it is {described(answer)}"
    given, rest = answer
    for name, shape in wanted.items():
        one, two = given.get(name), table.get(name)
        if two is None and one is not None:
            other = one[0] if type(one) in (tuple, list) and one and type(one[0]) is str else ""
            if other not in found:
                return f"{name!r} has no partner, and the answer has {described(one)}"
            return f"{name!r} of the model is {list(shape)}, and {other!r} is {list(found[other])}: they do not fit"
        if two is not None and (type(one) not in (tuple, list) or list(one) != list(two) or type(one[1]) is not bool):
            said = f"{name!r} {list(shape)} belongs to {two[0]!r} {list(found[two[0]])}, and is {_turned(two, shape)}"
            return f"{said}; the answer has {described(one)}"
    if more := [name for name in given if name not in wanted]:
        return f"the model has no {described(more[0])}"
    if type(rest) not in (list, tuple) or list(rest) != left:
        return f"names of either side without a partner are, as by `sorted`, {left}, and not {described(rest)}"
    return None


def _turned(two: tuple[str, bool], shape: Sequence[int]) -> str:
    if not two[1]:
        return "not transposed"
    if len({*shape}) == 1:
        return "transposed, as all matrices of this checkpoint: a square one does not show it"
    return "transposed"


name_table = Task(harness.name_table, NAMES, _name_cases, _wrong_names)
