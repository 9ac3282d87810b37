"""Random small functions of sizes: slices, branches, and arithmetic on the lengths of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import minitorch as mt
from minitorch.nn import functional as F


@dataclass(frozen=True)
class Program:
    """A function of one or two tensors of the shape [length, 3].

    Attributes:
        text: its source.
        function: the function.
        arguments: their names.
    """

    text: str
    function: Callable[..., mt.Tensor]
    arguments: tuple[str, ...]


def program(seed: int) -> Program:
    """The program of a number."""
    random = Random(seed)
    arguments = ("x", "y")[: 1 + (random.random() < 0.4)]
    names = ["n", "x.shape[0]", "m"][: 1 + len(arguments)]
    lines = ["n = x.shape[0]", "m = y.shape[0]"][: len(arguments)]
    lines += [_step(random, names) for _ in range(random.randrange(1, 5))]
    text = f"def f({', '.join(arguments)}):\n    " + "\n    ".join([*lines, "return x + 0"]) + "\n"
    namespace: dict[str, Any] = {"mt": mt, "F": F}
    exec(compile(text, f"<program {seed}>", "exec"), namespace)
    return Program(text, namespace["f"], arguments)


def _number(random: Random, names: list[str], depth: int = 0) -> str:
    kind = random.randrange(9 if depth < 2 else 3)
    if kind < 2:
        return random.choice(names)
    if kind == 2:
        return str(random.choice([1, 2, 3, 4, 5, 7, 10, 16, 100]))
    a, b = _number(random, names, depth + 1), _number(random, names, depth + 1)
    by = random.choice([2, 3, 4])
    return [f"({a} + {b})", f"({a} - {b})", f"{a} * {by}", f"{a} // {by}", f"{a} % {by}", f"min({a}, {b})"][kind - 3]


def _condition(random: Random, names: list[str]) -> str:
    a, b = _number(random, names), _number(random, names)
    return random.choice(
        [
            f"{a} {random.choice(['<', '>=', '==', '!='])} {b}",
            f"{a} % {random.choice([2, 3, 4])} == {random.choice([0, 1])}",
            f"int({a}) < {random.choice([12, 50, 100])}",
            f"{a} / 2 > {random.choice([4.5, 20])}",
        ]
    )


def _step(random: Random, names: list[str]) -> str:
    def number() -> str:
        return _number(random, names)

    start, stop = (random.choice(["", number(), f"-{random.choice([1, 5, 20])}"]) for _ in range(2))
    return random.choice(
        [
            f"x = x[{start}:{stop}]",
            f"x = x[{start}::{random.choice([2, 3])}]",
            f"x = x * ({number()})",
            f"x = x + 1 / (1 + ({number()}) ** 2)",
            "x = mt.cat([x, x])",
            "x = mt.cat([x, y])" if "m" in names else "x = x.repeat(2, 1)",
            "x = x.flatten().reshape(-1, 3)",
            "x = x.flatten()[:, None].expand(-1, 3) + 0",
            "x = x + mt.arange(x.shape[0])[:, None]",
            "x = x - x.mean(0)",
            f"x = x * (2 if {_condition(random, names)} else 3)",
            f"x = x + 1 if {_condition(random, names)} else x",
            f"x = mt.cat(x.split({random.choice([2, 8, 50])})[:2])",
            f"x = mt.cat(x.chunk({random.choice([2, 3])})[::-1])",
            f"x = mt.cat([x, mt.zeros(max({number()}, 0), 3)])",
            f"x = x[: {number()}].unfold(0, 2, {random.choice([1, 2])}).sum(-1)",
            "x = x.t().reshape(-1, 3)",
            "x = x.reshape(-1, 2, 3).sum(1)",
            "x = mt.tril(x @ x.t()) @ x",
            f"x = F.softmax(x, 0) * ({number()})",
        ]
    )
