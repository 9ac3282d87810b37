"""vmap: dimensions, structures, writes, random numbers, recordings, and what it refuses."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.errors import PARTS, AutogradError, TracedValueError, TracingError
from minitorch.func import functional_call, grad, jacrev, vmap
from minitorch.ir import PRIMITIVES, Primitive, Spec
from minitorch.nn import functional as F

MODES = {"eager": lambda f: f, "jit": mt.jit, "lazy": lambda f: mt.lazy()(f)}
every_mode = pytest.mark.parametrize("mode", MODES.values(), ids=MODES)


def numbers(*shape: int) -> mt.Tensor:
    return mt.tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def close(found: mt.Tensor, wanted: Any) -> None:
    np.testing.assert_allclose(found.detach().numpy(), np.asarray(wanted), rtol=1e-5, atol=1e-6)


# Nesting and structures ----------------------------------------------------------------------------------------


@every_mode
def test_nested_calls_see_one_dimension_less_each(mode: Any) -> None:
    a, b = numbers(4), numbers(3)
    table = vmap(vmap(lambda x, y: x * y - x, (0, None)), (None, 0))
    close(mode(table)(a, b), np.multiply.outer(b.numpy(), a.numpy()) - a.numpy())
    sums = vmap(vmap(lambda x: x.sum() + b.sum()), in_dims=1, out_dims=1)
    x = numbers(2, 3, 5)
    close(mode(sums)(x), x.numpy().sum(2) + b.numpy().sum())
    deep = vmap(vmap(vmap(lambda x: x.exp().cumsum(0)), in_dims=-2, out_dims=-1), out_dims=2)
    y = numbers(2, 3, 4, 5)
    close(mode(deep)(y), np.exp(y.numpy()).cumsum(3).transpose(1, 3, 0, 2))


def test_compiled_functions_and_checkpoints_work_within() -> None:
    x, w = numbers(4, 3), numbers(3)
    close(vmap(mt.jit(lambda row: (row * w).sum()))(x), x.numpy() @ w.numpy())

    def loss(row: mt.Tensor) -> mt.Tensor:
        return mt.checkpoint(lambda row: (row.sin() * w).exp().sum(), row)

    plain = grad(lambda x: ((x.sin() * w).exp()).sum())(x)
    close(vmap(grad(loss))(x), plain.numpy())
    close(grad(lambda x: vmap(loss)(x).sum())(x), plain.numpy())


@every_mode
def test_gradients_by_sample_are_those_of_the_samples(mode: Any) -> None:
    net = mt.nn.Sequential(mt.nn.Conv2d(1, 2, 3), mt.nn.ReLU(), mt.nn.Flatten(), mt.nn.Linear(8, 3))
    params = {name: p.detach() for name, p in net.named_parameters()}
    x, y = numbers(5, 1, 4, 4), mt.tensor([0, 1, 2, 1, 0])

    def loss(params: Any, x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
        return F.cross_entropy(functional_call(net, params, x.unsqueeze(0)), y.unsqueeze(0))

    found = mode(vmap(grad(loss), in_dims=(None, 0, 0)))(params, x, y)
    for k in range(5):
        for name, wanted in grad(loss)(params, x[k], y[k]).items():
            close(found[name][k], wanted.numpy())


def test_a_session_runs_it() -> None:
    x = numbers(4, 3)
    with mt.Graph() as g:
        p = mt.placeholder((4, 3), mt.float32)
        y = vmap(grad(lambda row: (row**3).sum()))(p)
    close(mt.Session(g).run(y, {p: x}), 3 * x.numpy() ** 2)


def test_chunks_give_what_all_at_once_give() -> None:
    x, w = numbers(5, 3), numbers(3)
    f = lambda row, w: {"sum": (row * w).sum(), "row": row}  # noqa: E731
    whole = vmap(f, (0, None), {"sum": 0, "row": 1})(x, w)
    for size in (1, 2, 5, 9):
        parts = vmap(f, (0, None), {"sum": 0, "row": 1}, chunk_size=size)(x, w)
        assert all(mt.equal(parts[name], whole[name]) for name in whole)
    close(jacrev(lambda x: x**2, chunk_size=2)(w), np.diag(2 * w.numpy()))
    assert vmap(lambda row: row.sum())(mt.zeros(0, 3)).shape == (0,)


# Writes --------------------------------------------------------------------------------------------------------


def writes(x: mt.Tensor) -> tuple[mt.Tensor, ...]:
    y = mt.zeros_like(x)
    y[0] = x[1] * 2
    y[1:].add_(x[:2])
    z = y * 1
    row, view = z.reshape(1, 3), z.view(3)[1:]
    row += x
    z.mul_(2)
    return z * view.sum(), y, view


@every_mode
def test_writes_reach_all_views(mode: Any) -> None:
    x = numbers(4, 3)
    one_by_one = [writes(row) for row in x]
    for found, *wanted in zip(mode(vmap(writes))(x), *one_by_one, strict=True):
        close(found, np.stack([each.numpy() for each in wanted]))

    def loss(x: mt.Tensor) -> mt.Tensor:
        first, _, last = writes(x)
        return (first**2).sum() + last.sum()

    slopes = np.stack([grad(loss)(row).numpy() for row in x])
    close(mode(vmap(grad(loss)))(x), slopes)
    close(mode(grad(lambda x: vmap(loss)(x).sum()))(x), slopes)
    leaf = x.clone().requires_grad_()
    vmap(loss)(leaf).sum().backward()
    assert leaf.grad is not None
    close(leaf.grad, slopes)


@every_mode
def test_writes_to_an_argument_change_it(mode: Any) -> None:
    x = numbers(4, 3)
    y = x.clone()
    mode(lambda y: vmap(lambda column: column[1:].mul_(2), in_dims=1)(y))(y)
    close(y, x.numpy() * np.array([[1], [2], [2], [2]]))


@every_mode
def test_writes_to_what_examples_share_are_refused(mode: Any) -> None:
    x, w = numbers(4, 3), mt.zeros(3)

    def into_new(row: mt.Tensor) -> mt.Tensor:
        new = mt.zeros(3)
        new[0] = row[0]
        return new

    for write in (lambda row: w.add_(row), into_new):
        with pytest.raises(TracingError, match=r"MT109[\s\S]*test_vmap.py"):
            mode(vmap(write))(x)
    mode(vmap(lambda row: (w.add_(1), row)[1]))(x)  # once, for all
    assert w.tolist() == [1, 1, 1]
    leaf = mt.ones(3, requires_grad=True)
    with pytest.raises(TracingError, match="MT109: the gradient"):
        vmap(lambda row: (row * leaf).sum().backward())(x)


# Values ----------------------------------------------------------------------------------------------------------


@every_mode
def test_the_value_of_one_example_is_refused(mode: Any) -> None:
    x = numbers(4, 3)
    for code, use in {
        "MT101": lambda row: row if row.sum() > 0 else -row,
        "MT102": lambda row: row * row.sum().item(),
        "MT103": lambda row: row[row > 0],
    }.items():
        with pytest.raises(TracedValueError, match=rf"{code}[\s\S]*vmap[\s\S]*test_vmap.py"):
            mode(vmap(use))(x)


def test_values_that_examples_share_are_known() -> None:
    x, limit = numbers(4, 3), mt.tensor(2)
    close(vmap(lambda row: row * limit.item() if limit > 1 else row)(x), x.numpy() * 2)
    shown: list[str] = []
    vmap(lambda row: (shown.append(repr(row)), row)[1])(mt.ones(2, 1))
    assert shown == ["Tensor(f32[1] of each example in vmap: tensor([[1.],\n        [1.]]))"]


def test_a_value_that_gets_out_is_refused() -> None:
    kept: list[mt.Tensor] = []
    vmap(lambda row: (kept.append(row), row)[1])(numbers(4, 3))
    for use in (lambda x: x + 1, lambda x: x.numpy(), lambda x: x.add_(1)):
        with pytest.raises(TracingError, match=r"MT104.*vmap"):
            use(kept[0])


def test_callbacks_are_called_for_each_example(capsys: pytest.CaptureFixture[str]) -> None:
    def shows(row: mt.Tensor) -> mt.Tensor:
        mt.debug.print("{} {}", row.sum(), mt.ones(1))
        return row

    x = mt.tensor([[1.0, 2.0], [3.0, 4.0]])
    for mode in (vmap(shows), mt.jit(vmap(shows))):
        mode(x)
        assert capsys.readouterr().out == "3.0 [1.]\n7.0 [1.]\n"


@every_mode
def test_random_numbers_differ_or_agree_as_asked(mode: Any) -> None:
    x = mt.zeros(4, 3)
    draws = lambda row: row + mt.rand(3)  # noqa: E731
    different, alike = mode(vmap(draws, randomness="different"))(x), mode(vmap(draws, randomness="same"))(x)
    assert len({tuple(row) for row in different.tolist()}) == 4 and len({tuple(row) for row in alike.tolist()}) == 1
    with pytest.raises(RuntimeError, match=r"random numbers are drawn within vmap, at test_vmap.py:\d+"):
        mode(vmap(draws))(x)
    nested = mode(vmap(vmap(lambda row: row + mt.rand(()), randomness="different"), randomness="same"))(x)
    assert len({tuple(row) for row in nested.tolist()}) == 1 and len(set(nested[0].tolist())) == 3
    dropped = mode(vmap(lambda row: F.dropout(row + 1, 0.5), randomness="different"))(mt.zeros(64, 8))
    assert len({tuple(row) for row in dropped.tolist()}) > 32


# Hand-written gradients, and primitives without a rule -------------------------------------------------------------


class Cube(mt.autograd.Function):
    """Saves an input and an output."""

    @staticmethod
    def forward(ctx: Any, x: mt.Tensor, w: mt.Tensor) -> tuple[mt.Tensor, mt.Tensor]:
        y = x**3 * w
        ctx.save_for_backward(x, w, y)
        return y, w * 2

    @staticmethod
    def backward(ctx: Any, g: mt.Tensor, h: mt.Tensor) -> tuple[mt.Tensor, mt.Tensor]:
        x, _, y = ctx.saved_tensors
        return g * 3 * y / x, g * x**3 + h * 2


@every_mode
def test_hand_written_gradients_are_used_around_vmap(mode: Any) -> None:
    x, w = numbers(4, 3) + 3, numbers(3) + 3

    def loss(function: Any) -> Any:
        def total(x: mt.Tensor, w: mt.Tensor) -> mt.Tensor:
            first, second = vmap(function, (0, None))(x, w)
            return first.pow(2).sum() + second.sin().sum()

        return total

    mine, plain = loss(Cube.apply), loss(lambda x, w: (x**3 * w, w * 2))
    for found, wanted in zip(mode(grad(mine, (0, 1)))(x, w), grad(plain, (0, 1))(x, w), strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-4)
    again = [grad(lambda w, f=f: grad(f)(x, w).pow(2).sum()) for f in (mine, plain)]
    np.testing.assert_allclose(mode(again[0])(w).numpy(), again[1](w).numpy(), rtol=1e-4)
    rows = [jacrev(lambda x, f=f: f(x, w)) for f in (mine, plain)]
    np.testing.assert_allclose(mode(rows[0])(x).numpy(), rows[1](x).numpy(), rtol=1e-4)


def test_a_hand_written_write_is_refused_around_vmap() -> None:
    class Doubled(mt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: mt.Tensor) -> mt.Tensor:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: mt.Tensor) -> mt.Tensor:
            return g * 2

    def loss(x: mt.Tensor) -> mt.Tensor:
        return Doubled.apply(x * 1).sum()

    x = numbers(4, 3)
    close(vmap(grad(loss))(x), np.full((4, 3), 2))
    with pytest.raises(AutogradError, match="MT401: Doubled"):
        grad(lambda x: vmap(loss)(x).sum())(x)


@pytest.fixture
def reversing() -> Any:
    """A primitive of a family without a rule."""
    yield Primitive("outer", "odd", lambda x, y: Spec((*x.shape, *y.shape), x.dtype), np.multiply.outer)
    assert "outer" not in PRIMITIVES and "odd" not in PARTS


def test_a_primitive_without_a_rule_is_computed_one_by_one(reversing: Primitive) -> None:
    x, w = numbers(4, 3), numbers(2)
    close(vmap(reversing, (0, None))(x, w), np.multiply.outer(x.numpy(), w.numpy()))


# Modules ---------------------------------------------------------------------------------------------------------


def test_functional_call_replaces_tensors_for_one_call() -> None:
    net = mt.nn.Sequential(mt.nn.Linear(2, 2, bias=False), mt.nn.BatchNorm1d(2))
    own, x = dict(net.named_parameters()), numbers(5, 2)
    given = {"0.weight": mt.zeros(2, 2)}, {"1.bias": mt.ones(2), "1.running_mean": mt.zeros(2)}
    assert functional_call(net, given, (x,)).tolist() == [[1, 1]] * 5
    assert dict(net.named_parameters()) == own and given[1]["1.running_mean"].tolist() == [0, 0]
    with pytest.raises(RuntimeError, match=r"missing: 0\.wight"):
        functional_call(net, {"0.wight": mt.zeros(2, 2)}, x)
    with pytest.raises(RuntimeError, match=r"missing: 1\.weight"):
        functional_call(net, given, x, strict=True)
    tied = mt.nn.ModuleList([mt.nn.Linear(2, 2, bias=False), mt.nn.Linear(2, 2, bias=False)])
    tied[1].weight = tied[0].weight
    tied.forward = lambda x: tied[1](tied[0](x))
    assert functional_call(tied, {"0.weight": mt.eye(2) * 2}, x).tolist() == (x * 4).tolist()
    alone = functional_call(tied, {"0.weight": mt.eye(2)}, x, tie_weights=False)
    close(alone, tied[1](x).detach().numpy())


TRANSFORMS = {
    "vmap": vmap(mt.sin),
    "vmap of grad": vmap(grad(mt.sin)),
    "in parts": vmap(mt.sin, chunk_size=2),
    "jacrev": jacrev(mt.sin),
    "jacfwd": mt.func.jacfwd(mt.sin),
    "hessian": mt.func.hessian(lambda x: x.sin().sum()),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_recording_leaves_nothing_to_the_garbage_collector(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording that ends looks for its values everywhere if one of them is still there."""
    monkeypatch.setattr(gc, "collect", lambda: pytest.fail("a cycle holds a value of the recording"))
    transform = TRANSFORMS[name]
    mt.jit(lambda x: transform(x), backend="interpret")(numbers(3))


