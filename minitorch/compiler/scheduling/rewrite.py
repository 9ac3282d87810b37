"""A rewrite: a function from procedure to procedure, with its arguments, and the error that refuses it."""

from __future__ import annotations

import inspect
import itertools
import keyword
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from ...errors import ScheduleError
from ..loop_ir.tree import (
    Block,
    For,
    If,
    Local,
    Procedure,
    allocated,
    loop_names,
    loops,
)
from ..loop_ir.wellformed import broken

Parameters = ParamSpec("Parameters")


NAME = re.compile(r"(?!(x|out|t)\d+$|(np|at|erf|sum|range|float|bfloat16)$)[A-Za-z_]\w*", re.ASCII)


# The parameters of rewrites that are names of new loops or arrays, or no names; all other strings name existing ones.
NEW = frozenset({"cut", "dtype", "inner", "into", "name", "outer", "pairs", "rest", "where"})


@dataclass(frozen=True)
class Rewrite:
    """One step of a schedule: a function from procedure to procedure, with its arguments.

    Attributes:
        name: of the function.
        text: the step as it is written.
        apply: gives the procedure after it, unverified.
        arguments: by the function's parameter.
        made: the function that made it, and its arguments, for a copy or a pickle.
    """

    name: str
    text: str
    apply: Callable[[Procedure], Procedure] = field(compare=False)
    arguments: Callable[[], Mapping[str, object]] = field(compare=False, default=dict)
    made: tuple[Any, ...] = field(compare=False, default=())

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, self.made

    @property
    def names(self) -> set[str]:
        """The names of loops and arrays that it takes to be there, without those that it gives."""
        found = set[str]()
        for parameter, value in self.arguments().items():
            values = value if isinstance(value, tuple) else (value,)
            if parameter not in NEW:
                found |= {Named(each).name for each in values if isinstance(each, str) and each}
        return found

    def __call__(self, procedure: Procedure) -> Procedure:
        """Return the procedure after this step.

        Raises:
            ScheduleError: if the step would change what is computed (``MT603``).
        """
        after = self.apply(procedure)
        fault = broken(after)
        if fault is not None:
            raise refused(f"{self.text} gives no procedure", fault)
        return after

    def __repr__(self) -> str:
        return self.text


def step(
    function: Callable[Concatenate[Procedure, Parameters], Procedure],
) -> Callable[Parameters, Rewrite]:
    """Return a maker of rewrites for a function of a procedure and arguments: it binds all arguments."""

    @wraps(function)
    def make(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Rewrite:
        given = [*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())]
        text = f"{function.__name__}({', '.join(given)})"
        arguments = lambda: make.__signature__.bind(*args, **kwargs).arguments  # type: ignore[attr-defined]  # noqa: E731
        apply = lambda procedure: function(procedure, *args, **kwargs)  # noqa: E731
        return Rewrite(function.__name__, text, apply, arguments, (make, args, kwargs))

    make.makes_rewrites = True  # type: ignore[attr-defined]
    make.__signature__ = inspect.Signature(list(inspect.signature(function).parameters.values())[1:])  # type: ignore[attr-defined]
    return make


def _again(make: Callable[..., Rewrite], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Rewrite:
    return make(*args, **kwargs)


def refused(what: str, law: str, fix: str | None = None) -> ScheduleError:
    """Return the error for a step that breaks a law: a condition, which does not hold here."""
    return ScheduleError("MT603", what, why=f"it breaks the law: {law}", fix=fix)


class Named:
    """A predicate for loops of a name, called with one loop after another.

    ``"i@total0,out3"`` are the loops ``i`` in which something is stored to one of the arrays, and ``"i#2"`` is the
    third loop ``i`` it is called with.
    """

    def __init__(self, name: str) -> None:
        name, _, number = name.partition("#")
        self.name, _, arrays = name.partition("@")
        self.arrays, self.number, self.count = {*arrays.split(",")} if arrays else set(), number, itertools.count()

    @property
    def is_plain(self) -> bool:
        """Whether it is a name alone."""
        return not self.arrays and not self.number

    def __call__(self, each: For) -> bool:
        """Return whether a loop is one of those named."""
        if each.variable.name != self.name or (self.arrays and not self.arrays & _stored_to(each)):
            return False
        return not self.number or next(self.count) == int(self.number)


def _stored_to(each: For) -> set[str]:
    """Return the names of the arrays that a loop stores to."""
    return {name_of(array) for array in each.written}


def name_of(array: int | Local) -> str:
    """Return the name of an array that is stored to, as the printed text has it."""
    return array.name if isinstance(array, Local) else f"out{array}"


def check_fresh(procedure: Procedure, *names: str, near: str = "") -> None:
    """Refuse names for new loops and arrays that something else has in the printed text.

    With `near`, the names are for loops in place of loops of that name: others that these neither contain nor are
    contained in may have them too.
    """
    taken = {loop.variable.name for loop in _related(procedure.body, near)} if near else loop_names(procedure.body)
    taken |= {local.name for local in allocated(procedure.body)}
    check_spelling(*names)
    for name in names:
        if name in taken or names.count(name) > 1:
            raise _no_new_name(name)


def check_spelling(*names: str) -> None:
    """Refuse names that new loops and arrays cannot have in the printed text, which is run."""
    for name in names:
        if not NAME.fullmatch(name) or keyword.iskeyword(name):
            raise _no_new_name(name)


def _no_new_name(name: str) -> ScheduleError:
    return refused(
        f"{name!r} as the name of a new loop or array",
        "a new name is one that Python takes, and that nothing else has: not np, at, x0, out1, t0 and so on",
    )


def _related(block: Block, name: str) -> list[For]:
    """Return the loops that contain a loop of a name or are contained in one."""
    found: list[For] = []
    is_it = Named(name)

    def within(block: Block, around: tuple[For, ...]) -> None:
        for each in block:
            if isinstance(each, For) and is_it(each):
                found.extend((*around, *loops(each.body)))
            if isinstance(each, (For, If)) and is_it.name in each.names:
                within(each.body, (*around, each) if isinstance(each, For) else around)

    within(block, ())
    return found
