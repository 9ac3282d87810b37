"""The messages of a product of matrices that are cut along one axis: the judge carries a plan out, and counts."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

from ...asks import devices as asks
from ...asks.plain import described
from ..task import by_case

Cut = str | None
Given = tuple[Cut, Cut, Cut, tuple[int, int, int], int, int]
Case = tuple[str, Given]

FREE, SUM, PLACE, CHEAPER = "nothing has to move", "a sum over devices", "one place along the axis", "the cheaper way"
MESSAGES = {FREE: 5, SUM: 8, PLACE: 8, CHEAPER: 9}

# What a device can compute from cut operands: y by rows, by columns, a term of each sum, or all of y.
COMPUTED: dict[tuple[Cut, Cut], tuple[Cut, ...]] = {
    ("rows", None): ("rows",),
    (None, "columns"): ("columns",),
    ("inner", "inner"): ("terms",),
    ("inner", None): ("terms",),
    (None, "inner"): ("terms",),
    (None, None): ("rows", "columns", "terms", None),
}
AFTERWARDS: dict[tuple[str, Cut], tuple[Cut, ...]] = {  # what a collective makes of y
    ("all-gather", "rows"): (None,),
    ("all-gather", "columns"): (None,),
    ("all-reduce", "terms"): (None,),
    ("reduce-scatter", "terms"): ("rows", "columns"),
    ("all-to-all", "rows"): ("columns",),
    ("all-to-all", "columns"): ("rows",),
}
TIMES = {"all-gather": 1, "reduce-scatter": 1, "all-reduce": 2}


def moved(kind: str, array: str, shape: tuple[int, int, int], devices: int, itemsize: int) -> int:
    """The bytes that all devices send in a collective."""
    rows, inner, columns = shape
    size = itemsize * {"x": rows * inner, "w": inner * columns, "y": rows * columns}[array]
    return (devices - 1) * size // devices if kind == "all-to-all" else TIMES[kind] * (devices - 1) * size


def reached(plan: list[tuple[str, str]], x: Cut, w: Cut) -> set[Cut]:
    """How y can be cut after a plan.

    Raises:
        ValueError: if it cannot be carried out; says why.
    """
    cut: dict[str, Cut] = {"x": x, "w": w}
    for kind, array in plan:
        if array != "y":
            if kind != "all-gather":
                raise ValueError(f"an {kind} of {array} makes no sense: of an operand, parts can be gathered")
            if cut[array] is None:
                raise ValueError(f"each device has all of {array}, so there is nothing to gather")
            cut[array] = None
    pair = cut["x"], cut["w"]
    if pair not in COMPUTED:
        raise ValueError(
            f"with x cut by {pair[0]} and w by {pair[1]}, a device has one place along the axis and so two parts that "
            "do not fit: one of them has to be gathered first"
        )
    found = set(COMPUTED[pair])
    for kind, array in plan:
        if array == "y":
            made = {after for before in found for after in AFTERWARDS.get((kind, before), ())}
            if not made:
                raise ValueError(f"there is no {kind} of y, which is then {_named(found)}")
            found = made
    return found | {"rows", "columns"} if None in found else found  # a device can cut what it has


def _named(cuts: set[Cut]) -> str:
    names = {"terms": "a term of each sum on every device", None: "whole on every device"}
    return " or ".join(sorted(names.get(cut, f"cut by {cut}") for cut in cuts))


def least(given: Given) -> int:
    """The bytes of the cheapest plan."""
    x, w, y, shape, devices, itemsize = given
    found = []
    ends = [[], *([kind] for kind in ("all-gather", "all-reduce", "reduce-scatter", "all-to-all"))]
    for of_x, of_w, end in product((False, True), (False, True), ends):
        plan = [("all-gather", array) for array, is_gathered in (("x", of_x), ("w", of_w)) if is_gathered]
        plan += [(kind, "y") for kind in end]
        try:
            if y in reached(plan, x, w):
                found.append(sum(moved(*each, shape, devices, itemsize) for each in plan))
        except ValueError:
            continue
    return min(found)


def _cases(seed: int) -> list[Case]:
    random = Random(seed)
    devices, unit = random.choice((8, 16)), 16 * random.randint(1, 3)  # devices that are no itemsize
    few, more, many = unit, 4 * unit, 16 * unit

    def case(part: str, x: Cut, w: Cut, y: Cut, *shape: int) -> Case:
        rows, inner, columns = shape
        return part, (x, w, y, (rows, inner, columns), devices, random.choice((2, 4)))

    return [
        case(FREE, "rows", None, "rows", many, more, few),
        case(FREE, None, "columns", "columns", few, more, many),
        case(FREE, None, None, "rows", few, few, few),
        case(SUM, "inner", "inner", None, few, many, few),
        case(SUM, "inner", "inner", "rows", few, many, more),
        case(SUM, "inner", None, None, few, many, few),
        case(PLACE, "rows", "columns", "rows", many, more, few),
        case(PLACE, "rows", "columns", "columns", few, more, many),
        case(PLACE, "rows", "inner", "rows", many, more, few),
        case(CHEAPER, "inner", None, None, many, few, many),
        case(CHEAPER, "rows", None, None, more, few, many),
        case(CHEAPER, "rows", None, "columns", few, many, more),
        case(CHEAPER, "rows", "columns", None, more, many, few),
        case(CHEAPER, None, "inner", "columns", many, few, more),
    ]


def _about(given: Given) -> str:
    x, w, y, (rows, inner, columns), devices, itemsize = given
    return (
        f"x {rows} x {inner} cut by {x}, w {inner} x {columns} by {w}, y wanted by {y}, {devices} devices, "
        f"{itemsize} bytes a number"
    )


def _plan(answer: Any) -> list[tuple[str, str]]:
    """The plan of an answer; a ValueError says what it is instead."""
    if type(answer) not in (list, tuple) or len(answer) != 2 or type(answer[0]) not in (list, tuple):
        raise ValueError(f"a pair of a plan and a number of bytes was expected, and it is {described(answer)}")
    for each in answer[0]:
        pair = tuple(each) if type(each) in (list, tuple) else ()
        if len(pair) != 2 or pair[0] not in (*TIMES, "all-to-all") or pair[1] not in ("x", "w", "y"):
            raise ValueError(f"{described(each)} in the plan is no pair of a collective and one of x, w, y")
    return [(kind, array) for kind, array in answer[0]]


def _wrong(part: str, given: Given, answer: Any) -> str | None:
    x, w, y, shape, devices, itemsize = given
    try:
        plan = _plan(answer)
        cuts = reached(plan, x, w)
    except ValueError as error:
        return str(error)
    if y not in cuts:
        wanted = "whole" if y is None else f"cut by {y}"
        return f"after your plan y is {_named(cuts)}, and should be {wanted}"
    counted, best = sum(moved(*each, shape, devices, itemsize) for each in plan), least(given)
    if counted > best:
        return f"your plan moves {counted} bytes, and {best} are enough"
    said = answer[1]
    if type(said) is not int:
        return f"the bytes are {described(said)} and should be a whole number"
    if said == counted:
        return None
    for factor, hint in (
        (itemsize, f"that is the number of elements, and each has {itemsize} bytes"),
        (devices, "that is what one device sends; all of them together are asked for"),
    ):
        if said * factor == counted:
            return f"{said} bytes; {hint}"
    return f"your plan moves {counted} bytes, and you say {said}"


messages = by_case(asks.messages, MESSAGES, _cases, _wrong, about=_about)
