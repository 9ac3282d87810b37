"""Indices that are data on XLA: out of range they are the error of eager mode, and in range they cost nothing."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch import primitives as P

jax = pytest.importorskip("jax")


# Indices: an input, computed from inputs by NumPy before the program runs, or a result of the program's own sums.
INDICES = {
    "given": lambda i, state: i,
    "computed": lambda i, state: mt.where(i == -100, 0, i),
    "summed": lambda i, state: i + (state.sum() * 0).long(),
    "written": lambda i, state: i.add_(0),
}


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("index", INDICES)
def test_an_index_out_of_range_is_the_error_of_eager_mode_and_changes_nothing(index, write):
    state = mt.zeros(4)

    @mt.jit(backend="xla")
    def f(i):
        state.add_(1)
        i = INDICES[index](i, state)
        if write:
            state[i] = 5.0
        return state[i]

    for good in ([3, -4], [0, 0], [3, 2]):
        f(mt.tensor(good))
    before = state.tolist()
    for bad in (4, -5, 1 << 40, -(1 << 40)):
        with pytest.raises(IndexError, match=f"index {bad} is out of bounds for dim 0"):
            f(mt.tensor([0, bad]))
        assert state.tolist() == before
    assert f(mt.tensor([2, -1])).tolist() == ([5, 5] if write else [state[2].item(), state[3].item()])


@pytest.mark.parametrize("dtype", [mt.float32, mt.bfloat16, mt.int8, mt.bool])
@pytest.mark.parametrize("shape", [(5, 4), (5, 4, 3), (0, 4)])
def test_an_index_through_all_rows_gives_the_same_numbers(shape, dtype):
    rows = shape[0]
    x, u = ((mt.rand(*each) * 5).to(dtype) for each in (shape, (rows, *shape[2:])))

    def f(x, u, i):
        through = mt.arange(rows)
        return P.gather(x, through, i), P.scatter(x, u, through, i), P.scatter_add(x, u, through, i)

    args = x, u, mt.randint(-4, 4, (rows,))
    for mine, theirs in zip(mt.jit(f, backend="xla")(*args), f(*args), strict=True):
        assert mine.dtype is theirs.dtype and mine.tolist() == theirs.tolist()


def results_of(f, *args):
    """The types of the results of the compiled program."""
    text = f.hlo(*args).after
    return re.findall(r"(\w+)\[[\d,]*\]", re.search(r"->\s*\(?(.*?)\)?\s*\{", text[text.index("ENTRY") :])[1])


def test_a_program_checks_an_index_only_where_it_has_to():
    x, i = mt.rand(8, 5), mt.tensor([3, 0])

    def picked(index):
        return lambda x, i: x[index(x, i)]

    known = {
        "argmax": lambda x, i: x.argmax(0),
        "argsort": lambda x, i: x.argsort(0)[:, 0],
        "clamp": lambda x, i: (i * i).clamp(0, 7),
        "input": lambda x, i: i,
        "computed": lambda x, i: i + 1,
    }
    for index in known.values():
        assert results_of(mt.jit(picked(index), backend="xla"), x, i) == ["f32"]
    assert results_of(mt.jit(picked(lambda x, i: i + (x.sum() * 0).long()), backend="xla"), x, i) == ["f32", "pred"]


def test_a_training_step_has_the_kernels_of_one_by_hand():
    """Of a classifier: its labels are checked before, so that nothing is beside what `jax.jit` makes of it."""
    sizes, rate = (12, 16, 5), 0.1
    x, y = np.random.default_rng(0).standard_normal((8, 12)).astype(np.float32), np.arange(8) % 5
    weights = [np.ones(shape, np.float32) for a, b in itertools.pairwise(sizes) for shape in ((b, a), (b,))]
    model = mt.nn.Sequential(mt.nn.Linear(12, 16), mt.nn.ReLU(), mt.nn.Linear(16, 5))
    optimizer = mt.optim.SGD(model.parameters(), rate)

    @mt.jit(backend="xla")
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    def loss(weights, x, y):
        a, b, c, d = weights
        rows = jax.nn.log_softmax(jax.nn.relu(x @ a.T + b) @ c.T + d)
        return -jax.numpy.mean(jax.numpy.take_along_axis(rows, y[:, None], 1))

    def by_hand(weights, x, y):
        value, gradients = jax.value_and_grad(loss)(weights, x, y)
        return value, gradients, [w - rate * g for w, g in zip(weights, gradients, strict=True)]

    from minitorch_xla.backend.hlo import read

    text = jax.jit(by_hand, donate_argnums=0).lower(weights, x, y).compile().as_text()
    ours = step.hlo(mt.tensor(x), mt.tensor(y))
    assert "pred[]" not in ours.before
    assert len(ours.kernels) <= len(read(text)) + 3  # the mean is over labels that are not ignored, which are counted


def test_a_label_out_of_range_leaves_the_parameters_whose_memory_was_taken():
    """The step writes into the memory of the parameters; the error is found when it has run."""
    mt.manual_seed(0)
    model, beside = mt.nn.Linear(6, 4), mt.nn.Linear(6, 4)
    beside.load_state_dict(model.state_dict())

    def training(model):
        optimizer = mt.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step(x, y):
            optimizer.zero_grad()
            loss = mt.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return step

    step, eager = mt.jit(training(model), backend="xla"), training(beside)
    x, good, bad = mt.randn(5, 6), mt.tensor([0, 1, 2, 3, 0]), mt.tensor([0, 1, 2, 9, 0])
    for labels in (good, good, bad, good, bad, bad, good):
        if labels is bad:
            with pytest.raises(IndexError, match="9"):
                step(x, labels)
        else:
            np.testing.assert_allclose(step(x, labels).item(), eager(x, labels).item(), rtol=1e-5)
            taken = model.weight._value.array
    step(x, good)
    assert taken.is_deleted(), "the memory is used again"
    eager(x, good)
    np.testing.assert_allclose(model.weight.detach().numpy(), beside.weight.detach().numpy(), rtol=1e-5, atol=1e-6)
