"""A graph is never stale in silence: what was read while tracing and changed since gives a new trace, or a warning.

Every way of reading, times every kind of value, times every way in which such a value changes.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import gc
import itertools
import random
import sys
import types
import warnings
from typing import Any, ClassVar, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest

import minitorch as mt
from minitorch.dtypes import DType
from minitorch.errors import TracingWarning
from minitorch.modes.guards.watch import Watch

X = mt.tensor([1.0, 2.0])


# Kinds of values: each as a number, two that differ, and the changes in place ---------------------------------


class Mode(enum.Enum):
    """Two members."""

    ONE = 1
    TWO = 2


class Pair(NamedTuple):
    """A named tuple."""

    first: float
    second: Any


@dataclasses.dataclass
class Config:
    """A dataclass."""

    scale: float = 2.0


class Plain:
    """An object with an attribute."""

    def __init__(self, scale=2.0):
        self.scale = scale


class Slotted:
    """An object without a dict."""

    __slots__ = ("scale",)

    def __init__(self, scale=2.0):
        self.scale = scale


class Scaling(mt.nn.Module):
    """A module with an option."""

    def __init__(self, scale=2.0):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return x * self.scale


class Called:
    """An object that is called."""

    def __init__(self, scale=2.0):
        self.scale = scale

    def __call__(self, x):
        return x * self.scale


def doubled(x, by=2.0, *, more=0.0):
    return x * by + more


def tripled(x):
    return x * 3.0


def closure(scale):
    return lambda x: x * scale


def pieces(value):
    """The numbers that a value is for a graph."""
    kind = type(value)
    if isinstance(value, (bool, int, float)):
        return float(value) + (0.5 if kind is bool else 0.25 if kind is int else 0.0) + (repr(value) == "-0.0")
    if value is None or isinstance(value, (str, bytes, DType, range, slice, np.dtype)):
        return float(len(repr(value)) + repr(value).count("6"))
    if isinstance(value, enum.Enum):
        return float(value.value)
    if isinstance(value, (dict, types.MappingProxyType)):
        return sum((place + 1) * (pieces(key) + 2 * pieces(each)) for place, (key, each) in enumerate(value.items()))
    if isinstance(value, (list, tuple, collections.deque)):
        return sum((place + 1) * pieces(each) for place, each in enumerate(value))
    if isinstance(value, (set, frozenset)):
        return sum(pieces(each) for each in value)
    if isinstance(value, np.ndarray):
        return float((value * np.arange(1, value.size + 1)).sum())
    if callable(value):
        return value(mt.ones(()))
    return pieces(value.scale)


# kind: two ways to make a value, and the changes of the first in place
KINDS: dict[str, tuple[Any, Any, list[Any]]] = {
    "int": (lambda: 1, lambda: 2, []),
    "int of another type": (lambda: 1, lambda: 1.0, []),
    "bool": (lambda: 1, lambda: True, []),
    "float": (lambda: 1.5, lambda: 2.5, []),
    "zero": (lambda: 0.0, lambda: -0.0, []),
    "str": (lambda: "a", lambda: "abc", []),
    "bytes": (lambda: b"a", lambda: b"abc", []),
    "None": (lambda: None, lambda: 3, []),
    "enum": (lambda: Mode.ONE, lambda: Mode.TWO, []),
    "dtype": (lambda: mt.float32, lambda: mt.float64, []),
    "NumPy's dtype": (lambda: np.dtype("f4"), lambda: np.dtype("complex128"), []),
    "range": (lambda: range(3), lambda: range(10), []),
    "slice": (lambda: slice(3), lambda: slice(10), []),
    "tuple": (lambda: (1, 2), lambda: (1, 3), []),
    "tuple of other types": (lambda: (1, 2), lambda: (1, 2.0), []),
    "nested tuple": (lambda: (1, [2.0]), lambda: (1, [3.0]), [lambda v: v[1].append(3.0)]),
    "list": (lambda: [1, 2], lambda: [1, 3], [lambda v: v.append(3), lambda v: v.reverse(), lambda v: v.clear()]),
    "nested list": (lambda: [[1], [2]], lambda: [[1], [3]], [lambda v: v[0].append(3)]),
    "long list": (lambda: [1.0] * 300, lambda: [1.0] * 299, [lambda v: v.__setitem__(280, 5.0)]),
    "very long list": (lambda: [1.0] * 20_000, lambda: [2.0] * 20_000, [lambda v: v.__setitem__(280, 5.0)]),
    "dict": (
        lambda: {"a": 1, "b": 2},
        lambda: {"a": 1, "b": 3},
        [lambda v: v.update(a=7), lambda v: v.pop("a"), lambda v: v.update(a=v.pop("a")), lambda v: v.update(c=1)],
    ),
    "dict of functions": (lambda: {"f": doubled, "n": 2}, lambda: {"f": tripled, "n": 2}, [lambda v: v.update(n=3)]),
    "dict of dicts": (lambda: {"a": {"b": 1}}, lambda: {"a": {"b": 2}}, [lambda v: v["a"].update(b=7)]),
    "OrderedDict": (
        lambda: collections.OrderedDict(a=1, b=2),
        lambda: collections.OrderedDict(b=2, a=1),
        [lambda v: v.move_to_end("a"), lambda v: v.update(a=5)],
    ),
    "defaultdict": (
        lambda: collections.defaultdict(int, a=1),
        lambda: collections.defaultdict(int, a=2),
        [lambda v: v.update(b=1)],
    ),
    "mappingproxy": (
        lambda: types.MappingProxyType({"a": 1}),
        lambda: types.MappingProxyType({"a": 2}),
        [lambda v: [each.update(a=3) for each in gc.get_referents(v)]],
    ),
    "set": (lambda: {1, 2}, lambda: {1, 3}, [lambda v: v.add(7), lambda v: v.discard(1)]),
    "frozenset": (lambda: frozenset({1, 2}), lambda: frozenset({1, 3}), []),
    "deque": (lambda: collections.deque([1, 2]), lambda: collections.deque([2, 2]), [lambda v: v.append(7)]),
    "namedtuple": (lambda: Pair(1.0, 2), lambda: Pair(1.0, 3), []),
    "namedtuple of a list": (lambda: Pair(1.0, [2]), lambda: Pair(1.0, [3]), [lambda v: v.second.append(3)]),
    "dataclass": (Config, lambda: Config(3.0), [lambda v: setattr(v, "scale", 4.0)]),
    "dataclass in a list": (lambda: [Config()], lambda: [Config(3.0)], [lambda v: setattr(v[0], "scale", 4.0)]),
    "dataclass in a dict": (lambda: {"a": Config()}, dict, [lambda v: setattr(v["a"], "scale", 4.0)]),
    "objects in a tuple": (
        lambda: (Plain(), Plain()),
        lambda: (Plain(), Plain(3.0)),
        [lambda v: setattr(v[0], "scale", 4.0)],
    ),
    "object of a list": (lambda: Plain([1]), lambda: Plain([2]), [lambda v: v.scale.append(3)]),
    "object of an object": (
        lambda: Plain(Plain()),
        lambda: Plain(Plain(3.0)),
        [lambda v: setattr(v.scale, "scale", 4.0), lambda v: setattr(v, "scale", Plain(5.0))],
    ),
    "object": (Plain, lambda: Plain(3.0), [lambda v: setattr(v, "scale", 4.0), lambda v: v.__dict__.update(scale=7.0)]),
    "slots": (Slotted, lambda: Slotted(3.0), [lambda v: setattr(v, "scale", 4.0)]),
    "SimpleNamespace": (
        lambda: types.SimpleNamespace(scale=1.0),
        lambda: types.SimpleNamespace(scale=2.0),
        [lambda v: setattr(v, "scale", 4.0)],
    ),
    "function": (lambda: tripled, lambda: doubled, []),
    "function of the engine": (lambda: mt.exp, lambda: mt.abs, []),
    "lambda": (lambda: lambda x: x * 2, lambda: lambda x: x * 3, []),
    "lambda with a variable": (
        lambda: closure(2.0),
        lambda: closure(3.0),
        [lambda v: setattr(v.__closure__[0], "cell_contents", 5.0)],
    ),
    "function with a default": (
        lambda: lambda x, o=[2.0]: x * o[0],
        lambda: tripled,
        [lambda v: v.__defaults__[0].__setitem__(0, 9.0), lambda v: setattr(v, "__defaults__", ([5.0],))],
    ),
    "partial": (
        lambda: functools.partial(doubled, by=2.0),
        lambda: functools.partial(doubled, by=3.0),
        [lambda v: v.keywords.update(by=5.0)],
    ),
    "bound method": (lambda: Called().__call__, lambda: Called(3.0).__call__,
                     [lambda v: setattr(v.__self__, "scale", 5.0)]),
    "callable object": (Called, lambda: Called(3.0), [lambda v: setattr(v, "scale", 4.0)]),
    "module": (Scaling, lambda: Scaling(3.0), [
        lambda v: setattr(v, "scale", 4.0),
        lambda v: setattr(v, "forward", tripled),
        lambda v: v.register_forward_hook(lambda module, args, result: result * 10),
        lambda v: v.register_forward_pre_hook(lambda module, args: args[0] * 10),
    ]),
    "engine's module": (lambda: mt.nn.LeakyReLU(0.5), lambda: mt.nn.Tanh(), [
        lambda v: setattr(v, "forward", tripled),
        lambda v: v.register_forward_hook(lambda module, args, result: result * 10),
    ]),
    "modules": (
        lambda: mt.nn.Sequential(Scaling(), mt.nn.ReLU()),
        lambda: mt.nn.Sequential(Scaling(3.0)),
        [lambda v: v.append(Scaling(5.0)), lambda v: setattr(v[0], "scale", 7.0), lambda v: v.__delitem__(0)],
    ),
    "array": (lambda: np.ones(3), lambda: np.zeros(3), [lambda v: v.__setitem__(1, 7.0)]),
    "large array": (lambda: np.ones(20_000), lambda: np.zeros(20_000), [lambda v: v.__setitem__(11_111, 7.0)]),
}  # fmt: skip


# Ways of reading: a function to trace, and how to give it another value --------------------------------------------

state: Any = None
library: Any = types.ModuleType("library")
exec("def used(x, pieces):\n    return x * pieces(value)\n", vars(library))
sys.modules["library"] = library


def by_global(value):
    def put(new):
        globals()["state"] = new

    put(value)
    return (lambda x: x * pieces(state)), put


def by_helper(value):
    put = by_global(value)[1]
    return (lambda x: global_helper(x)), put


def global_helper(x):
    return x * pieces(state)


def by_cell(value):
    def put(new):
        nonlocal value
        value = new

    return (lambda x: x * pieces(value)), put


def by_nested_function(value):
    function, put = by_cell(value)

    def outer(x):
        def inner():
            return function(x)

        return inner()

    return outer, put


def by_attribute(value):
    owner = Plain(value)
    return (lambda x: x * pieces(owner.scale)), lambda new: setattr(owner, "scale", new)


def by_slot(value):
    owner = Slotted(value)
    return (lambda x: x * pieces(owner.scale)), lambda new: setattr(owner, "scale", new)


class Owner(mt.nn.Module):
    """A module that holds anything."""

    def __init__(self, value):
        super().__init__()
        self.scale = value

    def forward(self, x):
        return x * pieces(self.scale)


def by_module_attribute(value):
    owner = Owner(value)
    return owner, lambda new: setattr(owner, "scale", new)


def by_part_of_a_module(value):
    owner = Owner(value)
    return mt.nn.Sequential(mt.nn.ReLU(), owner), lambda new: setattr(owner, "scale", new)


def by_imported_module(value):
    library.value = value
    return (lambda x: library.used(x, pieces)), lambda new: setattr(library, "value", new)


def by_import_inside(value):
    def function(x):
        import library as imported  # type: ignore[import-not-found]
        from library import used

        return used(x, pieces) + x * pieces(imported.value)

    library.value = value
    return function, lambda new: setattr(library, "value", new)


def by_item(value):
    items = {"a": [value, 1.0]}
    return (lambda x: x * pieces(items["a"][0])), lambda new: items["a"].__setitem__(0, new)


def by_loop(value):
    owners = [Plain(1.0), Plain(value)]

    def function(x):
        for owner in owners:
            x = x * pieces(owner.scale)
        return x

    return function, lambda new: setattr(owners[1], "scale", new)


def by_default(value):
    def helper(x, given=value):
        return x * pieces(given)

    return (lambda x: helper(x)), lambda new: setattr(helper, "__defaults__", (new,))


def by_keyword_default(value):
    def helper(x, *, given=value):
        return x * pieces(given)

    return (lambda x: helper(x)), lambda new: helper.__kwdefaults__.update(given=new)


def by_partial(value):
    helper = functools.partial(lambda x, given: x * pieces(given), given=value)
    return (lambda x: helper(x)), lambda new: helper.keywords.update(given=new)


def by_partial_itself(value):
    function: Any = functools.partial(lambda given, x: x * pieces(given), value)
    return function, lambda new: function.__setstate__((function.func, (new,), {}, None))


class Caller:
    """An object whose methods read its value."""

    shared: Any = None

    def __init__(self, value):
        self.value = value

    def __call__(self, x):
        return x * pieces(self.value)

    def method(self, x):
        return self(x)

    @property
    def computed(self):
        return pieces(self.value)

    @functools.cached_property
    def kept(self):
        return Plain(self)

    def through(self, x):
        return x * pieces(self.kept.scale.value)

    def __mul__(self, x):
        return x * self.computed

    def of_class(self, x):
        return x * pieces(self.shared)

    @classmethod
    def by_class(cls, x):
        return x * pieces(cls.shared)


def by_callable(value):
    caller = Caller(value)
    return (lambda x: caller(x)), lambda new: setattr(caller, "value", new)


def by_callable_itself(value):
    caller = Caller(value)
    return caller, lambda new: setattr(caller, "value", new)


class Pipeline(list[Any]):
    """A list with an attribute."""

    value: Any = None

    def through(self, x):
        return x * pieces(self.value) * len(self)


def by_attribute_of_a_list(value):
    pipeline = Pipeline([1])
    pipeline.value = value
    return (lambda x: pipeline.through(x)), lambda new: setattr(pipeline, "value", new)


def by_another_class(value):
    def of(shared):
        return type("Subclass", (Caller,), {"shared": [shared]})

    caller = of(value)(None)
    return caller.of_class, lambda new: setattr(caller, "__class__", of(new))


def by_method(value):
    caller = Caller(value)
    return caller.method, lambda new: setattr(caller, "value", new)


def by_property(value):
    caller = Caller(value)
    return (lambda x: x * caller.computed), lambda new: setattr(caller, "value", new)


def by_cached_property(value):
    caller = Caller(value)
    return caller.through, lambda new: setattr(caller, "value", new)


def by_operator(value):
    caller = Caller(value)
    return (lambda x: caller * x), lambda new: setattr(caller, "value", new)


def by_getattr(value):
    owner, name = Plain(value), "sca"
    return (lambda x: x * pieces(getattr(owner, name + "le"))), lambda new: setattr(owner, "scale", new)


def by_getattr_of_what_is_not_there(value):
    owner = Plain()

    def function(x):
        return x * pieces(getattr(owner, "more", value)) if not hasattr(owner, "less") else x

    return function, lambda new: setattr(owner, "more", new)


def by_class_attribute(value):
    def put(new):
        Local.shared = staticmethod(new) if isinstance(new, types.FunctionType) else new

    class Local(Caller):
        """Its instances share a value."""

    put(value)
    return Local(0).of_class, put


def by_class_method(value):
    class Local(Caller):
        shared = value

    return (lambda x: Local.by_class(x)), lambda new: setattr(Local, "shared", new)


def by_hook(value):
    function, put = by_cell(value)
    module = mt.nn.ReLU()
    module.register_forward_hook(lambda module, args, result: function(result))
    return module, put


def by_argument(value):
    owner = Plain(value)

    def helper(x, given):
        return x * pieces(given.scale)

    return (lambda x: helper(x, owner)), lambda new: setattr(owner, "scale", new)


def by_argument_in_a_list(value):
    owner = Plain(value)

    def helper(x, *given, **named):
        return x * pieces(given[0][0].scale) * pieces(named["owner"].scale)

    return (lambda x: helper(x, [owner], owner=owner)), lambda new: setattr(owner, "scale", new)


def by_comprehension(value):
    owners = [Plain(value)]
    return (lambda x: x * sum([pieces(each.scale) for each in owners])), lambda new: setattr(owners[0], "scale", new)


def by_decorator(value):
    function, put = by_cell(value)

    @functools.wraps(function)
    def wrapped(*args):
        return function(*args)

    return mt.no_grad()(wrapped), put


def by_jitted_function(value):
    function, put = by_cell(value)
    inner = mt.jit(function)
    return (lambda x: inner(x)), put


def by_function_as_argument(value):
    function, put = by_cell(value)
    return (lambda x, given=function: given(x)), put


WAYS: dict[str, Any] = {name: way for name, way in list(globals().items()) if name.startswith("by_")}


def eager(function):
    """The result of a call that is not traced."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(X).tolist()


