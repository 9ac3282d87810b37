"""Random functions with nested control flow, as text."""

from __future__ import annotations

import contextlib
import linecache
import random
from collections.abc import Callable
from typing import Any

SIMPLE = [
    "a = a * 0.5 + 0.3", "b = b - a", "a = (a + b) * 0.5", "a = a + 0.7", "b = b * -0.5", "c += 1", "c = c * 2 % 7",
    "b = x - b", "a, b = b, a", "t = a - b; b = t * 0.25", "a = b if a > 0.2 else a + 1",
]  # fmt: skip
TESTS = [
    "a > 0.31", "b < a", "c % 2 == 0", "a > -0.9 and b < 0.77", "not a < b", "c > 2 or a < 0.11", "-1.1 < a < 1.3",
    "flag", "flag and b > 0.13",
]  # fmt: skip


class Writer:
    """Writes one function.

    Args:
        seed: decides about everything.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loops = 0
        start = ["a = x * 1.0", "b = x * 0.5 - 0.2", "c = 0"]
        self.lines = ["def f(x, n, xs, flag):", *(f"    {line}" for line in start)]
        self.block(1, 0, False)
        self.lines.append("    return a, b, c")

    def write(self, indent: int, line: str) -> None:
        self.lines.append("    " * indent + line)

    def block(self, indent: int, depth: int, in_loop: bool) -> None:
        for _ in range(self.random.randint(1, 3)):
            kinds = ["simple", "simple", "if", "if", "loop", "other"] if depth < 3 else ["simple"]
            getattr(self, self.random.choice(kinds))(indent, depth, in_loop)

    def simple(self, indent: int, depth: int, in_loop: bool) -> None:
        self.write(indent, self.random.choice(SIMPLE))

    def jump(self, indent: int, in_loop: bool) -> None:
        jumps = ["break", "continue", "return b, a, c"] if in_loop else ["return a, a, c"]
        self.write(indent, self.random.choice(jumps))

    def condition(self, indent: int, depth: int, in_loop: bool) -> None:
        self.write(indent, f"if {self.random.choice(TESTS)}:")
        self.block(indent + 1, depth + 1, in_loop)
        if self.random.random() < 0.35:
            self.jump(indent + 1, in_loop)
        if self.random.random() < 0.5:
            self.write(indent, "else:")
            self.block(indent + 1, depth + 1, in_loop)
            if self.random.random() < 0.2:
                self.jump(indent + 1, in_loop)

    def other(self, indent: int, depth: int, in_loop: bool) -> None:
        kind = self.random.choice(["with", "try", "match"])
        self.write(indent, {"with": "with suppress(KeyError):", "try": "try:", "match": "match flag:"}[kind])
        if kind == "match":
            self.write(indent + 1, "case True:")
            self.block(indent + 2, depth + 1, in_loop)
            self.write(indent + 1, "case other:")
        self.block(indent + 1 + (kind == "match"), depth + 1, in_loop)
        if self.random.random() < 0.4:
            self.jump(indent + 1 + (kind == "match"), in_loop)
        if kind == "try":
            self.write(indent, "except KeyError:")
            self.simple(indent + 1, depth, in_loop)
            self.write(indent, "else:")
            self.block(indent + 1, depth + 1, in_loop)
            self.write(indent, "finally:")
            self.simple(indent + 1, depth, in_loop)

    def loop(self, indent: int, depth: int, in_loop: bool) -> None:
        self.loops += 1
        number, kind = self.loops, self.random.choice(["while", "n", "2", "xs", "enumerate"])
        if kind == "while":
            self.write(indent, f"k{number} = 0")
            self.write(indent, f"while k{number} < 3 and ({self.random.choice(TESTS)}):")
            self.write(indent + 1, f"k{number} += 1")
        elif kind in ("n", "2"):
            self.write(indent, f"for i{number} in range({kind}):")
            self.write(indent + 1, f"b = b + i{number} * 0.1")
        else:
            rows, item = ("xs", f"v{number}") if kind == "xs" else ("enumerate(xs)", f"(i{number}, v{number})")
            self.write(indent, f"for {item} in {rows}:")
            self.write(indent + 1, f"a = a * 0.5 + v{number}")
        self.block(indent + 1, depth + 1, True)
        if self.random.random() < 0.3:
            self.write(indent, "else:")
            self.block(indent + 1, depth + 1, in_loop)


setattr(Writer, "if", Writer.condition)


def function(seed: int) -> tuple[Callable[..., Any], str]:
    """Return a function and its source."""
    text = "\n".join(Writer(seed).lines) + "\n"
    name = f"<random program {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"__name__": __name__, "suppress": contextlib.suppress}
    exec(compile(text, name, "exec"), space)
    return space["f"], text
