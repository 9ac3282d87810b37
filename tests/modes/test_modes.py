"""For all public functions: eager = jit = Session = lazy; gradients = finite differences.

Bit by bit with the backend that calls NumPy; within the last digits with the one that makes machine code.
"""

from __future__ import annotations

import gc
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import dtypes
from minitorch.autograd import gradcheck
from minitorch.ir import PRIMITIVES
from minitorch.modes.tracing.program import COLLECTED_RARELY
from minitorch.tree import flatten
from tests.support.cases import CASES, EAGER_BY_NATURE, METHODS, WIDE
from tests.support.sessions import session

ALL = CASES + METHODS


def takes_floats(case):
    return any(array.dtype == np.float32 for array in case.arrays)


differentiable = pytest.mark.parametrize("case", [case for case in ALL if case.smooth and takes_floats(case)], ids=str)


def tensors_in(result):
    return [leaf for leaf in flatten(result)[0] if isinstance(leaf, mt.Tensor)]


def eager(function, tensors):
    return function(*tensors)


def interpreted(function, tensors, backend="interpret"):
    """As traced: no pass has touched the graph."""
    return mt.jit(function, passes=(), backend=backend)(*tensors)


def jitted(function, tensors, backend="interpret"):
    return mt.jit(function, backend=backend)(*tensors)


def lazily(function, tensors, backend="interpret"):
    with mt.lazy(backend):
        return function(*tensors)


MODES = {"interpret": interpreted, "jit": jitted, "session": session, "lazy": lazily}


def run(mode, function, tensors, *backend):
    mt.manual_seed(7)
    return mode(function, tensors, *backend)


def bits(x):
    """Shape, type and memory of a tensor; the sign and payload of a NaN mean nothing."""
    array = x.detach()._value
    if x.is_floating_point():
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    return array.shape, array.dtype, array.tobytes()


def pairs_of_tensors(mine, theirs):
    assert flatten(mine)[1] == flatten(theirs)[1]
    return zip(tensors_in(mine), tensors_in(theirs), strict=True)


def assert_same_bits(mine, theirs):
    for a, b in pairs_of_tensors(mine, theirs):
        assert bits(a) == bits(b), (a, b)


TOLERANCE = {mt.float64: 1e-12, mt.float32: 1e-5, mt.float16: 1e-2, mt.bfloat16: 6e-2}


def assert_close(mine, theirs):
    """For machine code: sums in another order, and steps of half precision rounded once; all else is exact."""
    for a, b in pairs_of_tensors(mine, theirs):
        if a.is_floating_point():
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            x, y = a.detach().double().numpy(), b.detach().double().numpy()
            with np.errstate(invalid="ignore"):
                close = np.abs(x - y) <= TOLERANCE[a.dtype] * np.maximum(1, np.abs(y))
            assert ((x == y) | (np.isnan(x) & np.isnan(y)) | close).all(), (a, b)
        else:
            assert bits(a) == bits(b), (a, b)


def test_what_counts_as_the_same_bits():
    assert_same_bits(mt.tensor([np.nan, 1]), -mt.tensor([np.nan, -1]))
    for a, b in ((0.0, -0.0), (1.0, 1), (True, 1), ([1.0], 1.0)):
        with pytest.raises(AssertionError):
            assert_same_bits(mt.tensor(a), mt.tensor(b))


def kinds_or_error(mode, case, dtype):
    """The shapes and types that a call gives for floats of a type, or the error."""
    try:
        return [tensor.spec for tensor in tensors_in(run(mode, case.function, case.tensors(dtype)))]
    except Exception as error:
        return type(error), getattr(error, "code", None)


@pytest.mark.parametrize("case", [case for case in ALL if takes_floats(case)], ids=str)
def test_types_are_the_same_in_every_mode_and_refused_in_all_or_none(case):
    """Also where floats are expected and something else is given."""
    for dtype in dtypes.ALL:
        assert kinds_or_error(eager, case, dtype) == kinds_or_error(interpreted, case, dtype), dtype


@pytest.mark.parametrize("case", [case for case in ALL if any(array.dtype == bool for array in case.arrays)], ids=str)
def test_masks_of_other_types_are_taken_or_refused_in_every_mode(case):
    for dtype in dtypes.ALL:
        arrays = tuple(x.astype(dtype.numpy) if x.dtype == bool else x for x in case.arrays)
        given = replace(case, arrays=arrays)
        assert kinds_or_error(eager, given, None) == kinds_or_error(interpreted, given, None), dtype


