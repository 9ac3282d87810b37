"""A step that raises while it is recorded leaves everything that it writes to usable, and as it was."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import minitorch as mt
from minitorch import nn
from minitorch.errors import TracingError, TracingWarning
from minitorch.ir import Node
from minitorch.tree import flatten
from minitorch_quantization import MinMaxObserver

Step = Callable[[mt.Tensor, Callable[[], None]], Any]
"""A step of an input, which calls its second argument wherever it may be interrupted."""


class InterruptError(Exception):
    """Raised in the middle of a step."""


class Case:
    """A step, and the objects that it writes to."""

    def __init__(self, step: Step, *objects: Any) -> None:
        self.step, self.objects = step, objects

    def state(self) -> list[Any]:
        """All that can be seen of the objects, but for an optimiser's state that says nothing yet."""
        found: list[Any] = []
        for each in self.objects:
            if isinstance(each, mt.Tensor):
                found += [each, each.grad]
            elif isinstance(each, mt.Generator):
                found.append(each.get_state())
            else:
                found.append(each.state_dict())
        leaves = flatten(found)[0]
        return [leaf.detach().tolist() if isinstance(leaf, mt.Tensor) else leaf for leaf in leaves]


def weight() -> mt.Tensor:
    return mt.tensor([1.0, 2.0, 3.0], requires_grad=True)


def scaled() -> Case:
    w = weight()
    optimizer, scaler = mt.optim.SGD([w], lr=0.5), mt.amp.GradScaler(init_scale=8.0, growth_interval=2)

    def step(x: mt.Tensor, here: Callable[[], None]) -> None:
        optimizer.zero_grad()
        loss = scaler.scale((w * x).sum())
        here()
        loss.backward()
        here()
        scaler.unscale_(optimizer)
        here()
        scaler.step(optimizer)
        here()
        scaler.update()
        here()

    return Case(step, w, scaler)


def optimized(make: Callable[[list[mt.Tensor]], mt.optim.Optimizer]) -> Callable[[], Case]:
    def case() -> Case:
        w = weight()
        optimizer = make([w])

        def step(x: mt.Tensor, here: Callable[[], None]) -> None:
            optimizer.zero_grad()
            here()
            (w * w * x).sum().backward()
            here()
            optimizer.step()
            here()

        return Case(step, w)

    return case


def normalized() -> Case:
    layer = nn.BatchNorm1d(3)

    def step(x: mt.Tensor, here: Callable[[], None]) -> mt.Tensor:
        here()
        y = layer(x.reshape(1, 3) * mt.tensor([[1.0], [3.0]]))
        here()
        return y

    return Case(step, layer)


def drawn() -> Case:
    generator, layer = mt.Generator().manual_seed(3), nn.Dropout()

    def step(x: mt.Tensor, here: Callable[[], None]) -> mt.Tensor:
        y = layer(x) + mt.rand(3, generator=generator)
        here()
        return y + mt.rand(3, generator=generator)

    return Case(step, generator, mt.default_generator)


def observed() -> Case:
    observer = MinMaxObserver()

    def step(x: mt.Tensor, here: Callable[[], None]) -> mt.Tensor:
        here()
        y = observer(x)
        here()
        return y

    return Case(step, observer)


class Memory(nn.Module):
    """Assigns a buffer, as a recurrent layer may that keeps its state."""

    state: mt.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", mt.zeros(3))

    def forward(self, x: mt.Tensor, here: Callable[[], None]) -> mt.Tensor:
        here()
        self.state = self.state + x
        here()
        return self.state.sum()


def assigned() -> Case:
    memory = Memory()
    return Case(memory, memory)


def written() -> Case:
    w = mt.zeros(3)

    def step(x: mt.Tensor, here: Callable[[], None]) -> None:
        w.add_(x)
        here()
        w[0] = 5
        here()
        w.t()[1:].mul_(2)
        here()

    return Case(step, w)


CASES: dict[str, Callable[[], Case]] = {
    "GradScaler": scaled,
    "SGD": optimized(lambda ws: mt.optim.SGD(ws, lr=0.1, momentum=0.9, nesterov=True)),
    "Adam": optimized(lambda ws: mt.optim.Adam(ws, lr=0.1, amsgrad=True)),
    "AdamW": optimized(lambda ws: mt.optim.AdamW(ws, lr=0.1)),
    "batch norm": normalized,
    "generators": drawn,
    "observer": observed,
    "a buffer that is assigned": assigned,
    "in place": written,
}


def dead_values(objects: Any) -> list[Any]:
    """Traced tensors that can be reached from objects, by way of attributes and containers."""
    pending, seen, found = list(objects), set(), []
    while pending:
        at = pending.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        if isinstance(at, mt.Tensor):
            found += [at] if isinstance(at._value, Node) else []
            pending.append(at._grad)
        elif isinstance(at, dict):
            pending += [*at.keys(), *at.values()]
        elif isinstance(at, (list, tuple, set)):
            pending += at
        elif type(at).__module__.startswith(("minitorch", "tests")):
            pending += getattr(at, "__dict__", {}).values()
    return found


def places(case: Case) -> int:
    """How often a step can be interrupted."""
    met: list[None] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case.step(mt.ones(3), lambda: met.append(None))
    return len(met)