def traced(function, x):
    """The result of a jitted call, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(x).tolist()
    return result, [str(each.message) for each in caught if issubclass(each.category, TracingWarning)]


def as_it_was():
    globals()["state"] = None
    vars(library).pop("value", None)


@pytest.mark.parametrize("way", WAYS)
def test_what_was_read_is_compared_or_warned_about(way, sweep):
    place = list(WAYS).index(way)
    for kind in KINDS if sweep else list(KINDS)[place % 4 :: 4]:  # each kind is read in a quarter of the ways
        first, second, changes = KINDS[kind]
        for number, change in enumerate((None, *changes)):
            case, value = (way, kind, number), first()
            function, put = WAYS[way](value)
            jitted = mt.jit(function, backend="interpret")
            before, warned = traced(jitted, X)
            assert before == eager(function) and all("MT115" in each for each in warned), case
            again, more = traced(jitted, X)
            assert again == before and not more and len(jitted.explain().signatures) == 1, case
            if change is None:
                put(second())
            else:
                change(value)
            expected = eager(function)
            assert expected != before or way == "by_jitted_function", case  # whose eager call is a jitted one, too
            found, more = traced(jitted, X)
            assert found == expected or warned, case
            assert found != expected or expected == before or any("MT106" in each for each in more), case
            as_it_was()


# What is written while tracing -------------------------------------------------------------------------------------

counter = 0


class Counter:
    """What a function can change."""

    calls = 0
    table: ClassVar[dict[str, int]] = {}

    def __init__(self):
        self.value, self.items = 0, [1]

    def count(self):
        self.value += 1

    @property
    def next(self):
        self.value += 1
        return self.value


def writes():
    one, number, table, items = Counter(), 0, {"a": 0}, [1]
    seen, last, steps, generator = {1}, collections.deque([1]), itertools.count(), iter([1, 2, 3, 4])
    slotted, space, array = Slotted(0), types.SimpleNamespace(n=0), np.zeros(2)
    numbers, drawn, pair = bytearray(b"ab"), random.Random(0), Pair(1.0, [])
    module = Scaling()

    class Local:
        table: ClassVar[dict[str, int]] = {"n": 0}
        n = 0

    def by_nonlocal():
        nonlocal number
        number += 1

    def by_global_statement():
        global counter
        counter += 1

    def by_default(given=[1]):  # noqa: B006
        given.append(2)

    def by_attribute_of_a_function():
        counted: Any = by_default
        counted.calls = getattr(counted, "calls", 0) + 1

    yield "attribute", lambda: setattr(one, "value", one.value + 1)
    yield "attribute by a method", lambda: one.count()
    yield "attribute by a property", lambda: one.next
    yield "attribute of a helper", lambda: vars(one).update(value=one.value + 1)
    yield "slot", lambda: setattr(slotted, "scale", slotted.scale + 1)
    yield "namespace", lambda: setattr(space, "n", space.n + 1)
    yield "attribute of a module", lambda: setattr(module, "scale", module.scale + 1)
    yield "class attribute", lambda: setattr(Counter, "calls", Counter.calls + 1)
    yield "dict of a class", lambda: Counter.table.update(n=len(Counter.table) + 7)
    yield "dict of a local class", lambda: Local.table.update(n=Local.table["n"] + 1)
    yield "attribute of a local class", lambda: setattr(Local, "n", Local.n + 1)
    yield "nonlocal", by_nonlocal
    yield "global", by_global_statement
    yield "default", by_default
    yield "attribute of a function", by_attribute_of_a_function
    yield "list", lambda: items.append(1)
    yield "list in an object", lambda: one.items.append(1)
    yield "list in a tuple", lambda: pair.second.append(1)
    yield "dict", lambda: table.update(a=table["a"] + 1)
    yield "set", lambda: seen.add(2)
    yield "deque", lambda: last.append(2)
    yield "bytearray", lambda: numbers.append(1)
    yield "array", lambda: array.__setitem__(0, 5.0)
    yield "itertools.count", lambda: next(steps)
    yield "iterator", lambda: next(generator)
    yield "random.Random", lambda: drawn.random()
    yield "random", lambda: random.random()
    yield "NumPy's random", lambda: np.random.rand()  # noqa: NPY002


@pytest.mark.parametrize(("name", "write"), list(writes()), ids=lambda case: case if type(case) is str else "")
def test_what_is_written_while_tracing_is_warned_about(name, write):
    def function(x):
        write()
        return x * 2

    with pytest.warns(TracingWarning, match="MT105|MT115"):
        assert mt.jit(function, backend="interpret")(X).tolist() == [2, 4]


def test_statements_that_write_are_warned_about():
    one, table = Counter(), {"n": 0}

    def by_attribute(x):
        one.value += 1
        return x

    def by_assignment(x):
        one.value = 7
        return x

    def by_item(x):
        table["n"] += 1
        return x

    def by_deletion(x):
        del one.items
        return x

    for function in (by_attribute, by_assignment, by_item, by_deletion):
        with pytest.warns(TracingWarning, match=r"MT105(.|\n)*(one\.value|table|one\.items)"):
            mt.jit(function, backend="interpret")(X)


# And no more than that --------------------------------------------------------------------------------------------


def test_what_is_not_read_changes_nothing(recwarn):
    """Also not in objects whose other attributes are read."""

    class Trainer:
        def __init__(self):
            self.step, self.log, self.scale = 0, [], 2.0
            self.net = mt.nn.Sequential(mt.nn.Linear(2, 2), Scaling())
            self.optimizer = mt.optim.Adam(self.net.parameters())
            self.train = mt.jit(self._train, backend="interpret")

        def _train(self, x):
            self.optimizer.zero_grad()
            loss = (self.net(x) * self.scale).sum()
            loss.backward()
            self.optimizer.step()
            return loss

    trainer = Trainer()
    for step in range(4):
        trainer.step = step
        trainer.log.append(trainer.train(mt.ones(1, 2)).item())
    assert len(trainer.train.explain().signatures) == 1 and not recwarn.list


def test_things_without_values_are_no_reason_to_warn(recwarn):
    import logging
    import math
    import threading

    log, lock, missing = logging.getLogger("stale"), threading.RLock(), object()

    def function(x, given=missing):
        with lock:
            log.debug("called")
            scale = math.pi if given is missing else np.float32(1)
        rng = random.Random(0)
        return x * scale * rng.random() * np.random.default_rng(0).random() + next(itertools.count(1))

    jitted = mt.jit(lambda x: function(x), backend="interpret")
    assert jitted(X).tolist() == jitted(X).tolist() == function(X).tolist()
    assert len(jitted.explain().signatures) == 1 and not recwarn.list


def test_a_profiler_goes_on_being_told():
    import cProfile

    told = []
    sys.setprofile(lambda frame, event, argument: told.append(frame.f_code.co_name))
    try:
        mt.jit(by_global(2.0)[0], backend="interpret")(X)
        assert sys.getprofile() is not None and "pieces" in told
    finally:
        sys.setprofile(None)
    profiler = cProfile.Profile()
    profiler.enable()
    mt.jit(by_global(2.0)[0], backend="interpret")(X)
    pieces(1)
    profiler.disable()
    assert any(row.code is pieces.__code__ for row in profiler.getstats())


def test_a_class_may_say_anything_of_its_module():
    """Libraries made in C do; it was an error of Python's own."""
    odd = type("Odd", (), {"__module__": property(lambda self: "odd"), "scale": 2.0})()
    function = mt.jit(lambda x: x * odd.scale)
    assert function(mt.ones(1)).item() == 2.0
    type(odd).scale = 3.0
    with pytest.warns(TracingWarning, match="MT106"):
        assert function(mt.ones(1)).item() == 3.0


