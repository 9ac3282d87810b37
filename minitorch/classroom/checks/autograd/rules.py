"""Local derivative rules: from the cotangent of a result to a share for each operand."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

from ...asks import autograd as asks
from ...asks.plain import described
from ..task import Task, cases_with

Cases = list[tuple[str, Any]]

SHARES = {"sums": 4, "products and quotients": 6, "by the result": 5}

# From the cotangent, the operands and the result to the shares.
RULES: dict[str, Callable[..., tuple[float, ...]]] = {
    "add": lambda g, a, b, y: (g, g),
    "sub": lambda g, a, b, y: (g, -g),
    "neg": lambda g, a, y: (-g,),
    "mul": lambda g, a, b, y: (g * b, g * a),
    "div": lambda g, a, b, y: (g / b, -g * a / (b * b)),
    "exp": lambda g, a, y: (g * y,),
    "sqrt": lambda g, a, y: (g / (2 * y),),
    "tanh": lambda g, a, y: (g * (1 - y * y),),
}
COMPUTE: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "neg": lambda a: -a,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "exp": math.exp,
    "sqrt": math.sqrt,
    "tanh": math.tanh,
}
PART = {"add": "sums", "sub": "sums", "neg": "sums", "mul": "products and quotients", "div": "products and quotients"}


def _cases(seed: int) -> Cases:
    """A name, a cotangent, and what the tape has kept: operands or result, the other is None."""
    random = Random(seed)
    found: Cases = []
    for name, rule in RULES.items():
        operands = tuple(random.uniform(0.5, 2.0) for _ in range(rule.__code__.co_argcount - 2))
        part = PART.get(name, "by the result")
        if part == "products and quotients":
            operands = (operands[0], -operands[1])
        kept = {
            "sums": (None, None),
            "products and quotients": (operands, None),
            "by the result": (None, COMPUTE[name](*operands)),
        }[part]
        found.append((part, (name, random.uniform(1.5, 3.0), *kept)))
    return found


def _wrong(case: Any, answer: Any) -> str | None:
    name, g, operands, result = case
    count = RULES[name].__code__.co_argcount - 2
    what = f"{name} with g = {g:.4g}" + (
        f", operands ({', '.join(f'{each:.4g}' for each in operands)})"
        if operands
        else f", result {result:.4g}"
        if result is not None
        else ""
    )
    if type(answer) is not tuple or len(answer) != count or not all(type(each) is float for each in answer):
        return f"{what}: a tuple of {count} float{'s' * (count > 1)} was expected, and it is {described(answer)}"
    y = result if result is not None else math.nan
    right = RULES[name](g, *(operands or (math.nan,) * count), y)
    if _near(answer, right):
        return None
    shown = f"({', '.join(f'{each:.4g}' for each in answer)}) and should be ({', '.join(f'{e:.4g}' for e in right)})"
    return f"{what}: it is {shown}{_misconception(name, g, operands, y, answer, right)}"


def _near(answer: tuple[float, ...], right: tuple[float, ...]) -> bool:
    return all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(answer, right, strict=True))


def _misconception(
    name: str, g: float, operands: Any, y: float, answer: tuple[float, ...], right: tuple[float, ...]
) -> str:
    if _near(answer, tuple(each / g for each in right)):
        return "; that is the derivative alone: a share is the cotangent times the derivative"
    if name == "mul" and _near(answer, (g * operands[0], g * operands[1])):
        return "; the share of one factor is the cotangent times the *other* factor"
    if len(right) == 2 and _near(answer, right[::-1]):
        return "; the shares are in the wrong order: one for each operand, in the order of the operands"
    if name in ("sub", "neg", "div") and _near(tuple(map(abs, answer)), tuple(map(abs, right))):
        return "; a sign is wrong: if this operand grows, the result becomes smaller"
    if name in ("exp", "sqrt", "tanh") and math.isclose(answer[0], RULES[name](g, y, COMPUTE[name](y))[0]):
        return "; the number that was kept is the result already: the function is applied twice"
    return ""


shares = Task(asks.shares, SHARES, _cases, cases_with(SHARES, _wrong))
