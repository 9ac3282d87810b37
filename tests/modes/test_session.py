"""`Graph`, `placeholder` and `Session`: define, then run what is fetched."""

from __future__ import annotations

import numpy as np
import pytest

import minitorch as mt
from minitorch.errors import FeedError, FetchError, MinitorchError, TracingError, TracingWarning
from minitorch.interpreters import observing
from minitorch.nn import functional as F


def small_graph():
    with mt.Graph() as g:
        x = mt.placeholder((3,), mt.float32, name="x")
        n = mt.placeholder((), mt.int64, name="n")
        y, z = mt.exp(x), mt.sin(x) * n
    return g, x, n, y, z


def test_nothing_is_computed_while_a_graph_is_defined():
    computed = []
    with observing(lambda primitive, *rest: computed.append(primitive.name)):
        g, x, n, y, z = small_graph()
        assert not computed and y.shape == (3,) and z.dtype is mt.float32
        session = mt.Session(g)
        assert not computed
        session.run(y, {x: [0, 0, 0]})
        assert computed == ["exp"], "only what is fetched"
        session.run(z, {x: [0, 0, 0], n: 2})
        assert "exp" not in computed[1:]


def test_feeds_and_fetches_of_all_kinds():
    g, x, n, y, z = small_graph()
    session = mt.Session(g, backend="interpret")
    array = np.array([0, 1, 2], np.float32)
    for feeds in (
        {x: array},
        {"x": array},
        {x: mt.tensor(array)},
        {"x": [0, 1, 2.0]},
        {
            x: array,
            n: 1,
        },
    ):
        np.testing.assert_array_equal(session.run(y, feeds).numpy(), np.exp(array))
    fetched = session.run({"y": y, "rest": [z, (x, n)]}, {x: array, n: np.int64(2)})
    assert fetched["rest"][1][1].item() == 2 and fetched["rest"][1][0].tolist() == [0, 1, 2]
    np.testing.assert_array_equal(fetched["rest"][0].numpy(), np.sin(array) * 2)
    assert session.run([]) == []


@pytest.mark.parametrize(
    ("code", "kind", "feeds"),
    [
        ("MT301", FeedError, lambda g, x, n, y: {"who": 1}),
        ("MT301", FeedError, lambda g, x, n, y: {x: [1, 2, 3], y: [1, 2, 3]}),
        ("MT302", FeedError, lambda g, x, n, y: {x: [1, 2]}),
        ("MT303", FeedError, lambda g, x, n, y: {x: np.zeros(3)}),
        ("MT303", FeedError, lambda g, x, n, y: {x: "abc"}),
        ("MT304", FeedError, lambda g, x, n, y: {}),
    ],
)
def test_wrong_feeds(code, kind, feeds):
    g, x, n, y, _ = small_graph()
    with pytest.raises(kind, match=code):
        mt.Session(g).run(y, feeds(g, x, n, y))


def test_a_placeholder_that_was_written_in_place_is_still_fed():
    """Under its name or as itself; what is fed is the value before the write."""
    with mt.Graph() as g:
        x = mt.placeholder((2,), name="x")
        before = x + 0
        x.mul_(2)
        x[0].add_(1)
    session, array = mt.Session(g), np.array([3, 4], np.float32)
    for key in (x, "x"):
        found = session.run([before, x], {key: array})
        assert [value.tolist() for value in found] == [[3, 4], [7, 8]]
    assert array.tolist() == [3, 4]


def test_wrong_fetches():
    g, *_ = small_graph()
    other, _, _, y, _ = small_graph()
    for wrong in (y, mt.ones(3), "y", None):
        with pytest.raises(FetchError, match="MT305"):
            mt.Session(g).run(wrong)
    assert other is not g


