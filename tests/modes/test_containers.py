"""A traced call treats Python's containers as eager mode does: arguments, results, and what is written into them.

The law: random programs are called several times in every mode, and before each further call whatever the last one gave
is spoilt. Results and arguments are those of eager mode.
"""

import dataclasses
import enum
import gc
import itertools
import random
import weakref
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.tree import Parts, Whole, attributes, flatten, unflatten

Pair = namedtuple("Pair", "first second")


class Colour(enum.Enum):
    """A plain value."""

    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Open:
    """A dataclass."""

    left: Any
    right: Any = None


@dataclasses.dataclass(frozen=True)
class Shut:
    """A frozen dataclass."""

    value: Any


class Plain:
    """An object of the user's: a result, and no argument."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Slotted:
    """An object with slots."""

    __slots__ = ("a", "b")

    def __init__(self, a: Any) -> None:
        self.a = a


def shown(value: Any, seen: dict[int, int] | None = None) -> Any:
    """A value as plain data that can be compared: kinds, order, content, and which objects are the same."""
    seen = {} if seen is None else seen
    if type(value) in (int, float, str, bool, type(None), Colour):
        return type(value).__name__, value
    if id(value) in seen and not isinstance(value, tuple):
        return "again", seen[id(value)]
    seen[id(value)] = len(seen)
    if isinstance(value, mt.Tensor):
        return type(value).__name__, str(value.dtype), value.requires_grad, value.tolist()
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.tolist()
    if isinstance(value, dict):
        head = type(value).__name__, getattr(value, "default_factory", None)
        return (*head, [(shown(key, seen), shown(item, seen)) for key, item in value.items()])
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, sorted(map(repr, value))
    if isinstance(value, (list, tuple, deque)):
        return type(value).__name__, getattr(value, "maxlen", None), [shown(item, seen) for item in value]
    names = [*getattr(value, "__dict__", {}), *getattr(type(value), "__slots__", ())]
    return type(value).__name__, [(name, shown(getattr(value, name, None), seen)) for name in names]


def spoil(value: Any) -> None:
    """Change every object that can be changed."""
    parts = Parts(lambda value: True)
    parts.add(value)
    for leaf in parts.leaves:
        if isinstance(leaf, np.ndarray):
            leaf[...] = 77
        elif isinstance(leaf, mt.Tensor):
            with mt.no_grad():
                leaf.fill_(-5)
    for container in parts.containers:
        if isinstance(container, (list, deque)):
            container.append("spoilt")
        elif isinstance(container, dict):
            container["spoilt"] = 1
        elif isinstance(container, set):
            container.add(99)
        elif not dataclasses.is_dataclass(container) or isinstance(container, Open):
            setattr(container, next(iter([*getattr(container, "__dict__", {}), "a"])), "spoilt")


class Maker:
    """Random arguments, and random programs over them; the same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def tensor(self) -> mt.Tensor:
        return mt.tensor([float(self.random.randint(0, 9)) for _ in range(2)])

    def value(self, depth: int) -> Any:
        pick = self.random.randint(0, 13 if depth else 4)
        if pick <= 2:
            return self.tensor()
        if pick == 3:
            return self.random.choice([None, 3, 2.5, "name", True, Colour.RED])
        if pick == 4:
            return {1, 2, self.random.randint(3, 9)} if depth else self.tensor()
        items = [self.value(depth - 1) for _ in range(self.random.randint(1, 3))]
        if self.random.random() < 0.15:
            items.append(items[0])  # the same object twice
        keys = self.random.sample(["a", "b", "c", "d", "e"], len(items))
        makers = (
            list,
            list,
            tuple,
            lambda items: dict(zip(keys, items, strict=True)),
            lambda items: OrderedDict(zip(keys, items, strict=True)),
            lambda items: defaultdict(list, zip(keys, items, strict=True)),
            lambda items: Pair(items[0], items),
            lambda items: Open(items[0], items),
            lambda items: deque(items, maxlen=4),
        )
        return makers[pick - 5](items)

    def program(self) -> Any:
        """A function of one nested argument and of keywords, which reads, writes and returns parts of both."""
        steps = [self.random.randint(0, 14) for _ in range(self.random.randint(2, 7))]
        seed = self.random.randint(0, 10**6)

        def run(given: Any, **named: Any) -> Any:
            choice = random.Random(seed)
            results: list[Any] = []
            for step in steps:
                parts = Parts()
                parts.add((given, named, results))
                tensors = [leaf for leaf in parts.leaves if isinstance(leaf, mt.Tensor)] or [mt.ones(2)]
                new = choice.choice(tensors) * 2 + len(tensors)
                lists = [each for each in parts.containers if isinstance(each, (list, deque)) and each]
                dicts = [each for each in parts.containers if isinstance(each, dict) and each is not named and each]
                opened = [each for each in parts.containers if isinstance(each, Open)]
                if step <= 2 and lists:
                    choice.choice(lists).append(new)
                elif step == 3 and lists:
                    results.append(choice.choice(lists).pop())
                elif step == 4 and lists:
                    choice.choice(lists).reverse()
                elif step == 5 and lists:
                    choice.choice(lists)[0] = [new, {"new": new}]
                elif step <= 7 and dicts:
                    choice.choice(dicts)[choice.choice(["a", "b", "y"])] = new
                elif step == 8 and dicts:
                    chosen = choice.choice(dicts)
                    del chosen[next(iter(chosen))]
                elif step == 9 and opened:
                    choice.choice(opened).left = Open(new, choice.choice(tensors))
                elif step == 10 and parts.containers:
                    results.append(choice.choice(parts.containers))
                elif step == 11:
                    results.append([Pair(new, {7}), Shut([new]), Plain(here=new, array=np.arange(2)), new])
                elif step == 12:
                    results.append(mt.stack(list(named.values())).sum(1) if named else None)
                elif step == 13 and lists:
                    choice.choice(lists).insert(0, choice.choice(tensors))
                else:
                    results.append({len(results): new, "x": choice.choice(tensors)})
            return results, given if choice.random() < 0.3 else None

        return run


