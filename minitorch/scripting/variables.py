"""`Variables`: what a statement assigns, as the values of a branch or a loop of a recording.

The blocks of a rewritten statement are functions that share its variables, so these are in cells. Before a block is
recorded, they have their present values, or what stands for them in a loop. Afterwards they have its results, of which
each needs one shape and type. A number of Python becomes a tensor where it differs.
"""

from __future__ import annotations

import dis
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from types import BuiltinMethodType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from ..control import cond
from ..dtypes import DEFAULT_FLOAT, DEFAULT_INT, DType, bool_, stored
from ..errors import TracingError
from ..functional.creation.data import as_tensor
from ..interpreters import Staging, current_staging
from ..ir import Node, Spec, is_ours, user_source
from ..nn.module import Module
from ..packages import is_own
from ..primitives import constant
from ..sizes import is_symbolic
from ..tensor import Batched, Tensor
from ..tree import Structure, flatten, unflatten
from .rewriting import JUMP, RESULT, RETURN

Names = Mapping[str, str]  # facts about each variable: "live", "kept", "written" (see `rewriting.Statements.names`)
Values = dict[str, Any]

NUMBERS = {bool: bool_, int: DEFAULT_INT, float: DEFAULT_FLOAT}  # the types that Python's numbers have in a recording
SHOWN = {RESULT: "the returned value", "value": "the value of the expression"}
ONE_KIND = "a branch or loop over traced values is recorded once, and each variable has one type and shape in it"
CONVERT = "give it the same type and shape everywhere, and before the statement, too: mt.zeros(...), x.to(y.dtype)"
OUTSIDE = "do it outside of the statement, or return a tensor; a loop over x.unbind() is Python's own, and unrolled"


def refused(problem: str, why: str = ONE_KIND, fix: str = CONVERT) -> TracingError:
    """Return the error for what a recording cannot keep."""
    return TracingError("MT117", problem, where=str(user_source()), why=why, fix=fix)


def is_traced(value: Any) -> bool:
    """Return whether a value is a tensor without a number that Python could ask for."""
    if not isinstance(value, Tensor):
        return False
    staging = current_staging()
    return isinstance(value._value, Batched) or (staging is not None and bool(staging.regions or not staging.defers))


# Numbers --------------------------------------------------------------------------------------------------

_numbers: WeakKeyDictionary[Staging, set[Node]] = WeakKeyDictionary()  # nodes that stand for numbers of Python
_mapped: WeakValueDictionary[int, Tensor] = WeakValueDictionary()  # tensors of all examples of `vmap` that do, by id


def _below(value: Any) -> Any:
    """Return the tensor of all examples behind one of `vmap`."""
    while isinstance(value, Tensor) and isinstance(value._value, Batched):
        value = value._value.tensor
    return value


def as_number(tensor: Tensor) -> Tensor:
    """Note that a tensor stands for a number of Python, which ``+=`` does not change in place."""
    staging, below = current_staging(), _below(tensor)
    if staging is not None and isinstance(below._value, Node):
        _numbers.setdefault(staging, set()).add(below._value)
    else:
        _mapped[id(below)] = below
    return tensor


def is_number(value: Any) -> bool:
    """Return whether a value is a number, or computed from nothing but numbers."""
    staging, value = current_staging(), _below(value)
    if not isinstance(value, Tensor) or staging is None or not isinstance(value._value, Node):
        return value.__class__ in NUMBERS or _mapped.get(id(value)) is value
    known, found, pending = _numbers.get(staging, set()), False, [value._value]
    seen: set[Node] = set()
    for node in pending:  # the list grows during the loop
        while node in staging.aliases:
            node = staging.aliases[node]
        if node in known:
            found = True
        elif not node.inputs and node.primitive is not constant:
            return False
        else:
            pending += [each for each in node.inputs if each not in seen]
            seen.update(node.inputs)
    return found


# Kinds of values ------------------------------------------------------------------------------------------

UNKNOWN = object()


