"""State that is assigned is state: tensors in attributes, items and variables get new values in every mode.

The law: a program that assigns is called several times in every mode. After each call its results and its state are
those of eager mode, a tensor that was taken out of the state before the call has its old value, and after the second
call nothing is traced again.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections import defaultdict, deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch import nn
from minitorch.tree import Parts

PROGRAMS: dict[str, Callable[[], tuple[Callable[..., Any], Any]]] = {}  # each makes a program, and what holds its state


def program(make: Callable[[], tuple[Callable[..., Any], Any]]) -> Callable[[], Any]:
    """Add a program to the table."""
    PROGRAMS[make.__name__] = make
    return make


class Norm(nn.Module):
    """A batch normalization as people write it."""

    mean: Any
    steps: Any

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(mt.ones(2))
        self.register_buffer("mean", mt.full((2,), 6.0))
        self.register_buffer("steps", mt.zeros((), dtype=mt.int64))

    def forward(self, x: Any) -> Any:
        """Normalize."""
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
            self.steps = self.steps + 1
        return (x - self.mean) * self.weight


class Box:
    """An object with attributes."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...


class Slots:
    """An object with a slot, and a property."""

    __slots__ = ("_m",)

    @property
    def m(self) -> Any:
        """The tensor."""
        return self._m

    @m.setter
    def m(self, value: Any) -> None:
        self._m = value


@program
def buffer() -> Any:
    model = Norm()
    return model, model


@program
def nested_modules() -> Any:
    model = nn.Sequential(nn.Linear(2, 2, bias=False), Norm(), nn.Sequential(Norm()))
    with mt.no_grad():
        model[0].weight.copy_(mt.tensor([[1.0, 2.0], [0.5, 1.0]]))
    return model, model


@program
def object_attribute() -> Any:
    box = Box(m=mt.ones(2), other=3)

    def run(x: Any) -> Any:
        box.m = box.m * 0.5 + x.mean(0) * box.other
        return box.m.sum()

    return run, box


@program
def slot_behind_a_property() -> Any:
    box = Slots()
    box.m = mt.ones(2)

    def run(x: Any) -> Any:
        box.m = box.m + x.mean(0)
        return x * box.m

    return run, box


@program
def dict_item() -> Any:
    state: dict[str, Any] = {"m": mt.ones(2), "scale": 2.0, "inner": {"n": mt.zeros(2)}}

    def run(x: Any) -> Any:
        state["m"] = state["m"] * 0.5 + x.mean(0) * state["scale"]
        state["inner"]["n"] = state["inner"]["n"] + state["m"]
        return x + state["m"]

    return run, state


@program
def list_item() -> Any:
    state = [mt.ones(2), mt.zeros(2)]

    def run(x: Any) -> Any:
        state[0] = state[0] + x.mean(0)
        state[1] = state[0] * 2
        return state[1]

    return run, state


@program
def enclosing_variable() -> Any:
    count = mt.zeros(2)
    box = Box()

    def run(x: Any) -> Any:
        nonlocal count
        count = count + x.mean(0)
        return count * 2

    box.run = run.__closure__[0]
    return run, box.run


COUNT = mt.zeros(2)


@program
def global_variable() -> Any:
    def run(x: Any) -> Any:
        global COUNT
        COUNT = COUNT + x.mean(0)
        return COUNT * 2

    run.__globals__["COUNT"] = mt.zeros(2)
    return run, lambda: COUNT


@program
def class_attribute() -> Any:
    class Own(nn.Module):
        m = mt.zeros(2)

        def forward(self, x: Any) -> Any:
            Own.m = Own.m + x.mean(0)
            return x + self.m

    return Own(), lambda: Own.m


@program
def tuple_of_states() -> Any:
    box = Box(hidden=(mt.zeros(2), mt.ones(2)))

    def run(x: Any) -> Any:
        h, c = box.hidden
        box.hidden = (h + x.mean(0), c * 0.5)
        return h * c

    return run, box