def test_a_subgraph_is_what_a_run_of_these_fetches_computes():
    weight = mt.full((3,), 2.0)
    with mt.Graph() as g:
        x, unused = mt.placeholder(3, name="x"), mt.placeholder(3, name="unused")
        y = (x * weight).exp()
        update = weight.sub_(0.5)
        mt.sin(unused)
    session = mt.Session(g)
    computed = []
    with observing(lambda primitive, *rest: computed.append(primitive.name)):
        only, both = session.subgraph(y), session.subgraph({"y": y, "update": update})
    assert not computed and weight.tolist() == [2.0] * 3
    assert only.count() == {"mul": 1, "exp": 1} and both.count() == {"mul": 1, "exp": 1, "sub": 1}
    assert [node.params["name"] for node in only.inputs] == ["x", "weight"] and len(both.outputs) == 3
    array = np.array([0, 1, 2], np.float32)
    again = mt.backends.get("interpret")(mt.Graph.parse(str(only)))
    np.testing.assert_allclose(again([array, weight.numpy()])[0], session.run(y, {x: array}).numpy(), rtol=1e-6)
    with pytest.raises(FetchError, match="MT305"):
        session.subgraph(mt.ones(3))


def test_results_share_no_memory_with_feeds_or_variables():
    w = mt.zeros(3)
    with mt.Graph() as g:
        x = mt.placeholder((3,))
        same, view, plus = x * 1, w.reshape(3, 1), x + w
    array = np.ones(3, np.float32)
    for result in mt.Session(g).run([x, w, same, view, plus], {x: array}):
        assert not np.shares_memory(result.numpy(), array) and not np.shares_memory(result.numpy(), w.numpy())


# Variables and updates ----------------------------------------------------------------------------


def test_variables_are_read_when_the_graph_runs():
    w = mt.tensor([1.0, 2.0])
    with mt.Graph() as g:
        y = w * 10
    session = mt.Session(g)
    assert session.run(y).tolist() == [10, 20] and g.variables == {"w": w}
    w[0] = 5
    assert session.run([y, w])[0].tolist() == [50, 20]


def test_an_update_happens_when_it_is_fetched_and_in_order():
    w = mt.zeros(())
    with mt.Graph() as g:
        before = w * 1
        one = w.add_(1)
        between = w * 10
        two = w.mul_(2)
    session = mt.Session(g)
    assert session.run(before).item() == 0 and session.run(between).item() == 10 and w.item() == 0
    assert session.run(one).item() == 1 and w.item() == 1
    assert session.run([before, between, two]) != [] and w.item() == 4
    assert [x.item() for x in session.run([two, one])] == [10, 5] and w.item() == 10


def test_updates_of_one_value_are_not_confused():
    v, w = mt.zeros(2), mt.zeros(2)
    with mt.Graph() as g:
        new = v + 1
        to_v, to_w = v.copy_(new), w.copy_(new)
    session = mt.Session(g)
    session.run(new)
    assert v.tolist() == w.tolist() == [0, 0]
    session.run(to_w)
    assert v.tolist() == [0, 0] and w.tolist() == [1, 1]
    session.run(to_v)
    assert v.tolist() == [1, 1]


def test_an_update_of_a_view_shows_the_view_and_writes_its_base():
    w = mt.zeros(2, 2)
    with mt.Graph() as g:
        row = w[1].add_(3)
        more = row * 2
        again = row.mul_(2)
    assert row.shape == more.shape == (2,)
    session = mt.Session(g)
    assert session.run(more).tolist() == [6, 6] and w.tolist() == [[0, 0], [0, 0]]
    assert session.run(row).tolist() == [3, 3] and w.tolist() == [[0, 0], [3, 3]]
    assert session.run(again).tolist() == [12, 12] and w.tolist() == [[0, 0], [12, 12]]


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_training_is_the_same_as_in_eager_mode(name):
    def make():
        mt.manual_seed(0)
        model = mt.nn.Sequential(mt.nn.Linear(4, 5), mt.nn.ReLU(), mt.nn.Linear(5, 3))
        return model, getattr(mt.optim, name)(model.parameters(), lr=0.05)

    x, y = mt.randn(8, 4), mt.randint(0, 3, (8,))
    model, optimizer = make()
    with mt.Graph() as g:
        a, b = mt.placeholder((8, 4), name="x"), mt.placeholder((8,), mt.int64, name="y")
        loss = F.cross_entropy(model(a), b)
        train = optimizer.minimize(loss)
    session = mt.Session(g)
    eager_model, eager_optimizer = make()
    for number in range(5):
        for group in (*optimizer.param_groups, *eager_optimizer.param_groups):
            group["lr"] = 0.1 / (number + 1)
        eager_optimizer.zero_grad()
        expected = F.cross_entropy(eager_model(x), y)
        expected.backward()
        eager_optimizer.step()
        found, nothing = session.run([loss, train], {a: x, b: y})
        assert nothing is None
        np.testing.assert_allclose(found.item(), expected.item(), rtol=1e-6)
    for mine, theirs in zip(model.parameters(), eager_model.parameters(), strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-6)
        assert mine.grad is None
    value = session.run(loss, {a: x, b: y}).item()
    assert session.run(loss, {a: x, b: y}).item() == value, "a loss alone trains nothing"


