"""Programs on eight virtual devices; `test_sharding` runs this file in a process of its own."""

from __future__ import annotations

import copy
import math
import random
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn as nn
import minitorch.nn.functional as F
from minitorch.errors import ShardingError
from minitorch.tensor import Remote
from minitorch_xla.backend import partitions
from minitorch_xla.sharding import Mesh, shard, shard_module, visualize
from minitorch_xla.sharding.mesh import Axis
from tests.modes.test_modes import ALL, assert_close, eager, jitted, lazily, run
from tests.support import pages
from tests.support.sessions import session

MESH = Mesh((4, 2), ("data", "model"))
FLAT = Mesh((8,), ("data",))
COLUMNS_THEN_ROWS = {"0.weight": ("model", None), "0.bias": ("model",), "2.weight": (None, "model")}


@pytest.fixture(scope="module", autouse=True)
def devices():
    """Asked for when the tests begin: this file is imported by others, too, and JAX is told once."""
    mt.sharding.use_virtual_devices(8)


def perceptron():
    mt.manual_seed(0)
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))


def batch():
    draw = np.random.default_rng(0)
    return mt.tensor(draw.standard_normal((64, 32)).astype(np.float32)), mt.tensor(draw.integers(0, 10, 64))


def step_of(model, optimizer, backend="xla"):
    @mt.jit(backend=backend)
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def losses(axes=None, divide=(), backend="xla", optimizer=mt.optim.Adam):
    model = perceptron()
    x, y = batch()
    if axes is not None:
        shard_module(model, MESH, axes)
    if divide:
        x, y = shard(x, MESH, (divide, None)), shard(y, MESH, (divide,))
    step = step_of(model, optimizer(model.parameters(), lr=1e-2), backend)
    return [step(x, y).item() for _ in range(5)], model, step


# Training ---------------------------------------------------------------------------------------------------


@pytest.mark.sweep
@pytest.mark.parametrize("optimizer", [mt.optim.SGD, mt.optim.Adam])
@pytest.mark.parametrize(
    ("axes", "divide"),
    [({}, ("data",)), (COLUMNS_THEN_ROWS, ()), (COLUMNS_THEN_ROWS, ("data",)), ({}, ("data", "model"))],
    ids=["data", "model", "both", "all"],
)
def test_training_has_the_losses_of_one_device(axes, divide, optimizer):
    expected, one, _ = losses(optimizer=optimizer)
    found, model, _ = losses(axes, divide, optimizer=optimizer)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    for mine, theirs in zip(model.parameters(), one.parameters(), strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=2e-3, atol=2e-5)


OPTIMIZERS = {
    "momentum": lambda parameters, lr: mt.optim.SGD(parameters, lr=lr, momentum=0.9),
    "Adam": mt.optim.Adam,
    "AdamW": mt.optim.AdamW,
}


def linear(axes, optimizer, jit):
    """The losses of two steps; then the model, its optimiser, and the losses of two more."""
    mt.manual_seed(0)
    model, x = nn.Linear(8, 16), mt.randn(4, 8)
    if axes is not None:
        shard_module(model, FLAT, axes)
    own = optimizer(model.parameters(), lr=1e-2)

    @jit
    def step(x):
        own.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        own.step()
        return loss

    return [step(x).item() for _ in range(2)], model, own, lambda x=x: [step(x).item() for _ in range(2)]


@pytest.mark.sweep
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("weight", [("data", None), (None, "data")], ids=["columns", "rows"])
def test_state_beside_whole_parameters_is_divided_and_its_memory_taken(weight, optimizer):
    """Nobody says how the optimiser's state is divided: XLA does in the first step, and then it stays so."""
    expected, _, _, more = linear(None, OPTIMIZERS[optimizer], lambda f: f)
    found, model, own, go_on = linear({"weight": weight}, OPTIMIZERS[optimizer], mt.jit(backend="xla"))
    state = [tensor for each in own.state.values() for tensor in each.values()]
    before = [each._value.array for each in (*model.parameters(), *state)]
    np.testing.assert_allclose([*found, *go_on()], [*expected, *more()], rtol=1e-5)
    assert all(array.is_deleted() for array in before), "the memory is used again"
    assert [len(visualize(each).parts) for each in model.parameters()] == [8, 1]
    assert {len(visualize(each).parts) for each in own.state[model.weight].values() if each.ndim} == {8}


