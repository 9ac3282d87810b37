"""`lazy`: nothing is computed before a value is needed, and then everything that somebody still holds."""

from __future__ import annotations

import importlib
from contextlib import nullcontext

import numpy as np
import pytest

import minitorch as mt
from minitorch.errors import TracingError
from minitorch.interpreters import observing

lazy_module = importlib.import_module("minitorch.modes.ways_in.lazy")


def watch():
    """What is computed while the returned context is open, by name of the primitive."""
    computed = []
    return computed, observing(lambda primitive, inputs, value, source: computed.append(primitive.name))


def test_nothing_is_computed_before_a_value_is_needed():
    computed, watching = watch()
    with watching, mt.lazy():
        x = mt.arange(4.0) * 2
        y = (x + 1).sum()
        assert y.shape == () and x.dtype is mt.float32 and len(x) == 4 and not computed
        assert y.item() == 16
        assert "mul" in computed
        count = len(computed)
        assert y.item() == 16 and x.tolist() == [0, 2, 4, 6]
        assert len(computed) == count, "x was held, so it was computed with y"


NEEDS = {
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "numpy": lambda x: x.numpy(),
    "asarray": lambda x: np.asarray(x),
    "float": lambda x: float(x.sum()),
    "bool": lambda x: bool((x > 0).all()),
    "repr": lambda x: repr(x),
    "mask": lambda x: x[x > 0],
    "branch": lambda x: x if x.sum() > 0 else -x,
    "equal": lambda x: mt.equal(x, x),
}


@pytest.mark.parametrize("name", NEEDS)
def test_a_value_is_there_when_it_is_needed(name):
    expected = NEEDS[name](mt.ones(3) * 2)
    with mt.lazy():
        found = NEEDS[name](mt.ones(3) * 2)
    assert str(found) == str(expected)


def test_the_end_of_the_block_computes_what_is_held_and_nothing_else():
    start = mt.ones(2)
    computed, watching = watch()
    with watching:
        with mt.lazy():
            x = start * 3
            mt.exp(x)  # nobody holds it
            y = mt.sin(x)
            assert not computed
        assert "exp" not in computed and computed.count("sin") == 1
    assert y.requires_grad is False and isinstance(y.numpy(), np.ndarray)
    np.testing.assert_array_equal(y.numpy(), np.sin(np.full(2, 3, "f")))


def test_a_value_of_something_else_forces_nothing():
    constant = mt.tensor(5.0)
    with mt.lazy() as recording:
        y = mt.ones(2) + 1
        pending = len(recording.nodes)
        assert constant.item() == 5 and len(recording.nodes) == pending > 0
        assert y.tolist() == [2, 2] and len(recording.nodes) == 0


def test_memory_that_pending_work_reads_is_not_given_away():
    x = mt.ones(2)
    with mt.lazy():
        y = x + 1
        x.numpy()[0] = 100
        assert y.tolist() == [2, 2]


def test_graphs_of_the_same_structure_are_compiled_once(monkeypatch):
    compiled = []
    original = lazy_module.Program
    monkeypatch.setattr(lazy_module, "Program", lambda *args, **more: compiled.append(1) or original(*args, **more))
    w = mt.tensor([1.5, 2.5])
    with mt.lazy():
        for number in range(10):
            w = w * 2 + mt.full((2,), 1.0)
            w.sum().item()
            assert number == 0 or len(compiled) <= 2
    first = len(compiled)
    with mt.lazy():
        (w * 2 + mt.full((2,), 1.0)).sum().item()
    assert len(compiled) <= first + 1


def test_the_cache_of_programs_is_bounded():
    with mt.lazy():
        for length in range(lazy_module._PROGRAMS_KEPT + 10):
            (mt.ones(length) + 1).tolist()
    assert len(lazy_module._programs) <= lazy_module._PROGRAMS_KEPT


def test_views_and_writes_across_forces():
    x = mt.zeros(2, 3)
    with mt.lazy():
        row, column = x[0], x[:, 1]
        row.add_(1)
        assert column.tolist() == [1, 0]
        column.mul_(5)
        y = mt.ones(4) * 2
        tail = y[2:]
        assert tail.tolist() == [2, 2]
        tail.zero_()
        assert y.tolist() == [2, 2, 0, 0] and np.shares_memory(y.numpy(), tail.numpy())
        y[0] = 9
    assert x.tolist() == [[1, 5, 1], [0, 0, 0]] and y.tolist() == [9, 2, 0, 0]
    row.zero_()
    assert x.tolist() == [[0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("look", [False, True])
def test_backward_across_a_force(look):
    w = mt.tensor([1.0, 2.0], requires_grad=True)
    with mt.lazy():
        h = mt.exp(w)
        loss = (h * w).sum()
        if look:
            loss.item()
            h.detach().tolist()
        loss.backward()
        if look:
            assert w.grad.shape == (2,) and w.grad.tolist()
        (w * 3).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), np.exp([1, 2]) * np.array([2, 3]) + 3, rtol=1e-6)


def test_results_leave_the_block_with_their_tape():
    w = mt.tensor([1.0, 2.0], requires_grad=True)
    with mt.lazy():
        y = (w * w).sum()
    y.backward()
    assert w.grad.tolist() == [2, 4]


