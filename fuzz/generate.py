"""A program from a seed: statements are chosen one by one, and each is tried eagerly before it stays.

So most programs run to their end. A statement that is refused is usually tried again with other operands; sometimes it
becomes the program's last one, and what is compared is that every mode refuses it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import accumulate
from typing import Any

import minitorch as mt
from minitorch.errors import MinitorchError
from minitorch.interpreters import interpreting
from minitorch.nn import functional as F

from . import api, derivatives, training
from .arguments import Call, by_names
from .failures import is_raw
from .noise import Defined, UndefinedError
from .program import Program, Statement
from .recipes import RECIPES, Index
from .scope import MOST_ELEMENTS, Scope, UnfitError

TRIES = 12  # for one statement
WEIGHTS = {"mt": 3, "F": 5, "": 2}  # functions, those of neural networks, methods
OPERATOR = 4
STRUCTURED = 2  # times as often: what has a recipe
RARE = 0.3  # as often: what ends a trace
FUNCTIONALS = 0.015  # of all statements are derivatives of functions
SPOILED = 0.05  # of all statements have a number that probably does not fit


def generate(seed: int) -> Program:
    """The program of a seed.

    Example:
        >>> generate(1).text == generate(1).text
        True
    """
    scope = Scope(seed)
    if scope.chance(0.06):
        return training.generate(scope)
    mt.manual_seed(0)
    body: list[Statement] = []
    with interpreting(Defined()):
        for _ in range(scope.pick(1, 2, 2, 3, 3, 4, 5, 6, 8, 12) if not scope.large else scope.pick(1, 2, 3)):
            statement, ends = next_statement(scope)
            if statement is not None:
                body.append(statement)
            if ends:
                break
        backward = scope.gradients and scope.chance(0.5)
        if scope.gradients and not backward and not ends:
            body += differentiated(scope)
    return finished(scope, body, backward)


def next_statement(scope: Scope) -> tuple[Statement | None, bool]:
    """A statement that runs, and whether the program ends with it."""
    for _ in range(TRIES):
        before = len(scope.inputs)
        try:
            statement = derivatives.functional(scope) if scope.chance(FUNCTIONALS) else a_call(scope)
        except UnfitError:
            continue
        if scope.chance(SPOILED):
            statement = spoiled(scope, statement)
        try:
            result = run(statement, scope)
        except (UndefinedError, MemoryError):
            pass
        except Exception as error:
            if is_raw(error) or scope.chance(0.04):
                return statement, True
        else:
            kept = keep(scope, statement, result)
            if kept is not None:
                return kept, False
        _forget(scope, before)
    return None, False


def _forget(scope: Scope, before: int) -> None:
    for each in scope.inputs[before:]:
        del scope.values[each.name]
    del scope.inputs[before:]


def a_call(scope: Scope) -> Statement:
    """A call of a public function, with operands that fit it."""
    function = choose(scope)
    args, kwargs = operands(scope, function)
    gives = () if function.in_place and "=" in function.callee else (scope.name(),)
    statement = Statement(gives, function.callee, args, kwargs)
    return indexed(statement) if len(args) > 1 and isinstance(args[1], Index) else statement


def choose(scope: Scope) -> api.Function:
    """A function of the public API."""
    rows, weights = _weighted()
    return scope.random.choices(rows, cum_weights=weights)[0]


@cache
def _weighted() -> tuple[tuple[api.Function, ...], list[float]]:
    weights = []
    for row in api.functions():
        weight: float = OPERATOR if "{" in row.callee else WEIGHTS[row.callee.split(".")[0]]
        weight *= STRUCTURED if row.base in RECIPES else 1
        weights.append(weight * (RARE if row.base in api.EAGER_BY_NATURE else 1))
    return api.functions(), list(accumulate(weights))


def operands(scope: Scope, function: api.Function) -> Call:
    """Operands by a recipe, or by the names of the parameters."""
    row = RECIPES.get(function.callee) or RECIPES.get(function.base)
    return row(scope) if row else by_names(scope, function)


def indexed(statement: Statement) -> Statement:
    """Indices that are tensors, written between the brackets."""
    x, index, *rest = statement.args
    return Statement(
        statement.gives, statement.callee.replace("[{}]", f"[{', '.join(['{}'] * len(index))}]"), (x, *index, *rest)
    )


def spoiled(scope: Scope, statement: Statement) -> Statement:
    """A statement with another whole number somewhere, or numbers exchanged: shapes and dimensions that do not fit."""

    def other(operand: Any) -> Any:
        if type(operand) is int and scope.chance(0.5):
            return operand + scope.pick(-1, 1, -2, 5)
        if isinstance(operand, tuple) and len(operand) > 1 and all(type(each) is int for each in operand):
            return operand[::-1] if scope.chance(0.5) else operand[1:]
        return type(operand)(map(other, operand)) if type(operand) in (tuple, list) else operand

    kwargs = {name: other(each) for name, each in statement.kwargs.items()}
    return replace(statement, args=tuple(map(other, statement.args)), kwargs=kwargs)


def run(statement: Statement, scope: Scope) -> Any:
    """Carry it out; the result, if it has one."""
    space = {"mt": mt, "F": F, **scope.values}
    if not statement.gives:
        exec(compile(statement.text, "program.py", "exec"), space)
        return None
    return eval(compile(statement.text.split(" = ", 1)[1], "program.py", "eval"), space)


def keep(scope: Scope, statement: Statement, result: Any) -> Statement | None:
    """Enter what a statement gave into the scope; None if it is too much, or nothing."""
    if not statement.gives:
        return statement
    if isinstance(result, mt.Tensor):
        if result.numel() > MOST_ELEMENTS:
            return None
        scope.values[statement.gives[0]] = result
        return statement
    if isinstance(result, (tuple, list)) and result and all(isinstance(each, mt.Tensor) for each in result):
        if len(result) > 4:
            return None
        names = tuple(f"{statement.gives[0]}_{place}" for place in range(len(result)))
        scope.values.update(zip(names, result, strict=True))
        return replace(statement, gives=names, unpacks=True)
    return statement if isinstance(result, (bool, int, float, str, tuple, mt.DType)) else None


def differentiated(scope: Scope) -> list[Statement]:
    """A loss of some of the values, and its derivatives, as far as they exist."""
    kept: list[Statement] = []
    statements = derivatives.loss(scope)
    if statements:
        statements += derivatives.by_the_tape(scope, statements[-1].gives[0])
    for statement in statements:
        try:
            result = keep(scope, statement, run(statement, scope))
        except (MinitorchError, UndefinedError):
            break
        if result is None:
            break
        kept.append(result)
    return kept


def finished(scope: Scope, body: list[Statement], backward: bool) -> Program:
    """The program: it returns what nothing else reads, and some of the values on the way."""
    read = set().union(*[statement.takes for statement in body])
    given = [name for statement in body for name in statement.gives]
    results = tuple(name for name in given if name not in read or scope.chance(0.2))
    if scope.chance(0.03) and scope.inputs:
        results += (scope.inputs[0].name,)
    calls = scope.pick(1, 1, 1, 2, 3)
    warm = any(each.view for each in scope.inputs) and scope.chance(0.4)
    return Program(tuple(scope.inputs), tuple(body), results, calls=calls, backward=backward, warm=warm)