def test_wrong_dimensions_are_refused() -> None:
    x, w = numbers(4, 3), numbers(5, 3)
    for call, words in [
        (lambda: vmap(mt.add, in_dims=(0,))(x, x), r"vmap\(add\): in_dims is a dimension, None, or nested"),
        (lambda: vmap(mt.add)(x, w), r"different numbers of examples, \[4, 5\]"),
        (lambda: vmap(mt.add)(x, 2), "an argument with the dimension 0 is int"),
        (lambda: vmap(mt.sum, in_dims=2)(x), r"in_dims has 2 for f32\[4,3\]"),
        (lambda: vmap(mt.sum, in_dims=None)(x), "no argument has a dimension"),
        (lambda: vmap(mt.sum, out_dims=None)(x), "out_dims has None for f32"),
        (lambda: vmap(mt.sum, out_dims=1)(x), r"out_dims has 1, and the result of one example is f32\[\]"),
        (lambda: vmap(lambda x: (x, 3))(x), "the function returned int"),
        (lambda: vmap(mt.sum, randomness="other"), "randomness is"),
        (lambda: vmap(mt.sum, chunk_size=0), "chunk_size"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match="a function is called for each example, not Tensor"):
        vmap(x)  # type: ignore[arg-type]
    with pytest.raises(AutogradError, match="MT404"):
        mt.func.jvp(mt.sin, (x,), (w,))