def test_training_is_the_same_as_in_eager_mode():
    def train(context):
        mt.manual_seed(0)
        model = mt.nn.Sequential(
            mt.nn.Linear(3, 4), mt.nn.BatchNorm1d(4), mt.nn.ReLU(), mt.nn.Dropout(0.3), mt.nn.Linear(4, 1)
        )
        optimizer = mt.optim.Adam(model.parameters(), lr=0.05)
        x, y = mt.randn(8, 3), mt.randn(8, 1)
        losses = []
        with context:
            for number in range(6):
                optimizer.zero_grad()
                loss = ((model(x) - y) ** 2).mean()
                loss.backward()
                optimizer.step()
                if number % 2:
                    losses.append(loss.item())
        return losses, [tensor.tolist() for tensor in model.state_dict().values()]

    # Bit by bit: the gradient of a bias before a BatchNorm is rounding, and Adam makes full steps of it.
    expected, found = train(nullcontext()), train(mt.lazy("interpret"))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)
    for mine, theirs in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)


# Errors -------------------------------------------------------------------------------------------


def test_shapes_are_checked_at_once():
    with mt.lazy(), pytest.raises(ValueError, match="MT201"):
        mt.ones(2) + mt.ones(3)


def test_what_came_before_an_error_of_the_users_has_happened():
    w = mt.zeros(2)
    with pytest.raises(KeyError), mt.lazy():
        w.add_(1)
        y = w * 2
        raise KeyError
    assert w.tolist() == [1, 1] and y.tolist() == [2, 2] and (mt.ones(1) + 1).item() == 2


def test_after_an_error_in_the_data_the_block_goes_on():
    x = mt.ones(3)
    with mt.lazy():
        bad = x[mt.tensor([7])]
        with pytest.raises(IndexError):
            bad.tolist()
        assert (x + 1).tolist() == [2, 2, 2]
        with pytest.raises(TracingError, match="MT104"):
            bad.tolist()
    assert (x + 1).tolist() == [2, 2, 2]


def test_what_was_lost_in_a_run_that_failed_says_so() -> None:
    x = mt.ones(3)
    with mt.lazy():
        fine = x * 2
        bad = x[mt.tensor([7])]
        with pytest.raises(IndexError):
            bad.tolist()
        assert (
            str(fine) == repr(fine) == "Tensor(f32[3], lost: the run that would have computed it failed)"
        )  # no warning
        with pytest.raises(TracingError, match="was pending in the lazy block, and was never computed"):
            fine.tolist()
    with pytest.raises(TracingError, match="the run that would have computed it failed"):
        fine + 1


def test_an_error_in_the_data_at_the_end_of_the_block_is_raised_there():
    with pytest.raises(IndexError), mt.lazy("interpret"):
        kept = mt.ones(3)[mt.tensor([7])]
    assert kept.shape == (1,) and (mt.ones(1) + 1).item() == 2


# Together with the other modes --------------------------------------------------------------------


def test_blocks_nest_and_hold_jitted_functions():
    f = mt.jit(lambda x: x * 2)
    with mt.lazy() as outer, mt.lazy() as inner:
        assert inner is outer
        assert f(mt.ones(2)).tolist() == [2, 2]

    @mt.jit
    def g(x):
        with mt.lazy() as recording:
            assert recording is None
            return x + 1

    assert g(mt.ones(1)).item() == 2


def test_a_lazy_tensor_goes_into_the_other_modes_after_the_block():
    with mt.lazy():
        x = mt.ones(2) * 3
    assert mt.jit(lambda y: y + x)(x).tolist() == [6, 6]
    with mt.Graph() as g:
        y = x * 2
    assert mt.Session(g).run(y).tolist() == [6, 6]
    with mt.Graph(), pytest.raises(TracingError, match="MT110"), mt.lazy():
        pass


# Looking at it ---------------------------------------------------------------------------------------------------


def test_pending_is_what_would_run() -> None:
    x = mt.ones(4)
    with mt.lazy() as recording:
        assert recording is not None
        assert not recording.pending().inputs and not recording.pending().outputs
        y = x * 2
        z = y + 1
        pending = recording.pending()
        assert pending.count() == {"mul": 1, "add": 1}
        assert [node.spec.shape for node in pending.outputs] == [(4,), (4,)] and len(pending.inputs) == 1
        pending.verify()
        assert recording.explain().runs == 0  # nothing ran for looking
        del y
        assert len(recording.pending().outputs) == 1
        assert z.tolist() == [3, 3, 3, 3]
        assert not recording.pending().nodes
        x.add_(1)
        assert recording.pending().count() == {"add": 1}  # a write to a tensor from outside is due as well


def test_explain_tells_what_needed_a_value_and_what_was_compiled() -> None:
    x = mt.ones(5)
    with mt.lazy() as recording:
        assert recording is not None
        for _ in range(3):
            y = (x * 3.25 - 0.75).sum()
            y.item()
        z = x / 1.25
    history = recording.explain()
    first, last = history.programs
    assert (history.runs, history.compiled) == (4, 2)
    assert (first.runs, first.cause, first.compiled) == (3, "item()", True)
    assert str(first.source).startswith("test_lazy.py:")
    assert (last.runs, last.cause, last.source) == (1, "the end of the block", None)
    assert "4 runs of 2 programs, 2 compiled" in str(history) and "3 runs, first for item() at test_lazy" in str(
        history
    )
    assert mt.allclose(z, mt.full((5,), 0.8))

    with mt.lazy() as recording:
        assert recording is not None
        (x * 3.25 - 0.75).sum().item()
    assert recording.explain().compiled == 0 and "was compiled before" in str(recording.explain())
