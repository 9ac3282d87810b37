"""Structured control flow over tensors, with JAX's names and arguments: `scan`, `fori_loop`, `while_loop`, `cond`.

Eagerly each is Python's own `for`, `while` or `if`. In a recording the function is recorded once, as a graph, and the
loop is a node that has this graph as a parameter: it is compiled once, and repeated without Python.

The gradient of a loop is a loop in the other direction. It is recorded with the body: what it reads of the body's
values becomes further results of the loop, one slice for each repetition. The gradient of a branch is a branch, which
computes these values again.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import partial
from typing import Any

from ..autograd import Context, Function, tape
from ..dtypes import bool_, int64
from ..errors import AutogradError
from ..functional.creation.creation import arange
from ..functional.creation.data import as_tensor
from ..functional.movement.arranging import stack
from ..functional.movement.parts import unbind
from ..graph.control_flow import cond as COND
from ..graph.control_flow import scan as SCAN
from ..graph.control_flow import while_loop as WHILE
from ..graph.regions import Write, free_nodes, refused
from ..interpreters import Staging, current, interpreting, is_grad_enabled, on_top
from ..ir import Node, Spec
from ..primitives import where
from ..sizes import is_symbolic, same
from ..tensor import Batched, Tensor
from . import mapped
from .bodies import (
    Body,
    Kept,
    Python,
    Values,
    applied,
    copied,
    cotangent_at,
    gradients_of,
    is_mapped,
    not_again,
    program_of,
    recording,
    unwritten,
    zeros_of,
)  # fmt: skip
from .scan_gradient import Backward


class TakenApart(Function):
    """`unbind` along the first axis, with `stack` as its gradient.

    The gradient of a slice is as large as all slices together, so that T of them would take T * T reads and writes.
    """

    @staticmethod
    def forward(ctx: Context, x: Tensor) -> tuple[Tensor, ...]:
        """Take [T, ...] apart into T tensors."""
        return unbind(x, 0)

    @staticmethod
    def backward(ctx: Context, *cotangents: Tensor) -> Tensor:
        """Stack T tensors into [T, ...]."""
        return stack(cotangents)


def apart(x: Tensor) -> Sequence[Tensor]:
    """Return the slices of a tensor along its first dimension."""
    return unbind(x) if current().mapped is not None else TakenApart.apply(x)


def scan(
    f: Python, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False, unroll: int | bool = 1
) -> tuple[Any, Any]:
    """Carry values through repetitions of a function over the slices of tensors, as `jax.lax.scan`.

    It is ``for x in xs: carry, y = f(carry, x)``, and gives the last carry and all `y`, stacked. In a recording it is
    one node, whose body is compiled once.

    Args:
        f: from a carry and a slice to the next carry, of the same shapes and types, and a result.
        init: the first carry: a tensor, or nested ones.
        xs: what is sliced along its first dimension: a tensor, nested ones, or None.
        length: the number of repetitions; needed if there is no `xs`.
        reverse: whether to begin with the last slice. Results stay with their slices.
        unroll: True writes all repetitions into a recording, one after another. Numbers, as in JAX, change nothing.

    Returns:
        The last carry, and the results stacked along a new first dimension.

    Raises:
        TracingError: if the carry changes its structure, shapes or types, or the body does what a loop cannot
            (``MT116``).
        ValueError: for slices of different number.

    Example:
        >>> import minitorch as mt
        >>> last, sums = mt.scan(lambda c, x: (c + x, c * x), mt.tensor(0.0), mt.arange(1.0, 5.0))
        >>> last, sums
        (tensor(10.), tensor([ 0.,  2.,  9., 24.]))
    """
    first, rows = Values(init, "scan: the first carry"), Values(xs, "scan: xs")
    lengths = [tensor.shape[0] for tensor in rows.tensors if tensor.ndim] + ([] if length is None else [length])
    is_clear = lengths and all(same(each, lengths[0]) for each in lengths) and all(each.ndim for each in rows.tensors)
    if not is_clear:
        found = ", ".join(map(str, rows.specs)) or "no xs"
        raise ValueError(f"scan: {found} and length={length} do not say how many repetitions there are")
    trips = lengths[0] if is_symbolic(lengths[0]) else operator.index(lengths[0])
    if trips < 0:
        raise ValueError(f"scan: length={trips} is below 0")
    staging = recording()
    if staging is not None and unroll is not True:
        return _recorded_scan(staging, f, first, rows, trips, reverse)
    if is_mapped() and not is_grad_enabled():
        step = partial(_step, f, first, name="scan")
        return mapped.recorded_scan(current().mapped, scan, step, first, rows, (trips, reverse, unroll))
    if not trips:
        with interpreting(Staging("scan")):
            example = [zeros_of(Spec(spec.shape[1:], spec.dtype)) for spec in rows.specs]
            _, result = _step(f, first, first.of(first.tensors), rows.of(example), "scan")
            specs = result.specs
        return copied(init), result.of([zeros_of(Spec((0, *spec.shape), spec.dtype)) for spec in specs])
    carried, results = first, []
    steps: list[Any] = list(zip(*map(apart, rows.tensors), strict=True)) or [()] * trips
    for slices in reversed(steps) if reverse else steps:
        given = [*carried.tensors, *slices]
        carried, result = unwritten("scan", given, _step, f, first, first.of(carried.tensors), rows.of(slices), "scan")
        results.append(result)
    carry, results = copied(carried.of(carried.tensors)), results[::-1] if reverse else results
    stacked = [stack([each.tensors[place] for each in results]) for place in range(len(results[0].tensors))]
    return carry, results[0].of(stacked)


def _step(f: Python, first: Values, carry: Any, slices: Any, name: str) -> tuple[Values, Values]:
    """Call the body of a scan, and return the next carry and the result."""
    found = f(carry, slices)
    if not isinstance(found, tuple) or len(found) != 2:
        raise TypeError(f"{name}: its body returns a pair, the next carry and a result (or None)")
    carried = Values(found[0], f"{name}: the next carry", first.tensors)
    first.require(carried, f"{name}: the body is given a carry and returns")
    return carried, Values(found[1], f"{name}: the result")


def _recorded_scan(
    staging: Staging, f: Python, first: Values, rows: Values, length: int, reverse: bool
) -> tuple[Any, Any]:
    count, results = len(first.tensors), []

    def run(stand_ins: list[Tensor]) -> list[Tensor]:
        carried, result = _step(f, first, first.of(stand_ins[:count]), rows.of(stand_ins[count:]), "scan")
        results.append(result)
        return [*carried.tensors, *result.tensors]

    given = [*first.tensors, *rows.tensors]
    slices = [Spec(spec.shape[1:], spec.dtype) for spec in rows.specs]
    body = Body.carrying(staging, "scan", run, [*first.specs, *slices], given, count, True)
    writes = body.region.writes
    body.settle({id(write.tensor) for write in writes})
    body.hoist(write.before for write in writes)
    back = Backward(body, count) if body.cotangents and body.refusal is None else None
    carries = [*body.inputs[:count], *(write.before for write in writes)]
    inputs = [*carries, *body.inputs[count:]]
    outputs = [*body.outputs[:count], *(write.after for write in writes), *body.outputs[count:]]
    outputs += back.residuals if back else []
    outer = free_nodes(outputs, body.own, inputs)
    params = {
        "body": program_of([*inputs, *outer], outputs, body.own),
        "length": length, "carried": len(carries), "sliced": len(rows.tensors), "reverse": reverse,
    }  # fmt: skip
    operands = [*first.tensors, *(staging.tensor_of(body.region.before(write)) for write in writes), *rows.tensors]
    found = applied(SCAN, [*operands, *map(staging.tensor_of, outer)], params, len(outputs))
    body.region.end()
    made = len(carries) + len(results[0].tensors)
    shown = [*_after(staging, found, count, writes), *found[len(carries) : made]]
    if back is not None:
        back.keep(staging, [staging.node_of(each) for each in rows.tensors], found[made:])
        again = None if writes else (scan, f, first, rows, length, reverse)
        back.connect(shown, given, length, reverse, again)
    elif body.refusal is not None:
        sources = (*(each for each in given if each._requires_grad), *body.outside.values())
        tape.record_many("scan", sources, shown, body.refuse)
    return first.of(shown[:count]), results[0].of(shown[count:])


def fori_loop(lower: Any, upper: Any, body_fun: Python, init_val: Any) -> Any:
    """Repeat a function with a counter, as `jax.lax.fori_loop`.

    It is ``for i in range(lower, upper): val = body_fun(i, val)``, and gives the last `val`.
    With numbers as bounds it is a `scan`, which has a gradient; if one is a tensor, a `while_loop`.

    Args:
        lower, upper: the bounds: numbers, or tensors of one whole number.
        body_fun: from the counter, an int64 tensor, and a value to the next value, of the same shapes and types.
        init_val: the first value: a tensor, or nested ones.

    Raises:
        TracingError: as of `scan` (``MT116``).

    Example:
        >>> import minitorch as mt
        >>> mt.fori_loop(0, 5, lambda i, x: x + i, mt.tensor(0))
        tensor(10)
    """
    if not isinstance(lower, Tensor) and not isinstance(upper, Tensor):
        if upper <= lower:
            return copied(init_val)
        return scan(lambda value, i: (body_fun(i, value), None), init_val, arange(lower, upper))[0]
    start, end = as_tensor(lower, dtype=int64), as_tensor(upper, dtype=int64)

    def body(state: Any) -> Any:
        return state[0] + 1, body_fun(state[0], state[1])

    return while_loop(lambda state: state[0] < end, body, (start, init_val))[1]


def while_loop(cond_fun: Python, body_fun: Python, init_val: Any) -> Any:
    """Repeat a function for as long as a condition holds, as `jax.lax.while_loop`.

    Args:
        cond_fun: from a value to a bool tensor of one element.
        body_fun: from a value to the next one, of the same shapes and types.
        init_val: the first value: a tensor, or nested ones.

    Raises:
        TracingError: as of `scan` (``MT116``).
        AutogradError: in `backward`: how often it repeats is not known, so what it would have to keep is not
            (``MT405``). Eagerly there is a gradient.

    Example:
        >>> import minitorch as mt
        >>> mt.while_loop(lambda x: x < 100, lambda x: x * 3, mt.tensor(1))
        tensor(243)
    """
    first = Values(init_val, "while_loop: the first value")

    def test(value: Any) -> Tensor:
        found = as_tensor(cond_fun(value))
        if found.numel() != 1:
            raise refused(f"while_loop: the condition is {found.spec}", "it is one answer", "reduce it: .any(), .all()")
        return found.reshape(()).to(bool_)

    def body(value: Any) -> Values:
        found = Values(body_fun(value), "while_loop: the next value", first.tensors)
        first.require(found, "while_loop: the body is given a value and returns")
        return found

    staging = recording()
    if staging is not None:
        return _recorded_while(staging, test, body, first)
    if is_mapped():
        return first.of(
            mapped.recorded_while(
                while_loop,
                lambda values: test(first.of(values)),
                lambda values: body(first.of(values)).tensors,
                first.tensors,
                current().mapped,
                _no_gradient,
            )
        )
    value, going = first.tensors, test(first.of(first.tensors))
    while mapped.is_any(going):
        found = unwritten("while_loop", value, body, first.of(value)).tensors
        value = mapped.chosen(going, found, value)
        going = mapped.still(going, test(first.of(value)))
    return copied(first.of(value))


def _recorded_while(staging: Staging, test: Python, body: Python, first: Values) -> Any:
    count = len(first.tensors)
    tested = Body(staging, "while_loop", lambda given: [test(first.of(given))], first.specs, [True] * count)
    if tested.region.writes:
        raise refused("the condition of while_loop writes in place", "it only looks", "write in the body")
    repeated = Body.carrying(
        staging, "while_loop", lambda given: body(first.of(given)).tensors, first.specs, first.tensors, count, False
    )
    writes = repeated.region.writes
    read = [tested.region.read(write.tensor) or write.before for write in writes]
    for each, carried in ((tested, read), (repeated, [write.before for write in writes])):
        each.settle({id(write.tensor) for write in writes})
        each.hoist(carried)
    inputs = [*repeated.inputs, *(write.before for write in writes)]
    conditional = [*tested.inputs, *read]
    outputs = [*repeated.outputs, *(write.after for write in writes)]
    outer = free_nodes(tested.outputs, tested.own, conditional)
    outer += [node for node in free_nodes(outputs, repeated.own, inputs) if node not in outer]
    params = {
        "condition": program_of([*conditional, *outer], tested.outputs, tested.own),
        "body": program_of([*inputs, *outer], outputs, repeated.own),
        "carried": len(inputs),
    }
    operands = [*first.tensors, *(staging.tensor_of(repeated.region.before(write)) for write in writes)]
    found = applied(WHILE, [*operands, *map(staging.tensor_of, outer)], params, len(inputs))
    for each in (tested, repeated):
        each.region.end()
    shown = _after(staging, found, count, repeated.region.writes)
    sources = [tensor for tensor in (*first.tensors, *repeated.outside.values()) if tensor._requires_grad]
    if sources and is_grad_enabled():
        tape.record_many("while_loop", tuple(sources), shown, _no_gradient)
    return first.of(shown)


def _no_gradient(*_: Any) -> Any:
    raise AutogradError(
        "MT405",
        "the gradient of a while_loop in a recording",
        why="how often it repeats is known only when it runs, and so is the memory for what its gradient would read",
        fix="use fori_loop with numbers as bounds, or scan; or call the function without mt.jit",
    )


def _after(staging: Staging, found: list[Tensor], count: int, writes: Sequence[Write]) -> list[Tensor]:
    """Carry out the in-place writes with the results that follow the first `count`, and return those."""
    for write, value in zip(writes, found[count : count + len(writes)], strict=True):
        staging.set_value(write.tensor, staging.node_of(value))
    return found[:count]


def cond(pred: Any, true_fun: Python, false_fun: Python, *operands: Any) -> Any:
    """Call one of two functions, as `jax.lax.cond` and `torch.cond`; of a recording, each run calls one.

    Args:
        pred: a bool, or a tensor of one element.
        true_fun, false_fun: called with the operands; both return the same containers, shapes and types.
        operands: anything.

    Raises:
        TracingError: if the branches return values of different kinds (``MT116``).

    Example:
        >>> import minitorch as mt
        >>> f = mt.jit(lambda x: mt.cond(x.sum() > 0, lambda x: x.log(), lambda x: x * 0, x))
        >>> f(mt.tensor([1.0, -1.0])), f(mt.tensor([1.0, 1.0]))
        (tensor([0., -0.]), tensor([0., 0.]))
    """
    test = as_tensor(pred)
    if test.numel() != 1:
        raise refused(f"cond: the condition is {test.spec}", "one branch is taken for all", "use mt.where, or x.any()")
    if is_mapped() or isinstance(test._value, Batched):
        with on_top(mapped.Branches()):
            one, other = (Values(function(*operands), "cond: a branch") for function in (true_fun, false_fun))
        one.require(other, "cond: one branch returns")
        test = test.reshape(()).to(bool_)
        return one.of([where(test, *pair) for pair in zip(one.tensors, other.tensors, strict=True)])
    staging = recording()
    if staging is None:
        return copied((true_fun if test else false_fun)(*operands))
    return _recorded_cond(staging, test.reshape(()).to(bool_), true_fun, false_fun, operands)


def _recorded_cond(
    staging: Staging, test: Tensor, true_fun: Python, false_fun: Python, operands: tuple[Any, ...]
) -> Any:
    values: list[Values] = []

    def run(function: Python) -> list[Tensor]:
        values.append(Values(function(*operands), "cond: a branch"))
        values[0].require(values[-1], "cond: one branch returns")
        return values[-1].tensors

    branches = [Body(staging, "cond", lambda _, each=each: run(each)) for each in (true_fun, false_fun)]
    written = {id(each.tensor): (each, branch.region) for branch in branches for each in branch.region.writes}
    ends = []
    for branch in branches:
        branch.settle()
        after = {id(write.tensor): write.after for write in branch.region.writes}
        before = {key: region.before(write) for key, (write, region) in written.items()}
        ends.append([*branch.outputs, *(after.get(key, node) for key, node in before.items())])
    outer: list[Node] = []
    for branch, outputs in zip(branches, ends, strict=True):
        outer += [node for node in free_nodes(outputs, branch.own, ()) if node not in outer]
    then, otherwise = (program_of(outer, outputs, branch.own) for branch, outputs in zip(branches, ends, strict=True))
    params = {"then": then, "otherwise": otherwise}
    found = applied(COND, [test, *map(staging.tensor_of, outer)], params, len(ends[0]))
    for branch in branches:
        branch.region.end()
    shown = _after(staging, found, len(values[0].tensors), [write for write, _ in written.values()])
    refusing = [branch for branch in branches if branch.refusal is not None]
    if refusing:
        sources = tuple([tensor for branch in branches for tensor in branch.outside.values()])
        tape.record_many("cond", sources, shown, refusing[0].refuse)
    elif any(branch.cotangents for branch in branches):
        again = None if written else (test, true_fun, false_fun, operands)
        _connect_branches(staging, test, branches, shown, again)
    return values[0].of(shown)


def _connect_branches(staging: Staging, test: Tensor, branches: list[Body], shown: list[Tensor], again: Any) -> None:
    """Put a branch on the tape: its gradient is a branch, which computes again what it reads."""
    outside = {key: tensor for branch in branches for key, tensor in branch.outside.items()}
    results = sorted({place for branch in branches for place in branch.cotangents})
    specs = [shown[place].spec for place in results]
    ends, inputs, outer = [], [], []
    for branch in branches:
        inputs.append(
            [
                branch.cotangents.get(place) or branch.stand_in(spec)._value
                for place, spec in zip(results, specs, strict=True)
            ]
        )
        ends.append([branch.gradient(key, tensor.spec) for key, tensor in outside.items()])
        outer += [node for node in free_nodes(ends[-1], branch.region.nodes, inputs[-1]) if node not in outer]
    then, otherwise = (
        program_of([*given, *outer], outputs, branch.region.nodes)
        for given, outputs, branch in zip(inputs, ends, branches, strict=True)
    )
    kept = [Kept(staging, node) for node in (staging.node_of(test), *outer)]

    def rule(parts: dict[int, Tensor], saved: dict[int, Tensor], asked: list[bool]) -> list[Tensor | None]:
        cotangents = [cotangent_at(parts, place, spec) for place, spec in zip(results, specs, strict=True)]
        if is_grad_enabled():
            found = _differentiable_branch(again, results, cotangents, list(outside.values()))
        else:
            first, *others = [each.again() for each in kept]
            params = {"then": then, "otherwise": otherwise}
            found = applied(COND, [first, *cotangents, *others], params, len(outside))
        return [each if is_asked else None for each, is_asked in zip(found, asked, strict=True)]

    without = [id(each) for place, each in enumerate(shown) if place not in results]
    tape.record_many("cond", tuple(outside.values()), shown, rule, without=without)


def _differentiable_branch(
    again: Any, results: Sequence[int], cotangents: Sequence[Tensor], outside: Sequence[Tensor]
) -> Sequence[Tensor]:
    """Return the gradients of a branch as results that have gradients themselves."""
    if again is None:
        raise not_again("cond")
    test, *functions, operands = again

    def back(function: Python) -> Python:
        def gradients() -> list[Tensor]:
            outputs = Values(function(*operands), "cond").tensors
            return gradients_of([outputs[place] for place in results], cotangents, outside)

        return gradients

    found: list[Tensor] = cond(test, *map(back, functions))
    return found