@program
def new_dict_in_each_call() -> Any:
    box = Box(hidden={"h": mt.zeros(2), "c": [mt.ones(2)]})

    def run(x: Any) -> Any:
        h, c = box.hidden["h"], box.hidden["c"][0]
        box.hidden = {"h": h + x.mean(0), "c": [c * 0.5]}
        return h * c

    return run, box


@program
def nothing_at_first() -> Any:
    class Lazy(nn.Module):
        hidden: Any = None

        def forward(self, x: Any) -> Any:
            before = mt.zeros(2) if self.hidden is None else self.hidden
            self.hidden = before + x.mean(0)
            return self.hidden

    model = Lazy()
    return model, model


@program
def buffer_on_the_fly() -> Any:
    class Lazy(nn.Module):
        mean: Any

        def forward(self, x: Any) -> Any:
            if not hasattr(self, "mean"):
                self.register_buffer("mean", mt.zeros(2))
            self.mean = self.mean * 0.5 + x.mean(0)
            return x - self.mean

    model = Lazy()
    return model, model


@program
def exchanged() -> Any:
    box = Box(a=mt.zeros(2), b=mt.ones(2))

    def run(x: Any) -> Any:
        box.a, box.b = box.b, box.a
        return x + box.a

    return run, box


@program
def assigned_twice() -> Any:
    box = Box(m=mt.ones(2))

    def run(x: Any) -> Any:
        box.m = box.m + x.mean(0)
        first = box.m
        box.m = box.m * 2
        return first

    return run, box


@program
def written_and_assigned() -> Any:
    box = Box(m=mt.ones(2))

    def run(x: Any) -> Any:
        box.m.add_(x.mean(0))
        box.m = box.m * 2
        box.m.mul_(0.25)
        return box.m + 0

    return run, box


@program
def shared_by_two() -> Any:
    first, second = Norm(), Norm()
    second.mean = first.mean

    def run(x: Any) -> Any:
        y = first(x)
        second.mean = first.mean
        return y + second.mean

    return run, (first, second)


@program
def shared_at_first() -> Any:
    first, second = Norm(), Norm()
    second.mean = first.mean
    return (lambda x: second(first(x))), (first, second)


@program
def also_returned() -> Any:
    box = Box(m=mt.ones(2))

    def run(x: Any) -> Any:
        box.m = box.m + x.mean(0)
        return {"m": box.m, "again": [box.m]}

    return run, box


@program
def an_argument() -> Any:
    box = Box(last=mt.zeros(3, 2))

    def run(x: Any) -> Any:
        result = x - box.last
        box.last = x
        return result

    return run, box


@program
def under_no_grad() -> Any:
    box = Box(m=mt.ones(2), w=nn.Parameter(mt.ones(2)))

    def run(x: Any) -> Any:
        with mt.no_grad():
            box.m = box.m * 0.9 + (x * box.w).mean(0) * 0.1
        return (x * box.w - box.m).sum()

    return run, box


@program
def through_the_old_value() -> Any:
    box = Box(m=mt.ones(2), w=nn.Parameter(mt.ones(2)))

    def run(x: Any) -> Any:
        box.m = box.m.detach() * box.w + x.mean(0)
        return (box.m * box.w).sum()

    return run, box


@program
def a_chain_of_gradients() -> Any:
    box = Box(m=mt.ones(2), w=nn.Parameter(mt.ones(2)))

    def run(x: Any) -> Any:
        box.m = box.m * box.w + x.mean(0)
        return box.m.sum()

    return run, box


@program
def a_window() -> Any:
    box = Box(window=deque([mt.zeros(2), mt.ones(2), mt.ones(2) * 2], maxlen=3))

    def run(x: Any) -> Any:
        box.window.append(x.mean(0))
        return mt.stack(list(box.window)).sum(0)

    return run, box


