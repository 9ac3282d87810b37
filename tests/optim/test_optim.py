"""Laws of the optimisers: what a step does, eager and recorded, and what is kept."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn, optim
from minitorch.errors import TracingError
from minitorch.optim.group import ParamGroup

OPTIMISERS = {
    "SGD": lambda ps, **o: optim.SGD(ps, **{"lr": 0.1, **o}),
    "momentum": lambda ps, **o: optim.SGD(ps, **{"lr": 0.05, "momentum": 0.9, "dampening": 0.5, **o}),
    "nesterov": lambda ps, **o: optim.SGD(ps, **{"lr": 0.05, "momentum": 0.9, "nesterov": True, **o}),
    "Adam": lambda ps, **o: optim.Adam(ps, **{"lr": 0.1, **o}),
    "amsgrad": lambda ps, **o: optim.Adam(ps, **{"lr": 0.1, "amsgrad": True, "weight_decay": 0.01, **o}),
    "AdamW": lambda ps, **o: optim.AdamW(ps, **{"lr": 0.1, **o}),
    "Adagrad": lambda ps, **o: optim.Adagrad(ps, **{"lr": 1.0, "initial_accumulator_value": 0.1, **o}),
    "RMSprop": lambda ps, **o: optim.RMSprop(ps, **{"lr": 0.05, "fused": True, **o}),
    "centered": lambda ps, **o: optim.RMSprop(ps, **{"lr": 0.002, "centered": True, "momentum": 0.9, **o}),
    "Adadelta": lambda ps, **o: optim.Adadelta(ps, **{"lr": 10.0, "foreach": True, **o}),
    "Adamax": lambda ps, **o: optim.Adamax(ps, **{"lr": 0.2, **o}),
    "NAdam": lambda ps, **o: optim.NAdam(ps, **{"lr": 0.1, **o}),
}
each_optimiser = pytest.mark.parametrize("name", OPTIMISERS)


def start(dtype=mt.float32):
    return [mt.tensor([[3.0, -2.0], [0.5, 1.0]], dtype=dtype, requires_grad=True), mt.tensor(4.0, requires_grad=True)]


def loss_of(ps):
    return (ps[0] * ps[0] * 0.5).sum() + (ps[1] - 1) ** 2


def eager_step(ps, optimizer):
    optimizer.zero_grad()
    loss = loss_of(ps)
    loss.backward()
    optimizer.step()
    return loss


def values(ps):
    return [each.detach().numpy().copy() for each in ps]


def same(a, b, **tolerance):
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, **{"rtol": 1e-5, "atol": 1e-6, **tolerance})


@each_optimiser
def test_a_quadratic_is_minimized(name):
    ps = start()
    optimizer = OPTIMISERS[name](ps)
    losses = [eager_step(ps, optimizer).item() for _ in range(150)]
    assert losses[-1] < 0.02 * losses[0]


@each_optimiser
def test_maximize_is_minimizing_the_negative(name):
    a, b = start(), start()
    up, down = OPTIMISERS[name](a, maximize=True), OPTIMISERS[name](b)
    for _ in range(3):
        eager_step(a, up)
        down.zero_grad()
        (-loss_of(b)).backward()
        down.step()
    same(values(a), values(b))


@each_optimiser
@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16, mt.float64])
def test_parameters_and_state_keep_their_type(name, dtype):
    ps = start(dtype)[:1]
    optimizer = OPTIMISERS[name](ps)
    (ps[0] * ps[0]).sum().backward()
    optimizer.step()
    assert ps[0].dtype is dtype and ps[0].isfinite().all()
    assert all(tensor.dtype is dtype for key, tensor in optimizer.state[ps[0]].items() if tensor.ndim)


@each_optimiser
def test_minimize_is_backward_and_step_without_touching_grad(name):
    a, b = start(), start()
    first, second = OPTIMISERS[name](a), OPTIMISERS[name](b)
    for _ in range(3):
        eager_step(a, first)
        assert len(second.minimize(loss_of(b))) == 2
    same(values(a), values(b))
    assert b[0].grad is None


# Recorded -------------------------------------------------------------------------------------------------


@each_optimiser
def test_a_jitted_step_is_the_eager_step_from_the_first_on(name):
    a, b = start(), start()
    eager, traced = OPTIMISERS[name](a), OPTIMISERS[name](b)
    step = mt.jit(lambda: eager_step(b, traced))
    for number in range(6):
        if number == 3:  # a schedule
            for optimizer in (eager, traced):
                optimizer.param_groups[0]["lr"] = 0.01
        same([eager_step(a, eager).item()], [step().item()])
        same(values(a), values(b))
    for p, q in zip(a, b, strict=True):
        for key, tensor in eager.state[p].items():
            np.testing.assert_allclose(tensor.numpy(), traced.state[q][key].numpy(), rtol=1e-5, atol=1e-6)


def test_a_schedule_does_not_trace_again():
    ps = start()
    optimizer = optim.AdamW(ps, lr=0.1)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)
    step = mt.jit(lambda: eager_step(ps, optimizer))

    for _ in range(5):
        step()
        scheduler.step()
        optimizer.param_groups[0]["betas"] = (0.8, 0.99)
    assert len(step.explain().signatures) == 1
    assert optimizer.state[ps[0]]["step"].item() == 5


def test_hyperparameters_that_shape_the_graph_cannot_change_under_it():
    ps = start()
    optimizer = optim.SGD(ps, lr=0.1)
    optimizer.param_groups[0]["weight_decay"] = 0.1  # nothing recorded yet
    step = mt.jit(lambda: eager_step(ps, optimizer))
    step()
    optimizer.param_groups[0]["weight_decay"] = 0.2  # another value is an input
    with pytest.raises(TracingError, match=r"MT106: weight_decay was not zero"):
        optimizer.param_groups[0]["weight_decay"] = 0.0
    with pytest.raises(TracingError, match="MT106: maximize was False"):
        optimizer.param_groups[0]["maximize"] = True
    assert optimizer.param_groups[0]["weight_decay"] == 0.2


def test_a_scheduler_inside_of_a_recorded_step_is_an_error():
    ps = start()
    optimizer = optim.SGD(ps, lr=0.1)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1)

    @mt.jit
    def step():
        eager_step(ps, optimizer)
        scheduler.step()

    with pytest.raises(TracingError, match="MT105"):
        step()


def test_every_mode_trains_alike():
    x, y = mt.randn(16, 4), mt.randint(0, 3, (16,))

    def made():
        mt.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.3), nn.Linear(8, 3))
        return net, optim.AdamW(net.parameters(), lr=0.05), lambda x, y: nn.functional.cross_entropy(net(x), y)

    def backward_and_step(optimizer, loss):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    runs = {}
    _, optimizer, loss = made()
    runs["eager"] = [backward_and_step(optimizer, loss(x, y)).item() for _ in range(4)]
    _, optimizer, loss = made()
    with mt.lazy():
        runs["lazy"] = [backward_and_step(optimizer, loss(x, y)).item() for _ in range(4)]
    _, optimizer, loss = made()
    step = mt.jit(lambda x, y: backward_and_step(optimizer, loss(x, y)))
    runs["jit"] = [step(x, y).item() for _ in range(4)]
    _, optimizer, loss = made()
    with mt.Graph() as graph:
        images, labels = mt.placeholder((16, 4), name="x"), mt.placeholder((16,), mt.int64, name="y")
        value = loss(images, labels)
        train = optimizer.minimize(value)
    session = mt.Session(graph)
    runs["session"] = [float(session.run([value, train], {"x": x, "y": y})[0]) for _ in range(4)]
    for losses in runs.values():
        assert losses == pytest.approx(runs["eager"], rel=1e-6)


# State ----------------------------------------------------------------------------------------------------


@each_optimiser
def test_training_goes_on_from_a_state_dict(name):
    a = start()
    first = OPTIMISERS[name](a)
    for _ in range(3):
        eager_step(a, first)
    b = [each.detach().clone().requires_grad_() for each in a]
    second = OPTIMISERS[name](b, lr=0.5)
    second.load_state_dict(first.state_dict())
    for _ in range(3):
        eager_step(a, first)
        eager_step(b, second)
    same(values(a), values(b), rtol=1e-7)


def test_a_jitted_step_goes_on_with_a_loaded_state():
    a, b = start(), start()
    first, second = optim.Adam(a, lr=0.1), optim.Adam(b, lr=0.3)
    step = mt.jit(lambda: eager_step(b, second))
    for _ in range(3):
        eager_step(a, first)
        step()
    with mt.no_grad():
        for p, q in zip(a, b, strict=True):
            q.copy_(p)
    second.load_state_dict(first.state_dict())
    eager_step(a, first)
    step()
    same(values(a), values(b))


def test_a_state_that_does_not_fit_is_refused():
    optimizer = optim.Adam(start())
    for other, text in [
        (optim.Adam(start()[:1]), "groups"),
        (optim.Adam([mt.zeros(3, requires_grad=True), mt.zeros(1, requires_grad=True)]), "shape"),
    ]:
        with pytest.raises(ValueError, match=text):
            optimizer.load_state_dict(other.state_dict())


# Groups ---------------------------------------------------------------------------------------------------


def test_groups_have_hyperparameters_of_their_own():
    ps = start()
    optimizer = optim.SGD([{"params": ps[:1], "lr": 0.5}, {"params": ps[1]}], lr=0.25)
    eager_step(ps, optimizer)
    same(values(ps), [[[1.5, -1], [0.25, 0.5]], 2.5])
    optimizer.add_param_group({"params": [mt.zeros(1, requires_grad=True)], "momentum": 0.9})
    assert [group["momentum"] for group in optimizer.param_groups] == [0, 0, 0.9]


def test_a_group_is_a_dict_of_python_numbers():
    group = optim.Adam(start(), lr=1e-3).param_groups[0]
    assert group["lr"] == 1e-3 and group["betas"] == (0.9, 0.999) and group["amsgrad"] is False
    group["lr"] *= 10
    group.update(eps=1e-6)
    assert group.get("lr") == pytest.approx(1e-2) and group.get("none") is None and group["eps"] == 1e-6
    assert set(group) == {"params", "lr", "betas", "eps", "weight_decay", "amsgrad", "maximize"}


def test_momentum_can_be_switched_on_later():
    ps, whole = start(), start()
    optimizer, other = optim.SGD(ps, lr=0.1), optim.SGD(whole, lr=0.1, momentum=0.9, dampening=0.5)
    optimizer.param_groups[0].update(momentum=0.9, dampening=0.5)
    for _ in range(3):
        eager_step(ps, optimizer)
        eager_step(whole, other)
    same(values(ps), values(whole))


WRITES: dict[str, list[Any]] = {
    "lr": [0.3, 0.0, 2, np.float64(0.2), np.array(0.2), mt.tensor(0.2), None, "", [], "0.1", np.ones(2)],
    "momentum": [0.5, 0.0, np.float32(0.0), mt.tensor(0.0), None, "", [], (), np.zeros(2)],
    "weight_decay": [0.5, 0, np.array(0.0), None, "", {}],
    "betas": [(0.5, 0.9), [0.0, 0.9], np.array([0.5, 0.9]), (0.5, None), (0.5,), (0.5, np.ones(2)), None, 0.5],
    "maximize": [True, 1, ()],
    "amsgrad": [True, 1],
}


@each_optimiser
def test_after_any_write_a_step_is_that_of_an_optimiser_of_the_values_shown(name):
    for key, value in [(key, value) for key, given in WRITES.items() for value in given]:
        ps, whole = start(), start()
        optimizer = OPTIMISERS[name](ps)
        group = optimizer.param_groups[0]
        before = dict(group)
        if key not in group:
            continue
        try:
            group[key] = value
        except (TypeError, ValueError):
            assert dict(group) == before, "a value that is refused changes nothing"
        other = OPTIMISERS[name](whole)
        other.param_groups[0] = ParamGroup({**group, "params": whole})
        for _ in range(3):
            eager_step(ps, optimizer)
            eager_step(whole, other)
        same(values(ps), values(whole))


def test_a_group_keeps_anything_and_is_read_from_what_was_pickled_before():
    optimizer = optim.SGD(start(), lr=0.1, momentum=0.9)
    group = optimizer.param_groups[0]
    for value in (np.zeros(3), None, "text"):
        group["tag"] = value
        assert group["tag"] is value
        del group["tag"]
        group["tag"] = None
        group["tag"] = value
        del group["tag"]
    kept = {"_values", "_zero", "_baked", "slots"}  # what is in pickles: renaming one needs a `__setstate__`
    assert set(vars(group)) == kept


def test_hyperparameters_can_be_set_while_a_graph_is_defined():
    w = mt.tensor([4.0], requires_grad=True)
    with mt.Graph() as graph:
        optimizer = optim.SGD([w], lr=1.0)
        optimizer.param_groups[0]["lr"] = 0.25
        train = optimizer.minimize((w * w).sum())
    mt.Session(graph).run(train)
    assert w.tolist() == [2] and optimizer.param_groups[0]["lr"] == 0.25


def test_parameters_without_gradient_are_left_alone():
    ps = start()
    optimizer = optim.AdamW(ps, lr=0.1)
    (ps[0] * 2).sum().backward()
    optimizer.step()
    assert ps[1].item() == 4


def test_a_closure_is_called_with_gradients_on():
    ps = start()
    optimizer = optim.SGD(ps, lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = loss_of(ps)
        loss.backward()
        return loss

    with mt.no_grad():
        assert optimizer.step(closure).item() == pytest.approx(16.125)


def test_wrong_parameters_are_errors():
    w = mt.ones(2, requires_grad=True)
    for wrong, error, text in [
        (lambda: optim.SGD([]), ValueError, "runs out"),
        (lambda: optim.SGD(w), TypeError, "several"),
        (lambda: optim.SGD([w, w]), ValueError, "twice"),
        (lambda: optim.SGD([w * 2]), ValueError, "leaves"),
        (lambda: optim.SGD([3.0]), TypeError, "tensors"),
        (lambda: optim.SGD([w], nesterov=True), ValueError, "momentum"),
        (lambda: optim.Adam([w], betas=(0.9, 1.0)), ValueError, "betas"),
    ]:
        with pytest.raises(error, match=text):
            wrong()


def test_groups_keep_entries_of_other_names():
    """As in PyTorch: programs scale the rates of layers by such, and wrap optimisers in others."""
    a, b = start()
    groups = [{"params": [a], "lr_scale": 0.5, "name": "body"}, {"params": [b], "lr_scale": 1.0}]
    optimizer = optim.SGD(groups, lr=1.0)
    for group in optimizer.param_groups:
        group["lr"] = 0.1 * group["lr_scale"]
    again = optim.Adam(optimizer.param_groups)
    again.load_state_dict(optim.Adam(optimizer.param_groups).state_dict())
    for each in (optimizer, again):
        assert [(group["lr"], group["lr_scale"]) for group in each.param_groups] == [(0.05, 0.5), (0.1, 1.0)]
        assert each.param_groups[0]["name"] == "body"


# Training -------------------------------------------------------------------------------------------------


def test_an_mlp_learns_handwritten_digits():
    pytest.importorskip("sklearn")
    mt.manual_seed(0)
    (x, y), (x_test, y_test) = mt.data.load_digits()
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = optim.AdamW(net.parameters(), lr=5e-3)
    loader = mt.data.DataLoader(mt.data.TensorDataset(x, y), batch_size=64, shuffle=True)
    for _ in range(6):
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(images), labels).backward()
            optimizer.step()
    with mt.no_grad():
        accuracy = (net(x_test).argmax(1) == y_test).float().mean().item()
    assert accuracy > 0.9


def test_a_convolutional_network_learns_handwritten_digits():
    pytest.importorskip("sklearn")
    mt.manual_seed(0)
    (x, y), (x_test, y_test) = mt.data.load_digits()
    net = nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 12, 3, padding=1, bias=False),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.1),
        nn.Linear(192, 10),
    )
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    @mt.jit
    def step(images, labels):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    loader = mt.data.DataLoader(mt.data.TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
    for _ in range(3):
        for images, labels in loader:
            step(images, labels)
    with mt.no_grad():
        accuracy = (net.eval()(x_test).argmax(1) == y_test).float().mean().item()
    assert accuracy > 0.9


@pytest.mark.parametrize("compiled", [False, True])
def test_an_optimiser_of_ones_own_reads_its_learning_rate_in_every_mode(compiled):
    """The example of `Optimizer`; what a schedule sets is seen by a recorded step."""

    class SignDescent(mt.optim.Optimizer):
        def slots(self, group):
            return ()

        def update(self, group, parameters, gradients):
            return [p.copy_(p - group["lr"] * g.sign()) for p, g in zip(parameters, gradients, strict=True)]

    w = mt.tensor([4.0, -1.0], requires_grad=True)
    optimizer = SignDescent([w], {"lr": 0.5, "maximize": False})

    def step():
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()

    run = mt.jit(step) if compiled else step
    for lr, expected in ((0.5, [3.5, -0.5]), (0.5, [3.0, 0.0]), (0.25, [2.75, 0.0])):
        optimizer.param_groups[0]["lr"] = lr
        run()
        assert w.tolist() == expected and optimizer.param_groups[0]["lr"] == lr


class WrittenForPyTorch(mt.optim.Optimizer):
    """Adam as it is written by hand in many programs."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps))  # noqa: C408

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("eps", 1e-8)

    @mt.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["step"], state["mean"], state["squares"] = 0, mt.zeros_like(p.data), mt.zeros_like(p)
                state["step"] += 1
                state["mean"].mul_(beta1).add_(p.grad, alpha=1 - beta1)
                state["squares"].mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                correction = math.sqrt(1 - beta2 ** state["step"])
                size = group["lr"] / (1 - beta1 ** state["step"])
                p.data.addcdiv_(state["mean"], (state["squares"].sqrt() / correction).add_(group["eps"]), value=-size)