def interruptions() -> Iterator[tuple[str, int]]:
    yield from ((name, stop) for name, make in CASES.items() for stop in range(places(make())))


@pytest.mark.sweep(3)
@pytest.mark.filterwarnings("ignore:MT115")  # of `place`, an iterator
@pytest.mark.parametrize("backend", ["interpret", "llvm"])
@pytest.mark.parametrize(("name", "stop"), list(interruptions()))
def test_an_interrupted_step_has_not_happened(name: str, stop: int, backend: str) -> None:
    """State as before, no value of the dead trace anywhere, and the steps after it are those of a run without it."""
    case, other = CASES[name](), CASES[name]()
    place, wanted = iter(range(99)), [stop]

    def here() -> None:
        if next(place) in wanted:
            raise InterruptError

    jitted, x = mt.jit(lambda x: case.step(x, here), backend=backend), mt.tensor([1.0, 2.0, 3.0])
    mt.manual_seed(0)
    before = case.state()
    with pytest.raises(InterruptError):
        jitted(x)
    assert case.state() == before
    gc.collect()
    assert not dead_values(case.objects)
    if name == "a buffer that is assigned":
        return  # eagerly it goes on; under jit that is refused with a warning
    wanted.clear()
    after = jitted(x), jitted(x * 2), case.state()
    mt.manual_seed(0)
    straight = mt.jit(lambda x: other.step(x, lambda: None), backend=backend)
    expected = straight(x), straight(x * 2), other.state()
    assert str(after) == str(expected)


# GradScaler, outside and inside -------------------------------------------------------------------------------------


def parts() -> tuple[mt.Tensor, mt.optim.Optimizer, mt.amp.GradScaler]:
    w = mt.tensor([1.0, 2.0], requires_grad=True)
    return w, mt.optim.SGD([w], lr=0.5), mt.amp.GradScaler(init_scale=8.0)


@pytest.mark.parametrize("called", ["unscale_", "step"])
def test_a_jitted_part_of_a_step_is_refused(called: str) -> None:
    """Outside, gradients would be divided twice, and the update would not see an overflow. Nothing is changed."""
    w, optimizer, scaler = parts()

    def part(x: mt.Tensor) -> None:
        optimizer.zero_grad()
        scaler.scale((w * x).sum()).backward()
        getattr(scaler, called)(optimizer)

    jitted = mt.jit(part)
    for _ in range(2):
        with pytest.raises(TracingError, match=rf"MT105: part calls {called}\(\) of a GradScaler, and not update\(\)"):
            jitted(mt.ones(2))
    assert w.grad is None and w.tolist() == [1.0, 2.0]
    with pytest.raises(RuntimeError, match=r"A jitted step calls update\(\) itself"):
        scaler.update()
    part(mt.ones(2))  # eagerly
    scaler.step(optimizer) if called == "unscale_" else None
    scaler.update()
    assert w.tolist() == [0.5, 1.5] and scaler.get_scale() == 8.0


def test_a_jitted_part_of_a_jitted_step_is_a_part_of_it() -> None:
    w, optimizer, scaler = parts()
    unscale = mt.jit(lambda: scaler.unscale_(optimizer))

    @mt.jit
    def step(x: mt.Tensor) -> None:
        optimizer.zero_grad()
        scaler.scale((w * x).sum()).backward()
        unscale()
        scaler.step(optimizer)
        scaler.update()

    step(mt.ones(2))
    assert w.tolist() == [0.5, 1.5]


def test_looking_into_a_step_keeps_what_the_scaler_knows() -> None:
    w, optimizer, scaler = parts()
    scaler.scale((w * mt.ones(2)).sum()).backward()
    scaler.unscale_(optimizer)

    def rest(x: mt.Tensor) -> None:
        scaler.step(optimizer)
        scaler.update()

    with pytest.raises(RuntimeError, match="outside of the jitted function"):
        mt.jit(rest).graph(mt.ones(2))
    with pytest.raises(RuntimeError, match="has already been called"):
        scaler.unscale_(optimizer)
    rest(mt.ones(2))
    assert w.tolist() == [0.5, 1.5]


def test_a_failed_lazy_block_leaves_a_scaler_to_use() -> None:
    w, optimizer, scaler = parts()
    x = mt.ones(2)
    with pytest.raises(InterruptError), mt.lazy():
        scaler.scale((w * x).sum()).backward()
        raise InterruptError
    optimizer.zero_grad()
    scaler.scale((w * x).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [0.5, 1.5]


def test_a_compiled_step_is_not_used_after_unscaling_outside() -> None:
    """It was traced for gradients that nobody has unscaled, and would divide them twice."""
    w, optimizer, scaler = parts()
    rest = mt.jit(lambda: (scaler.step(optimizer), scaler.update(), None)[2])
    scaler.scale((w * mt.ones(2)).sum()).backward()
    rest()
    assert w.tolist() == [0.5, 1.5]
    optimizer.zero_grad()
    scaler.scale((w * mt.ones(2)).sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="outside of the jitted function"), pytest.warns(TracingWarning):
        rest()
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [0.0, 1.0]