def test_every_public_function_has_a_case():
    public = set(mt.functional.FUNCTIONS) | {f"F.{name}" for name in mt.nn.functional.__all__}
    assert public - {case.name for case in CASES} == EAGER_BY_NATURE
    assert len(EAGER_BY_NATURE) < len(public) / 10


TYPED = [
    (case, dtype)
    for case in ALL
    for dtype in (mt.float32, mt.float64, mt.bfloat16, mt.float16)
    if dtype is mt.float32 or (takes_floats(case) and (dtype.itemsize > 2 or case.name not in WIDE))
]


@pytest.mark.sweep
@pytest.mark.parametrize(("case", "dtype"), TYPED, ids=[f"{case}-{dtype.short}" for case, dtype in TYPED])
def test_all_modes_give_the_same_bits(case, dtype):
    tensors = case.tensors(dtype)
    expected = run(eager, case.function, tensors)
    for mode in MODES.values():
        assert_same_bits(run(mode, case.function, tensors), expected)


@pytest.mark.sweep
@pytest.mark.parametrize(("case", "dtype"), TYPED, ids=[f"{case}-{dtype.short}" for case, dtype in TYPED])
def test_machine_code_gives_the_same_numbers(case, dtype):
    tensors = case.tensors(dtype)
    expected = run(eager, case.function, tensors)
    for mode in MODES.values() if dtype is mt.float32 else (jitted,):
        assert_close(run(mode, case.function, tensors, "llvm"), expected)


@pytest.mark.parametrize("case", ALL, ids=str)
def test_evaluated_loops_give_the_same_numbers(case):
    tensors = case.tensors(mt.float32)
    assert_close(run(jitted, case.function, tensors, "loops"), run(eager, case.function, tensors))


@differentiable
def test_gradients_are_finite_differences(case):
    tensors = case.tensors(mt.float64, requires_grad=True)

    def function(*args):
        mt.manual_seed(7)
        return tuple(x for x in tensors_in(case.function(*args)) if x.is_floating_point())

    assert gradcheck(function, tensors)


@pytest.mark.sweep
@differentiable
def test_gradients_are_the_same_through_and_inside_every_mode(case):
    tensors = case.tensors(mt.float64, requires_grad=True)

    def loss(*args):
        floats = [x for x in tensors_in(case.function(*args)) if x.is_floating_point()]
        return sum((x * x).sum() * (number + 1) for number, x in enumerate(floats))

    def gradients(*args):
        """Inside of the mode."""
        wanted = [x for x in args if x.requires_grad]
        value = loss(*args)
        if not isinstance(value, mt.Tensor) or not value.requires_grad:
            return []
        return [g for g in mt.autograd.grad(value, wanted, allow_unused=True) if g is not None]

    def with_placeholders(function, tensors):
        return session(
            lambda *args: function(*[x.requires_grad_(y.requires_grad) for x, y in zip(args, tensors, strict=True)]),
            tensors,
        )

    expected = run(eager, gradients, tensors)
    compiled = mt.jit(loss, backend="interpret")
    through = run(eager, lambda *args: _gradients_of(compiled, args), tensors)
    for found in (
        through,
        run(interpreted, gradients, tensors),
        run(jitted, gradients, tensors),
        run(with_placeholders, gradients, tensors),
        run(lazily, gradients, tensors),
    ):
        assert len(found) == len(expected)
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-12, atol=1e-14, strict=True)
    for mine, theirs in zip(run(jitted, gradients, tensors, "llvm"), expected, strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-9, atol=1e-10, strict=True)


def _gradients_of(function, args):
    """Through a call of a jitted function."""
    value = function(*args)
    if not isinstance(value, mt.Tensor) or not value.requires_grad:
        return []
    found = mt.autograd.grad(value, [x for x in args if x.requires_grad], allow_unused=True)
    return [g for g in found if g is not None]


def test_the_cases_reach_every_primitive():
    used = set()
    for case in ALL:
        tensors = case.tensors(mt.float32, requires_grad=True)
        graph = mt.jit(case.function, passes=(), backend="interpret").graph(*tensors)
        used |= {node.primitive.name for node in graph.nodes}
    # No public function; only the way back of a checkpoint; in `eight_devices`.
    assert set(PRIMITIVES) - used <= {"bitcast", "barrier", "shard"}