def test_parameters_on_one_device_take_part_in_a_step_of_a_divided_batch():
    expected, _, _, more = linear(None, mt.optim.Adam, lambda f: f)
    found, _, _, go_on = linear(None, mt.optim.Adam, mt.jit(backend="xla"))
    mt.manual_seed(0)
    nn.Linear(8, 16)
    divided = shard(mt.randn(4, 8), Mesh((4,), ("data",)), ("data", None))
    np.testing.assert_allclose([*found, *go_on(divided)], [*expected, *more()], rtol=1e-5)


def test_parameters_stay_divided_as_they_were_and_on_their_devices():
    _, model, _ = losses(COLUMNS_THEN_ROWS, ("data",))
    assert all(isinstance(each._value, Remote) and not each._value.is_fetched for each in model.parameters())
    assert len(visualize(model[0].weight).parts) == 2 and len(visualize(model[2].weight).parts) == 2
    assert len(visualize(model[2].bias).parts) == 1


LOOKS = {
    "repr": repr,
    "tolist": lambda w: w.tolist(),
    "numpy": lambda w: w.detach().numpy().sum(),
    "an element": lambda w: w[0, 0].item(),
    "arithmetic": lambda w: (w * 2).sum().item(),
    "a copy": copy.deepcopy,
    "other code": lambda w: mt.jit(lambda: w.sum(), backend="interpret")(),
    "a write": lambda w: w.detach().mul_(1),
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_parameter_that_somebody_looks_at_is_divided_in_the_next_step(look):
    _, model, _, go_on = linear({"weight": ("data", None)}, mt.optim.SGD, mt.jit(backend="xla"))
    _, _, _, more = linear(None, mt.optim.SGD, lambda f: f)
    LOOKS[look](model.weight)
    assert (isinstance(model.weight._value, Remote)) is (look in ("repr", "tolist"))
    np.testing.assert_allclose(go_on(), more(), rtol=1e-5)
    assert len(visualize(model.weight).parts) == 8


def test_saving_leaves_everything_where_it_is(tmp_path):
    _, model, optimizer, _ = linear({"weight": ("data", None)}, mt.optim.Adam, mt.jit(backend="xla"))
    model.tied = model.weight
    tensors = [*model.parameters(), *(each for state in optimizer.state.values() for each in state.values())]
    before = [each._value for each in tensors]
    mt.save({"model": model, "optimizer": optimizer}, tmp_path)
    assert all(each._value is value and not value.is_fetched for each, value in zip(tensors, before, strict=True))
    with mt.export.Checkpoint(tmp_path) as found:
        assert (found["model.tied"].numpy() == model.weight.detach().numpy()).all()
        assert "model.weight" in found.metadata["minitorch.tied"]


def test_a_gradient_is_divided_as_its_tensor_in_a_traced_function_and_on_the_host_outside():
    def loss(w):
        y = shard(w, FLAT, ("data",))
        return (y * y).sum()

    w = nn.Parameter(mt.arange(16.0))
    (inside,) = mt.jit(lambda w: mt.autograd.grad(loss(w), [w]), backend="xla")(w)
    assert len(visualize(inside).parts) == 8
    mt.jit(loss, backend="xla")(w).backward()
    assert w.grad.tolist() == inside.tolist() and type(w.grad._value) is np.ndarray


# What moves -------------------------------------------------------------------------------------------------


def regression(divide):
    mt.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 24), nn.Tanh(), nn.Linear(24, 8))
    optimizer = mt.optim.SGD(model.parameters(), lr=0.1)

    @mt.jit(backend="xla")
    def step(x, y):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss

    x, y = mt.randn(32, 16), mt.randn(32, 8)
    shard_module(model, FLAT)
    return model, step, *(shard(each, FLAT, ("data", None)) if divide else each for each in (x, y))