@program
def learning_rate() -> Any:
    weight = nn.Parameter(mt.ones(2))
    optimizer = mt.optim.SGD([weight], lr=0.1)
    box = Box(rate=mt.tensor(0.5), weight=weight, optimizer=optimizer)

    def run(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (x * weight).sum()
        loss.backward()
        optimizer.step()
        with mt.no_grad():
            weight.sub_(box.rate)
        box.rate = box.rate * 0.9
        return loss.detach()

    return run, box


@program
def a_parameter_that_is_replaced() -> Any:
    class Growing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = mt.ones(2)

        def forward(self, x: Any) -> Any:
            setattr(self, "sca" + "le", self.scale * 1.5)
            return x * self.scale

    model = Growing()
    return model, model


@program
def items_by_parameter() -> Any:
    """An optimiser's state, as it is written for PyTorch."""
    weights = [nn.Parameter(mt.ones(2)), nn.Parameter(mt.ones(2) * 2), nn.Parameter(mt.ones(1))]
    state: Any = {weight: {"mean": mt.zeros_like(weight)} for weight in weights}

    def run(x: Any) -> Any:
        for number, weight in enumerate(weights):
            state[weight]["mean"] = state[weight]["mean"] * 0.5 + x.mean(0)[: weight.numel()] * number
        return sum((weight * state[weight]["mean"]).sum() for weight in weights)

    return run, lambda: [state[weight] for weight in weights]


@program
def items_by_parameter_at_first() -> Any:
    weights = [nn.Parameter(mt.ones(2)), nn.Parameter(mt.ones(1) * 2)]
    state: Any = defaultdict(dict)

    def run(x: Any) -> Any:
        for weight in weights:
            own = state[weight]
            if not own:
                own["steps"] = mt.zeros(())
            own["steps"] = own["steps"] + x.mean()
            own["slow"] = own.get("slow", weight.detach()) * 0.5 + own["steps"]
        return sum((weight * state[weight]["slow"]).sum() for weight in weights)

    return run, lambda: [dict(state.get(weight, {})) for weight in weights]


def helper(box: Box, x: Any) -> Any:
    """Change the state of another function."""
    box.m = box.m + x.mean(0)
    return box.m


@program
def in_a_helper() -> Any:
    box = Box(m=mt.ones(2))
    return (lambda x: helper(box, x) * 2), box


@program
def in_a_hook() -> Any:
    model, box = nn.Linear(2, 2, bias=False), Box(seen=None)
    with mt.no_grad():
        model.weight.copy_(mt.tensor([[1.0, 2.0], [0.5, 1.0]]))

    def keep(module: Any, given: Any, result: Any) -> None:
        box.seen = result.detach().mean(0)

    model.register_forward_hook(keep)
    return model, box


@program
def dataclass_state() -> Any:
    @dataclasses.dataclass
    class State:
        m: Any
        count: int = 2

    class Owner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.state = State(mt.ones(2))

        def forward(self, x: Any) -> Any:
            self.state.m = self.state.m * self.state.count + x.mean(0)
            return self.state.m

    model = Owner()
    return model, model


@program
def a_namespace() -> Any:
    space = SimpleNamespace(m=mt.ones(2), inner=SimpleNamespace(n=mt.zeros(2)))

    def run(x: Any) -> Any:
        space.m = space.m + x.mean(0)
        space.inner.n = space.m * 2
        return space.inner.n + 1

    return run, space


@program
def new_objects_in_each_call() -> Any:
    box = Box(state=Box(m=mt.ones(2), name="first"))

    def run(x: Any) -> Any:
        box.state = Box(m=box.state.m * 0.5 + x.mean(0), name="first")
        return box.state.m * 2

    return run, box


def content(value: Any, depth: int = 0) -> Any:
    """All tensors of a state, as plain data."""
    if callable(value) and not isinstance(value, nn.Module):
        value = value()
    if isinstance(value, mt.Tensor):
        grad = None if value.grad is None or not value.is_leaf else value.grad.tolist()
        return value.tolist(), value.requires_grad, grad
    if isinstance(value, dict):
        return {key: content(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, deque)):
        return [content(item, depth + 1) for item in value]
    if type(value).__name__ == "cell":
        return content(value.cell_contents)
    if isinstance(value, Slots):
        return content(value.m)
    kept = vars(value) if hasattr(value, "__dict__") and depth < 6 else {}
    return {key: content(item, depth + 1) for key, item in kept.items() if not key.startswith("_") and key != "run"}


def tensors_in(state: Any) -> list[mt.Tensor]:
    state = state() if callable(state) and not isinstance(state, nn.Module) else state
    found: list[mt.Tensor] = []
    pending = [state.cell_contents if type(state).__name__ == "cell" else state]
    while pending and len(found) < 50:
        value = pending.pop()
        parts = Parts()
        parts.add(value)
        for leaf in parts.leaves:
            if isinstance(leaf, mt.Tensor):
                found.append(leaf)
            elif isinstance(leaf, (nn.Module, Box)) and leaf is not value:
                pending.append(leaf)
        if hasattr(value, "__dict__"):
            pending += [each for each in vars(value).values() if isinstance(each, (mt.Tensor, list, dict, tuple, Box))]
    return found


def history(make: Callable[[], Any], mode: Callable[[Any], Any], calls: int = 4) -> tuple[list[Any], Any]:
    """The results and the state after each call, with a backward through the result."""
    run, state = make()
    called = mode(run)
    found = []
    for number in range(calls):
        x = mt.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]) * (number + 1)
        before = tensors_in(state)
        values = [tensor.tolist() for tensor in before]
        result = called(x)
        if isinstance(result, mt.Tensor) and result.requires_grad and make not in (a_chain_of_gradients, learning_rate):
            result.sum().backward(retain_graph=True)
        found.append((content(result), content(state)))
        if make not in IN_PLACE:
            assert [tensor.tolist() for tensor in before] == values
    return found, called


