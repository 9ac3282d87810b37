"""Reshaping, parts and rearranging: as NumPy, eagerly and recorded; views share memory."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import primitives as P
from minitorch.errors import DTypeError, ShapeError, TracedValueError
from minitorch.interpreters import Staging, interpreting
from minitorch.tensor import with_value
from tests.support.helpers import check

X = np.arange(24.0).reshape(2, 3, 4)
M = np.arange(12).reshape(3, 4)
V = np.arange(5)

# What minitorch does, what NumPy does, on which array.
ROWS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Any]] = {
    "reshape": (lambda x: x.reshape(4, -1), lambda x: x.reshape(4, -1), X),
    "reshape to a tuple": (lambda x: mt.reshape(x, (6, 4)), lambda x: x.reshape(6, 4), X),
    "reshape to nothing": (lambda x: x[:1, :1, :1].reshape(()), lambda x: x[0, 0, 0], X),
    "view": (lambda x: x.view(-1), np.ravel, X),
    "view_as": (lambda x: x.view_as(mt.zeros(6, 4)), lambda x: x.reshape(6, 4), X),
    "reshape_as": (lambda x: x.mT.reshape_as(x), lambda x: np.swapaxes(x, 1, 2).reshape(x.shape), X),
    "flatten": (lambda x: x.flatten(), np.ravel, X),
    "flatten some": (lambda x: x.flatten(0, 1), lambda x: x.reshape(6, 4), X),
    "flatten a number": (lambda x: x.flatten(), np.ravel, np.float64(3)),
    "ravel": (lambda x: x.ravel(), np.ravel, X),
    "unflatten": (lambda x: x.unflatten(-1, (2, -1)), lambda x: x.reshape(2, 3, 2, 2), X),
    "squeeze": (lambda x: x[:1, None].squeeze(), lambda x: x[0], X),
    "squeeze one": (lambda x: x[:1, None].squeeze(0), lambda x: x[:1], X),
    "squeeze none": (lambda x: x.squeeze(1), lambda x: x, X),
    "squeeze several": (lambda x: x[:1, None].squeeze((0, 1, 2)), lambda x: x[0], X),
    "unsqueeze": (lambda x: x.unsqueeze(-1), lambda x: x[..., None], X),
    "transpose": (lambda x: x.transpose(0, -1), lambda x: np.swapaxes(x, 0, -1), X),
    "swapdims": (lambda x: x.swapdims(1, 2), lambda x: np.swapaxes(x, 1, 2), X),
    "t": (lambda x: x.t(), np.transpose, M),
    "T": (lambda x: x.T, np.transpose, X),
    "mT": (lambda x: x.mT, lambda x: np.swapaxes(x, -1, -2), X),
    "permute": (lambda x: x.permute(2, 0, -2), lambda x: np.transpose(x, (2, 0, 1)), X),
    "movedim": (lambda x: x.movedim(0, -1), lambda x: np.moveaxis(x, 0, -1), X),
    "movedim several": (lambda x: x.movedim((0, 2), (1, 0)), lambda x: np.moveaxis(x, (0, 2), (1, 0)), X),
    "expand": (lambda x: x.expand(2, -1, -1), lambda x: np.broadcast_to(x, (2, 3, 4)), M),
    "expand_as": (lambda x: x.expand_as(mt.zeros(2, 5)), lambda x: np.broadcast_to(x, (2, 5)), V),
    "broadcast_to": (lambda x: mt.broadcast_to(x, (2, 5)), lambda x: np.broadcast_to(x, (2, 5)), V),
    "broadcast_tensors": (
        lambda x: mt.broadcast_tensors(x, x[:, :1]),
        lambda x: [*map(np.array, np.broadcast_arrays(x, x[:, :1]))],
        M,
    ),
    "atleast_1d": (mt.atleast_1d, np.atleast_1d, np.float64(3)),
    "atleast_2d": (mt.atleast_2d, np.atleast_2d, V),
    "atleast_3d": (lambda x: mt.atleast_3d(x, x[0]), lambda x: np.atleast_3d(x, x[0]), M),
    "narrow": (lambda x: x.narrow(1, 1, 2), lambda x: x[:, 1:3], X),
    "narrow from the end": (lambda x: x.narrow(1, -2, 2), lambda x: x[:, 1:3], X),
    "select": (lambda x: x.select(1, -1), lambda x: x[:, -1], X),
    "unbind": (lambda x: x.unbind(1), lambda x: [*np.moveaxis(x, 1, 0)], X),
    "split": (lambda x: x.split(2, 1), lambda x: np.split(x, [2], 1), X),
    "split at lengths": (lambda x: x.split([1, 0, 3], -1), lambda x: np.split(x, [1, 1], -1), X),
    "split nothing": (lambda x: x[:0].split(2), lambda x: x[:0], V),
    "chunk": (lambda x: x.chunk(3), lambda x: np.split(x, [2, 4]), V),
    "chunk into fewer": (lambda x: x.chunk(4), lambda x: np.split(x, [2, 4]), V),
    "tensor_split": (lambda x: x.tensor_split(3), lambda x: np.array_split(x, 3), V),
    "tensor_split at": (
        lambda x: x.tensor_split([1, -1, 9]),
        lambda x: [x[:1], x[1:4], x[4:], x[5:]],
        V,
    ),
    "unfold": (lambda x: x.unfold(0, 3, 2), lambda x: np.array([[0, 1, 2], [2, 3, 4]]), V),
    "diagonal": (lambda x: x.diagonal(), np.diagonal, M),
    "diagonal below": (lambda x: x.diagonal(-2), lambda x: np.diagonal(x, -2), M),
    "diagonal far": (lambda x: x.diagonal(7), lambda x: np.diagonal(x, 7), M),
    "diagonals": (lambda x: x.diagonal(1, 2, 0), lambda x: np.diagonal(x, 1, 2, 0), X),
    "cat": (lambda x: mt.cat([x, x[:1]]), lambda x: np.concatenate([x, x[:1]]), M),
    "cat types": (lambda x: mt.cat([x, x.float()], 1), lambda x: np.float32(np.hstack([x, x])), M),
    "cat nothing first": (lambda x: mt.concat([mt.zeros(0), x]), lambda x: np.float32(x), M),
    "stack": (lambda x: mt.stack([x, x], -1), lambda x: np.stack([x, x], -1), M),
    "hstack": (lambda x: mt.hstack([x, x]), lambda x: np.hstack([x, x]), M),
    "hstack of vectors": (lambda x: mt.hstack([x, x]), lambda x: np.hstack([x, x]), V),
    "vstack": (lambda x: mt.vstack([x, x]), lambda x: np.vstack([x, x]), V),
    "meshgrid": (lambda x: mt.meshgrid(x, x[:2]), lambda x: np.meshgrid(x, x[:2], indexing="ij"), V),
    "meshgrid xy": (
        lambda x: mt.meshgrid([x, x[:2], x[:3]], indexing="xy"),
        lambda x: np.meshgrid(x, x[:2], x[:3]),
        V,
    ),
    "flip": (lambda x: x.flip(0, -1), lambda x: np.flip(x, (0, -1)), X),
    "flip a list": (lambda x: mt.flip(x, [1]), lambda x: np.flip(x, 1), X),
    "fliplr": (mt.fliplr, np.fliplr, M),
    "flipud": (mt.flipud, np.flipud, M),
    "roll": (lambda x: x.roll(-5), lambda x: np.roll(x, -5), M),
    "roll two": (lambda x: x.roll((1, 6), (0, 1)), lambda x: np.roll(x, (1, 6), (0, 1)), M),
    "roll nothing": (lambda x: x[:0].roll(1, 0), lambda x: x[:0], M),
    "repeat": (lambda x: x.repeat(2, 1, 3), lambda x: np.tile(x, (2, 1, 3)), M),
    "repeat no times": (lambda x: x.repeat(0, 2), lambda x: np.tile(x, (0, 2)), M),
    "tile": (lambda x: x.tile(2), lambda x: np.tile(x, 2), M),
    "repeat_interleave": (lambda x: x.repeat_interleave(2), lambda x: np.repeat(x, 2), M),
    "repeat_interleave dim": (lambda x: x.repeat_interleave(2, 0), lambda x: np.repeat(x, 2, 0), M),
    "diag": (mt.diag, np.diag, M),
    "diag of a vector": (lambda x: mt.diag(x, -2), lambda x: np.diag(x, -2), V),
    "diag of nothing": (lambda x: mt.diag(x[:0], 2), lambda x: np.diag(x[:0], 2), V),
    "diag_embed": (lambda x: mt.diag_embed(x, 1, 0, 2)[:, 1, :], lambda x: np.diag(x[1], 1), M),
    "tril": (lambda x: x.tril(-1), lambda x: np.tril(x, -1), X),
    "triu": (lambda x: x.triu(1), lambda x: np.triu(x, 1), X),
    "pad": (
        lambda x: mt.pad(x, (1, 2, 3, 0), value=7),
        lambda x: np.pad(x, ((3, 0), (1, 2)), constant_values=7),
        M,
    ),
    "pad and cut": (lambda x: mt.pad(x, (-1, 2)), lambda x: np.pad(x[:, 1:], ((0, 0), (0, 2))), M),
}


@pytest.mark.parametrize("name", ROWS)
def test_as_numpy(name):
    function, reference, array = ROWS[name]
    check(function, array, expected=reference(array))


VIEWS = {
    "reshape": lambda x: x.reshape(6, 4),
    "view": lambda x: x.view(-1),
    "squeeze": lambda x: x.squeeze(),
    "transpose": lambda x: x.transpose(0, 2),
    "T": lambda x: x.T,
    "permute": lambda x: x.permute(1, 0, 2),
    "movedim": lambda x: x.movedim(0, 1),
    "select": lambda x: x.select(1, 0),
    "index": lambda x: x[1, None, ::2],
    "narrow": lambda x: x.narrow(0, 1, 1),
    "split": lambda x: x.split(1)[1],
    "unbind": lambda x: x.unbind()[1],
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_see_writes_and_are_seen(name):
    x = mt.zeros(2, 3, 4)
    view = VIEWS[name](x)
    view.fill_(1)
    assert x.sum().item() == view.numel() > 0
    x.fill_(2)
    assert view.sum().item() == 2 * view.numel()


def test_views_written_under_a_recording():
    def write(view_of):
        def function(x):
            x = x + 0
            view_of(x).fill_(1)
            return x

        return function

    for name, view_of in VIEWS.items():
        if name != "diagonal":  # a reshape of a permuted tensor: whether it is a view depends on strides
            check(write(view_of), np.zeros((2, 3, 4)))


def test_view_never_copies():
    with pytest.raises(RuntimeError, match="use reshape"):
        mt.zeros(2, 3).t().view(6)
    assert mt.zeros(2, 0).t().view(0).shape == (0,)
    assert mt.ones(1, dtype=mt.float32).view(mt.int32).item() == 0x3F800000


def test_broadcast_shapes():
    assert mt.broadcast_shapes((2, 1), (3,), 1) == (2, 3)
    assert mt.broadcast_shapes() == ()
    with pytest.raises(ShapeError, match="broadcast"):
        mt.broadcast_shapes((2,), (3,))


def test_repeats_that_are_data():
    x, times = mt.tensor([[1, 2, 3], [4, 5, 6]]), mt.tensor([0, 1, 2])
    assert x.repeat_interleave(times, 1).tolist() == [[2, 3, 3], [5, 6, 6]]
    staging = Staging("step")
    with interpreting(staging), pytest.raises(TracedValueError, match="MT103"):
        x.repeat_interleave(with_value(staging.input(times.spec, "times")), 1)


ERRORS = {
    "two lengths to find": (lambda: mt.zeros(6).reshape(-1, -1), ShapeError, "one length may be -1"),
    "not a multiple": (lambda: mt.zeros(6).reshape(4, -1), ShapeError, "not a multiple of 4"),
    "negative lengths": (lambda: mt.zeros(6).reshape(-2, -3), ShapeError, "cannot become"),
    "another size": (lambda: mt.zeros(6).reshape(4, 2), ShapeError, "6 elements, the new shape 8"),
    "no such dim": (lambda: mt.zeros(2, 3).unsqueeze(4), IndexError, "out of range"),
    "a dim twice": (lambda: mt.zeros(2, 3).permute(0, 0), ShapeError, "named once"),
    "expand another length": (lambda: mt.zeros(2).expand(3), ShapeError, "length 1"),
    "expand to a new -1": (lambda: mt.zeros(2).expand(-1, 2), ShapeError, "cannot become"),
    "t of many": (lambda: mt.zeros(2, 3, 4).t(), RuntimeError, "use transpose or mT"),
    "mT of a vector": (lambda: mt.zeros(2).mT, RuntimeError, "matrices"),
    "select outside": (lambda: mt.zeros(2).select(0, 2), IndexError, "index 2 is out of range"),
    "narrow outside": (lambda: mt.zeros(4).narrow(0, 3, 2), IndexError, "do not fit"),
    "split lengths": (lambda: mt.zeros(4).split([1, 2]), RuntimeError, "add up"),
    "cat nothing": (lambda: mt.cat([]), ShapeError, "no tensors"),
    "cat other lengths": (lambda: mt.cat([mt.zeros(2, 3), mt.zeros(2, 4)]), ShapeError, "do not fit"),
    "repeat too few": (lambda: mt.zeros(2, 3).repeat(2), RuntimeError, "each dimension"),
    "window too wide": (lambda: mt.zeros(3).unfold(0, 4, 1), ShapeError, "window"),
    "grid of another kind": (lambda: mt.meshgrid(mt.zeros(2), indexing="yx"), ValueError, '"ij" or "xy"'),
    "pad too much": (lambda: mt.pad(mt.zeros(2), (1, 1, 1, 1)), RuntimeError, "pairs"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_say_what_is_wrong(name):
    function, error, text = ERRORS[name]
    with pytest.raises(error, match=text):
        function()


def test_expand_repeats_and_never_reshapes():
    """Eager computes before it checks, so what a graph refuses must fail to compute: [2, 3] does not become [3, 2]."""
    shapes = [shape for dims in range(4) for shape in itertools.product((0, 1, 2, 3), repeat=dims)]
    for before, after in itertools.product(shapes, repeat=2):
        try:
            expected = np.broadcast_to(np.ones(before), after).shape
        except ValueError:
            with pytest.raises(ShapeError, match="MT201"):
                mt.ones(before).expand(after)
        else:
            assert mt.ones(before).expand(after).shape == expected
    with pytest.raises(ShapeError, match="MT201"):
        mt.zeros(3, 2).copy_(mt.ones(2, 3))


def test_parts_of_a_number():
    """As in PyTorch: it has no dimension to take parts of, and one window."""
    one = mt.tensor(1.0)
    refusals: list[Callable[[], object]] = [
        one.unbind,
        *(lambda name=name: getattr(one, name)(2) for name in ("chunk", "split", "tensor_split")),
        *(lambda: one.narrow(0, 0, 1), lambda: one.select(0, 0), lambda: one.roll(1, 0)),
    ]
    for refuse in refusals:
        with pytest.raises(IndexError, match="a 0-dimensional tensor has no dimension"):
            refuse()
    assert one.movedim(0, 0).shape == () and one.unfold(0, 1, 1).shape == (1,) and one.unfold(0, 0, 1).shape == (0,)


@pytest.mark.parametrize(("step", "windows"), [(1, 4), (2, 2), (5, 1)])
def test_windows_of_no_elements(step, windows):
    check(lambda x: x.unfold(0, 0, step), np.ones((3, 2)), expected=np.ones((windows, 2, 0)))


def test_a_number_is_its_own_matrix_transpose():
    assert mt.tensor(3.0).mT.item() == 3
    with pytest.raises(RuntimeError, match="for matrices"):
        mt.ones(3).mT  # noqa: B018


@pytest.mark.parametrize(("size", "step"), [(0, -1), (1, 0), (2, -1), (-1, 1), (9, 1)])
@pytest.mark.parametrize("way", [lambda f: f, mt.jit], ids=["eager", "jit"])
def test_windows_that_do_not_fit_are_refused_in_every_mode(way, size, step):
    for x in (mt.ones(3, 4), mt.ones(3, 4, requires_grad=True)):
        with pytest.raises((RuntimeError, ShapeError)):
            way(lambda x: x.unfold(1, size, step))(x)


@pytest.mark.parametrize("way", [lambda f: f, mt.jit])
def test_tensors_of_two_types_are_joined_in_no_mode(way):
    """`cat` and `diff` promote them first; the primitive refuses them eagerly, too, where NumPy would promote."""
    x, y = mt.tensor([5, 3], dtype=mt.int32), mt.tensor([4])
    assert way(lambda x, y: x.diff(append=y))(x, y).dtype is way(lambda x, y: mt.cat([x, y]))(x, y).dtype is mt.int64
    with pytest.raises(DTypeError, match="MT202"):
        way(lambda x, y: P.concatenate(x, y, dim=0))(x, y)