class Leaf(NamedTuple):
    """What is known of a part of a variable.

    Attributes:
        spec: its shape and type as a tensor; None for anything else, which has to be the same everywhere.
        value: its value; `UNKNOWN` if only a run tells.
        is_number: whether it stands for a number of Python.
    """

    spec: Spec | None
    value: Any = UNKNOWN
    is_number: bool = False

    @classmethod
    def of(cls, value: Any) -> Leaf:
        """Describe a value."""
        if value.__class__ in NUMBERS:  # of a symbolic size, too
            return cls(Spec((), NUMBERS[value.__class__]), value, True)
        if isinstance(value, (Tensor, np.ndarray, np.generic)):
            return cls(as_tensor(value).spec, UNKNOWN, is_number(value))
        return cls(None, value)

    def __repr__(self) -> str:
        if self.spec is None or self.value is not UNKNOWN:
            return repr(self.value) if isinstance(self.value, (str, type(None))) else type(self.value).__name__
        return str(self.spec)

    def join(self, other: Leaf) -> Leaf | None:
        """Return the kind of a value that is this or another one; None if there is none."""
        if self.spec is None or other.spec is None:
            one, two = self.value, other.value
            is_equal = type(one) is type(two) and isinstance(one, (str, bytes, complex)) and one == two
            return self if self.spec is other.spec and (one is two or is_equal) else None
        is_number = self.is_number and other.is_number
        known = [each for each in (self, other) if each.value is not UNKNOWN]
        if len(known) == 2 and (type(self.value), repr(self.value)) == (type(other.value), repr(other.value)):
            return self
        if self.spec == other.spec:
            return Leaf(self.spec, UNKNOWN, is_number)
        for number, tensor in ((self, other), (other, self)):  # a number takes the type of what it meets
            if number in known and not tensor.spec.shape and _fits(number.value, tensor.spec.dtype):  # type: ignore[union-attr]
                return Leaf(tensor.spec, UNKNOWN, is_number)
        return None


def _fits(number: Any, dtype: DType) -> bool:
    """Return whether a number keeps its value in a type, but for rounding."""
    kind = NUMBERS[number.__class__]
    if bool_ in (kind, dtype) or (kind.is_floating_point and not dtype.is_floating_point):
        return kind is dtype
    if is_symbolic(number):
        return dtype.is_floating_point or dtype is kind
    try:
        return math.isinf(stored(number, dtype)) <= math.isinf(number)
    except OverflowError:
        return False


class Form(NamedTuple):
    """What is known of a variable: its containers, and their leaves."""

    structure: Structure
    leaves: list[Leaf]

    @classmethod
    def of(cls, value: Any) -> Form:
        """Describe a value."""
        leaves, structure = flatten(value)
        return cls(structure, list(map(Leaf.of, leaves)))

    def __str__(self) -> str:
        return str(unflatten(self.structure, self.leaves))

    def tensors(self, value: Any = UNKNOWN) -> list[Tensor]:
        """Return the parts of a value that are computed; zeros, which are not read, if there is no value."""
        specs = [leaf.spec for leaf in self.leaves if leaf.spec is not None]
        if value is UNKNOWN:
            return [constant(value=0, shape=spec.shape, dtype=spec.dtype) for spec in specs]
        parts = [part for part, leaf in zip(flatten(value)[0], self.leaves, strict=True) if leaf.spec is not None]
        pairs = [
            (constant(value=part, shape=(), dtype=spec.dtype) if is_symbolic(part) else part, spec.dtype)
            for part, spec in zip(parts, specs, strict=True)
        ]
        return [part if isinstance(part, Tensor) else as_tensor(part, dtype=dtype) for part, dtype in pairs]

    def value(self, tensors: Iterator[Tensor]) -> Any:
        """Return the value with the next tensors in it."""
        leaves = []
        for leaf in self.leaves:
            computed = None if leaf.spec is None else next(tensors)
            if leaf.value is not UNKNOWN or computed is None:
                leaves.append(leaf.value)
            else:
                leaves.append(as_number(computed) if leaf.is_number else computed)
        return unflatten(self.structure, leaves)


Plan = dict[str, Form]