def test_gradients_can_be_fetched():
    w = mt.tensor([1.0, 2.0], requires_grad=True)
    with mt.Graph() as g:
        x = mt.placeholder((2,))
        (gradient,) = mt.autograd.grad((x * w * w).sum(), w)
        by_transform = mt.grad(lambda x: (x * w * w).sum())(x)
    found = mt.Session(g).run([gradient, by_transform], {x: [3, 4]})
    assert found[0].tolist() == [6, 16] and found[1].tolist() == [1, 4] and w.grad is None


# Random numbers -----------------------------------------------------------------------------------


def test_a_run_advances_the_random_state_as_eager_code_would():
    with mt.Graph() as g:
        a, b = mt.rand(3), mt.randn(2)
        double = a * 2
        nothing = mt.zeros(1)
    session = mt.Session(g, backend="interpret")
    mt.manual_seed(1)
    expected = [(mt.rand(3).tolist(), mt.randn(2).tolist()) for _ in range(2)]
    mt.manual_seed(1)
    found = []
    for _ in range(2):
        first, second, twice = session.run([a, b, double])
        found.append((first.tolist(), second.tolist()))
        assert twice.tolist() == [2 * number for number in found[-1][0]], "one draw, however often it is used"
    assert found == expected
    state = mt.default_generator.get_state().tolist()
    session.run(nothing)
    assert mt.default_generator.get_state().tolist() == state


# Graphs and sessions ------------------------------------------------------------------------------


def test_several_sessions_and_going_back_into_a_graph():
    w = mt.ones(2)
    with mt.Graph() as g:
        x = mt.placeholder((2,), name="x")
        y = x + w
    first = mt.Session(g)
    assert first.run(y, {x: [1, 1]}).tolist() == [2, 2]
    with g:
        z = y * w
        up = w.add_(1)
    second = mt.Session(g)
    for session in (first, second):
        assert session.run(z, {x: [1, 1]}).tolist() == [2, 2]
    second.run(up)
    assert first.run(z, {x: [1, 1]}).tolist() == [6, 6]
    assert "add" in str(g) and mt.Graph.parse(str(g)).nodes[-1].primitive.name == "add"


def test_each_set_of_fetches_is_compiled_once():
    g, x, n, y, z = small_graph()
    session = mt.Session(g)
    for _ in range(5):
        session.run(y, {x: [1, 2, 3]})
        session.run([y, z], {x: [1, 2, 3], n: 1})
    assert len(session._programs) == 2


def test_an_error_in_a_definition_leaves_the_modes_as_they_were():
    with pytest.raises(KeyError), mt.Graph():
        mt.placeholder((2,)) + 1
        raise KeyError
    assert (mt.ones(1) + 1).item() == 2
    with mt.Graph() as g, pytest.raises(MinitorchError, match="MT102"):
        mt.placeholder((1,)).item()
    assert g is not None


def test_recordings_do_not_nest():
    with mt.Graph(), pytest.raises(TracingError, match="MT110"), mt.Graph():
        pass
    with pytest.raises(TracingError, match="MT110"):
        mt.placeholder((2,))
    with pytest.raises(TracingError, match="MT110"):
        mt.jit(lambda x: mt.placeholder((2,)))(mt.ones(1))