def test_a_schedule_that_is_read_is_compared():
    """And one that is stepped beside a training step, which reads the rate as an input, is no reason to trace again."""
    optimizer = mt.optim.SGD([mt.nn.Parameter(mt.ones(1))], lr=1.0)
    scheduler = mt.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    functions = [
        lambda x: x * scheduler.last_epoch,
        lambda x: x * scheduler.get_last_lr()[0],
        lambda x: x * scheduler.gamma,
    ]
    jitted = [mt.jit(function, backend="interpret") for function in functions]
    for _ in range(3):
        assert [traced(each, X)[0] for each in jitted] == [eager(each) for each in functions]
        scheduler.step()
        scheduler.gamma += 0.25


ASKED = [
    lambda o: hasattr(o, "sca" + o.ending),
    lambda o: getattr(o, "sca" + o.ending, None) is not None,
    lambda o: "scale" in vars(o),
    lambda o: "scale" in o.__dict__,
    lambda o: "scale" in dir(o),
    lambda o: any(name.startswith("sc") for name in vars(o)),
]


@pytest.mark.parametrize("number", range(len(ASKED)))
@pytest.mark.parametrize("kind", [types.SimpleNamespace, mt.nn.Identity])
def test_an_attribute_that_is_not_there_yet_is_asked_for(kind, number):
    """Under a name that the code does not contain; added later, and removed again."""
    holder, asked = kind(), ASKED[number]
    holder.ending = "le"
    f = mt.jit(lambda x: x * 2 if asked(holder) else x)
    found = [f(X).tolist()]
    f(X)
    with patch.object(Watch, "holds", side_effect=AssertionError("each watch by its value, in a call like the last")):
        f(X)
    holder.scale = 3.0
    with pytest.warns(TracingWarning, match="MT106"):
        found.append(f(X).tolist())
    del holder.scale
    assert [*found, f(X).tolist()] == [[1, 2], [2, 4], [1, 2]]


