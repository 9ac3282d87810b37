"""Exercise 16, more than one device: collectives from sends, the messages of a product, batches in pieces.

The judge carries sends and plans out, and counts chunks, steps and bytes.
"""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import numpy as np

from ..harness import devices as harness
from ..harness.devices import carry_out
from ..harness.plain import Array, Value, described
from .compare import wrong_tensor
from .reasons import Wrong, recognised, saying
from .task import Task

Group = list[int]
Sent = tuple[str, tuple[Group]]


def in_a_row(steps: Any) -> int:
    """How many chunks are sent one after the other: of each step, those of its largest message."""
    return sum(max(map([send[0] for send in step].count, {send[0] for send in step}), default=0) for step in steps)


def _drawn(random: Random, count: int) -> Group:
    """The numbers of some devices, in any order."""
    return random.sample(range(4 * count), count)


def _about_group(arguments: tuple[Group]) -> str:
    return f"devices {arguments[0]}"


# --- all_gather -------------------------------------------------------------------------------------------------

FEW = "few bytes one after the other"
ALL_GATHER = {"two devices and four": 5, "any number of devices": 5, FEW: 5}


def _gathers(random: Random) -> list[Sent]:
    return [
        *[("two devices and four", (_drawn(random, count),)) for count in (2, 4)],
        *[("any number of devices", (_drawn(random, count),)) for count in (1, 3, 6, random.choice((5, 7, 9)))],
        *[(FEW, (_drawn(random, count),)) for count in (4, 7)],
    ]


def _wrong_gather(part: str, case: tuple[Group], answer: Any) -> str | None:
    (group,), chunks = case, range(len(case[0]))
    own = {device: [chunk if chunk == at else None for chunk in chunks] for at, device in enumerate(group)}
    with saying(ValueError):
        held = carry_out(answer, own)
    for device, found in held.items():
        if None in found:
            return f"at the end device {device} does not have chunk {found.index(None)}"
        if (odd := next((chunk for chunk in chunks if found[chunk] != chunk), None)) is not None:
            return f"chunk {odd} of device {device} was added to: what arrives is complete, and is copied"
    if part == FEW and (sent := in_a_row(answer)) > len(group) - 1:
        return f"{sent} chunks are sent one after the other; {len(group) - 1} are enough if all send in each step"
    return None


all_gather = Task(harness.all_gather, ALL_GATHER, _gathers, _wrong_gather, about=_about_group)

# --- all_reduce -------------------------------------------------------------------------------------------------

SUMS, BYTES, STEPS = "every sum is complete", "as few bytes as a ring", "few steps"
ALL_REDUCE = {SUMS: 10, BYTES: 10, STEPS: 10}


def _reductions(random: Random) -> list[Sent]:
    groups = [_drawn(random, count) for count in (2, 4, 8, 16)]  # the first that is wrong is told
    return [(part, (group,)) for part in ALL_REDUCE for group in groups]


def _check_sums(group: Group, answer: Any) -> None:
    """See that each chunk of each device is a sum of what all devices had."""
    with saying(ValueError):
        held = carry_out(answer, {device: [10**at] * len(group) for at, device in enumerate(group)})
    for device, chunks in held.items():
        for chunk, value in enumerate(chunks):
            counts = [int(digit) for digit in reversed(f"{value:0{len(group)}d}")]
            twice = next((at for at, count in enumerate(counts) if count > 1), None)
            if twice is not None or len(counts) > len(group):
                whose = group[(twice or 0) % len(group)]
                raise Wrong(f"in chunk {chunk} of device {device}, what device {whose} had is counted more than once")
            if 0 in counts:
                whose = group[counts.index(0)]
                raise Wrong(f"in chunk {chunk} of device {device}, what device {whose} had is missing")


def _wrong_reduction(part: str, arguments: tuple[Group], answer: Any) -> str | None:
    (group,) = arguments
    _check_sums(group, answer)
    sent, least, fewest = in_a_row(answer), 2 * (len(group) - 1), 2 * (len(group).bit_length() - 1)
    if part == BYTES and sent > least:
        many = f"{sent} chunks are sent one after the other, in a ring {least}"
        return f"{many}; send no chunk whose sum the other does not need"
    if part == STEPS and len(answer) > fewest:
        return f"{len(answer)} steps, and {fewest} are enough; each step can halve the work that is left"
    return None