def calls(run: Any, seed: int, times: int) -> list[Any]:
    """What some calls have given and left; between them, everything is spoilt."""
    found = []
    for turn in range(times):
        make = Maker(seed)
        given = make.value(3)
        names = ["z", "a", "m"] if turn % 2 == 0 else ["a", "m", "z"]
        named = {name: make.tensor() + turn for name in names[: make.random.randint(1, 3)]}
        leaves, structure = flatten(given)
        given = unflatten(structure, [leaf + turn if isinstance(leaf, mt.Tensor) else leaf for leaf in leaves])
        result = run(given, **named)
        found.append(shown((result, given, list(named.items()))))
        spoil((result, given))
    return found


@pytest.mark.sweep(3)
@pytest.mark.parametrize("seed", range(120))
def test_random_programs_over_containers(seed: int) -> None:
    make = Maker(1000 + seed)
    run = make.program()
    expected = calls(run, seed, 3)
    backend = "llvm" if seed % 8 == 0 else "interpret"
    assert calls(mt.jit(run, backend=backend, max_signatures=100), seed, 3) == expected
    with mt.lazy():
        assert calls(run, seed, 3) == expected


X = mt.ones(2)
FILE = np.arange(3.0)
OUTSIDE = {"kept": [1]}


def generator(x: Any) -> Any:
    yield x
    yield x * 2


RESULTS: dict[str, Any] = {
    "array": lambda x: np.zeros(2),
    "array in a dict": lambda x: {"a": np.ones(2), "x": x * 2},
    "array from outside": lambda x: FILE,
    "dict from outside": lambda x: OUTSIDE,
    "set": lambda x: {1, 2},
    "set of tensors": lambda x: [len({x, x * 2})],
    "frozenset": lambda x: frozenset([1]),
    "bytearray": lambda x: bytearray(b"a"),
    "list": lambda x: [1, [2]],
    "Counter": lambda x: Counter("aab"),
    "deque": lambda x: deque([x * 2], maxlen=2),
    "defaultdict": lambda x: defaultdict(list, a=[x * 2]),
    "OrderedDict": lambda x: OrderedDict(b=x, a=x * 2),
    "namedtuple": lambda x: Pair(x, [x * 3]),
    "dataclass": lambda x: Open(x * 2, {"k": x}),
    "frozen dataclass": lambda x: Shut(x * 2),
    "plain object": lambda x: Plain(a=x * 2, b=[x]),
    "object with slots": lambda x: Slotted(x * 2),
    "namespace": lambda x: SimpleNamespace(a=x * 2, b=[x]),
    "object without tensors": lambda x: Plain(count=3),
    "leaf": lambda x: mt.ones(1, requires_grad=True),
    "leaf in a list": lambda x: [mt.zeros(1, requires_grad=True), x],
    "the same list twice": lambda x: (lambda one: [one, one, x])([x * 2]),
    "the same tensor twice": lambda x: (lambda y: (y, [y]))(x * 2),
    "a list in itself": lambda x: (lambda one: one.append(one) or one)([x * 2]),
    "argument": lambda x: [x, x * 2, x],
    "plain": lambda x: (None, "text", 3, 2.5, Colour.BLUE, mt.float32 is x.dtype),
    "nested": lambda x: Open(Pair([x * 2], {3: (x, Shut({"a": x + 1}))}), deque([x])),
}


