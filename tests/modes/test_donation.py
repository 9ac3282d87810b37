"""Donated arguments: their memory becomes that of results, and they are gone; everything else stays as it was."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.compiler.runtime.memory_pool import address
from minitorch.errors import AutogradError, TracingError

BACKENDS = ["interpret", "llvm"]
MT111 = "MT111: a tensor is used that was donated as the argument `x` of f"


def f(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
    return x * y + 1


def test_a_result_takes_the_memory() -> None:
    compiled = mt.jit(f, backend="llvm", donate="x")
    for shape in ((5,), (300, 400), (1 << 20,)):
        x, y = mt.rand(*shape), mt.rand(*shape)
        expected, place = f(x, y).numpy(), address(x.numpy())
        result = compiled(x, y)
        assert address(result.numpy()) == place
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


def test_only_one_result_takes_it() -> None:
    compiled = mt.jit(lambda x: (x + 1, x * 2, x.sum()), backend="llvm", donate=0)
    x = mt.arange(6.0)
    place = address(x.numpy())
    results = compiled(x)
    assert [result.tolist() for result in results] == [[1, 2, 3, 4, 5, 6], [0, 2, 4, 6, 8, 10], 15]
    assert not np.shares_memory(results[0].numpy(), results[1].numpy())
    assert sum(address(result.numpy()) == place for result in results) <= 1


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "use",
    [
        lambda x: x + 1,
        lambda x: 1 - x,
        lambda x: x.sum(),
        lambda x: x.shape,
        lambda x: x.item(),
        lambda x: x.numpy(),
        lambda x: x[0],
        lambda x: x.add_(1),
        lambda x: x.clone(),
        lambda x: x.detach(),
        lambda x: x.reshape(-1),
        lambda x: mt.ones(3) @ x,
        lambda x: mt.ones(3).copy_(x),
        lambda x: mt.stack([mt.ones(3), x]),
        lambda x: x.requires_grad_(),
        lambda x: mt.jit(lambda y: y)(x),
        lambda x: mt.jit(lambda: x * 2)(),
        lambda x: np.asarray(x),
        lambda x: np.ones(3) * x,
        lambda x: repr(x),
        lambda x: len(x),
        lambda x: bool(x.any()),
        lambda x: copy.deepcopy(x),
        lambda x: list(x),
    ],
)
def test_what_was_donated_is_gone(backend: str, use: Callable[[mt.Tensor], Any]) -> None:
    compiled = mt.jit(f, backend=backend, donate=["x"])
    x = mt.ones(3)
    compiled(x, mt.ones(3))
    with pytest.raises(TracingError, match=MT111):
        use(x)
    with pytest.raises(TracingError, match=MT111):
        compiled(x, mt.ones(3))


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_argument_that_is_returned_or_written_lives_on_in_the_result(backend: str) -> None:
    @mt.jit(backend=backend, donate="x")
    def both(x: mt.Tensor, other: mt.Tensor) -> Any:
        x.add_(other)
        return x, other

    x, other = mt.ones(3), mt.ones(3)
    result, same = both(x, other)
    assert result.tolist() == [2, 2, 2] and same is other
    with pytest.raises(TracingError, match="MT111"):
        x.sum()
    same, more = mt.jit(lambda x: (x, x + 1), backend=backend, donate="x")(mt.ones(3))
    assert same.tolist() == [1, 1, 1] and more.tolist() == [2, 2, 2]


@pytest.mark.parametrize("backend", BACKENDS)
def test_by_name_and_by_number_in_structures_and_methods(backend: str) -> None:
    def step(state: Any, *rest: mt.Tensor, scale: Any = 1) -> Any:
        return {name: value + sum(rest) for name, value in state.items()}, scale * 2

    cases: list[tuple[Any, str]]
    cases = [("state", "state"), (0, "state"), (("rest",), "rest"), ([1], "rest"), ("scale", "scale")]
    for donate, gone in cases:
        tensors = {"state": mt.ones(2), "rest": mt.ones(2), "scale": mt.ones(2)}
        compiled = mt.jit(step, backend=backend, donate=donate)
        result, _ = compiled({"a": tensors["state"]}, tensors["rest"], mt.zeros(2), scale=tensors["scale"])
        assert result["a"].tolist() == [2, 2]
        for name, tensor in tensors.items():
            if name == gone:
                with pytest.raises(TracingError, match=f"`{gone}` of step"):
                    tensor.sum()
            else:
                assert tensor.tolist() == [1, 1]

    class Model(mt.nn.Module):
        @mt.jit(backend=backend, donate="x")
        def advance(self, x: mt.Tensor) -> mt.Tensor:
            return x + 1

    x = mt.ones(2)
    assert Model().advance(x).tolist() == [2, 2]
    with pytest.raises(TracingError, match="MT111"):
        x.sum()


@pytest.mark.parametrize("backend", BACKENDS)
def test_memory_that_others_use_is_left_alone(backend: str) -> None:
    compiled = mt.jit(f, backend=backend, donate="x")
    data = mt.ones(4, 3)
    view = data[1]
    compiled(view, mt.ones(3))  # a view: the rest belongs to somebody else
    assert data.tolist() == [[1, 1, 1]] * 4
    x = mt.ones(3)
    with pytest.raises(TracingError):
        compiled(x, x)
        x.sum()
    array: Any = np.ones(3, np.float32)
    assert compiled(array, mt.ones(3)).tolist() == [2, 2, 2]
    assert array.tolist() == [1, 1, 1]
    outside = mt.ones(3)
    assert mt.jit(lambda x: (x + 1, outside.flip(0) * 2), backend=backend, donate="x")(outside)[1].tolist() == [2, 2, 2]


def test_a_failure_leaves_the_argument() -> None:
    compiled = mt.jit(lambda x, table, i: (x + 1, table[i]), backend="llvm", donate="x")
    x, table = mt.ones(3), mt.ones(4)
    with pytest.raises(IndexError):
        compiled(x, table, mt.tensor([9]))
    assert x.tolist() == [1, 1, 1]
    assert compiled(x, table, mt.tensor([3]))[0].tolist() == [2, 2, 2]


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients(backend: str) -> None:
    compiled = mt.jit(f, backend=backend, donate="x")
    with pytest.raises(AutogradError, match="MT401"):
        compiled(mt.ones(3, requires_grad=True), mt.ones(3))
    y = mt.ones(3, requires_grad=True)
    x = mt.arange(3.0)
    compiled(x, y).sum().backward()  # the way back needs x, which is gone for everybody else
    assert y.grad.tolist() == [0, 1, 2]


def test_a_wrong_name_is_refused() -> None:
    for donate in ("z", ["x", "z"], 2):
        with pytest.raises(ValueError, match=r"donate names .*, but f takes \(x, y\)"):
            mt.jit(f, donate=donate)