def test_a_note_on_a_parameter_is_noticed():
    """Read by a name, by a module, by the variable of a loop, or only asked for."""
    layer: Any = mt.nn.Linear(2, 2)
    layer.weight.scale = 2.0

    def by_loop(x):
        for parameter in layer.parameters():
            x = x * getattr(parameter, "scale", 1.0)
        return x

    ways = [mt.jit(lambda x: x * layer.weight.scale), mt.jit(by_loop)]
    x = mt.ones(2)
    for weight, bias in ((2.0, None), (3.0, None), (3.0, 5.0)):
        layer.weight.scale = weight
        if bias is not None:
            layer.bias.scale = bias
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert [way(x).tolist() for way in ways] == [[weight] * 2, [weight * (bias or 1.0)] * 2]


# Optimisers ---------------------------------------------------------------------------------------------------------

CHANGES: dict[str, Any] = {
    "the state is replaced": lambda o, p, q: setattr(o, "state", collections.defaultdict(dict)),
    "the state is forgotten": lambda o, p, q: o.state.clear(),
    "the state of a parameter is forgotten": lambda o, p, q: o.state[p].clear(),
    "the state of a parameter is taken out": lambda o, p, q: o.state.pop(p),
    "a tensor is replaced": lambda o, p, q: o.state[p].__setitem__("exp_avg", mt.ones(2) * 3),
    "a tensor is written": lambda o, p, q: o.state[p]["exp_avg"].zero_(),
    "a group is added": lambda o, p, q: o.add_param_group({"params": [q]}),
    "a group is taken out": lambda o, p, q: o.param_groups.pop(),
    "a parameter is added": lambda o, p, q: o.param_groups[0]["params"].append(q),
    "parameters are replaced": lambda o, p, q: o.param_groups[0].update(params=[q]),
    "groups are replaced": lambda o, p, q: setattr(o, "param_groups", type(o)([q], lr=0.1).param_groups),
}


@pytest.mark.parametrize(
    ("kind", "change"),
    [(mt.optim.Adam, each) for each in CHANGES] + [(mt.optim.SGD, each) for each in CHANGES if "group" in each],
)
def test_what_an_optimiser_holds_is_never_stale(kind: Any, change: str) -> None:
    """Programs add and remove parameters between steps, and replace or forget the state: eagerly and under `jit`."""

    def history(mode):
        p, q, r = (mt.nn.Parameter(mt.ones(2)) for _ in range(3))
        optimizer = kind([{"params": [p]}, {"params": [r]}], lr=0.1)

        @mode
        def step(x):
            for number, each in enumerate((p, q, r)):
                each.grad = x * (number + 1)
            optimizer.step()
            return p.sum()

        found = []
        for number in range(5):
            step(mt.tensor([1.0, -2.0]) * (number + 1))
            found.append([each.tolist() for each in (p, q, r)])
            if number == 1:
                CHANGES[change](optimizer, p, q)
        return found

    np.testing.assert_allclose(history(functools.partial(mt.jit, backend="interpret")), history(lambda f: f), rtol=1e-6)