def test_data_parallel_sums_each_gradient_once():
    model, step, x, y = regression(divide=True)
    found = step.collectives(x, y)
    numbers = sum(each.numel() for each in model.parameters()) + 1  # and the loss
    assert {each.kind for each in found} == {"all-reduce"}
    assert found.moved == 2 * (8 - 1) * 4 * numbers
    assert all("eight_devices.py:" in line for each in found for line in each.lines)
    assert f"{found.moved} bytes" in repr(found)


def convolutional():
    mt.manual_seed(0)
    first, second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3)
    return nn.Sequential(nn.Unflatten(1, (3, 8, 8)), first, nn.ReLU(), nn.MaxPool2d(2), second, nn.Flatten())


@pytest.mark.sweep
@pytest.mark.parametrize("optimizer", [mt.optim.SGD, mt.optim.Adam])
@pytest.mark.parametrize(("classifier", "width"), [(perceptron, 32), (convolutional, 192)])
def test_labels_stay_where_they_are(classifier, width, optimizer):
    """A classifier sums its gradients, the loss, and how many labels count; rows of scores and labels do not move."""
    model = shard_module(classifier(), FLAT)
    x, y = mt.randn(64, width), batch()[1]
    step = step_of(model, optimizer(model.parameters(), lr=1e-2))
    found = step.collectives(shard(x, FLAT, ("data", None)), shard(y, FLAT, ("data",)))
    numbers = sum(each.numel() for each in model.parameters()) + 2
    assert {each.kind for each in found} == {"all-reduce"}
    assert found.moved == 2 * (8 - 1) * 4 * numbers


def test_a_label_out_of_range_is_named_and_changes_nothing():
    model = shard_module(perceptron(), FLAT)
    x, y = batch()
    step = step_of(model, mt.optim.SGD(model.parameters(), lr=1e-2))
    rows, labels = shard(x, FLAT, ("data", None)), shard(y, FLAT, ("data",))
    first = step(rows, labels).item()
    before = [each.detach().clone().tolist() for each in model.parameters()]
    with pytest.raises(IndexError, match="cross_entropy: the target has 10"):
        step(rows, shard(mt.where(y == 3, 10, y), FLAT, ("data",)))
    assert [each.tolist() for each in model.parameters()] == before
    assert step(rows, labels).item() < first


def test_nothing_moves_where_nothing_is_divided():
    _, step, x, y = regression(divide=False)
    assert step.collectives(x, y) == ()


def test_columns_then_rows_sum_the_outputs_alone():
    model = perceptron()
    mesh = Mesh((8,), ("model",))
    shard_module(model, mesh, COLUMNS_THEN_ROWS)
    (found,) = mt.jit(lambda x: model(x), backend="xla").collectives(mt.ones(64, 32))
    assert (found.kind, found.groups, found.devices) == ("all-reduce", 1, 8)
    assert found.moved == 2 * (8 - 1) * 64 * 10 * 4


def test_a_result_that_is_wanted_whole_is_gathered():
    @mt.jit(backend="xla")
    def f(x):
        return shard(x * 2, FLAT, (None, None))

    x = shard(mt.ones(16, 4), FLAT, ("data", None))
    (found,) = f.collectives(x)
    assert found.kind == "all-gather" and found.moved == 7 * 16 * 4 * 4
    assert f(x).tolist() == [[2.0] * 4] * 16


# The same numbers -------------------------------------------------------------------------------------------


def divided(x, draw, mesh=MESH):
    """A tensor divided at random, as far as its lengths allow it."""
    names = ["data", "model"]
    draw.shuffle(names)
    axes = []
    for length in x.shape:
        fitting = [name for name in names if length % dict(mesh.axes)[name] == 0]
        axes.append(fitting[0] if fitting and draw.random() < 0.7 else None)
        names = [name for name in names if name != axes[-1]]
    return shard(x, mesh, axes)