def test_an_optimiser_that_was_written_for_pytorch_works_eagerly():
    a, b = start(), start()
    hand, ours = WrittenForPyTorch(a, lr=0.1), optim.Adam(b, lr=0.1)
    schedules = [optim.lr_scheduler.StepLR(each, 2) for each in (hand, ours)]
    for number in range(6):
        if number == 3:
            first, hand = hand, copy.deepcopy(WrittenForPyTorch(a, lr=1.0))
            hand.param_groups[0]["params"] = a
            hand.load_state_dict(first.state_dict())
            schedules[0].optimizer = hand
        for ps, optimizer, schedule in zip((a, b), (hand, ours), schedules, strict=True):
            eager_step(ps, optimizer)
            schedule.step()
    same(values(a), values(b))
    assert hand.state_dict()["state"][0]["step"] == 6 and first.state[a[0]]["step"] == 3


CHAINED: dict[str, Any] = {
    "StepLR": ({"step_size": 2, "gamma": 0.5}, lambda epoch: 0.5 ** (epoch // 2)),
    "CosineAnnealingLR": ({"T_max": 9}, lambda epoch: (1 + math.cos(math.pi * epoch / 9)) / 2),
    "MultiStepLR": ({"milestones": [2, 3, 3], "gamma": 0.5}, lambda epoch: 0.5 ** sum(epoch >= at for at in (2, 3, 3))),
    "ExponentialLR": ({"gamma": 0.7}, lambda epoch: 0.7**epoch),
    "MultiplicativeLR": ({"lr_lambda": lambda epoch: 0.7}, lambda epoch: 0.7**epoch),
    "ConstantLR": ({"factor": 0.5, "total_iters": 3}, lambda epoch: 0.5 if epoch < 3 else 1.0),
    "LinearLR": ({"start_factor": 0.2, "total_iters": 4}, lambda epoch: 0.2 + 0.8 * min(epoch, 4) / 4),
    "PolynomialLR": ({"total_iters": 9, "power": 2.0}, lambda epoch: (1 - epoch / 9) ** 2),
}


@pytest.mark.parametrize("by_hand", [None, 0, 3])
@pytest.mark.parametrize("names", [*([name] for name in CHAINED), ["StepLR", "StepLR"], list(CHAINED)], ids=str)
def test_schedulers_multiply_the_rate_that_is_there(names, by_hand):
    optimizer = optim.SGD([{"params": [p], "lr": rate} for p, rate in zip(start(), (0.5, 0.1), strict=True)], lr=1.0)
    schedulers = [getattr(optim.lr_scheduler, name)(optimizer, **CHAINED[name][0]) for name in names]
    rates = [0.5, 0.1]
    for epoch in range(8):
        if epoch == by_hand:
            rates[0] *= 3
            optimizer.param_groups[0]["lr"] *= 3
        factor = math.prod(CHAINED[name][1](epoch) for name in names)
        assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([rate * factor for rate in rates])
        for scheduler in schedulers:
            scheduler.step()
    assert [group["initial_lr"] for group in optimizer.param_groups] == [0.5, 0.1]
    again = optim.SGD([{"params": [p]} for p in start()], lr=1.0)
    again.load_state_dict(optimizer.state_dict())
    last = optimizer.param_groups[0]["lr"]
    resumed = optim.lr_scheduler.StepLR(again, step_size=100, last_epoch=8)
    assert (resumed.base_lrs, again.param_groups[0]["lr"]) == ([0.5, 0.1], last)