@pytest.mark.parametrize("backend", ["interpret", "llvm"])
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_new_in_each_call(name: str, backend: str) -> None:
    function, copies = RESULTS[name], not name.endswith("outside")
    expected = shown(function(X * 1))
    traced = mt.jit(function, backend=backend)
    for _ in range(3):
        result = traced(X * 1)
        assert shown(result) == expected
        if copies:
            spoil(result)
        else:
            assert result is function(X)


def views(x: Any) -> dict[str, Any]:
    return {"a": x * 2, "b": x}


ITERATORS: dict[str, Any] = {
    "generator": lambda x: (x * number for number in range(3)),
    "generator function": generator,
    "map": lambda x: map(x.__add__, [1, 2]),
    "zip": lambda x: zip([x, x * 2], "ab", strict=True),
    "iterator": lambda x: iter([x * 2, x]),
    "values": lambda x: views(x).values(),
    "items": lambda x: views(x).items(),
    "inside": lambda x: [iter([x]), x],
}


@pytest.mark.parametrize("name", ITERATORS)
def test_an_iterator_is_new_in_each_call(name: str) -> None:
    function, traced = ITERATORS[name], mt.jit(ITERATORS[name])
    for _ in range(3):
        expected, found = function(X), traced(X)
        assert hasattr(found, "__next__") == hasattr(expected, "__next__")
        items = [list(each[0]) if name == "inside" else list(each) for each in (expected, found)]
        assert shown(items[0]) == shown(items[1])


def test_an_endless_iterator_is_an_error() -> None:
    with pytest.raises(mt.errors.TracingError, match=r"MT105(.|\n)*more than 10,000 items"):
        mt.jit(lambda x: (number for number in itertools.count()))(X)


def test_keywords_keep_their_order() -> None:
    traced = mt.jit(lambda **k: mt.stack(list(k.values())))
    z, a = mt.ones(1), mt.zeros(1)
    for _ in range(2):
        assert traced(z=z, a=a).tolist() == [[1.0], [0.0]]
        assert traced(a=a, z=z).tolist() == [[0.0], [1.0]]
    given = mt.jit(lambda d: list(d))
    assert given({1: z}) == [1] and type(given({1.0: z})[0]) is float and given({True: z}) == [True]
    assert type(given({True: z})[0]) is bool


def test_defaults_that_can_be_changed() -> None:
    def function(x: Any, seen: list[Any] = [], *, more: dict[str, Any] = {}) -> Any:  # noqa: B006
        seen.append(x * 2)
        more[f"k{len(more)}"] = x
        return len(seen), sum(seen), len(more)

    def again() -> Any:
        namespace: dict[str, Any] = {}
        seen: list[Any] = []
        more: dict[str, Any] = {}
        copy: Any = FunctionType(function.__code__, function.__globals__, "function", (seen,), None)
        copy.__kwdefaults__ = {"more": more}
        return copy, seen, more, namespace

    eager, one, two, _ = again()
    other, three, four, _ = again()
    traced = mt.jit(other)
    for number in range(4):
        assert shown(traced(X + number)) == shown(eager(X + number))
        assert shown((one, two)) == shown((three, four))


def test_results_that_belong_to_each_other_have_gradients() -> None:
    def function(x: Any) -> Any:
        w = mt.ones(2, requires_grad=True)
        return w, w * w * x

    for run in (function, mt.jit(function)):
        for number in (2.0, 3.0):
            w, y = run(X * number)
            y.sum().backward()
            assert w.is_leaf and w.grad.tolist() == [2 * number, 2 * number]


