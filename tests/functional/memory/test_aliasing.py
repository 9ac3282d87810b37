"""Which results share memory with an argument: as in PyTorch, in every mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.errors import TracedValueError
from minitorch.functional.pointwise import elementwise
from minitorch.nn import functional as F
from tests.functional.memory.aliasing import (
    APART,
    ARGUMENTS,
    REFUSED,
    WRITTEN,
    change,
    expressions,
    letters,
    recorded,
    tensors,
)
from tests.support.cases import CASES, METHODS, Case

# Where it is otherwise here, and why. README.md and the docstrings say so.
DEPARTURES = {
    "x[L.tensor(0)]": "an index that is data gathers: a graph could not tell which element a write would reach",
    "x.unfold(-1, 2, 1)": "a write to windows that overlap is refused, where PyTorch says that it is undefined",
}


def argument(name: str) -> mt.Tensor:
    return ARGUMENTS[name](lambda shape: (mt.arange(float(np.prod(shape, dtype=int))) + 1).reshape(shape))


def of(expression: str) -> Callable[[mt.Tensor], list[mt.Tensor]]:
    return lambda x: tensors(eval(expression, {"x": x, "L": mt, "F": F}), mt.Tensor)


def test_the_record_is_of_these_expressions():
    assert [expression for expression, _ in recorded()] == list(expressions())
    assert all(words for _, words in recorded()), "each is taken by PyTorch for some argument"


def test_results_share_memory_where_they_do_in_pytorch():
    different = set()
    for expression, words in recorded():
        for name, word in words.items():
            try:
                found = letters(partial(argument, name), of(expression), (mt.errors.TracingError,))
            except (RuntimeError, ValueError):  # as for dim=0 of a tensor without dimensions
                assert name == "number", (expression, name)
                continue
            if found != word:
                assert expression in DEPARTURES, (expression, name, found, word)
                different.add(expression)
    assert different == DEPARTURES.keys()


def test_a_result_is_contiguous_or_a_view_that_is_known_as_one():
    for expression, words in recorded():
        if any(each in expression for each in ("numpy", "dlpack", "copy")):
            continue  # memory that belongs to somebody else
        for name in words:
            x = argument(name)
            try:
                results = of(expression)(x)
            except (RuntimeError, ValueError):
                assert name == "number"
                continue
            for result in results:
                if result is x or not result.numel():
                    continue
                root = None if result._view is None else result._view.root
                assert (root is not None) or result.is_contiguous(), (expression, name)
                assert root is None or np.shares_memory(result._value, root._value), (expression, name)
                assert root is x._root or not np.shares_memory(result._value, x._value), (expression, name)


def traced(run: Callable[..., Any]) -> Callable[[str, Any, int], str]:
    """In another mode: what a write to one of the results of an expression does."""

    def letter(expression: str, x: mt.Tensor, number: int) -> str:
        def function(x: mt.Tensor) -> mt.Tensor:
            results = of(expression)(x)
            before = x * 1
            change(results[number])
            return before

        try:
            before = run(function, x)
        except mt.errors.TracingError:
            return REFUSED
        return APART if before.tolist() == x.tolist() else WRITTEN

    return letter


def lazily(function: Callable[[mt.Tensor], Any], x: mt.Tensor) -> Any:
    with mt.lazy("interpret"):
        return function(x)


def lies(expression: str, x: mt.Tensor) -> list[bool]:
    """How the results of an expression lie in memory, and which reshapes of them are views."""
    return [
        each.is_contiguous()
        for result in of(expression)(x)
        for each in (result, result.t() if result.ndim < 3 else result.mT, result[:1] if result.ndim else result)
    ]


@pytest.mark.parametrize("run", [lambda function, x: mt.jit(function, backend="interpret")(x), lazily])
def test_results_lie_alike_in_every_mode(run):
    for expression, words in recorded():
        if any(each in expression for each in ("numpy", "dlpack", "copy")):
            continue
        for name in words.keys() & {"matrix", "transposed", "stepped", "exchanged", "one row"}:
            expected = lies(expression, argument(name))
            try:
                found = run(lambda x, expression=expression: lies(expression, x), argument(name))
            except TracedValueError:
                continue
            assert found == expected, (expression, name)


SOME = ("matrix", "transposed", "one row", "one", "number", "stepped", "exchanged")
MODES = {
    "jit": (lambda function, x: mt.jit(function, backend="interpret")(x), SOME),
    "lazy": (lazily, SOME),
    "machine code": (lambda function, x: mt.jit(function)(x), ("transposed",)),
}


@pytest.mark.parametrize("mode", MODES)
def test_a_write_reaches_an_argument_in_every_mode_or_in_none(mode):
    run, names = MODES[mode]
    for expression, words in recorded():
        if any(each in expression for each in ("numpy", "dlpack", "copy")):
            continue  # where memory leaves the engine there must be values
        for name in words.keys() & set(names):
            try:
                expected = letters(partial(argument, name), of(expression), (mt.errors.TracingError,))
            except (RuntimeError, ValueError):
                continue
            try:
                found = "".join(
                    traced(run)(expression, argument(name), number) for number in range(min(len(expected), 2))
                )
            except TracedValueError:
                continue  # its shape depends on values
            assert found == expected[:2], (expression, name)


# Every public function --------------------------------------------------------------------------------------------


def variants(case: Case) -> Iterator[tuple[np.ndarray, ...]]:
    """The arguments of a case as they are, one element of each, and as vectors: many an operation then does nothing."""
    yield case.arrays
    yield tuple(array[tuple(slice(0, 1) for _ in array.shape)].copy() for array in case.arrays)
    yield tuple(array.reshape(-1).copy() for array in case.arrays)


SHARED = {
    *("T", "as_tensor", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors", "broadcast_to", "chunk"),
    *("diagonal", "diagonal of a transposed slice", "einsum", "expand", "flatten", "mT", "meshgrid", "moveaxis"),
    *("movedim", "narrow", "other bits", "permute", "positive", "ravel", "reshape", "select", "split", "squeeze"),
    *("swapaxes", "swapdims", "t", "tensor_split", "transpose", "unbind", "unflatten", "unfold", "unsqueeze"),
    *("view", "x[1]", "x[::2, None, -1]"),
}


def shares(case: Case) -> Iterator[bool]:
    """Whether a result shares memory with an argument, for each variant that the function takes."""
    for arrays in variants(case):
        given = [mt.tensor(array) for array in arrays]
        try:
            results = tensors(case.function(*given), mt.Tensor)
        except (RuntimeError, ValueError, TypeError, IndexError):
            continue
        yield any(np.shares_memory(x._value, y._value) for x in given for y in results)


def test_no_public_function_shares_memory_but_those_that_do_in_pytorch():
    """With PyTorch installed, `test_torch_aliasing.py` compares every call."""
    assert {case.name for case in [*CASES, *METHODS] if any(shares(case))} == SHARED


# Calls whose last step is a movement of what was computed, beside those of the table.
MOVED = {
    "conv1d": lambda x: F.conv1d(x, mt.ones(4, 3, 2), stride=3),
    "conv1d of no batch": lambda x: F.conv1d(x[0], mt.ones(4, 3, 2)),
    "conv2d": lambda x: F.conv2d(x[:, None], mt.ones(4, 1, 2, 2)),
    "conv3d": lambda x: F.conv3d(x[None, None], mt.ones(4, 1, 2, 2, 2)),
    "index_select": lambda x: x.index_select(1, mt.tensor([2, 0])),
    "index_add": lambda x: x.index_add(2, mt.tensor([2, 0]), x[:, :, :2]),
    "index_copy": lambda x: x.index_copy(1, mt.tensor([2, 0]), x[:, :2]),
    "index_fill": lambda x: x.index_fill(2, mt.tensor([2, 0]), 1),
    "x[:, :, tensor]": lambda x: x[:, :, mt.tensor([2, 0])],
    "x[:, tensor]": lambda x: x[:, mt.tensor([2, 0])],
    "topk": lambda x: x.topk(2, 1),
    "sort": lambda x: x.sort(1, descending=True),
    "max": lambda x: x.max(1),
    "median": lambda x: x.median(1),
    "matmul": lambda x: x.mT @ x,
    "cov": lambda x: mt.outer(x[0, 0], x[0, 1]),
    "max_pool1d": lambda x: F.max_pool1d(x, 2),
    "embedding": lambda x: F.embedding(mt.tensor([[1, 0]]), x[0]),
}


def test_what_no_argument_has_the_memory_of_is_contiguous():
    """In eager mode; `einsum` gives a view of what it computed, as in PyTorch."""
    moved = [
        Case(name, function, (np.arange(30, dtype=np.float32).reshape(2, 3, 5),)) for name, function in MOVED.items()
    ]
    for case in [*CASES, *METHODS, *moved]:
        given = case.tensors()
        for result in tensors(case.function(*given), mt.Tensor):
            shared = any(np.shares_memory(x._value, result._value) for x in given)
            assert shared or result.is_contiguous() or case.name == "einsum", case.name


# Results of jitted functions ---------------------------------------------------------------------------------------


def test_a_result_of_a_jitted_function_is_the_argument_itself_or_has_memory_of_its_own():
    for expression, words in recorded():
        for name in words.keys() & {"matrix", "transposed", "one"}:
            x, function = argument(name), of(expression)
            try:
                found = mt.jit(lambda x, function=function: (function(x), function(x), x), backend="interpret")(x)
            except (TracedValueError, TypeError, ValueError):
                continue
            *results, same = tensors(found, mt.Tensor)
            assert same is x
            apart = [x, *{id(result): result for result in results if result is not x}.values()]
            for number, one in enumerate(apart):
                assert not any(np.shares_memory(one._value, other._value) for other in apart[:number]), expression


@pytest.mark.parametrize("backend", ["interpret", "llvm"])
def test_a_tensor_that_is_returned_as_it_is_stays_the_same_object(backend):
    x, w = mt.arange(4.0), mt.arange(4.0)

    @mt.jit(backend=backend)
    def function(x):
        y = x * 2
        return x, x.detach(), x.view(-1), x[0], w, w[:2], y, y, y.view(2, 2), x.contiguous(), x.float()

    results = function(x)
    kept = (0, x), (4, w), (9, x), (10, x), (7, results[6])
    assert all(results[place] is tensor for place, tensor in kept)
    for place in (1, 2, 3, 5, 6, 8):
        mt.zeros(()).copy_(results[place].zero_().sum())
    assert x.tolist() == w.tolist() == [0, 1, 2, 3]
    assert function(x)[6].tolist() == [0, 2, 4, 6]


def test_what_is_written_and_returned_is_the_argument():
    x = mt.ones(2)
    increment = mt.jit(lambda x: x.add_(1))
    assert increment(increment(x)) is x and x.tolist() == [3, 3]


@pytest.mark.parametrize("dtype", mt.dtypes.ALL, ids=str)
def test_elementwise_functions_copy_for_every_type(dtype):
    """All but `positive`, which is the tensor itself in PyTorch, too."""
    for name in set(mt.functional.public_names(elementwise)) - {"positive"}:
        x = mt.ones(3, dtype=dtype)
        try:
            y = getattr(mt, name)(x)
        except TypeError:
            continue  # it is not defined for the type
        assert not np.shares_memory(x._value, y._value), name
