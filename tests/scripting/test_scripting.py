"""`mt.script`: one law for all programs and modes, random programs, and what is refused."""

from __future__ import annotations

import asyncio
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.tree import flatten

from . import generated
from .programs import NUMBERS, PROGRAMS, Program


def lazily(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        with mt.lazy():
            return function(*args)

    return run


MODES: dict[str, Callable[[Any], Any]] = {
    "eager": lambda f: f,
    "jit": mt.jit,
    "interpret": lambda f: mt.jit(f, backend="interpret"),
    "lazy": lazily,
}


def numbers(result: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(leaf.detach() if isinstance(leaf, mt.Tensor) else leaf) for leaf in flatten(result)[0]]


def assert_alike(mine: Any, right: Any) -> None:
    assert len(numbers(mine)) == len(numbers(right))
    for one, other in zip(numbers(mine), numbers(right), strict=True):
        assert one.shape == other.shape and one.dtype.kind == other.dtype.kind
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of the gradient of all results by the first argument."""

    def run(x: mt.Tensor, *rest: Any) -> Any:
        x = x.clone().detach().requires_grad_()
        leaves = [leaf for leaf in flatten(function(x, *rest))[0] if isinstance(leaf, mt.Tensor)]
        ends = [leaf.sin().sum() for leaf in leaves if leaf.requires_grad]
        if not ends:
            return mt.zeros_like(x)
        (found,) = mt.autograd.grad(sum(ends, mt.zeros(())), [x], allow_unused=True)
        return mt.zeros_like(x) if found is None else found

    return run


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.function.__name__)
def test_a_program_gives_what_python_gives(program: Program, mode: str) -> None:
    function = MODES[mode](mt.script(program.function))
    for call in program.calls:
        assert_alike(function(*call), program.function(*call))


@pytest.mark.parametrize("mode", ["eager", "jit", "lazy"])
@pytest.mark.parametrize(
    "program", [each for each in PROGRAMS if each.has_gradient], ids=lambda each: each.function.__name__
)
def test_gradients_are_those_of_the_way_taken(program: Program, mode: str) -> None:
    function = MODES[mode](gradient(mt.script(program.function)))
    for call in program.calls:
        assert_alike(function(*call), gradient(program.function)(*call))


def outcome(function: Callable[..., Any], call: tuple[Any, ...]) -> Any:
    """Call a function with tensors of its own."""
    return function(*(each.clone() if isinstance(each, mt.Tensor) else each for each in call))


RANDOM_CALLS = [
    (mt.tensor(0.5), mt.tensor(0), mt.tensor([0.25, -1.0]), True),
    (mt.tensor(-1.25), mt.tensor(3), mt.tensor([2.0, 0.1]), False),
    (mt.tensor(1.7), mt.tensor(1), mt.tensor([-0.7, -0.2]), True),
]


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_give_what_python_gives(seed: int) -> None:
    function, text = generated.function(seed)
    scripted = mt.script(function)
    compiled = mt.jit(scripted, backend="interpret")
    for call in RANDOM_CALLS:
        right = outcome(function, call)
        for mine in (scripted, compiled):
            try:
                assert_alike(outcome(mine, call), right)
            except AssertionError as error:
                raise AssertionError(f"{call}\n{text}") from error


MAPPED = ["if_else", "early_return", "while_break_else", "return_of_partial_branches", "logic"]
MAPPED += ["number_under_two_names", "in_place"]


@pytest.mark.parametrize("name", MAPPED)
def test_within_vmap_each_example_goes_its_way(name: str) -> None:
    (program,) = [each for each in PROGRAMS if each.function.__name__ == name]
    batch = mt.stack([x for (x,) in NUMBERS])
    right = [program.function(x) for (x,) in NUMBERS]
    for function in (mt.vmap(mt.script(program.function)), mt.jit(mt.vmap(mt.script(program.function)))):
        found = numbers(function(batch))
        for place, one in enumerate(right):
            for mine, other in zip(found, numbers(one), strict=True):
                np.testing.assert_allclose(mine[place], other, rtol=1e-5)


def test_a_session_takes_both_ways() -> None:
    function = mt.script(next(each.function for each in PROGRAMS if each.function.__name__ == "while_return"))
    with mt.Graph() as graph:
        x = mt.placeholder(())
        y = function(x)
    for value in (-2.0, 3.0):
        assert_alike(mt.Session(graph).run(y, {x: mt.tensor(value)}), function(mt.tensor(value)))


def test_sizes_that_vary_are_numbers() -> None:
    @mt.script
    def sizes(x: mt.Tensor, y: mt.Tensor) -> Any:
        n, half, total = 5, 0.5, mt.zeros(())
        if x.sum() > 0:
            n, half = len(x), len(x) / 2
        for a, b in zip(x, y, strict=False):
            total = total + a * b
            if a > b:
                n += 1
        return n * len(x), half, total

    compiled = mt.jit(sizes, dynamic_shapes=True)
    for one, other in ((3, 4), (4, 2), (5, 5), (7, 3), (2, 6)):
        x, y = mt.linspace(-1, 3, one), mt.ones(other)
        assert_alike(compiled(x, y), sizes(x, y))
        assert_alike(compiled(-x, y), sizes(-x, y))


# Surroundings ---------------------------------------------------------------------------------------------

FACTOR = 2.0


class Base(mt.nn.Module):
    """A module with a scripted method, a private attribute and a global variable."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = mt.nn.Linear(2, 2)
        self.__size = 3.0

    @mt.script
    def step(self, x: mt.Tensor, *, by: float = 1.0) -> mt.Tensor:
        if x.sum() > 0:
            return x * FACTOR - self.__size
        return x + by


class Derived(Base):
    """A module that calls the method of its base."""

    scale = 1.5

    def forward(self, x: Any) -> Any:
        for _ in range(2):
            x = self.layer(self.step(x, by=0.5))
            if x.sum() > 100:
                return x
        return x * self.scale

    @mt.script
    def step(self, x: mt.Tensor, *, by: float = 1.0) -> mt.Tensor:
        """Do a step."""
        if x[0] < 9:
            x = super().step(x, by=by)
        return x


def test_methods_modules_and_what_they_read(monkeypatch: pytest.MonkeyPatch) -> None:
    module = mt.script(Derived())
    compiled = mt.jit(module)
    assert module.step.__doc__ == "Do a step." and mt.script(module.step)(mt.ones(2)).shape == (2,)
    for x in ([1.0, 2.0], [-1.0, -2.0], [30.0, -9.0]):
        assert_alike(compiled(mt.tensor(x)), module(mt.tensor(x)))
    before = compiled(mt.ones(2))
    with pytest.warns(mt.errors.TracingWarning, match="MT106"):
        module.scale = 3.0
        assert_alike(compiled(mt.ones(2)), before * 2)
        monkeypatch.setitem(globals(), "FACTOR", -1.0)
        assert_alike(compiled(mt.ones(2)), module(mt.ones(2)))


@mt.script
def power(x: mt.Tensor, n: int) -> mt.Tensor:
    if n == 0:
        return mt.ones(())
    if x > 1e6:
        return x
    return x * power(x, n - 1)


def test_recursion_that_python_ends() -> None:
    assert_alike(mt.jit(power)(mt.tensor(1.5), 4), power(mt.tensor(1.5), 4))


def test_writes_are_seen_outside() -> None:
    def write(x: mt.Tensor, y: mt.Tensor) -> None:
        if x[0] > 0:
            y[1] = 5.0
        for v in x:
            y += v

    mine, right = mt.zeros(2), mt.zeros(2)
    mt.jit(mt.script(write))(mt.ones(3), mine)
    write(mt.ones(3), right)
    assert_alike(mine, right)


def test_variables_of_enclosing_functions() -> None:
    def outer(x: mt.Tensor) -> Any:
        total, count = x * 0, 0

        @mt.script
        def add(v: mt.Tensor) -> None:
            nonlocal total, count
            if v > 0:
                total = total + v
                count += 1

        for k in range(3):
            add(x - k)
        return total, count + 0

    with pytest.warns(mt.errors.TracingWarning, match="stores a traced value"):
        assert_alike(mt.jit(outer)(mt.tensor(1.5)), outer(mt.tensor(1.5)))


def test_a_generator_and_a_coroutine_are_pythons_own() -> None:
    def generate(x: mt.Tensor) -> Any:
        while x < 9:
            x = x * 2 if x < 3 else x + 5
            if x > 7:
                break
            yield x

    async def wait(x: mt.Tensor) -> mt.Tensor:
        for _ in range(3):
            await asyncio.sleep(0)
            if x > 2:
                return x * 10
            x = x + 1
        return x

    assert_alike(list(mt.script(generate)(mt.ones(()))), list(generate(mt.ones(()))))
    assert_alike(asyncio.run(mt.script(wait)(mt.ones(()))), asyncio.run(wait(mt.ones(()))))


def test_nodes_and_tracebacks_have_the_lines_of_the_source() -> None:
    function = next(each.function for each in PROGRAMS if each.function.__name__ == "if_else")
    first = function.__code__.co_firstlineno
    (node,) = [each for each in mt.jit(mt.script(function)).graph(mt.ones(())).nodes if each.params.get("result") == 0]
    assert node.source.line == first + 2 and node.params["then"].nodes[0].source.line == first + 3
    with pytest.raises(TypeError) as caught:
        mt.script(function)("a")
    assert caught.traceback[-1].lineno + 1 == first + 2


# What is refused ------------------------------------------------------------------------------------------

REFUSED = [
    ("if x > 0:\n  y = x\nreturn y", 1, "`y` has a value on one side of a branch only"),
    ("if x > 0:\n  y = mt.ones(2)\nelse:\n  y = mt.ones(3)\nreturn y", 1, r"`y` is f32\[2\] on one side, and f32\[3\]"),
    ("y = 1\nif x > 0:\n  y = True\nreturn y", 2, "`y` is bool on one side, and int on the other"),
    ("y = 'a'\nif x > 0:\n  y = 'b'\nreturn y", 2, "`y` is 'b' on one side, and 'a' on the other"),
    ("y = mt.tensor(1, dtype=mt.uint8)\nif x > 0:\n  y = -1\nreturn y", 2, r"`y` is int on one side, and u8"),
    ("y = x.half()\nif x > 0:\n  y = 1e6\nreturn y", 2, r"`y` is float on one side, and f16"),
    ("y = x\nif x > 0:\n  y = (x, x)\nreturn y", 2, r"`y` is \(f32\[\], f32\[\]\) on one side, and f32\[\]"),
    ("if x > 0:\n  return x", 1, r"the returned value is f32\[\] on one side, and None on the other"),
    ("y = x.reshape(1)\nwhile y.sum() < 9:\n  y = mt.cat([y, y])\nreturn y", 2, r"`y` is f32\[1\] before"),
    ("y = 0.5\nwhile x < 9:\n  x = x + 1\n  y = x > 3\nreturn y", 2, "`y` is float before a loop, and bool"),
    ("while x < 9:\n  x = x + 1\n  y = x\nreturn y", 1, "`y` has no value before a loop"),
    ("z = x\nwhile x < 9:\n  x = x + 1\n  del z\nreturn x, z", 2, "a loop deletes `z`"),
    ("y = []\nwhile x < 9:\n  x = x + 1\n  y.append(x)\nreturn y", 2, "changes `y`, a list"),
    ("y = {}\nif x > 0:\n  y['a'] = x\nreturn y", 2, "changes `y`, a dict"),
    ("y = [x, {1: x}]\nif x > 0:\n  y[1][1] = x * 2\nreturn y", 2, "changes `y`, a dict"),
    ("if x > 0:\n  Object.count = Object.count\n  thing.count = 1\nreturn x", 1, "changes `thing`, a Object"),
    ("y = ([],)\nif x > 0:\n  y[0].append(1)\nreturn x", 2, "changes `y`, a list"),
    ("add = [x].append\nif x > 0:\n  add(x)\nreturn x", 2, "changes `add`, a list"),
    ("def add(y=[]):\n  y.append(1)\nif x > 0:\n  add()\nreturn x", 3, "changes `add`, a list"),
    ("class Here:\n  n = 1\nif x > 0:\n  Here.n = 2\nreturn x * Here.n", 3, "changes `Here`, a type"),
    ("class Here:\n  __slots__ = ['n']\ny = Here()\nif x > 0:\n  y.n = 2\nreturn x", 4, "changes `y`, a Here"),
    ("y = np.zeros(2)\nif x > 0:\n  y[0] = 1\nreturn x", 2, "changes `y`, a ndarray"),
    ("y = iter([1, 2])\nwhile x < 9:\n  x = x + next(y)\nreturn x", 2, "changes `y`, a list_iterator"),
    ("global COUNT\nif x > 0:\n  COUNT = 2\nreturn x", 2, "changes a global variable"),
    ("def add(v):\n  y.append(v)\ny = []\nfor v in mt.ones(3):\n  add(v)\nreturn y", 4, "changes `y`, a list"),
    ("g = counter()\nif x > 0:\n  g()\nreturn x", 2, "changes `n`, a variable of an outer function"),
    ("if x > 0:\n  raise ValueError('no')\nreturn x", 1, "a branch with a traced condition raises ValueError: no"),
    ("return f(x * 2) if x < 9 else x", 1, "a function calls itself"),
    ("y = x * 1\nif x > 0:\n  y += 1\n  y = y * 2\nreturn y", 2, "a block writes `y` in place, and assigns"),
    ("y = x * 1\nz = y\nif x > 0:\n  y += z\nreturn y", 3, "a block writes `y` in place, and reads"),
    ("def g(x):\n  while x < 9:\n    x = x + 1\n    yield x\nreturn list(mt.script(g)(x))", 2, "yield or await in"),
    ("while (y := x * 2) < 9:\n  x = y\nreturn x", 1, "the condition of a while assigns a variable"),
    ("for i in range(3):\n  try:\n    x = x + 1\n  finally:\n    break\nreturn x", 2, "in a finally block"),
    ("for i in range(0, x.to(mt.int64), x.to(mt.int64)):\n  pass", 1, "range with a traced step"),
]  # fmt: skip


class Object:
    """An object of Python."""

    count = 1


def counter() -> Callable[[], None]:
    """Return a function that counts its calls."""
    n = 0

    def count() -> None:
        nonlocal n
        n += 1

    return count


@pytest.mark.parametrize("body, line, message", REFUSED)
def test_an_error_names_line_and_rule(body: str, line: int, message: str) -> None:
    text = "def f(x):\n" + "".join(f"  {each}\n" for each in body.splitlines())
    name = f"refused_{abs(hash(body))}.py"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {
        "mt": mt,
        "np": np,
        "COUNT": 1,
        "Object": Object,
        "thing": Object(),
        "counter": counter,
        "__name__": __name__,
    }
    exec(compile(text, name, "exec"), space)
    with pytest.raises(mt.errors.TracingError, match=f"MT117: .*{message}") as caught:
        space["f"] = mt.script(space["f"])
        mt.jit(space["f"])(mt.tensor(1.0))
    assert f"where: {name}:{line + 1}\n" in str(caught.value)


def test_what_has_no_source_or_is_no_function_is_refused() -> None:
    for function, message in [
        (eval("lambda x: x"), "there is no source for it"),
        (mt.no_grad()(power), "it is wrapped by a decorator"),
        ((lambda x: x, lambda x: -x)[0], "its line has several functions"),
    ]:
        with pytest.raises(mt.errors.TracingError, match=f"MT117: .*{message}"):
            mt.script(function)
    with pytest.raises(TypeError, match="a function, a method or a module is needed, not builtin"):
        mt.script(len)


def test_of_several_elements_python_says_that_they_are_ambiguous() -> None:
    function = mt.script(next(each.function for each in PROGRAMS if each.function.__name__ == "if_else"))
    for each in (function, mt.jit(function)):
        with pytest.raises(RuntimeError, match="ambiguous"):
            each(mt.ones(2))