@pytest.mark.parametrize("case", ALL[::15], ids=str)
def test_public_functions_of_divided_arguments_give_the_same_numbers(case):
    draw = random.Random(str(case))
    tensors = case.tensors(mt.float32)
    assert_close(
        run(jitted, case.function, [divided(x.detach(), draw) for x in tensors], "xla"),
        run(eager, case.function, tensors),
    )


@pytest.mark.parametrize("mode", [jitted, session, lazily])
@pytest.mark.parametrize("backend", ["interpret", "llvm", "xla"])
def test_a_division_is_the_identity_with_a_gradient_in_every_mode(mode, backend):
    def f(x):
        return shard(x * x, MESH, ("data", "model")) * 3

    x = mt.arange(16.0).reshape(8, 2)
    assert_close(run(mode, f, [x], backend), run(eager, lambda x: x * x * 3, [x]))
    leaf = x.clone().requires_grad_()
    f(leaf).sum().backward()
    assert leaf.grad.tolist() == (6 * x).tolist()


@pytest.mark.parametrize("seed", range(20))
def test_random_divisions_hold_every_element_where_they_say(seed):
    draw = random.Random(seed)
    shape = tuple(draw.choice((1, 2, 3, 4, 8, 16)) for _ in range(draw.randint(0, 4)))
    x = mt.arange(float(math.prod(shape))).reshape(shape)
    y = divided(divided(x, draw), draw)  # divided once more from where it is
    found = visualize(y)
    assert sorted(device for _, devices in found.parts for device in set(devices)) == [
        *sorted(device for _, devices in found.parts for device in devices)
    ]
    for part, devices in found.parts:
        for piece in y._value.array.addressable_shards:
            if piece.device.id in devices:
                wanted = x.numpy()[tuple(slice(*bounds) for bounds in part)]
                assert np.asarray(piece.data).tolist() == wanted.tolist()
    assert y.tolist() == x.tolist()
    ET.fromstring(found.svg())


@pytest.mark.parametrize("seed", range(20))
def test_a_mesh_knows_who_will_hold_what(seed):
    draw = random.Random(seed)
    shape = tuple(draw.choice((1, 2, 3, 4, 8, 16)) for _ in range(draw.randint(1, 3)))
    mesh = draw.choice((MESH, FLAT, Mesh((2, 2, 2), ("data", "model", "deep"))))
    options: list[Axis] = [None, *mesh.names, tuple(draw.sample(mesh.names, min(2, len(mesh.names))))]
    axes = [draw.choice(options) for _ in shape]
    try:
        expected = mesh.holders(shape, axes)
    except ShardingError:
        with pytest.raises(ShardingError):
            shard(mt.ones(*shape), mesh, axes)
    else:
        assert visualize(shard(mt.ones(*shape), mesh, axes)) == expected


def test_writes_and_reads_of_a_divided_tensor_are_those_of_any():
    x = shard(mt.zeros(8, 2), MESH, ("data", None))
    x += 1
    x[3] = 5.0
    assert x.sum().item() == 24 and shard(x, FLAT, ("data", None)).sum().item() == 24
    state = shard(mt.zeros(8), FLAT, ("data",))
    step = mt.jit(lambda: state.add_(1).sum(), backend="xla")
    assert [step().item() for _ in range(3)] == [8, 16, 24] and len(visualize(state).parts) == 8


def test_a_tied_weight_is_divided_by_any_of_its_names():
    model = nn.Sequential(nn.Embedding(8, 4), nn.Linear(4, 8, bias=False))
    model[1].weight = model[0].weight
    shard_module(model, MESH, {"1.weight": ("model", None)})
    assert model[1].weight is model[0].weight and len(visualize(model[0].weight).parts) == 2


# Bad input --------------------------------------------------------------------------------------------------


def among(first):
    return shard(mt.ones(8), Mesh((2,), ("d",), (f"cpu:{first}", f"cpu:{first + 1}")), ("d",))


def on_two_meshes():
    mt.jit(lambda a, b: a + b, backend="xla")(among(0), among(2))