IN_PLACE = (written_and_assigned, learning_rate)  # which write to tensors, as in eager mode

MODES: dict[str, Any] = {
    "llvm": lambda run: mt.jit(run),
    "interpret": lambda run: mt.jit(run, backend="interpret"),
}


def near(a: Any, b: Any) -> bool:
    """Whether two histories are equal but for the rounding of sums."""
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(near, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(near(a[key], b[key]) for key in a)
    return a == b or (isinstance(a, float) and abs(a - b) <= 1e-5 * max(1.0, abs(a)))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_assigned_state(name: str, mode: str) -> None:
    expected, _ = history(PROGRAMS[name], lambda run: run)
    found, called = history(PROGRAMS[name], MODES[mode])
    assert near(expected, found), f"{expected}\n{found}"
    assert len(called.explain().signatures) <= 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_assigned_state_is_that_of_eager_mode_when_deferred(name: str) -> None:
    def deferred(run: Any) -> Any:
        def called(x: Any) -> Any:
            with mt.lazy():
                return run(x)

        return called

    expected, _ = history(PROGRAMS[name], lambda run: run)
    assert near(expected, history(PROGRAMS[name], deferred)[0])


def test_traces_share_the_state() -> None:
    """Two shapes, training and evaluation: each call starts from what the last one left, and nothing is traced anew."""
    models = Norm(), Norm()
    calls: list[Any] = [models[0], mt.jit(models[1])]
    for turn in range(12):
        for model in models:
            model.train(turn % 3 != 2)
        x = mt.ones(3 + turn % 2, 2) * turn
        assert near(calls[0](x).tolist(), calls[1](x).tolist())
        assert near(models[0].mean.tolist(), models[1].mean.tolist())
    assert len(calls[1].explain().signatures) <= 4 and calls[1].explain().traced <= 6


def test_state_can_be_reset() -> None:
    models = Norm(), Norm()
    traced, x = mt.jit(models[1]), mt.ones(3, 2)
    for value in (1.0, 2.0, None, 3.0):
        for model in models:
            if value is not None:
                model.mean = mt.full((2,), value)
        models[0](x), traced(x)
        assert near(models[0].mean.tolist(), models[1].mean.tolist())
    assert traced.explain().traced == 1


def test_state_of_another_shape_is_traced_again() -> None:
    models = Norm(), Norm()
    traced = mt.jit(models[1])
    for length in (2, 2, 1, 2):
        for model in models:
            model.mean = mt.ones(length)
        models[0](mt.ones(3, 2)), traced(mt.ones(3, 2))
        assert near(models[0].mean.tolist(), models[1].mean.tolist())


def test_a_failing_trace_assigns_nothing() -> None:
    box = Box(m=mt.ones(2), inner={"n": mt.zeros(2)})

    def run(x: Any) -> Any:
        box.m = box.m + x
        box.inner["n"] = x * 2
        box.new = x * 3
        return x.sum().item()

    with pytest.raises(mt.errors.TracedValueError):
        mt.jit(run)(mt.ones(2))
    assert box.m.tolist() == [1, 1] and box.inner["n"].tolist() == [0, 0] and not hasattr(box, "new")


def test_freezing_refuses_state() -> None:
    with pytest.raises(mt.errors.TracingError, match=r"MT112(.|\n)*attribute `mean` of a Norm"):
        mt.freeze(Norm(), mt.ones(3, 2))
    with pytest.raises(mt.errors.TracingError, match="MT112"):
        mt.freeze(lambda x, out: out.append(x * 2), mt.ones(2), [])


def test_a_list_outside_that_grows_is_warned_about() -> None:
    kept: list[Any] = []
    with pytest.warns(mt.errors.TracingWarning, match="MT105"):
        mt.jit(lambda x: kept.append(x * 2))(mt.ones(2))


def test_shadow_mode_leaves_the_state_alone() -> None:
    models = Norm(), Norm()
    traced = mt.jit(models[1], check=True)
    for _ in range(3):
        models[0](mt.ones(3, 2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced(mt.ones(3, 2))
        assert near(models[0].mean.tolist(), models[1].mean.tolist())


def test_a_session_writes_assigned_buffers() -> None:
    models = Norm(), Norm()
    optimizers = [mt.optim.SGD(model.parameters(), lr=0.1) for model in models]
    with mt.Graph() as graph:
        x = mt.placeholder((3, 2), name="x")
        y = models[1](x)
        step = optimizers[1].minimize(F.mse_loss(y, x))
    session = mt.Session(graph)
    for turn in range(4):
        given = mt.ones(3, 2) * turn
        expected = models[0](given)
        optimizers[0].zero_grad()
        F.mse_loss(expected, given).backward()
        optimizers[0].step()
        found, _ = session.run([y, step], {x: given})
        assert near(expected.tolist(), found.tolist())
        assert near(content(models[0].state_dict()), content(models[1].state_dict()))
        models[1].zero_grad()


@pytest.mark.parametrize("view", [lambda x: x[:1], lambda x: x.detach(), lambda x: x.T, lambda x: x.view(1, 2)])
@pytest.mark.parametrize("outside", [False, True])
def test_state_that_is_a_view_of_other_memory_is_warned_about(view, outside):
    """Eagerly, later writes to one of the two are seen in the other; a graph assigns a copy."""
    holder, buffer = nn.Module(), mt.ones(1, 2)

    def keeps(x):
        holder.kept = view(buffer if outside else x)
        return x * 1

    with pytest.warns(mt.errors.TracingWarning, match="MT109: keeps assigns a view"):
        mt.jit(keeps)(mt.ones(1, 2))
