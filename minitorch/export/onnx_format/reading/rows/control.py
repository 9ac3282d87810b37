"""Bodies that run: If, Loop and Scan; sequences and optional values.

Loops are unrolled: how often they turn has to be known when a graph is made. Of a condition that is not, both branches
are computed, and chosen from element by element. The one that is not taken computes with ones and zeros in place of
what it reads: so it has no index out of range, and no infinite derivative, unless of its own making.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .....functional.arranging import cat, stack
from .....functional.creation import full_like
from .....functional.operands import from_array, wrap_dim
from .....functional.parts import part, split
from .....functional.selection import where
from .....functional.shaping import reshape, squeeze
from .....interpreters import concrete, current_staging, interpreting
from .....tensor import Tensor
from ..limits import MOST_STEPS, refuse
from ..program import Row
from ..running import Call, Empty, Value, literal


def _is_known(value: Value) -> bool:
    return value.known or current_staging() is None


def _number(call: Call, value: Value, what: str) -> Any:
    """A number that has to be known."""
    array = value.data._value if value.known else concrete(value.data, f"{what} of {call.step.place}", "MT103")
    if array.size != 1:
        refuse(f"{what} is {array.size} numbers")
    return array.reshape(()).item()


def known(number: int | bool) -> Value:
    """A number as a known value."""
    with interpreting(None):
        return Value(from_array(np.array(number, np.bool_ if isinstance(number, bool) else np.int64)), True)


def _identity(call: Call, value: Value) -> Value:
    return value


def _if(call: Call, condition: Value) -> list[Value]:
    if _is_known(condition):
        return call.body("then_branch" if _number(call, condition, "the condition") else "else_branch", [])
    taken = reshape(condition.data, ())
    branches = [
        call.body("then_branch", [], lambda x: where(taken, x, _harmless(x))),
        call.body("else_branch", [], lambda x: where(taken, _harmless(x), x)),
    ]
    found = []
    for one, other in zip(*branches, strict=True):
        a, b = literal(one), literal(other)
        if not (isinstance(a, Tensor) and isinstance(b, Tensor)) or a.shape != b.shape or a.dtype is not b.dtype:
            refuse("its branches give values of different shapes or types, and the condition is not known")
        found.append(Value(where(taken, a, b)))
    return found


def _harmless(x: Tensor) -> Tensor:
    """What a branch computes with that is not taken."""
    return full_like(x, 1 if x.dtype.is_floating_point else 0)


def _loop(call: Call, count: Value | None, condition: Value | None, *carried: Value) -> list[Value]:
    most = MOST_STEPS if count is None else _number(call, count, "the number of turns")
    going = condition is None or bool(_number(call, condition, "the condition"))
    state = list(carried)
    collected: list[list[Value]] | None = None
    turn = 0
    while going and turn < most:
        results = call.body("body", [known(turn), known(True), *state])
        going = bool(_number(call, results[0], "the condition"))
        state = results[1 : 1 + len(carried)]
        if collected is None:
            collected = [[] for _ in results[1 + len(carried) :]]
        for rows, each in zip(collected, results[1 + len(carried) :], strict=True):
            rows.append(each)
        turn += 1
    if collected is None:
        if len(call.outputs) > len(carried):
            refuse("a loop without turns has nothing to collect, of unknown shape")
        collected = []
    return [*state, *[_stacked(rows, 0) for rows in collected]]


def _stacked(rows: list[Value], axis: int) -> Value:
    return Value(stack([literal(each) for each in rows], axis))


def _scan(call: Call, *given: Value) -> list[Value]:
    count = call["num_scan_inputs"]
    states = list(given[: len(given) - count])
    scanned = [literal(each) for each in given[len(given) - count :]]
    axes = call["scan_input_axes"] or [0] * count
    turned = call["scan_input_directions"] or [0] * count
    if not scanned or not len(axes) == len(turned) == count:
        refuse(f"it scans {count} inputs along the axes {axes}")
    dims = [wrap_dim(axis, x.ndim) for axis, x in zip(axes, scanned, strict=True)]
    length = scanned[0].shape[dims[0]]
    collected: list[list[Value]] | None = None
    for turn in range(length):
        rows = []
        for x, dim, back in zip(scanned, dims, turned, strict=True):
            at = length - 1 - turn if back else turn
            rows.append(Value(squeeze(part(x, dim, at, at + 1), dim)))
        results = call.body("body", [*states, *rows])
        states = results[: len(states)]
        if collected is None:
            collected = [[] for _ in results[len(states) :]]
        for kept, each in zip(collected, results[len(states) :], strict=True):
            kept.append(each)
    if collected is None:
        refuse("a scan over nothing has nothing to collect, of unknown shape")
    out = call["scan_output_axes"] or [0] * len(collected)
    back = call["scan_output_directions"] or [0] * len(collected)
    ends = [rows[::-1] if flag else rows for rows, flag in zip(collected, back, strict=True)]
    return [
        *states,
        *[_stacked(rows, wrap_dim(axis, literal(rows[0]).ndim + 1)) for rows, axis in zip(ends, out, strict=True)],
    ]


# Sequences --------------------------------------------------------------------------------------------------


def _list(value: Value) -> list[Any]:
    if not isinstance(value.data, list):
        refuse("it takes a sequence, and is given another value")
    return value.data


def _construct(call: Call, *values: Value) -> Value:
    return Value([literal(each) for each in values])


def _empty(call: Call) -> Value:
    return Value([])


def _place(call: Call, value: Value | None, length: int, default: int) -> int:
    if value is None:
        return default
    at = int(_number(call, value, "the position"))
    if not -length <= at <= length:
        refuse(f"the position {at} in a sequence of {length}")
    return at + length if at < 0 else at


def _at(call: Call, sequence: Value, position: Value) -> Value:
    items = _list(sequence)
    return Value(items[_place(call, position, len(items), 0)])


def _insert(call: Call, sequence: Value, item: Value, position: Value | None = None) -> Value:
    items = list(_list(sequence))
    items.insert(_place(call, position, len(items), len(items)), literal(item))
    return Value(items)


def _erase(call: Call, sequence: Value, position: Value | None = None) -> Value:
    items = list(_list(sequence))
    del items[_place(call, position, len(items), len(items) - 1)]
    return Value(items)


def _length(call: Call, sequence: Value) -> Value:
    return known(len(_list(sequence)))


def _joined(call: Call, sequence: Value) -> Value:
    items = _list(sequence)
    return Value(stack(items, call["axis"]) if call["new_axis"] else cat(items, call["axis"]))


def _taken_apart(call: Call, value: Value, sizes: Value | None = None) -> Value:
    x = literal(value)
    axis = wrap_dim(call["axis"], x.ndim)
    if sizes is None:
        parts = list(split(x, 1, axis))
        return Value(parts if call["keepdims"] else [squeeze(each, axis) for each in parts])
    if sizes.data.ndim == 0:
        return Value(list(split(x, int(_number(call, sizes, "the size")), axis)))
    array = sizes.data._value if sizes.known else concrete(sizes.data, "the sizes of parts", "MT103")
    return Value(list(split(x, [int(each) for each in array.tolist()], axis)))


def _map(call: Call, sequence: Value, *others: Value) -> list[Value]:
    """The body for each item; of other sequences, the item at the same place."""
    found: list[list[Any]] = [[] for _ in call.outputs]
    for at, item in enumerate(_list(sequence)):
        beside = [Value(each.data[at]) if isinstance(each.data, list) else each for each in others]
        for rows, each in zip(found, call.body("body", [Value(item), *beside]), strict=True):
            rows.append(literal(each))
    return [Value(rows) for rows in found]


def _optional(call: Call, value: Value | None = None) -> Value:
    return Value(Empty()) if value is None else value


def _get(call: Call, value: Value) -> Value:
    if value.data is None or isinstance(value.data, Empty):
        refuse("an optional value that is not there")
    return value


def _has(call: Call, value: Value | None = None) -> Value:
    return known(value is not None and value.data is not None and not isinstance(value.data, Empty))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ConcatFromSequence": _joined,
    "Identity": _identity,
    "If": _if,
    "Loop": _loop,
    "Optional": _optional,
    "OptionalGetElement": _get,
    "OptionalHasElement": _has,
    "Scan": _scan,
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SequenceMap": _map,
    "SplitToSequence": _taken_apart,
}

ROWS: dict[str, Row] = {name: Row(function, control=True) for name, function in FUNCTIONS.items()}