def test_jitted_functions_are_part_of_the_graph():
    f = mt.jit(lambda x: x * 2)
    with mt.Graph() as g:
        x = mt.placeholder((2,))
        y = f(x) + 1
    assert mt.Session(g).run(y, {x: [1, 2]}).tolist() == [3, 5]


def test_an_error_while_running_names_the_line_and_changes_nothing():
    w = mt.zeros(3)
    with mt.Graph() as g:
        i = mt.placeholder((1,), mt.int64)
        update = w.add_(mt.ones(3)[i].sum())
    with pytest.raises(IndexError) as caught:
        mt.Session(g, backend="interpret").run(update, {i: [9]})
    assert "test_session.py" in str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
    assert w.tolist() == [0, 0, 0]


# Modules ---------------------------------------------------------------------------------------------------


def normed(seed=0):
    mt.manual_seed(seed)
    return mt.nn.Sequential(mt.nn.Linear(3, 4), mt.nn.BatchNorm1d(4), mt.nn.ReLU(), mt.nn.Linear(4, 1))


@pytest.mark.parametrize("momentum", [0.1, None])
def test_a_training_step_updates_running_statistics_and_a_fetched_loss_does_not(momentum):
    data = mt.tensor(np.random.default_rng(0).normal(size=(8, 3)), dtype=mt.float32)
    eager, model, bystander = normed(), normed(), normed()
    for each in (eager, model):
        each[1].momentum = momentum
    optimizer = mt.optim.SGD(eager.parameters(), lr=0.1)
    with mt.Graph() as g:
        x = mt.placeholder((8, 3), name="x")
        bystander(x)
        loss = (model(x) ** 2).mean()
        train = mt.optim.SGD(model.parameters(), lr=0.1).minimize(loss)
    session = mt.Session(g)
    session.run(loss, {x: data})
    assert model[1].running_mean.tolist() == [0] * 4 and model[1].num_batches_tracked.item() == 0
    for _ in range(2):
        optimizer.minimize((eager(data) ** 2).mean())
        session.run([loss, train], {x: data})
    for mine, theirs in zip(model.state_dict().values(), eager.state_dict().values(), strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-5)
    assert model[1].num_batches_tracked.item() == 2
    assert bystander[1].num_batches_tracked.item() == 0, "the loss does not depend on it"


def test_a_change_of_mode_after_the_definition_is_warned_of_once():
    model = mt.nn.Sequential(mt.nn.Linear(3, 4), mt.nn.ReLU(), mt.nn.Dropout(0.5))

    def graph():
        with mt.Graph() as g:
            x = mt.placeholder((2, 3), name="x")
            y = model(x)
        return mt.Session(g), y, {x: np.ones((2, 3), np.float32)}

    session, y, feeds = graph()
    session.run(y, feeds)
    model.eval()
    with pytest.warns(TracingWarning, match="MT106: `training` of a Dropout was True .* is False now"):
        session.run(y, feeds)
    session.run(y, feeds)
    evaluation, z, more = graph()
    evaluation.run(z, more)
    mt.Session(session.graph).run(y, feeds)  # there is a graph for each mode now
    plain = mt.nn.Sequential(mt.nn.Linear(3, 4), mt.nn.ReLU())
    with mt.Graph() as g:
        x = mt.placeholder((2, 3), name="x")
        y = plain(x)
    plain.eval()
    mt.Session(g).run(y, {x: np.ones((2, 3), np.float32)})  # nothing in it depends on the mode


def test_a_view_of_a_computed_value_is_fetched_as_it_was_written_last():
    with mt.Graph() as g:
        x = mt.placeholder(3, name="x")
        y = x * 1
        first, turned = y[0], y.flip(0)
        y.add_(1)
        first.mul_(2)
    results = mt.Session(g).run([first, turned, y, first], {x: [1.0, 2.0, 3.0]})
    assert [result.tolist() for result in results] == [4, [3, 2, 1], [4, 3, 4], 4]