class _AgainError(Exception):
    """Raised out of a recorded block whose results need another form than was known at its beginning."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan


# Statements -----------------------------------------------------------------------------------------------


class Variables:
    """The variables that a statement assigns.

    Args:
        names: with the facts about each.
        blocks: functions that share them.
    """

    def __init__(self, names: Names, *blocks: Any) -> None:
        self.names, self.blocks = names, blocks
        (first, *_) = blocks
        cells = dict(zip(first.__code__.co_freevars, first.__closure__ or (), strict=True))
        self.cells = {name: cells[name] for name in names}
        self.copies: dict[str, tuple[Tensor, Tensor, int]] = {}  # by name: a variable's tensor, its copy, and version
        self.wrote: set[str] = set()  # variables whose tensors are written in place

    def take(self) -> Values:
        """Return the present values, of those that have one."""
        return {name: part for name, cell in self.cells.items() for part in _parts(cell) or ()}

    def put(self, values: Values) -> None:
        """Assign values, and delete the variables that have none."""
        for name, cell in self.cells.items():
            cell.cell_contents = values.get(name)
            if name not in values:
                del cell.cell_contents

    def missing(self, or_none: bool = False) -> list[str]:
        """Return the variables that are read later, and have no value, or the value None."""
        known = {RESULT, *(name for name, value in self.take().items() if value is not None or not or_none)}
        return [name for name, facts in self.names.items() if "live" in facts and name not in known]

    def _is_wanted(self, name: str, values: Values) -> bool:
        """Return whether a variable is a result: it is read later, or may be seen under another name."""
        facts, value = self.names[name], values.get(name)
        return "live" in facts or ("written" in facts and isinstance(value, Tensor) and not is_number(value))

    def enter(self, values: Values) -> None:
        """Begin a block: what ``+=`` may write in place is a copy."""
        self.copies = {}
        for name, value in values.items():
            if "written" in self.names[name] and isinstance(value, Tensor) and not is_number(value):
                copy = value.clone()
                self.copies[name] = (value, copy, copy._version)
        staging = current_staging()
        self.begin = 0 if staging is None else len(staging.nodes)
        self.put({name: self.copies[name][1] if name in self.copies else value for name, value in values.items()})
        self.held = held(self.blocks, self.cells)

    def leave(self) -> Values:
        """End a block: return its values, and refuse what changes Python's objects."""
        for label, kept, parts in self.held:
            now = _parts(kept) or []
            if len(parts) != len(now) or not all(map(_is_still, parts, now)):
                raise refused(
                    f"a branch or loop over traced values changes {label}",
                    "the block is recorded once, and Python's objects are not part of the recording",
                    OUTSIDE,
                )
        values = self.take()
        for name, (tensor, copy, version) in self.copies.items():
            if copy._version == version:
                values = {key: tensor if value is copy else value for key, value in values.items()}
                continue
            self.wrote.add(name)
            if values.get(name) is not copy or self._reads(tensor):
                rest = "reads it under another name" if values.get(name) is copy else "assigns it afterwards"
                raise refused(
                    f"a block writes `{name}` in place, and {rest}",
                    "a recording has values and no memory",
                    f"write `{name} = {name} + ...`, or `{name} = {name}.clone()` before",
                )
        return values

    def _reads(self, tensor: Tensor) -> bool:
        """Return whether the block reads the memory of a tensor that it has as a copy."""
        staging, below = current_staging(), _below(tensor)
        if staging is None:
            return False
        nodes = {staging.node_of(below), staging.node_of(below._root)}
        return any(not nodes.isdisjoint(node.inputs) for node in staging.nodes[self.begin :])

    def finish(self, before: Values, sides: list[Values], plan: Plan, tensors: list[Tensor]) -> None:
        """Assign the results."""
        results, given = dict(before), iter(tensors)
        for name, form in plan.items():
            value = form.value(given)
            if name in self.wrote:
                value = before[name].copy_(value)
            is_same = all(name in side and name in before and side[name] is before[name] for side in sides)
            results[name] = before[name] if is_same else value
        for name, facts in self.names.items():
            if "live" in facts and name not in plan:
                results.pop(name, None)
        self.put(results)

    # Branches -------------------------------------------------------------------------------------------

    def branch(self, test: Tensor, then: Callable[[], Any], otherwise: Callable[[], Any]) -> None:
        """Record both sides of an ``if``, of which each run takes one."""
        before = self.take()
        known: Plan | None = None

        def run(block: Callable[[], Any]) -> list[Tensor]:
            self.enter(before)
            try:
                block()
            except RecursionError:
                raise refused(
                    "a function calls itself, for as long as a traced condition holds",
                    "both sides of a branch are recorded, so the calls do not end",
                    "write it as a loop",
                ) from None
            except Exception as error:
                if _is_raised(error):
                    raise refused(
                        f"a branch with a traced condition raises {type(error).__name__}: {error}",
                        "both sides are recorded, and a compiled program raises no errors of the user's",
                        "raise it outside, on a value that the function returns",
                    ) from error
                raise
            sides.append(self.leave())
            forms.append({name: Form.of(value) for name, value in sides[-1].items() if self._is_wanted(name, before)})
            plan = self._plan(sides, forms)
            if len(sides) == 1:
                plans.append(known or plan)
            elif not _is_alike(plan, plans[0]):
                raise _AgainError(plan)
            else:
                plans[0] = plan
            return self._results(sides[-1], plans[0])

        try:
            while True:
                sides: list[Values] = []
                forms: list[Plan] = []  # of each side, described while it is recorded
                plans: list[Plan] = []
                try:
                    tensors = cond(test, lambda: run(then), lambda: run(otherwise))
                    break
                except _AgainError as again:
                    known = again.plan
        finally:
            self.put(before)
        self.finish(before, sides, plans[0], tensors)

    def _plan(self, sides: list[Values], forms: list[Plan]) -> Plan:
        """Return the forms of the variables after a branch."""
        plan: Plan = {}
        for name in self.names:
            found = [form[name] for form in forms if name in form]
            if not found:
                continue
            for side in sides:
                if name not in side and not self._is_left(name, side.get(JUMP, 0)):
                    raise refused(
                        f"`{name}` has a value on one side of a branch only, and is read afterwards",
                        fix=f"give `{name}` a value before the branch, or on both sides",
                    )
            plan[name] = self._joined(name, found[0], found[-1], ("on one side", "on the other"))
        return plan

    def _is_left(self, name: str, jump: Any) -> bool:
        """Return whether nothing reads a variable that a side lacks, since that ends with a jump."""
        jumps = type(jump) is int and jump != 0
        return name == RESULT or (jumps and (jump == RETURN or "kept" not in self.names[name]))

    def _joined(self, name: str, one: Form, other: Form, places: tuple[str, str]) -> Form:
        """Return the form of a variable of two forms, or refuse it."""
        joined = [a.join(b) for a, b in zip(one.leaves, other.leaves, strict=False)]
        if one.structure != other.structure or None in joined:
            shown = [f"{form} {place}" for form, place in zip((one, other), places, strict=True)]
            raise refused(f"{SHOWN.get(name, f'`{name}`')} is {shown[0]}, and {shown[1]}")
        return Form(one.structure, [leaf for leaf in joined if leaf is not None])

    def _results(self, values: Values, plan: Plan) -> list[Tensor]:
        return [tensor for name, form in plan.items() for tensor in form.tensors(values.get(name, UNKNOWN))]

    # Loops ----------------------------------------------------------------------------------------------

    def loop(self, run: Callable[..., list[Tensor]]) -> None:
        """Record the body of a loop, which carries the variables.

        Args:
            run: given a function that begins a block with the carried values, one that ends it and returns the next
                ones, and the first ones, returns the last ones.
        """
        before = self.take()
        for name in self.missing():
            raise refused(
                f"`{name}` has no value before a loop that reads it in a later repetition, or after which it is read",
                "a traced loop may have no repetition, and carries one value of each variable",
                f"give `{name}` a value before the loop",
            )
        plan = {name: Form.of(value) for name, value in before.items() if self._is_wanted(name, before)}

        def enter(tensors: list[Tensor]) -> None:
            given = iter(tensors)
            self.given = before | {name: _open(form).value(given) for name, form in plan.items()}
            self.enter(self.given)

        def leave() -> list[Tensor]:
            after = self.leave()
            now = dict(plan)
            for name in {**plan, RESULT: None}:
                if name in after and name in self.names:
                    first = Form.of(before[name] if name in before else after[name])
                    places = ("before a loop", "after a repetition")
                    now[name] = self._joined(name, first, Form.of(after[name]), places)
                elif name in plan:
                    raise refused(f"a loop deletes `{name}`, which is read later", fix="do not delete it there")
            if not _is_alike(now, plan):
                raise _AgainError(now)
            same = {name: before[name] for name in plan if name in before and after[name] is self.given[name]}
            sides[:], plans[:] = [after | same], [now]
            return self._results(after, plan)

        try:
            while True:
                sides: list[Values] = []
                plans: list[Plan] = []
                first = self._results(before, plan)
                try:
                    tensors = run(enter, leave, first)
                    break
                except _AgainError as again:
                    plan = again.plan
        finally:
            self.put(before)
        self.finish(before, sides, {name: _open(form) for name, form in plans[0].items()}, tensors)


