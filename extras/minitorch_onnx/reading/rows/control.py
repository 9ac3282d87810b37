"""Bodies that run: If, Loop and Scan; sequences and optional values.

In a recording they are `mt.cond`, `mt.scan` and `mt.while_loop`, whose bodies are compiled once. A Loop that is none of
these, since its state changes its shape, or a number has to be known in each turn, is written turn by turn; how often
it turns has to be known then. A condition that is known takes its branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import minitorch as mt
from minitorch.control.bodies import recording
from minitorch.errors import MinitorchError, TracedValueError, TracingError
from minitorch.functional.operands import from_array
from minitorch.interpreters import Staging, concrete, current_staging, interpreting
from minitorch.tensor import Tensor

from ..decoding.limits import MOST_STEPS, refuse, require
from ..program import Row
from ..running import Call, Empty, Value, literal
from .checks import dimension, ints, item, whole


class UndecidedError(Exception):
    """The error for a loop whose body decides whether it goes on."""


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


def _is_always(value: Value | None) -> bool:
    """Whether a condition is known to hold; one that is left out does."""
    return value is None or (value.known and bool(item("the condition", value.data._value)))


def If(condition: Value, *, call: Call) -> list[Value]:
    staging, count = current_staging(), len(call.step.outputs)
    if condition.known or staging is None or staging.defers:  # lazy mode computes it
        name = "then_branch" if _number(call, condition, "the condition") else "else_branch"
        return call.body(name, [], count)

    def branch(name: str) -> Callable[[], list[Any]]:
        return lambda: list(map(literal, call.body(name, [], count)[:count]))

    try:
        return list(map(Value, mt.cond(mt.reshape(condition.data, ()), branch("then_branch"), branch("else_branch"))))
    except MinitorchError as error:
        reason = str(error).partition("\n")[0]
        what = f"the condition of {call.step.place}, whose branches are no mt.cond ({reason}),"
        concrete(condition.data, what, "MT103", "give what it depends on as a Python number, such as model(x, 16000)")
        raise


def Loop(count: Value | None, condition: Value | None, *state: Value, call: Call) -> list[Value]:
    staging = recording()
    if staging is not None:
        try:
            return _recorded(staging, count, condition, state, call)
        except (TracedValueError, TracingError, UndecidedError):
            is_known = all(each is None or each.known for each in (count, condition))
            if not is_known and not staging.defers:
                raise
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


def _recorded(
    staging: Staging, count: Value | None, condition: Value | None, state: Sequence[Value], call: Call
) -> list[Value]:
    """A loop as `mt.scan` if it always takes as many turns, and as `mt.while_loop` if it does not."""
    states, first = len(state), list(map(_tensor, state))

    def turn(number: Tensor, values: Iterable[Tensor]) -> tuple[Value, list[Tensor]]:
        flag, *results = call.body("body", [Value(number), known(True), *map(Value, values)], 1 + states)
        return flag, list(map(_tensor, results))

    def step(values: list[Tensor], number: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        flag, results = turn(number, values)
        if not _is_always(flag):
            raise UndecidedError
        return results[:states], results[states:]

    if count is not None and count.known and _is_always(condition):
        most = _number(call, count, "the number of turns") if count.lengths is None else count.lengths.flat[0]
        try:
            last, rows = mt.scan(step, first, mt.arange(max(most, 0)))
            return list(map(Value, (*last, *rows)))
        except UndecidedError:
            pass
    if staging.defers:  # lazy mode computes the conditions
        raise UndecidedError
    kept = ", ".join(filter(None, call.step.outputs[states:]))
    if kept:
        refuse(
            f"{kept}: a result with an element for each turn, whose number is known only when the loop has run",
            why="the shapes of a recording are known before it runs",
            fix="run the model eagerly",
        )

    def following(values: tuple[Tensor, Tensor, list[Tensor]]) -> tuple[Tensor, Any, list[Tensor]]:
        flag, results = turn(values[0], values[2])
        return values[0] + 1, mt.reshape(_tensor(flag), ()), results

    limit = None if count is None else mt.reshape(_tensor(count), ())
    going = True if condition is None else mt.reshape(_tensor(condition), ())
    _, _, last = mt.while_loop(
        lambda values: values[1] if limit is None else values[1] & (values[0] < limit),
        following,
        (0, going, first),
    )
    return list(map(Value, last))


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
    states = [_tensor(each) for each in given[: len(given) - count] if each is not None]
    scanned = [_tensor(each) for each in given[len(given) - count :]]
    axes = options["scan_input_axes"] or [0] * count
    back = options.get("scan_input_directions") or options.get("directions") or [0] * count
    require(len(axes) == len(back) == count, "it scans {} inputs along the axes {}", count, axes)
    rows = [mt.movedim(x, dimension(axis, x.ndim), 0) for axis, x in zip(axes, scanned, strict=True)]
    call.run.step(sum(x.shape[0] for x in rows))

    def step(values: list[Tensor], slices: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        results = call.body("body", list(map(Value, (*values, *slices))), len(states))
        found = list(map(_tensor, results))
        return found[: len(states)], found[len(states) :]

    rows = [x if flag == back[0] else mt.flip(x, 0) for x, flag in zip(rows, back, strict=True)]
    last, collected = mt.scan(step, states, rows, reverse=bool(back[0]))
    out = options["scan_output_axes"] or [0] * len(collected)
    ways = options.get("scan_output_directions") or [0] * len(collected)
    text = "it collects {} results along the axes {} in the directions {}"
    require(len(out) == len(ways) == len(collected), text, len(collected), out, ways)
    ends = [x if flag == back[0] else mt.flip(x, 0) for x, flag in zip(collected, ways, strict=True)]
    moved = [mt.movedim(x, 0, dimension(axis, x.ndim)) for axis, x in zip(out, ends, strict=True)]
    return list(map(Value, (*last, *moved)))


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
