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
from minitorch.functional.operands import from_array
from minitorch.interpreters import concrete, current_staging, interpreting
from minitorch.tensor import Tensor

from ..decoding.limits import MOST_STEPS, refuse, require
from ..program import Row
from ..running import Call, Empty, Value, literal
from .checks import dimension, ints, item, whole


def _array(call: Call, value: Value, what: str) -> Any:
    """An array that has to be known."""
    _tensor(value)
    return value.data._value if value.known else concrete(value.data, f"{what} of {call.step.place}", "MT103")


def _number(call: Call, value: Value, what: str) -> Any:
    """A number that has to be known."""
    return item(what, _array(call, value, what))


def known(number: int | bool) -> Value:
    """Return a number as a known value."""
    with interpreting(None):
        return Value(from_array(np.array(number, np.bool_ if isinstance(number, bool) else np.int64)), True)


def If(condition: Value, *, call: Call) -> list[Value]:
    staging = current_staging()
    if condition.known or staging is None or staging.defers:  # lazy mode computes it
        name = "then_branch" if _number(call, condition, "the condition") else "else_branch"
        return call.body(name, [], len(call.step.outputs))
    try:
        return _chosen(call, mt.reshape(condition.data, ()))
    except MinitorchError as error:
        reason = str(error).partition("\n")[0]
        what = f"the condition of {call.step.place}, of which both branches cannot be computed ({reason}),"
        concrete(condition.data, what, "MT103", "give what it depends on as a Python number, such as model(x, 16000)")
        raise


def _chosen(call: Call, taken: Tensor) -> list[Value]:
    """Both branches, and of each result the elements of the branch that is taken."""
    count = len(call.step.outputs)
    branches = [
        call.body("then_branch", [], count, lambda x: mt.where(taken, x, _harmless(x))),
        call.body("else_branch", [], count, lambda x: mt.where(taken, _harmless(x), x)),
    ]
    found = []
    for a, b in zip(*[map(literal, branch) for branch in branches], strict=False):
        fits = isinstance(a, Tensor) and isinstance(b, Tensor) and a.shape == b.shape and a.dtype is b.dtype
        require(fits, "its branches give values of different shapes or types")
        found.append(Value(mt.where(taken, a, b)))
    return found


def _harmless(x: Tensor) -> Tensor:
    """What a branch computes with that is not taken."""
    return mt.full_like(x, 1 if x.dtype.is_floating_point else 0)


def Loop(count: Value | None, condition: Value | None, *state: Value, call: Call) -> list[Value]:
    most = MOST_STEPS if count is None else _number(call, count, "the number of turns")
    going = condition is None or bool(_number(call, condition, "the condition"))
    states = len(state)
    turns: list[list[Value]] = []
    while going and len(turns) < most:
        flag, *results = call.body("body", [known(len(turns)), known(True), *state], 1 + states)
        going = bool(_number(call, flag, "the condition"))
        state = tuple(results[:states])
        turns.append(results[states:])
    nothing = not turns and len(call.step.outputs) > states
    require(not nothing, "a loop without turns has nothing to collect, of unknown shape")
    return [*state, *[_stacked(rows, 0) for rows in zip(*turns, strict=True)]]


def _stacked(rows: Sequence[Value], axis: int) -> Value:
    return Value(mt.stack([_tensor(each) for each in rows], dimension(axis, _tensor(rows[0]).ndim + 1)))


def Scan(*given: Value | None, call: Call) -> list[Value]:
    """Before opset 9, the first input are lengths, and each sequence of a batch is scanned by itself."""
    if call.version >= 9:
        return _scanned(call, given)
    require(given[0] is None, "it scans sequences of several lengths")
    tensors = [_tensor(each) for each in given[1:]]
    rows = [_scanned(call, [Value(each[at]) for each in tensors]) for at in range(tensors[0].shape[0])]
    return [_stacked(each, 0) for each in zip(*rows, strict=True)]


def _scanned(call: Call, given: Sequence[Value | None]) -> list[Value]:
    options = call.step.attributes
    count = options["num_scan_inputs"]
    require(0 < count <= len(given), "it scans {} of {} inputs", count, len(given))
    states = [each for each in given[: len(given) - count] if each is not None]
    scanned = [_tensor(each) for each in given[len(given) - count :]]
    axes = options["scan_input_axes"] or [0] * count
    back = options.get("scan_input_directions") or options.get("directions") or [0] * count
    require(len(axes) == len(back) == count, "it scans {} inputs along the axes {}", count, axes)
    dims = [dimension(axis, x.ndim) for axis, x in zip(axes, scanned, strict=True)]
    call.run.step(sum(x.shape[dim] for x, dim in zip(scanned, dims, strict=True)))
    apart = [mt.unbind(x, dim)[:: -1 if flag else 1] for x, dim, flag in zip(scanned, dims, back, strict=True)]
    turns: list[list[Value]] = []
    for rows in zip(*apart, strict=False):
        results = call.body("body", [*states, *map(Value, rows)], len(states))
        states = results[: len(states)]
        turns.append(results[len(states) :])
    require(turns, "a scan over nothing has nothing to collect, of unknown shape")
    collected = list(zip(*turns, strict=True))
    out = options["scan_output_axes"] or [0] * len(collected)
    back = options.get("scan_output_directions") or [0] * len(collected)
    text = "it collects {} results along the axes {} in the directions {}"
    require(len(out) == len(back) == len(collected), text, len(collected), out, back)
    ends = [rows[::-1] if flag else rows for rows, flag in zip(collected, back, strict=True)]
    return [*states, *[_stacked(rows, axis) for rows, axis in zip(ends, out, strict=True)]]