def _open(form: Form) -> Form:
    """Return a form whose numbers are computed."""
    return Form(form.structure, [leaf if leaf.spec is None else leaf._replace(value=UNKNOWN) for leaf in form.leaves])


def _is_alike(one: Plan, other: Plan) -> bool:
    """Return whether two plans have the same tensors."""
    specs = [{name: [leaf.spec for leaf in form.leaves] for name, form in plan.items()} for plan in (one, other)]
    return specs[0] == specs[1] and list(one) == list(other)


# What a block must not do ---------------------------------------------------------------------------------


def _parts(value: Any) -> list[Any] | None:
    """Return what an object holds, if it can be changed, or holds what can be; None of other values."""
    if isinstance(value, dict):
        return [part for pair in value.items() for part in pair]
    if isinstance(value, (list, tuple, set, deque, bytearray)):
        return list(value)
    if isinstance(value, np.ndarray):
        return [value.tobytes()]
    if isinstance(value, CellType):
        with suppress(ValueError):  # it may be empty
            return [value.cell_contents]
        return []
    if isinstance(value, (MethodType, BuiltinMethodType)):
        return [value.__self__]
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, Iterator) and hasattr(value, "__length_hint__"):
        return [value.__length_hint__()]
    if isinstance(value, Module):
        return _parts(vars(value))
    kind = value if isinstance(value, (type, FunctionType)) else type(value)
    if isinstance(value, (Tensor, ModuleType)) or is_own(kind.__module__):
        return None
    if isinstance(value, FunctionType):
        return [value.__defaults__, value.__kwdefaults__, *vars(value).values()]
    if isinstance(value, type):  # its methods may be anything's that it inherits from
        return [part for part in vars(value).values() if not isinstance(part, FunctionType)]
    slots = [getattr(value, name, None) for name in getattr(kind, "__slots__", ())]
    return slots + list(vars(value).values()) if hasattr(value, "__dict__") else slots or None


