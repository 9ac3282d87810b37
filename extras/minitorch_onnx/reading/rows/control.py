"""Bodies that run: If, Loop and Scan; sequences and optional values.

Loops are unrolled: how often they turn has to be known when a graph is made. Of a condition that is not, both branches
are computed, and chosen from element by element. The one that is not taken computes with ones and zeros in place of
what it reads: so it has no index out of range, and no infinite derivative, unless of its own making.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import minitorch as mt
from minitorch.errors import MinitorchError
from minitorch.functional.movement.parts import part
from minitorch.functional.operands import from_array
from minitorch.interpreters import concrete, current_staging, interpreting
from minitorch.tensor import Tensor

from ..decoding.limits import MOST_STEPS, refuse
from ..program import Row
from ..running import Call, Empty, Value, literal
from .checks import dimension, ints, item, whole


def _is_known(value: Value) -> bool:
    """Whether there is a number to ask for; lazy mode computes it."""
    staging = current_staging()
    return value.known or staging is None or staging.defers


def _array(call: Call, value: Value, what: str) -> Any:
    """An array that has to be known."""
    _tensor(value)
    return value.data._value if value.known else concrete(value.data, f"{what} of {call.step.place}", "MT103")


def _number(call: Call, value: Value, what: str) -> Any:
    """A number that has to be known."""
    return item(what, _array(call, value, what))


def known(number: int | bool) -> Value:
    """A number as a known value."""
    with interpreting(None):
        return Value(from_array(np.array(number, np.bool_ if isinstance(number, bool) else np.int64)), True)


def _if(call: Call, condition: Value) -> list[Value]:
    if _is_known(condition):
        name = "then_branch" if _number(call, condition, "the condition") else "else_branch"
        return call.body(name, [], len(call.outputs))
    try:
        return _chosen(call, mt.reshape(condition.data, ()))
    except MinitorchError as error:
        reason = str(error).partition("\n")[0]
        what = f"the condition of {call.step.place}, of which both branches cannot be computed ({reason}),"
        concrete(condition.data, what, "MT103", "give what it depends on as a Python number, such as model(x, 16000)")
        raise


def _chosen(call: Call, taken: Tensor) -> list[Value]:
    """Both branches, and of each result the elements of the branch that is taken."""
    branches = [
        call.body("then_branch", [], len(call.outputs), lambda x: mt.where(taken, x, _harmless(x))),
        call.body("else_branch", [], len(call.outputs), lambda x: mt.where(taken, _harmless(x), x)),
    ]
    found = []
    for one, other in zip(*branches, strict=False):
        a, b = literal(one), literal(other)
        if not (isinstance(a, Tensor) and isinstance(b, Tensor)) or a.shape != b.shape or a.dtype is not b.dtype:
            refuse("its branches give values of different shapes or types")
        found.append(Value(mt.where(taken, a, b)))
    return found


def _harmless(x: Tensor) -> Tensor:
    """What a branch computes with that is not taken."""
    return mt.full_like(x, 1 if x.dtype.is_floating_point else 0)


def _loop(call: Call, count: Value | None, condition: Value | None, *carried: Value) -> list[Value]:
    most = MOST_STEPS if count is None else _number(call, count, "the number of turns")
    going = condition is None or bool(_number(call, condition, "the condition"))
    state = list(carried)
    collected: list[list[Value]] | None = None
    turn = 0
    while going and turn < most:
        results = call.body("body", [known(turn), known(True), *state], 1 + len(carried))
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
    return Value(mt.stack([_tensor(each) for each in rows], axis))


def _scan(call: Call, *given: Value | None) -> list[Value]:
    """Before opset 9, the first input are lengths, and each sequence of a batch is scanned by itself."""
    if call.version >= 9:
        return _scanned(call, given)
    if given[0] is not None:
        refuse("it scans sequences of several lengths")
    tensors = [_tensor(each) for each in given[1:]]
    rows = [_scanned(call, [Value(each[at]) for each in tensors]) for at in range(tensors[0].shape[0])]
    return [_stacked(list(each), 0) for each in zip(*rows, strict=True)]


def _scanned(call: Call, given: Sequence[Value | None]) -> list[Value]:
    count = call["num_scan_inputs"]
    if not 0 < count <= len(given):
        refuse(f"it scans {count} of {len(given)} inputs")
    states = [Value(_tensor(each)) if each is None else each for each in given[: len(given) - count]]
    scanned = [_tensor(each) for each in given[len(given) - count :]]
    axes = call["scan_input_axes"] or [0] * count
    turned = call["scan_input_directions"] or call["directions"] or [0] * count
    if not len(axes) == len(turned) == count:
        refuse(f"it scans {count} inputs along the axes {axes}")
    dims = [dimension(axis, x.ndim) for axis, x in zip(axes, scanned, strict=True)]
    length = scanned[0].shape[dims[0]]
    collected: list[list[Value]] | None = None
    for turn in range(length):
        rows = []
        for x, dim, back in zip(scanned, dims, turned, strict=True):
            at = length - 1 - turn if back else turn
            rows.append(Value(mt.squeeze(part(x, dim, at, at + 1), dim)))
        results = call.body("body", [*states, *rows], len(states))
        states = results[: len(states)]
        if collected is None:
            collected = [[] for _ in results[len(states) :]]
        for kept, each in zip(collected, results[len(states) :], strict=True):
            kept.append(each)
    if collected is None:
        refuse("a scan over nothing has nothing to collect, of unknown shape")
    out = call["scan_output_axes"] or [0] * len(collected)
    back = call["scan_output_directions"] or [0] * len(collected)
    if not len(out) == len(back) == len(collected):
        refuse(f"it collects {len(collected)} results along the axes {out} in the directions {back}")
    ends = [rows[::-1] if flag else rows for rows, flag in zip(collected, back, strict=True)]
    return [
        *states,
        *[_stacked(rows, dimension(axis, _tensor(rows[0]).ndim + 1)) for rows, axis in zip(ends, out, strict=True)],
    ]


# Sequences --------------------------------------------------------------------------------------------------


def _list(value: Value) -> list[Any]:
    if not isinstance(value.data, list):
        refuse("it takes a sequence, and is given another value")
    return value.data


def _tensor(value: Value | None) -> Tensor:
    """The tensor of a value, for rows that take nothing else."""
    found = None if value is None else literal(value)
    if not isinstance(found, Tensor):
        refuse("it is given a sequence or an optional value, and takes tensors")
    return found


def _place(call: Call, value: Value | None, length: int, most: int) -> int:
    """A position in a sequence, `most` at most and by default."""
    at = most if value is None else whole("the position", _array(call, value, "the position"))
    if not -length <= at <= most:
        refuse(f"the position {at} in a sequence of {length}")
    return at + length if at < 0 else at


def _at(call: Call, sequence: Value, position: Value) -> Value:
    items = _list(sequence)
    return Value(items[_place(call, position, len(items), len(items) - 1)])


def _insert(call: Call, sequence: Value, item: Value, position: Value | None = None) -> Value:
    items = list(_list(sequence))
    items.insert(_place(call, position, len(items), len(items)), _tensor(item))
    return Value(items)


def _erase(call: Call, sequence: Value, position: Value | None = None) -> Value:
    items = list(_list(sequence))
    del items[_place(call, position, len(items), len(items) - 1)]
    return Value(items)


def _taken_apart(call: Call, value: Value, sizes: Value | None = None) -> Value:
    x = _tensor(value)
    axis = dimension(call["axis"], x.ndim)
    if sizes is None or sizes.data.ndim == 0:
        size = 1 if sizes is None else whole("the size", _array(call, sizes, "the size"))
        if size < 1:
            refuse(f"parts of the size {size}")
        call.run.step(-(-x.shape[axis] // size))
        parts = list(mt.split(x, size, axis))
        if sizes is not None:
            return Value(parts)
        return Value(parts if call["keepdims"] else [mt.squeeze(each, axis) for each in parts])
    return Value(list(mt.split(x, ints(_array(call, sizes, "the sizes of parts")), axis)))


def _list_at(sequence: Value, at: int) -> Any:
    if at >= len(sequence.data):
        refuse(f"a sequence beside another one ends at {len(sequence.data)}")
    return sequence.data[at]


def _map(call: Call, sequence: Value, *others: Value) -> list[Value]:
    """The body for each item; of other sequences, the item at the same place."""
    found: list[list[Any]] = [[] for _ in call.outputs]
    for at, each in enumerate(_list(sequence)):
        beside = [Value(_list_at(other, at)) if isinstance(other.data, list) else other for other in others]
        for rows, result in zip(found, call.body("body", [Value(each), *beside], len(found)), strict=False):
            rows.append(literal(result))
    return [Value(rows) for rows in found]


def _get(call: Call, value: Value) -> Value:
    if not _is_there(value):
        refuse("an optional value that is not there")
    return value


def _is_there(value: Value | None) -> bool:
    return value is not None and value.data is not None and not isinstance(value.data, Empty)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ConcatFromSequence": lambda call, sequence: Value(
        (mt.stack if call["new_axis"] else mt.cat)(_list(sequence), call["axis"])
    ),
    "Identity": lambda call, value: value,
    "If": _if,
    "Loop": _loop,
    "Optional": lambda call, value=None: Value(Empty()) if value is None else value,
    "OptionalGetElement": _get,
    "OptionalHasElement": lambda call, value=None: known(_is_there(value)),
    "Scan": _scan,
    "SequenceAt": _at,
    "SequenceConstruct": lambda call, *values: Value(list(map(_tensor, values))),
    "SequenceEmpty": lambda call: Value([]),
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": lambda call, sequence: known(len(_list(sequence))),
    "SequenceMap": _map,
    "SplitToSequence": _taken_apart,
}

KNOWN = {"If": (0,), "Loop": (0, 1)}
ROWS: dict[str, Row] = {name: Row(each, KNOWN.get(name, ()), control=True) for name, each in FUNCTIONS.items()}