all_reduce = Task(harness.all_reduce, ALL_REDUCE, _reductions, _wrong_reduction, about=_about_group, after=SUMS)

# --- messages: a product of matrices that are cut along one axis -------------------------------------------------

Cut = str | None
Product = tuple[Cut, Cut, Cut, tuple[int, int, int], int, int]
Planned = tuple[str, Product]

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
        Wrong: if it cannot be carried out; says why.
    """
    cut: dict[str, Cut] = {"x": x, "w": w}
    for kind, array in plan:
        if array != "y":
            if kind != "all-gather":
                raise Wrong(f"an {kind} of {array} makes no sense: of an operand, parts can be gathered")
            if cut[array] is None:
                raise Wrong(f"each device has all of {array}, so there is nothing to gather")
            cut[array] = None
    pair = cut["x"], cut["w"]
    if pair not in COMPUTED:
        raise Wrong(
            f"with x cut by {pair[0]} and w by {pair[1]}, a device has one place along the axis and so two parts that "
            "do not fit: one of them has to be gathered first"
        )
    found = set(COMPUTED[pair])
    for kind, array in plan:
        if array == "y":
            made = {after for before in found for after in AFTERWARDS.get((kind, before), ())}
            if not made:
                raise Wrong(f"there is no {kind} of y, which is then {_named(found)}")
            found = made
    return found | {"rows", "columns"} if None in found else found  # a device can cut what it has


def _named(cuts: set[Cut]) -> str:
    names = {"terms": "a term of each sum on every device", None: "whole on every device"}
    return " or ".join(sorted(names.get(cut, f"cut by {cut}") for cut in cuts))


def least(given: Product) -> int:
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
        except Wrong:
            continue
    return min(found)


def _products(random: Random) -> list[Planned]:
    devices, unit = random.choice((8, 16)), 16 * random.randint(1, 3)  # devices that are no itemsize
    few, more, many = unit, 4 * unit, 16 * unit

    def case(part: str, x: Cut, w: Cut, y: Cut, *shape: int) -> Planned:
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
        case(PLACE, "rows", "inner", "rows", few, many, few),  # terms of y would be the cheapest, if there were any
        case(PLACE, "inner", "columns", "columns", few, many, few),
        case(CHEAPER, "inner", None, None, many, few, many),
        case(CHEAPER, "rows", None, None, more, few, many),
        case(CHEAPER, "rows", None, "columns", few, many, more),
        case(CHEAPER, "rows", "columns", None, more, many, few),
        case(CHEAPER, None, "inner", "columns", many, few, more),
    ]


def _about_product(given: Product) -> str:
    x, w, y, (rows, inner, columns), devices, itemsize = given
    cuts = f"x {rows} x {inner} cut by {x}, w {inner} x {columns} by {w}, y wanted by {y}"
    return f"{cuts}, {devices} devices, {itemsize} bytes a number"


def _plan(answer: Any) -> list[tuple[str, str]]:
    """The plan of an answer."""
    if type(answer) not in (list, tuple) or len(answer) != 2 or type(answer[0]) not in (list, tuple):
        raise Wrong(f"a pair of a plan and a number of bytes was expected, and it is {described(answer)}")
    for each in answer[0]:
        pair = tuple(each) if type(each) in (list, tuple) else ()
        if len(pair) != 2 or pair[0] not in (*TIMES, "all-to-all") or pair[1] not in ("x", "w", "y"):
            raise Wrong(f"{described(each)} in the plan is no pair of a collective and one of x, w, y")
    return [(kind, array) for kind, array in answer[0]]


def _wrong_messages(part: str, given: Product, answer: Any) -> str | None:
    x, w, y, shape, devices, itemsize = given
    plan = _plan(answer)
    cuts = reached(plan, x, w)
    if y not in cuts:
        wanted = "whole" if y is None else f"cut by {y}"
        return f"after your plan y is {_named(cuts)}, and should be {wanted}"
    counted, best = sum(moved(*each, shape, devices, itemsize) for each in plan), least(given)
    if counted > best:
        return f"your plan moves {counted} bytes, and {best} are enough"
    said = answer[1]
    if type(said) is not int:
        return f"the bytes are {described(said)} and should be a whole number"
    known = (
        (f"that is the number of elements, and each has {itemsize} bytes", said * itemsize),
        ("that is what one device sends; all of them together are asked for", said * devices),
    )
    why = recognised(known, counted.__eq__)
    return None if said == counted else f"{said} bytes{why or f', and your plan moves {counted}'}"


messages = Task(harness.messages, MESSAGES, _products, _wrong_messages, about=_about_product)

# --- train: a mean over the batch is no mean of the means of its pieces ------------------------------------------

Batch = list[tuple[Array, Array]]
Trained = tuple[Array, list[Batch], float]
Batched = tuple[str, Trained]

TRAIN = {"pieces of one size": 5, "pieces of different sizes": 10, "several batches": 5, "an empty piece": 5}


def _batch(random: np.random.Generator, sizes: tuple[int, ...], width: int) -> Batch:
    shapes = (((rows, width), (rows,)) for rows in sizes)
    return [(random.normal(size=x).astype(np.float32), random.normal(size=y).astype(np.float32)) for x, y in shapes]


def _batches(random: np.random.Generator) -> list[Batched]:
    width, rows = int(random.integers(2, 5)), int(random.integers(2, 5))
    weight = random.normal(size=width).astype(np.float32)
    batches: dict[str, list[Batch]] = {
        "pieces of one size": [_batch(random, (rows, rows), width)],
        "pieces of different sizes": [_batch(random, (9 * rows, rows), width)],
        "several batches": [_batch(random, (1, rows, 6), width) for _ in range(3)],
        "an empty piece": [_batch(random, (rows, 0, 2 * rows), width)],
    }
    return [(part, (weight, found, 0.1)) for part, found in batches.items()]


def trained(weight: Array, batches: list[Batch], rate: float, kind: str = "") -> Array:
    """The weight after an update for each batch; or as those have it who make a mistake of some kind."""
    w, gradient = weight.astype(np.float64), np.zeros(len(weight))
    for batch in batches:
        rows = sum(len(y) for _, y in batch)
        if kind != "kept":
            gradient = np.zeros(len(weight))
        for x, y in batch:
            own = x.T.astype(np.float64) @ (2 * (x @ w - y))
            gradient += own / {"means": len(batch) * max(len(y), 1), "sums": 1, "added means": max(len(y), 1)}.get(
                kind, rows
            )
            if kind == "each":
                w, gradient = w - rate * own / max(len(y), 1), np.zeros(len(weight))
        w = w - rate * gradient
    return w.astype(np.float32)


MISTAKES = {
    "means": "the mean of the pieces' means: a row of a small piece counts more than one of a large piece",
    "sums": "the sum of all losses, which grows with the batch: divide by the rows of the whole batch",
    "added means": "the sum of the pieces' means: it grows with the number of pieces",
    "kept": "the gradients of earlier batches are still in w.grad: clear it after each update",
    "each": "the weight is updated after each piece; a batch is one update",
}


def _about_pieces(given: Trained) -> str:
    sizes = " and ".join(str([len(y) for _, y in batch]) for batch in given[1])
    return f"pieces of {sizes} rows"


def _wrong_weight(part: str, given: Trained, answer: Any) -> str | None:
    reason = wrong_tensor(answer, trained(*given), 1e-4)
    if reason is None or type(answer) is not Value or answer.array.shape != given[0].shape:
        return reason
    known = ((told, trained(*given, kind)) for kind, told in MISTAKES.items())
    return reason + recognised(known, lambda wrong: np.allclose(answer.array, wrong, atol=1e-4))


train = Task(harness.train, TRAIN, _batches, _wrong_weight, draws=np.random.default_rng, about=_about_pieces)

TASKS = (all_gather, train, messages, all_reduce)