# Sequences --------------------------------------------------------------------------------------------------


def _list(value: Value) -> list[Any]:
    require(isinstance(value.data, list), "it takes a sequence, and is given another value")
    return list(value.data)


def _tensor(value: Value | None) -> Tensor:
    """The tensor of a value, for rows that take nothing else."""
    found = None if value is None else literal(value)
    if not isinstance(found, Tensor):
        refuse("it is given a sequence or an optional value, and takes tensors")
    return found


def _place(call: Call, value: Value | None, length: int, most: int) -> int:
    """A position in a sequence, `most` at most and by default."""
    at = most if value is None else whole("the position", _array(call, value, "the position"))
    require(-length <= at <= most, "the position {} in a sequence of {}", at, length)
    return at + length if at < 0 else at


def SequenceAt(sequence: Value, position: Value, *, call: Call) -> Value:
    items = _list(sequence)
    return Value(items[_place(call, position, len(items), len(items) - 1)])


def SequenceInsert(sequence: Value, item: Value, position: Value | None = None, *, call: Call) -> Value:
    items = _list(sequence)
    items.insert(_place(call, position, len(items), len(items)), _tensor(item))
    return Value(items)


def SequenceErase(sequence: Value, position: Value | None = None, *, call: Call) -> Value:
    items = _list(sequence)
    del items[_place(call, position, len(items), len(items) - 1)]
    return Value(items)


def SplitToSequence(value: Value, sizes: Value | None = None, *, axis: int, keepdims: int, call: Call) -> Value:
    x = _tensor(value)
    axis = dimension(axis, x.ndim)
    if sizes is not None and sizes.data.ndim:
        return Value(list(mt.split(x, ints(_array(call, sizes, "the sizes of parts")), axis)))
    size = 1 if sizes is None else whole("the size", _array(call, sizes, "the size"))
    require(size >= 1, "parts of the size {}", size)
    call.run.step(-(-x.shape[axis] // size))
    parts = list(mt.split(x, size, axis))
    return Value(parts if keepdims or sizes is not None else [mt.squeeze(each, axis) for each in parts])


def SequenceMap(sequence: Value, *others: Value, call: Call) -> list[Value]:
    """The body for each item; of other sequences, the item at the same place."""
    found: list[list[Any]] = [[] for _ in call.step.outputs]
    for at, each in enumerate(_list(sequence)):
        beside = []
        for other in others:
            is_list = isinstance(other.data, list)
            require(not is_list or at < len(other.data), "a sequence beside another one ends at {}", at)
            beside.append(Value(other.data[at]) if is_list else other)
        for rows, result in zip(found, call.body("body", [Value(each), *beside], len(found)), strict=False):
            rows.append(literal(result))
    return [Value(rows) for rows in found]


def OptionalGetElement(value: Value) -> Value:
    require(_is_there(value), "an optional value that is not there")
    return value


def _is_there(value: Value | None) -> bool:
    return value is not None and value.data is not None and not isinstance(value.data, Empty)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ConcatFromSequence": lambda sequence, axis, new_axis: Value(
        (mt.stack if new_axis else mt.cat)(_list(sequence), axis)
    ),
    "Identity": lambda value: value,
    "Optional": lambda value=None: Value(Empty()) if value is None else value,
    "OptionalHasElement": lambda value=None: known(_is_there(value)),
    "SequenceConstruct": lambda *values: Value(list(map(_tensor, values))),
    "SequenceEmpty": lambda: Value([]),
    "SequenceLength": lambda sequence: known(len(_list(sequence))),
    **{each.__name__: each for each in (
        If, Loop, OptionalGetElement, Scan, SequenceAt, SequenceErase, SequenceInsert, SequenceMap, SplitToSequence,
    )},
}  # fmt: skip
_KNOWN = {"If": (0,), "Loop": (0, 1)}
ROWS = {name: Row(each, _KNOWN.get(name, ()), control=True) for name, each in _FUNCTIONS.items()}