def _is_still(before: Any, now: Any) -> bool:
    """Return whether a part is what it was; the content of an array is one, and the rest of an iterator."""
    return before is now or (type(before) in (bytes, int) and type(before) is type(now) and before == now)


def held(blocks: tuple[Any, ...], own: Mapping[str, CellType]) -> list[tuple[str, Any, list[Any]]]:
    """Return what functions can change: their variables, but their `own`, global variables, and objects in these."""
    found, seen = [], set(map(id, own.values()))
    pending: list[tuple[str, Any]] = [("", block) for block in blocks]
    pending += [(name, part) for name, cell in own.items() for part in _parts(cell) or ()]
    for label, value in pending:  # the list grows during the loop
        if id(value) in seen:
            continue
        seen.add(id(value))
        parts = _parts(value)
        if parts is None:
            continue
        kind = "a variable of an outer function" if isinstance(value, CellType) else f"a {type(value).__name__}"
        found.append((f"`{label}`, {kind}", value, parts))
        pending += [(label, part) for part in parts]
        if isinstance(value, FunctionType):
            space = value.__globals__
            read = dict.fromkeys(name for code in codes(value.__code__) for name in code.co_names)
            pending += zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
            pending += [(name, space[name]) for name in read if name in space]
            if id(space) not in seen:
                seen.add(id(space))
                found.append(("a global variable", space, _parts(space) or []))
    return found


def codes(code: CodeType) -> list[CodeType]:
    """Return a piece of code, and those of the functions defined in it, from the outside in."""
    found = [code]
    for each in found:  # the list grows during the loop
        found += [constant for constant in each.co_consts if isinstance(constant, CodeType)]
    return found


def _is_raised(error: Exception) -> bool:
    """Return whether a ``raise`` of the user's raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or is_ours(trace.tb_frame.f_code.co_filename):
        return False
    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"
