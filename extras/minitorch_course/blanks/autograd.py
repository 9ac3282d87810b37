"""The blank of notebook 02: the way back over the reader's own tape."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..blanking import Blank, Case

tape: list[Any] = []  # the notebook has its own


def backward(end: Any) -> Any:
    """Add to the grad of each Var the derivative of `end` with respect to it."""
    end.grad = 1.0
    for node in reversed(tape):
        for operand, pull in zip(node.operands, node.pulls, strict=True):
            operand.grad += pull(node.grad)


class Var:
    """What notebook 02 builds, without `exp`; 04 and 05 let it hold a tracer and a lazy tensor."""

    def __init__(self, value: Any, operands: Any = (), pulls: Any = ()) -> None:
        self.value, self.operands, self.pulls, self.grad = value, operands, pulls, 0.0
        if operands:
            tape.append(self)

    def __add__(self, other: Var) -> Var:
        return Var(self.value + other.value, (self, other), (lambda g: g, lambda g: g))

    def __mul__(self, other: Var) -> Var:
        a, b = self.value, other.value
        return Var(a * b, (self, other), (lambda g: g * b, lambda g: g * a))


def _diamond(x: Any) -> Any:
    y = x * x
    return y * y + y


def _ladder(x: Any) -> Any:
    for _ in range(5):
        x = x + x
    return x


def _programs() -> Iterable[Case]:
    yield "For x*x at x = 1.5", lambda x: x * x
    yield "For y*y + y with y = x*x, at x = 1.5", _diamond
    yield "For five diamonds, with ten operands on the tape", _ladder


def _gradient(function: Callable[..., Any], program: Callable[..., Any]) -> str:
    """Walk the tape of a program, and say the gradient and how many pulls were called."""
    names = function.__globals__  # of the notebook
    before, names["tape"][:] = names["tape"][:], []
    try:
        x, calls = names["Var"](1.5), [0]
        end = program(x)
        for node in names["tape"]:
            node.pulls = tuple(_counted(pull, calls) for pull in node.pulls)
        function(end)
        return f"a gradient of {x.grad:g} after {calls[0]} shares"
    finally:
        names["tape"][:] = before


def _counted(pull: Callable[[float], float], calls: list[int]) -> Callable[[float], float]:
    def counted(g: float) -> float:
        calls[0] += 1
        return pull(g)

    return counted


def _by_recursion(end: Any, g: float = 1.0) -> None:
    end.grad += g
    for operand, pull in zip(end.operands, end.pulls, strict=True):
        _by_recursion(operand, pull(g))


BLANKS = {
    "backward": Blank(
        backward,
        _programs,
        {
            "You read the tape forwards. A node may hand out shares after all nodes that use it: read it backwards.": {
                "reversed(tape)": "tape"
            },
            "The last share replaces those before it: add them up.": {"+=": "="},
            "The number is right, and a node is visited once for each way to it: go over the tape instead.": (
                _by_recursion
            ),
        },
        ask=_gradient,
    )
}