def test_gradients_that_were_stored_inside() -> None:
    def function(x: Any) -> Any:
        w = mt.ones(2, requires_grad=True)
        (w * x).sum().backward()
        return [w]

    traced = mt.jit(function)
    for number in (2.0, 3.0):
        assert traced(X * number)[0].grad.tolist() == function(X * number)[0].grad.tolist()


@pytest.mark.parametrize("source", [mt.int64, mt.float32, mt.int16, mt.float64])
@pytest.mark.parametrize("target", [mt.int32, mt.uint8, mt.float64, mt.int64, mt.float16])
def test_views_as_types_of_another_size(source: Any, target: Any) -> None:
    x = mt.arange(16).reshape(2, 8).to(source)
    expected = x.view(target)
    for backend in ("interpret", "llvm"):
        found = mt.jit(lambda x: x.view(target), backend=backend)(x)
        assert found.shape == expected.shape and found.numpy().tobytes() == expected.numpy().tobytes()
    with mt.lazy():
        assert x.view(target).numpy().tobytes() == expected.numpy().tobytes()


def test_a_module_that_is_an_argument_is_freed() -> None:
    traced = mt.jit(lambda m, x: m(x))
    for _ in range(2):
        module = mt.nn.Linear(2, 2)
        reference = weakref.ref(module)
        assert traced(module, X).tolist() == module(X).tolist() == traced(module, X).tolist()
        del module
        gc.collect()
        assert reference() is None
    assert not traced._traced and not traced.explain().signatures


def test_traces_of_many_modules_are_bounded() -> None:
    traced = mt.jit(lambda m, x: m(x), max_signatures=3)
    modules = [mt.nn.Linear(2, 2) for _ in range(5)]
    with pytest.warns(mt.errors.TracingWarning, match="MT107"):
        for module in modules * 2:
            assert np.allclose(traced(module, X).detach().numpy(), module(X).detach().numpy(), atol=1e-6)
    assert len(traced._traced) == len(traced.explain().signatures) == 3


def test_a_write_to_bits_is_one_to_the_tensor() -> None:
    def function(x: Any) -> Any:
        y = x.clone()
        y.view(mt.int32).add_(1)
        return y

    x = mt.arange(4)
    assert mt.jit(function)(x).tolist() == function(x).tolist()
    with mt.lazy():
        assert function(x).tolist() == mt.jit(function)(x).tolist()


def test_a_structure_keeps_what_is_shared() -> None:
    one: list[Any] = [1]
    one.append(one)
    leaves, structure = flatten({"a": one, "b": one})
    found = unflatten(structure, leaves)
    assert found["a"] is found["b"] and found["a"][1] is found["a"]
    parts = Parts()
    parts.note(one)
    assert Whole(parts.leaves, [one]).build(parts.add(one)) is one


class Guarded:
    """An object whose class does not want to be asked."""

    __slots__ = ("__dict__", "__private", "empty", "known")

    def __init__(self, value: mt.Tensor) -> None:
        self.known, self.other, self.__private = value, value * 2, value * 3

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    @property
    def computed(self) -> Any:
        raise RuntimeError("computed")

    def given(self, value: mt.Tensor) -> mt.Tensor:
        before = self.known + self.other + self.__private
        self.known, self.other, self.__private = value, value + 1, value + 2
        return before


class Single(Guarded):
    """An object whose slot is named by one text, which has no dict to itself."""

    __slots__ = "alone"
    alone: mt.Tensor


def test_jit_looks_at_objects_without_running_their_code() -> None:
    one, result = Single(mt.ones(2)), Guarded(mt.ones(2))
    one.alone = mt.ones(2)

    @mt.jit
    def function(x: mt.Tensor) -> Any:
        before = one.given(x) + one.alone
        one.alone = x + 3
        return before, result

    assert function(mt.zeros(2))[0].tolist() == [7, 7]
    found = {"alone": [3, 3], "known": [0, 0], "other": [1, 1], "_Guarded__private": [2, 2]}
    assert {name: value.tolist() for name, value in attributes(one).items()} == found
    assert function(mt.ones(2))[0].tolist() == [6, 6]
    assert function(mt.ones(2))[1].known.tolist() == [1, 1]
