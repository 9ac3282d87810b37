"""The signature of a call: what its arguments are, by their exact types, and what they mean to what is called."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import pytest

import minitorch as mt
from minitorch.errors import TracingWarning

X = mt.tensor([1.0, 2.0])


class Pair(NamedTuple):
    """A named tuple."""

    first: Any
    second: Any


def test_defaults_of_the_function_itself_are_arguments():
    def function(x, shift=1.0, *, scale=(2.0,)):
        return x * scale[0] + shift

    jitted = mt.jit(function, backend="interpret")
    assert jitted(X).tolist() == [3, 5]
    function.__defaults__ = (2.0,)
    assert jitted(X).tolist() == [4, 6]
    function.__kwdefaults__["scale"] = (3.0,)
    assert jitted(X).tolist() == [5, 8]


@dataclasses.dataclass(frozen=True)
class Frozen:
    """A static argument."""

    value: Any


ALIKE = [(1, 1.0, True), (0.0, -0.0), (0, False, 0.0, -0.0)]
AROUND: dict[str, Any] = {
    "itself": lambda value: value,
    "tuple": lambda value: (value, 2),
    "nested": lambda value: ((), ((value,), 2)),
    "named": lambda value: Pair(value, 2),
    "dataclass": lambda value: (Frozen((value,)),),
    "set": lambda value: frozenset({value}),
    "list": lambda value: [value, [2]],
    "dict": lambda value: {"a": {"b": value}},
    "key": lambda value: {value: 1},
}


# A static argument is hashable, another one a tensor, a plain value, or a tuple, list or dict of these.
CASES = [(around, False) for around in AROUND if around not in ("dataclass", "set")]
CASES += [(around, True) for around in AROUND if around not in ("list", "dict", "key")]


@pytest.mark.parametrize(("around", "static"), CASES)
@pytest.mark.parametrize("alike", ALIKE)
def test_equal_values_of_other_types_are_other_signatures(alike, around, static):
    def function(x, given):
        return x + len(repr(given)), given

    jitted = mt.jit(function, backend="interpret", static_argnames="given" if static else ())
    for value in (*alike, *reversed(alike)):
        if around == "key" and repr(value) == "-0.0":
            continue
        given = AROUND[around](value)
        result, back = jitted(X, given)
        assert (result.tolist(), repr(back)) == ((X + len(repr(given))).tolist(), repr(given))


def wrapped(take):
    """A decorator whose wrapper has parameters of its own, but says that they are those of the function."""
    return lambda function: functools.wraps(function)(lambda *args, **kwargs: take(function, args, kwargs))


class Scaled(mt.nn.Module):
    """A module whose call has a default."""

    def forward(self, x, k=2.0):
        return x * k


def scaled(x, k=2.0, *more, other=1.0):
    return x * k * other + len(more)


CALLABLES = {
    "default of the wrapper": lambda: functools.wraps(scaled)(lambda x, k=5.0: scaled(x, k)),
    "exchanged names": lambda: functools.wraps(scaled)(lambda k, x: scaled(k, x)),
    "count of arguments": lambda: wrapped(lambda f, args, kwargs: f(*args, **kwargs) * (len(args) + 3 * len(kwargs)))(
        scaled
    ),
    "argument added": lambda: wrapped(lambda f, args, kwargs: f(*args, **{"k": 7.0, **kwargs}))(scaled),
    "module": Scaled,
    "partial": lambda: functools.partial(scaled, other=3.0),
    "function": lambda: scaled,
}


@pytest.mark.parametrize("name", CALLABLES)
def test_a_call_means_what_it_means_to_what_is_called(name):
    eager, jitted = CALLABLES[name](), mt.jit(CALLABLES[name](), backend="interpret")
    for call in (
        lambda f: f(X),
        lambda f: f(X, 3.0),
        lambda f: f(X, k=4.0),
        lambda f: f(x=X, k=3.0),
        lambda f: f(k=X, x=X),
    ):
        try:
            expected = call(eager)
        except TypeError:
            continue
        assert [call(jitted).tolist() for _ in range(2)] == [expected.tolist()] * 2
    if name == "module":
        jitted = mt.jit(eager)
        jitted(X)
        eager.forward = lambda x, k=7.0: x * k
        with pytest.warns(TracingWarning, match="MT106"):
            assert jitted(X).tolist() == (X * 7.0).tolist()
