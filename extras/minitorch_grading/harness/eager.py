"""Drivers of exercise 01: products whose way back is the student's, programs that are observed, records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minitorch.autograd import Function
from minitorch.interpreters import observing
from minitorch.ir import PRIMITIVES
from minitorch.primitives import mul
from minitorch.tensor import Tensor, with_value

from .driver import Driver, driver, refused, within
from .limit import Limited
from .needs import Needs
from .plain import Array

NEEDS = Needs(engine=("autograd", "functional"), without=("primitives.movement._expand_rule",))

# --- unbroadcast ------------------------------------------------------------------------------------------------

ENGINE = "in the engine"  # the part of the task


def _gradient(unbroadcast: Any, a: Array, b: Array) -> Any:
    """The gradient of ``(a * b).sum()`` by `a`, by a product whose way back is the student's."""

    class Product(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, y: Tensor) -> Any:
            ctx.save_for_backward(x, y)
            return mul(x, y)

        @staticmethod
        def backward(ctx: Any, *cotangents: Tensor) -> Any:
            (gradient,), (x, y) = cotangents, ctx.saved_tensors
            return unbroadcast(mul(gradient, y), tuple(x.shape)), unbroadcast(mul(gradient, x), tuple(y.shape))

    x, y = with_value(a), with_value(b)
    x.requires_grad = y.requires_grad = True
    Product.apply(x, y).sum().backward()
    return x.grad


@driver("eager.unbroadcast", NEEDS)
def unbroadcast(call: Limited, case: tuple[str, Any]) -> Any:
    """A gradient and a shape; or, in the engine, the two factors of a product."""
    part, (first, second) = case
    if part == ENGINE:
        return call.within(_gradient, first, second)
    return call(with_value(first), second)


# --- observe ----------------------------------------------------------------------------------------------------


def _square_of_difference(x: Tensor, y: Tensor) -> Any:
    z = x - y
    return z * z


# Small programs, each with the part of the task that it is for. Each operator is one dispatch.
PROGRAMS: dict[str, tuple[str, Callable[[Tensor, Tensor], Any]]] = {
    "x + y": ("bytes of elementwise operations", lambda x, y: x + y),
    "(x + y) * y": ("bytes of elementwise operations", lambda x, y: (x + y) * y),
    "x.neg().exp() + y": ("bytes of elementwise operations", lambda x, y: x.neg().exp() + y),
    "(x + y).sum()": ("bytes of other operations", lambda x, y: (x + y).sum()),
    "x.T - y.T": ("views move nothing", lambda x, y: x.transpose(0, 1).sub(y.transpose(0, 1))),
    "x.reshape(-1)[2:].exp()": ("views move nothing", lambda x, y: x.reshape(-1)[2:].exp()),
    "x * x": ("an operand that is used twice", lambda x, y: x * x),
    "z = x - y; z * z": ("an operand that is used twice", _square_of_difference),
}


def observed(note: Any, name: str, x: Array, y: Array) -> Any:
    """An observer's notes of a program, or of all of them."""
    ledger = {"dispatches": 0, "read": 0, "written": 0}
    programs = [program for title, (_, program) in PROGRAMS.items() if name in (title, "all of them")]
    a, b = with_value(x), with_value(y)
    with observing(lambda primitive, operands, value, source: note(ledger, primitive, operands, value)):
        for program in programs:
            program(a, b)
    return ledger


observe = Driver("eager.observe", within(observed), NEEDS)


# --- mean_squared_error -----------------------------------------------------------------------------------------

REFUSED = "shapes that would broadcast"  # the part of the task


@driver("eager.mean_squared_error", NEEDS)
def mean_squared_error(call: Limited, case: tuple[str, Any]) -> Any:
    """Prediction and target; where they do not fit, what is raised is the answer."""
    part, (prediction, target) = case
    answer = call(with_value(prediction), with_value(target))
    return refused(answer, part == REFUSED)


# --- first_bad --------------------------------------------------------------------------------------------------


def records_of(case: Any) -> list[tuple[str, list[Array], Array]]:
    """An observer's notes: of each operation its name, operands and result."""
    steps, x, y = case
    values = [np.array(x, np.float32), np.array(y, np.float32)]
    records = []
    with np.errstate(all="ignore"):
        for name, reads in steps:
            operands = [values[at] for at in reads]
            evaluate = np.sum if name == "sum" else PRIMITIVES[name].evaluate
            values.append(np.asarray(evaluate(*operands)))
            records.append((name, operands, values[-1]))
    return records


@driver("eager.first_bad", NEEDS)
def first_bad(call: Limited, case: tuple[str, Any]) -> Any:
    """The steps of a program, and its x and y."""
    return call(records_of(case[1]))
