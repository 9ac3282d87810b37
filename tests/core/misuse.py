"""Wrong calls of every public function, made from right ones: each has one argument that is another one.

The right calls are those that random programs are made of (`fuzz`), so a function that is added is misused, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import minitorch as mt
from fuzz import api
from fuzz.generate import indexed, operands
from fuzz.noise import Defined
from fuzz.program import Code, Ref, Statement
from fuzz.recipes import Index
from fuzz.scope import Scope, UnfitError
from minitorch.interpreters import interpreting
from minitorch.nn import functional as F

FAR = 97  # a number that is no dimension, length or position of these small tensors
LEFT_OUT = ("property",)  # attributes are no calls


@dataclass(frozen=True)
class Misuse:
    """A call with one argument that is another one.

    Attributes:
        statement: the call.
        arrays: its tensors, by name.
        what: which argument is changed, and how.
        number: as it is to be found in the message, if the call is refused; "" if none is the user's.
    """

    statement: Statement
    arrays: dict[str, mt.Tensor]
    what: str
    number: str = ""

    @property
    def name(self) -> str:
        """The function's name, in the message."""
        callee = self.statement.callee.split(".")[-1]
        return "" if "{" in callee else callee

    def __str__(self) -> str:
        shown = {name: f"{tensor.spec}" for name, tensor in self.arrays.items()}
        return f"{self.statement.text.split(' = ', 1)[-1]} with {shown}: {self.what}"

    def call(self, *tensors: mt.Tensor) -> Any:
        """Carry the call out."""
        space = {"mt": mt, "F": F, **dict(zip(self.arrays, tensors, strict=True))}
        text = self.statement.text
        if not self.statement.gives:
            exec(compile(text, "misuse.py", "exec"), space)
            return tensors[0]
        return eval(compile(text.split(" = ", 1)[1], "misuse.py", "eval"), space)

    def tensors(self) -> list[mt.Tensor]:
        """The tensors, new ones."""
        return [tensor.clone() for tensor in self.arrays.values()]


@cache
def right_calls(row: api.Function, count: int = 2) -> list[Misuse]:
    """Some calls of a function that are carried out."""
    found: list[Misuse] = []
    for seed in range(60):
        scope = Scope(seed)
        scope.gradients = scope.large = scope.strange = False
        try:
            with interpreting(Defined()):
                args, kwargs = operands(scope, row)
                gives = () if row.in_place and "=" in row.callee else ("v",)
                statement = Statement(gives, row.callee, args, kwargs)
                if len(args) > 1 and isinstance(args[1], Index):
                    statement = indexed(statement)
                arrays = {name: scope.values[name].contiguous() for name in sorted(statement.takes)}
                made = Misuse(statement, arrays, "right")
                made.call(*made.tensors())
        except (UnfitError, Exception):
            continue
        if arrays and all(tensor.numel() < 2000 for tensor in arrays.values()):
            found.append(made)
        if len(found) == count:
            break
    return found


def misuses(row: api.Function) -> Iterator[Misuse]:
    """Each argument of the right calls, changed in each way that there is for its kind."""
    for right in right_calls(row):
        for name, tensor in right.arrays.items():
            for what, number, other in wrong_tensors(tensor):
                yield Misuse(right.statement, {**right.arrays, name: other}, f"{name} {what}", number)
        is_function = right.statement.callee[0] not in ".{"
        for place, operand in enumerate(right.statement.args):
            if isinstance(operand, Ref) and not place and not is_function:
                continue  # what is no tensor has no such method
            for what, number, other in wrong_values(operand):
                if "{" in right.statement.callee and isinstance(other, str):
                    continue  # that is Python's own error
                args = (*right.statement.args[:place], other, *right.statement.args[place + 1 :])
                yield Misuse(changed(right.statement, args=args), right.arrays, f"argument {place} {what}", number)
        for key, operand in right.statement.kwargs.items():
            for what, number, other in wrong_values(operand):
                kwargs = {**right.statement.kwargs, key: other}
                yield Misuse(changed(right.statement, kwargs=kwargs), right.arrays, f"{key} {what}", number)


def changed(statement: Statement, **fields: Any) -> Statement:
    """The statement with other arguments."""
    return Statement(
        statement.gives,
        statement.callee,
        fields.get("args", statement.args),
        fields.get("kwargs", statement.kwargs),
    )


def wrong_tensors(tensor: mt.Tensor) -> Iterator[tuple[str, str, mt.Tensor]]:
    """Tensors of other types, shapes and values; with the number that is wrong."""
    for dtype in (mt.bool, mt.int64, mt.float32, mt.float16):
        if dtype is not tensor.dtype:
            with np.errstate(all="ignore"):
                array = tensor.numpy().astype(dtype.numpy)
            yield f"as {dtype.name}", "", mt.tensor(array)
    yield "of one dimension more", "", tensor.unsqueeze(0).expand(3, *tensor.shape).contiguous()
    if tensor.ndim:
        yield "without elements", "", tensor[:0].contiguous()
        yield "longer", "", mt.cat([tensor, tensor, tensor[:1]]) if tensor.shape[0] else mt.ones(5, dtype=tensor.dtype)
        yield "one element", "", tensor.reshape(-1)[:1].contiguous()
        yield "of no dimensions", "", mt.tensor(np.ones((), tensor.dtype.numpy))
    if tensor.dtype.category == "int" and tensor.numel():
        for number in (FAR, -FAR):
            array = tensor.numpy().copy()
            array.reshape(-1)[-1] = np.array(number).astype(array.dtype)
            yield f"with {number}", str(array.reshape(-1)[-1]), mt.tensor(array)
    if tensor.dtype.is_floating_point and tensor.numel():
        for value in (-1.5, math.nan, math.inf):
            array = tensor.numpy().copy()
            array.reshape(-1)[-1] = value
            yield f"with {value}", str(value), mt.tensor(array)


def wrong_values(operand: Any) -> Iterator[tuple[str, str, Any]]:
    """Other values of the same kind, and of other kinds; with the text that is wrong."""
    if isinstance(operand, Ref):
        yield "a list", "list", [1.0]
        yield "a text", "str", "a"
    elif isinstance(operand, Code):
        yield "a text", "'nothing'", "nothing"
    elif isinstance(operand, str):
        yield "another text", "nothing", "nothing"
    elif isinstance(operand, (bool, type(None))) or operand is Ellipsis:
        return
    elif isinstance(operand, (int, float)):
        for number in (FAR, -FAR, 0):
            yield f"{number}", str(number) if number else "", number
        yield "a text", "'a'", "a"
        yield "a fraction", "1.25", 1.25
        yield "out of range", "1e+39", 1e39
        yield "NaN", "nan", math.nan
    elif isinstance(operand, tuple) and operand and all(type(each) is int for each in operand):
        yield "with another number", str(FAR), (*operand[:-1], FAR)
        yield "with a negative number", str(-FAR), (*operand[:-1], -FAR)
        yield "shorter", "", operand[:-1]
        yield "longer", "", (*operand, 1)


def first_line(error: BaseException) -> str:
    """The fault, without the lines that say where and why."""
    return str(error).split("\n", 1)[0]


def contains(message: str, number: str) -> bool:
    """Whether a message has a number, as a number of its own."""
    return not number or re.search(rf"(?<![\w.]){re.escape(number)}(?![\w])", message) is not None
