"""Every view and every in-place operation on arguments of every stride pattern: eager beside jit, lazy and Session."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.errors import MinitorchError, TracingError
from minitorch.functional.inplace import SHAPES
from minitorch.interpreters import visible_strides
from minitorch.tree import flatten
from tests.support.cases import CASES, EAGER_BY_NATURE, METHODS, real
from tests.support.sessions import in_a_session

Made = tuple[np.ndarray, mt.Tensor]  # the memory, and a tensor that lies in it
Function = Callable[[mt.Tensor], Any]


def over(shape: tuple[int, ...], view: Function = lambda x: x) -> Callable[[], Made]:
    """A view of a tensor of 0, 1, 2, ..., and the memory that it lies in."""

    def make() -> Made:
        memory = np.arange(float(math.prod(shape)), dtype=np.float32)
        return memory, view(mt.from_numpy(memory.reshape(shape)))

    return make


def negative() -> Made:
    memory = np.arange(12.0, dtype=np.float32)
    return memory, mt.from_numpy(memory.reshape(3, 4)[:, ::-1])


def read_only() -> Made:
    memory = np.arange(12.0, dtype=np.float32)
    array = memory.reshape(3, 4)
    array.flags.writeable = False
    return memory, mt.from_numpy(array)


PATTERNS: dict[str, Callable[[], Made]] = {
    "contiguous": over((3, 4)),
    "transposed": over((4, 3), lambda x: x.t()),
    "rows stepped": over((6, 4), lambda x: x[::2]),
    "columns stepped": over((3, 8), lambda x: x[:, ::2]),
    "columns sliced": over((3, 6), lambda x: x[:, 1:5]),
    "columns sliced from far more": over((3, 16), lambda x: x[:, :4]),
    "offset": over((5, 4), lambda x: x[2:]),
    "a diagonal": over((4, 4, 3), lambda x: x.diagonal()),
    "rows expanded": over((1, 4), lambda x: x.expand(3, 4)),
    "columns expanded": over((3, 1), lambda x: x.expand(3, 4)),
    "expanded to the same": over((3, 4), lambda x: x.expand(3, 4)),
    "windows": over((6,), lambda x: x.unfold(0, 4, 1)),
    "negative": negative,
    "read-only": read_only,
    "vector": over((12,)),
    "vector stepped": over((24,), lambda x: x[::2]),
    "three dimensions permuted": over((2, 3, 4), lambda x: x.permute(2, 0, 1)),
    "inner two exchanged": over((2, 3, 4), lambda x: x.transpose(1, 2)),
    "channels sliced": over((2, 3, 4), lambda x: x[:, 1:]),
    "no dimensions": over(()),
    "no dimensions, taken": over((3, 4), lambda x: x[1, 2]),
    "size 0": over((0, 4)),
    "size 0, transposed": over((3, 0), lambda x: x.t()),
    "size 1": over((1, 1, 1)),
    "size 1, taken": over((3, 4, 2), lambda x: x[1:2, 2:3, :1]),
    "length 1 between": over((3, 1, 4), lambda x: x.transpose(0, 1)),
}

VIEWS: dict[str, Function] = {
    "itself": lambda x: x,
    "flatten": lambda x: x.flatten(),
    "reshape(-1)": lambda x: x.reshape(-1),
    "ravel": lambda x: x.ravel(),
    "view(-1)": lambda x: x.view(-1),
    "contiguous": lambda x: x.contiguous(),
    "reshape to the same": lambda x: x.reshape(x.shape),
    "view as the same": lambda x: x.view(x.shape),
    "reshape(-1, 2)": lambda x: x.reshape(-1, 2),
    "view(2, -1)": lambda x: x.view(2, -1),
    "transposed and flattened": lambda x: x.movedim(0, -1).flatten(),
    "reversed and flattened": lambda x: x.permute(*reversed(range(x.ndim))).flatten(),
    "flattened but for the first": lambda x: x.flatten(1),
    "flattened but for the last": lambda x: x.flatten(0, -2),
    "first": lambda x: x[0],
    "last column": lambda x: x[..., -1],
    "last column, flattened": lambda x: x[..., -1].reshape(-1),
    "stepped": lambda x: x[..., ::2],
    "stepped and flattened": lambda x: x[..., ::2].reshape(-1),
    "rows stepped and flattened": lambda x: x[::2].reshape(-1),
    "unsqueeze": lambda x: x.unsqueeze(-1),
    "unsqueeze, flatten": lambda x: x.unsqueeze(0).flatten(),
    "squeeze": lambda x: x.squeeze(),
    "squeeze, flatten": lambda x: x.squeeze().flatten(),
    "expand to the same": lambda x: x.expand(x.shape),
    "expand": lambda x: x.expand(2, *x.shape),
    "expand by 1": lambda x: x.expand(1, *x.shape),
    "broadcast_to": lambda x: mt.broadcast_to(x, x.shape),
    "narrow": lambda x: x.narrow(-1, 0, 1),
    "chunk": lambda x: x.chunk(2, -1)[0],
    "split": lambda x: x.split(1)[-1],
    "unbind": lambda x: x.unbind(-1)[0],
    "diagonal": lambda x: x.diagonal(),
    "diagonal, offset": lambda x: x.diagonal(-1, -1, 0),
    "unflatten": lambda x: x.unflatten(-1, (2, -1)),
    "unflatten and back": lambda x: x.unflatten(-1, (2, -1)).flatten(),
    "swapaxes": lambda x: x.swapaxes(0, -1),
    "T": lambda x: x.T,
    "mT, flattened": lambda x: x.mT.flatten(),
    "windows": lambda x: x.unfold(-1, 2, 1),
    "detach": lambda x: x.detach(),
    "detach, flatten": lambda x: x.detach().flatten(),
    "clone, view": lambda x: x.clone().view(-1),
    "computed, view": lambda x: (x + 1).view(-1),
    "to its own type": lambda x: x.float(),
    "other bits": lambda x: x.view(mt.int32),
    "reshaped where it need not be contiguous": lambda x: x.reshape(*x.shape[:-1], 2, -1)[..., 0, :],
    "if contiguous": lambda x: x if x.is_contiguous() else x.clone(),
}

WRITES: dict[str, Function] = {
    "add_": lambda x: x.add_(1),
    "sub_": lambda x: x.sub_(mt.ones_like(x)),
    "mul_": lambda x: x.mul_(2),
    "div_": lambda x: x.div_(2),
    "pow_": lambda x: x.pow_(2),
    "neg_": lambda x: x.neg_(),
    "exp_": lambda x: x.mul_(0.25).exp_(),
    "clamp_": lambda x: x.clamp_(2, 5),
    "fill_": lambda x: x.fill_(3),
    "zero_": lambda x: x.zero_(),
    "copy_": lambda x: x.copy_(mt.arange(float(x.numel())).reshape(x.shape)),
    "masked_fill_": lambda x: x.masked_fill_(x > 2, 9),
    "[...] =": lambda x: (x.__setitem__(..., 7.0), x)[1],
    "[0] =": lambda x: (x.__setitem__(0, 7.0), x)[1],
    "[::2] =": lambda x: (x.__setitem__(slice(None, None, 2), 7.0), x)[1],
    "[mask] =": lambda x: (x.__setitem__(x > 2, -1.0), x)[1],
    "index_fill_": lambda x: x.index_fill_(0, mt.tensor([0]), 5),
    "twice": lambda x: x.mul_(2).add_(1),
    "+=": lambda x: x.__iadd__(2),
}

# Each takes a function and a tensor, and gives the results of the function.


def jitted(backend: str) -> Callable[[Function, mt.Tensor], Any]:
    return lambda function, x: mt.jit(function, backend=backend)(x)


def closed_over(function: Function, x: mt.Tensor) -> Any:
    return mt.jit(lambda: function(x), backend="interpret")()


def differentiated(function: Function, x: mt.Tensor) -> Any:
    """With a way back: what is written in place is then computed apart."""
    weight = mt.ones((), requires_grad=True)
    return [
        each.detach()
        for each in mt.jit(lambda x: [*function(x), x * weight, x.flatten() * weight], backend="interpret")(x)[:2]
    ]


def lazily(function: Function, x: mt.Tensor) -> Any:
    with mt.lazy("interpret"):
        return function(x)


WAYS: dict[str, Callable[[Function, mt.Tensor], Any]] = {
    "jit": jitted("interpret"),
    "closed over": closed_over,
    "differentiated": differentiated,
    "lazy": lazily,
    "Session": in_a_session,
}


def some_ways(place: int, sweep: bool) -> list[tuple[str, Callable[[Function, mt.Tensor], Any]]]:
    """Two of the ways for each place, in turn; all if they are asked for."""
    ways = [*WAYS.items()]
    return ways if sweep else [ways[place % len(ways)], ways[(place + 2) % len(ways)]]


def checked(function: Function, x: mt.Tensor) -> Any:
    return mt.jit(function, check=True)(x)


def outcome(way: Callable[[Function, mt.Tensor], Any], function: Function, make: Callable[[], Made]) -> Any:
    """The results, the memory afterwards, and how the call failed, if it did."""
    memory, x = make()
    try:
        results: Any = [result.tolist() for result in way(function, x)]
    except (MinitorchError, RuntimeError, IndexError) as error:
        results = getattr(error, "code", type(error).__name__)
    return results, memory.tolist()


def eagerly(function: Function, x: mt.Tensor) -> Any:
    return function(x)


def written(view: Function, write: Function) -> Function:
    """The view after the write, and the argument as it reads then."""
    return lambda x: (write(view(x)), x + 0)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_write_through_a_view_of_an_argument_is_the_same_in_every_mode(pattern, sweep):
    for place, (name, view) in enumerate(VIEWS.items(), list(PATTERNS).index(pattern)):
        function = written(view, WRITES["twice"])
        expected = outcome(eagerly, function, PATTERNS[pattern])
        for way, run in some_ways(place, sweep):
            assert outcome(run, function, PATTERNS[pattern]) == expected, (name, way)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_write_to_an_argument_is_the_same_in_every_mode(pattern, sweep):
    for place, (name, write) in enumerate(WRITES.items(), list(PATTERNS).index(pattern)):
        function = written(VIEWS["itself"], write)
        expected = outcome(eagerly, function, PATTERNS[pattern])
        for way, run in some_ways(place, sweep):
            if way != "Session" or not name.endswith(" ="):  # an assignment gives nothing that could be fetched
                assert outcome(run, function, PATTERNS[pattern]) == expected, (name, way)


# The other arguments of in-place methods that no case calls by name alone; the tensor is 3 by 4.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "addcdiv_": (mt.ones(4), mt.full((3, 1), 2.0)),
    "addcmul_": (mt.ones(4), mt.ones(3, 1)),
    "addmm_": (mt.ones(3, 2), mt.ones(2, 4)),
    "clamp_": (-0.5, 0.5),
    "clamp_max_": (0.5,),
    "clamp_min_": (0.5,),
    "clip_": (None, 0.5),
    "copy_": (mt.arange(4.0),),
    "cumprod_": (0,),
    "cumsum_": (1,),
    "div_": (mt.full((4,), 3.0),),
    "fill_": (3,),
    "index_add_": (1, mt.tensor([0, 2]), mt.ones(3, 2)),
    "index_copy_": (0, mt.tensor([2, 0]), mt.ones(2, 4)),
    "exponential_": (),
    "index_fill_": (1, mt.tensor([3]), 9.0),
    "index_put_": ((mt.tensor([0, 2]), mt.tensor([1, 1])), mt.tensor([7.0, 8.0])),
    "masked_fill_": (mt.tensor([True, False, True, False]), 5.0),
    "normal_": (),
    "put_": (mt.tensor([1, -2]), mt.tensor([7.0, 8.0])),
    "relu_": (),
    "scatter_": (1, mt.tensor([[0, 1], [2, 3], [1, 0]]), 4.0),
    "scatter_add_": (0, mt.tensor([[0, 1, 2, 0]]), mt.ones(1, 4)),
    "tril_": (),
    "uniform_": (),
    "zero_": (),
}
NO_WRITES = {"requires_grad_", "detach_", *(f"{name}_" for name in SHAPES)}
IN_PLACE = sorted({name for name in dir(mt.Tensor) if name.endswith("_") and name[0] != "_"} - NO_WRITES)


def laid(array: np.ndarray, strides: str) -> Made:
    """An array inside of a larger one, as a tensor."""
    if strides == "transposed":
        memory = array.T.copy()
        return memory, mt.from_numpy(memory).permute(*reversed(range(array.ndim)))
    shape = {"contiguous": array.shape, "rows": (len(array) + 3, *array.shape[1:])}.get(strides)
    memory = np.zeros(shape or (*array.shape[:-1], 2 * array.shape[-1] + 1), array.dtype)
    part: Any = {"contiguous": ..., "rows": slice(2, -1), "stepped": (..., slice(1, None, 2))}[strides]
    memory[part] = array
    return memory, mt.from_numpy(memory)[part]


@pytest.mark.parametrize("strides", ["contiguous", "transposed", "stepped", "rows"])
def test_every_in_place_method_is_the_same_in_every_mode(strides):
    cases = {f"{case.name}_": case for case in reversed(CASES) if case.function is getattr(mt, case.name, None)}
    for name in IN_PLACE:
        array, *others = (real(3, 4), *ARGUMENTS[name]) if name in ARGUMENTS else cases[name].arrays
        rest = tuple([mt.tensor(other) if isinstance(other, np.ndarray) else other for other in others])

        def function(x: mt.Tensor, name: str = name, rest: tuple[Any, ...] = rest) -> tuple[mt.Tensor, mt.Tensor]:
            return getattr(x, name)(*rest), x * 1

        def make(array: np.ndarray = array) -> Made:
            mt.manual_seed(0)
            return laid(array, strides)

        expected = outcome(eagerly, function, make)
        assert isinstance(expected[0], list), (name, expected[0])
        for way, run in WAYS.items():
            if way != "differentiated":
                assert outcome(run, function, make) == expected, (name, way)


@pytest.mark.parametrize("strides", ["transposed", "stepped", "rows"])
def test_every_public_function_takes_operands_of_all_strides(strides):
    for case in [*CASES, *METHODS]:
        mt.manual_seed(0)
        expected = flatten(case.function(*case.tensors()))[0]
        traced = mt.jit(case.function, backend="interpret")
        for function in (case.function,) if case.name in EAGER_BY_NATURE else (case.function, traced):
            mt.manual_seed(0)
            given = [laid(array, strides)[1] if array.ndim else mt.tensor(array) for array in case.arrays]
            try:
                found = flatten(function(*given))[0]
            except RuntimeError:
                assert case.name == "view", case.name
                continue
            for one, other in zip(expected, found, strict=True):
                if isinstance(one, mt.Tensor):
                    np.testing.assert_allclose(other.double().numpy(), one.double().numpy(), 1e-5, 1e-6)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_machine_code_writes_where_eager_does(pattern):
    names = ("itself", "flatten", "transposed and flattened", "contiguous", "last column", "view(-1)")
    for name in names:
        function = written(VIEWS[name], WRITES["twice"])
        expected = outcome(eagerly, function, PATTERNS[pattern])
        for way in (jitted("llvm"), *([checked, jitted("loops")] if pattern in ("transposed", "windows") else [])):
            assert outcome(way, function, PATTERNS[pattern]) == expected, name


def random_program(draw: random.Random, x: mt.Tensor) -> Function:
    """Views of an argument, views of these, copies and writes to any of them, in any order: those that are possible."""
    steps: list[tuple[Function, bool, int]] = []
    pool = [x]
    for _ in range(12):
        is_write, at = draw.random() < 0.4, draw.randrange(len(pool))
        step = draw.choice([*(WRITES if is_write else VIEWS).values()])
        try:
            made = step(pool[at])
        except (MinitorchError, RuntimeError, IndexError):
            continue
        steps.append((step, is_write, at))
        if not is_write and made.is_floating_point() and made.numel() < 100:
            pool.append(made)

    def program(x: mt.Tensor) -> list[mt.Tensor]:
        pool = [x]
        for step, is_write, at in steps:
            made = step(pool[at])
            if not is_write and made.is_floating_point() and made.numel() < 100:
                pool.append(made)
        return [each * 1 for each in pool]

    return program


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_of_views_and_writes_are_the_same_in_every_mode(seed):
    draw = random.Random(seed)
    for _ in range(25):
        make = PATTERNS[draw.choice(sorted(PATTERNS))]
        program = random_program(draw, make()[1])
        expected = outcome(eagerly, program, make)
        for way in ("jit", "closed over", "lazy"):
            assert outcome(WAYS[way], program, make) == expected


# Retraces ---------------------------------------------------------------------------------------------------------


def traces(function: Function, *arguments: mt.Tensor) -> tuple[str, ...]:
    """Why each trace was made."""
    jitted = mt.jit(function, backend="interpret")
    for argument in arguments:
        jitted(argument)
    return jitted.explain().misses


def test_a_layout_that_a_view_can_see_is_traced_once_and_named():
    whole = mt.ones(3, 4)
    assert traces(lambda x: x.flatten() * 2, whole, whole + 1, mt.ones(4, 3).t(), mt.zeros(4, 3).t(), whole) == (
        "the first call",
        "`x` was contiguous and is strided like [1, 3]",
    )
    function = mt.jit(lambda x: x.flatten() * 2, backend="interpret")
    function(whole.t())
    assert "1. (x: f32[4,3] strided like [1, 4])" in str(function.explain()) and function.explain().traced == 1


def test_arguments_that_no_view_can_tell_apart_share_a_trace():
    wide = [mt.ones(4, width)[:, :3] for width in (6, 10, 11, 1000)]
    assert len(traces(lambda x: x.flatten() * 2, *wide)) == 1
    assert len(traces(lambda x: x.flatten() * 2, mt.ones(4, 3), mt.ones(9, 3)[2:6], mt.ones(4, 1, 3)[:, 0])) == 1
    assert len(traces(lambda x: x.flatten() * 2, mt.ones(9)[::2], mt.ones(20)[::4], mt.ones(5, 7)[:, 3])) == 1
    batches = [mt.ones(2, 5, width)[..., 1:4] for width in (7, 8, 9)]
    assert len(traces(lambda x: x.flatten(1) * 2, *batches)) == 1


def test_a_function_that_asks_for_no_layout_is_traced_once_for_all():
    layouts = mt.ones(3, 4), mt.ones(4, 3).t(), mt.ones(3, 8)[:, ::2], mt.ones(1, 4).expand(3, 4)
    for function in (
        lambda x: x * 2 + 1,
        lambda x: x.softmax(-1) @ x.t(),
        lambda x: x.unsqueeze(0).transpose(1, 2)[:, 1:].unflatten(-1, (1, 3)),
        lambda x: mt.nn.functional.layer_norm(x, (4,)),
    ):
        assert len(traces(function, *layouts)) == 1


def test_a_tensor_from_outside_that_lies_otherwise_is_noticed():
    w = mt.nn.Parameter(mt.arange(12.0).reshape(3, 4))

    @mt.jit
    def double():
        with mt.no_grad():
            w.flatten().mul_(2)

    double()
    assert w[0].tolist() == [0, 2, 4, 6]
    w.data = mt.arange(12.0).reshape(4, 3).t()
    double()
    assert w[0].tolist() == [0, 3, 6, 9], "flatten is a copy now"
    assert double.explain().misses[1] == "w was f32[3,4] and is f32[3,4] strided like [1, 3]"


def test_a_gradient_that_lies_otherwise_is_noticed():
    w = mt.nn.Parameter(mt.zeros(3, 4))

    @mt.jit
    def halve():
        w.grad.flatten().mul_(0.5)

    for grad, expected in ((mt.ones(3, 4), 0.5), (mt.ones(4, 3).t(), 1.0)):
        w.grad = grad
        halve()
        assert w.grad[0, 0].item() == expected
    assert len(halve.explain().misses) == 2


def test_looking_at_a_function_takes_the_layout_for_what_it_is():
    function = mt.jit(lambda x: x.flatten().mul_(2))
    x, y = mt.ones(2, 3), mt.ones(3, 2).t()
    assert function.traced(x) is not function.traced(y)
    assert function.graph(x).outputs != function.graph(y).outputs
    assert function.values(y).rows and function.ledger(y).kernels and len(list(function.stages(y)))
    assert (x.tolist(), y.tolist()) == ([[1] * 3] * 2, [[1] * 3] * 2)


def test_a_checkpointed_function_sees_the_layout():
    def function(x):
        return mt.checkpoint(lambda x: x.flatten().mul_(2) * 1, x), x + 0

    for pattern in ("contiguous", "transposed", "columns sliced"):
        expected = outcome(eagerly, function, PATTERNS[pattern])
        assert outcome(jitted("interpret"), function, PATTERNS[pattern]) == expected


def test_a_donated_argument_may_lie_as_it_likes():
    for make in (lambda: mt.arange(12.0).reshape(3, 4), lambda: mt.arange(12.0).reshape(4, 3).t()):
        expected = make() * 2
        assert mt.jit(lambda x: x.flatten().mul_(2).reshape(3, 4) * 1, donate="x")(make()).tolist() == expected.tolist()


@pytest.mark.parametrize("backend", ["interpret", "llvm"])
def test_results_of_a_jitted_function_lie_in_order(backend):
    x = mt.ones(3, 4)
    for function in VIEWS.values():
        try:
            result = mt.jit(lambda x, function=function: function(x * 1), backend=backend)(x)
        except RuntimeError:  # this view does not fit (3, 4)
            continue
        assert result.is_contiguous()


def made_inside(x):
    array = np.arange(12.0, dtype=np.float32).reshape(4, 3).T
    t = mt.tensor(array)
    t.flatten().mul_(2)
    return t + x, x


@pytest.mark.parametrize("way", [eagerly, *WAYS.values()])
def test_what_is_made_of_an_array_is_contiguous_in_every_mode(way):
    total, _ = way(made_inside, mt.zeros(3, 4))
    assert total[0].tolist() == [0, 6, 12, 18]


def test_a_placeholder_is_contiguous_whatever_is_fed():
    with mt.Graph() as graph:
        x = mt.placeholder((2, 3))
        assert x.is_contiguous() and not x.t().is_contiguous()
        flat, turned = x.flatten(), x.t().flatten()
    fed = mt.arange(6.0).reshape(3, 2).t()
    results = mt.Session(graph).run([flat, turned], {x: fed})
    assert [result.tolist() for result in results] == [[0, 2, 4, 1, 3, 5], [0, 1, 2, 3, 4, 5]]


# Memory that cannot be written ------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["rows expanded", "columns expanded", "windows", "read-only"])
@pytest.mark.parametrize("way", [eagerly, *WAYS.values(), jitted("llvm"), checked])
def test_memory_that_cannot_be_written_is_refused(pattern, way):
    memory, x = PATTERNS[pattern]()
    before = memory.copy()
    for name in ("itself", "first", "last column"):
        with pytest.raises(TracingError, match="MT109"):
            way(written(VIEWS[name], WRITES["mul_"]), x)
    assert (memory == before).all()


# The law behind it ------------------------------------------------------------------------------------------------


def random_layout(draw: random.Random) -> tuple[tuple[int, ...], tuple[int, ...]]:
    shape = tuple(draw.choice((1, 2, 2, 3, 4, 6)) for _ in range(draw.randint(1, 4)))
    order = list(range(len(shape)))
    draw.shuffle(order)
    strides, reach = [0] * len(shape), 1
    for axis in order:
        if draw.random() < 0.1:
            continue  # expanded
        strides[axis] = reach * draw.choice((1, 1, 1, 2, 3)) + draw.choice((0, 0, 0, 1, 5, 40))
        reach = strides[axis] * shape[axis]
        strides[axis] *= draw.choice((1, 1, 1, 1, -1))
    return shape, tuple(strides)


def strided(shape: Sequence[int], strides: Sequence[int]) -> np.ndarray:
    """An array of bytes with these strides, all of them in memory of its own: some views of it are copies."""
    reach = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    before, behind = -sum(min(0, each) for each in reach), sum(max(0, each) for each in reach)
    return np.lib.stride_tricks.as_strided(np.zeros(before + behind + 1, np.int8)[before:], shape, strides)


def random_view(draw: random.Random, x: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A movement that is a view of an array of this shape."""
    kind = draw.randint(0, 4)
    if kind == 0:
        dims = draw.sample(range(x.ndim), x.ndim)
        return lambda x: x.transpose(dims)
    if kind == 1:
        parts = tuple(slice(draw.randint(0, n // 2), n, draw.randint(1, max(1, n - 1))) for n in x.shape)
        return lambda x: x[parts]
    if kind == 2 and x.ndim > 1:
        return lambda x: x.diagonal(axis1=-2, axis2=-1)
    if kind == 3 and x.ndim and x.shape[-1] > 1:
        return lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, -1)
    at = draw.randint(0, max(0, x.ndim - 2))
    joined = (*x.shape[:at], -1, *x.shape[at + 2 :])
    return lambda x: np.reshape(x, joined) if x.size else x


def is_view(x: np.ndarray, shape: tuple[int, ...]) -> bool:
    try:
        np.reshape(x, shape, copy=False)
    except ValueError:
        return False
    return True


def test_views_tell_no_two_layouts_with_equal_visible_strides_apart():
    draw = random.Random(0)
    joined = 0
    for _ in range(4000):
        shape, strides = random_layout(draw)
        real = strided(shape, strides)
        seen = visible_strides(real)
        assert (seen is None) is real.flags.c_contiguous
        if seen is None:
            continue
        other = strided(shape, seen)
        assert visible_strides(other) == seen
        for _ in range(6):
            assert real.flags.c_contiguous == other.flags.c_contiguous
            for shape in {(-1,), (*real.shape[:-2], -1), (-1, *real.shape[2:]), (2, -1)}:
                if real.size and (math.prod(shape) == -1 or not real.size % abs(math.prod(shape))):
                    assert is_view(real, shape) == is_view(other, shape), (strides, seen, real.strides, other.strides)
                    joined += is_view(real, shape)
            move = random_view(draw, real)
            real, other = move(real), move(other)
    assert joined > 1000