def divided_elsewhere():
    mt.jit(lambda a: shard(a * 2, FLAT, ("data",)), backend="xla")(among(0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Mesh((4,), ("data", "model")), "name of its own"),
        (lambda: Mesh((4, 2), ("data", "data")), "name of its own"),
        (lambda: Mesh((0,), ("data",)), "one device or more"),
        (lambda: shard(mt.ones(6, 2), MESH, ("data", None)), "dimension 0 of f32.6,2. has 6 elements, which 4 devices"),
        (lambda: shard(mt.ones(8, 2), MESH, ("rows",)), "no axis 'rows'"),
        (lambda: shard(mt.ones(8, 2), MESH, ("data", "data")), "'data' is there twice"),
        (lambda: shard(mt.ones(8), MESH, ("data", None)), "2 entries, and the tensor 1 dimensions"),
        (lambda: shard(mt.ones(8), MESH, "data"), r"write \('data',\)"),
        (on_two_meshes, "`a`: cpu:0, cpu:1; `b`: cpu:2, cpu:3"),
        (divided_elsewhere, r"`a`: cpu:0, cpu:1; what is divided at .*eight_devices.py:\d+: cpu:0, .*cpu:7"),
        (lambda: shard(mt.ones(16), Mesh((16,), ("data",)), ("data",)), "16 devices, and JAX sees 8"),
        (lambda: shard_module(nn.Linear(2, 2), MESH, {"wieght": (None,)}), "no parameter or buffer is called 'wieght'"),
        (lambda: visualize(mt.ones(2)), "in the memory of Python"),
        (lambda: mt.sharding.use_virtual_devices(4), "JAX has begun with 8"),
    ],
)
def test_what_does_not_fit_is_named(call, message):
    with pytest.raises(ShardingError, match=message):
        call()


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (shard, (mt.ones(8), MESH, (0,)), "0 is no axis of a mesh"),
        (shard, (mt.ones(8), MESH, (("data", 0),)), r"\('data', 0\) is no axis of a mesh"),
        (shard, (mt.ones(8), MESH, None), r"(?s)axes=None.*write \(\), and every device has all of it"),
        (Mesh, (8, "data"), r"(?s)shape=8.*write \(8,\)"),
        (Mesh, ((8,), "data"), r"(?s)names='data'.*write \('data',\)"),
        (Mesh, ((3,), ("d",), "cpu"), r"(?s)devices='cpu'.*write \('cpu',\)"),
    ],
)
def test_arguments_that_are_no_tuples_are_named(function, arguments, message):
    with pytest.raises(ShardingError, match=message):
        function(*arguments)


def test_a_model_that_cannot_be_divided_stays_as_it_was():
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 6))
    with pytest.raises(ShardingError):
        shard_module(model, MESH, {"*.weight": ("data", None)})
    assert all(type(each._value) is np.ndarray for each in model.parameters())


def test_what_is_divided_among_processes_is_made_whole_and_printed(monkeypatch):
    """Of a parameter, too. That this process has a part of it alone is acted."""
    layer = nn.Linear(8, 8)
    shard_module(layer, FLAT, {"weight": ("data", None)})
    wanted = layer.weight._value.read().copy()
    whole = partitions.is_here
    monkeypatch.setattr(
        partitions, "is_here", lambda x: whole(x) and (isinstance(x, np.ndarray) or x.is_fully_replicated)
    )
    assert repr(layer.weight) == "Parameter containing:\nTensor(f32[8,8], divided among processes)"
    with pytest.raises(ShardingError, match="divided among processes"):
        layer.weight.detach().numpy()
    found = shard(layer.weight, FLAT, ())
    assert (found.detach().numpy() == wanted).all()
    (found * 3).sum().backward()
    assert (layer.weight.grad.numpy() == 3).all()
    shard_module(layer, FLAT)
    assert (layer.weight.detach().numpy() == wanted).all()


def test_the_page_about_devices():
    assert pages.run("devices.md") > 15