# What programs are made of besides functions ----------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * mt.tensor(2.0),
        lambda x: mt.tensor(2) - x,
        lambda x: mt.where(x > 0, x, mt.tensor(2.0)),
        lambda x: x.masked_fill(x > 0, mt.tensor(-1e9)),
        lambda x: mt.where(x > 0, mt.tensor(float("nan")), mt.tensor(True)),
        lambda x: mt.tensor(1.5) * np.float32(2) + x[0] * np.array(3.0),
    ],
)
def test_tensors_of_no_dimensions_broadcast(mode, function):
    x = mt.tensor([-1.0, 0.0, 3.0])
    assert_same_bits(run(MODES[mode], function, [x]), function(x))


@pytest.mark.parametrize("name", ["nan", "inf", "true", "false", "graph", "größe", "x1", "_"])
def test_any_variable_can_be_captured_and_any_argument_passed(name):
    space: dict[str, Any] = {"mt": mt, name: mt.ones(2)}
    exec(f"def f({name}): return {name} * 2\ndef g(x): return {name} * x", space)
    for function in (space["f"], space["g"]):
        compiled = mt.jit(function)
        assert compiled(mt.ones(2)).tolist() in ([2, 2], [1, 1])
        graph = compiled.graph(mt.ones(2))
        assert mt.Graph.parse(str(graph)) == graph
    space["graph_"] = mt.Graph()
    exec(f"with graph_: y = {name} * 2", space)
    assert mt.Session(space["graph_"]).run(space["y"]).tolist() == [2, 2]
    assert mt.Graph.parse(str(space["graph_"])) == space["graph_"]


@pytest.mark.parametrize("name", ["my x", "%0", "", "1.5", "nan", "a[0]", "return"])
def test_a_placeholder_has_a_name_that_a_listing_can_show(name):
    with mt.Graph() as g, pytest.raises(ValueError, match=r"(?s)MT601: a placeholder named .*letters, digits"):
        mt.placeholder((2,), name=name)
    assert not g.inputs


def test_an_open_graph_compares_by_what_it_holds_and_has_no_hash():
    def define():
        with mt.Graph() as g:
            x = mt.placeholder((2,), name="x")
            x * 2
        return g

    one, other = define(), define()
    assert one == other == mt.Graph.parse(str(one)) and mt.Graph.parse(str(one)) == one
    with one:
        mt.arange(2)
    assert one != other
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_types_slices_and_ranges_are_plain_arguments():
    @mt.jit
    def f(x, dtype, part, steps, how=None):
        return sum((x[part].to(dtype) * step for step in steps), 0)

    x = mt.arange(4.0)
    for dtype in (mt.float64, mt.int32):
        for part in (slice(1, 3), slice(None, None, 2)):
            for _ in range(2):
                result = f(x, dtype, part, range(1, 3), np.dtype("float32"))
                assert result.dtype is dtype and result.tolist() == (x[part] * 3).tolist()
    assert len(f.explain().signatures) == 4
    with pytest.raises(TypeError, match="MT108"):
        f(x, mt.int32, slice(mt.tensor(1), None), range(2))


def test_a_live_recording_of_another_thread_is_named():
    seen = []

    def use(x):
        try:
            x + 1
        except RuntimeError as error:
            seen.append(str(error))

    with mt.lazy():
        x = mt.ones(2) * 2
        x.tolist()
        x = x * 2
        thread = threading.Thread(target=use, args=(x,))
        thread.start()
        thread.join()
    assert "MT104" in seen[0] and "was used in another thread" in seen[0] and "'MainThread' is recording it" in seen[0]
    assert (x + 1).tolist() == [5, 5]


def test_compiling_leaves_the_collection_of_garbage_as_it_was() -> None:
    """Also where blocks of several threads overlap, and where garbage is not collected at all."""
    usual = gc.get_threshold()
    for chosen in (usual, (0, 5, 5), (50_000, 5, 5)):
        gc.set_threshold(*chosen)
        try:
            with COLLECTED_RARELY, COLLECTED_RARELY:
                assert gc.get_threshold()[0] in (0, max(chosen[0], COLLECTED_RARELY.ALLOCATIONS))
            with pytest.raises(ZeroDivisionError), COLLECTED_RARELY:
                1 // 0  # noqa: B018
            assert gc.get_threshold() == chosen
        finally:
            gc.set_threshold(*usual)
