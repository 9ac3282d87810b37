"""Free attributes of a function, as its bytecode names them: ``config.scale``, ``self.sub.factor``."""

from __future__ import annotations

import dis
import functools
import inspect
import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from ...nn import Module
from ...tensor import Tensor

GLOBAL, CELL, LOCAL = "global", "cell", "local"
_LOADS = {"LOAD_GLOBAL": GLOBAL, "LOAD_NAME": GLOBAL, "LOAD_DEREF": CELL, "LOAD_CLASSDEREF": CELL}
_STEPS = ("LOAD_ATTR", "LOAD_METHOD")
_FIXED = sys.stdlib_module_names | {"numpy", __name__.partition(".")[0]}  # skipped: their constants stay
_MISSING = object()


class Chain(NamedTuple):
    """A variable and the attributes that are read from it in turn."""

    kind: str
    variable: str
    attributes: tuple[str, ...]


class Reached(NamedTuple):
    """The end of a chain: its name, the value, how to read it again, and the objects on the way."""

    name: str
    value: Any
    look: Callable[[], Any]
    owners: tuple[Any, ...]


@functools.lru_cache(maxsize=1024)
def chains_in(code: CodeType) -> tuple[Chain, ...]:
    """The chains that a piece of code reads, each once, without those that it also changes (``n.calls += 1``)."""
    found: dict[Chain, None] = {}
    at: Chain | None = None
    for step in dis.get_instructions(code):
        if step.opname == "EXTENDED_ARG":
            continue
        if at is not None and step.opname in _STEPS:
            at = at._replace(attributes=(*at.attributes, str(step.argval)))
            continue
        if at is not None and at.attributes:
            found[at] = None
        at = None
        kind = LOCAL if step.opname.startswith("LOAD_FAST") else _LOADS.get(step.opname)
        if kind is not None:  # later Pythons load two variables at once; attributes are read from the last
            variable = step.argval[-1] if isinstance(step.argval, tuple) else step.argval
            at = Chain(kind, str(variable), ())
    return tuple(found)


def follow(chain: Chain, root: Callable[[], Any]) -> Reached | None:
    """Follow a chain as far as plain reads go; computed attributes (properties) are not evaluated."""
    value, owners = root(), []
    for attribute in chain.attributes:
        if isinstance(value, (Tensor, np.ndarray)) or _is_fixed(value):
            break
        following = _attribute(value, attribute)
        if following is _MISSING:
            break
        owners.append(value)
        value = following
    if not owners or _is_fixed(owners[-1]):
        return None
    path = ".".join(chain.attributes[: len(owners)])
    read = operator.attrgetter(path)

    def look() -> Any:
        try:
            return read(root())
        except AttributeError:
            return _MISSING

    return Reached(f"{chain.variable}.{path}", value, look, tuple(owners))


def class_attribute(kind: type, attribute: str) -> Any:
    """A plain value that a user's class gives to all its instances, or None."""
    for ancestor in kind.__mro__:
        if attribute in vars(ancestor):
            return None if ancestor.__module__.partition(".")[0] in _FIXED else vars(ancestor)[attribute]
    return None


def _attribute(owner: Any, name: str) -> Any:
    found = inspect.getattr_static(owner, name, _MISSING)
    plain = (FunctionType, staticmethod, classmethod, MemberDescriptorType)
    if found is _MISSING or isinstance(found, GetSetDescriptorType):
        return _MISSING
    if hasattr(type(found), "__get__") and not isinstance(found, plain):
        return _MISSING
    return getattr(owner, name, _MISSING)


def _is_fixed(owner: Any) -> bool:
    return isinstance(owner, ModuleType) and owner.__name__.partition(".")[0] in _FIXED


def roots_of(
    function: FunctionType, code: CodeType, bound: Any, arguments: Mapping[str, Any]
) -> Iterator[tuple[Chain, Callable[[], Any]]]:
    """The chains of a piece of code whose variables are known, and a way to read these again."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    known = dict(arguments)
    own = function.__code__
    if bound is not None and own.co_argcount:
        known[own.co_varnames[0]] = bound
    for chain in chains_in(code):
        variable = chain.variable
        if chain.kind == GLOBAL:
            if variable in function.__globals__:
                yield chain, functools.partial(function.__globals__.get, variable)
        elif chain.kind == CELL and variable in cells:
            yield chain, functools.partial(_contents, cells[variable])
        elif variable in known and (code is own or chain.kind == CELL):
            yield chain, functools.partial(_given, known[variable])


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _given(value: Any) -> Any:
    return value


def only_modules(owners: tuple[Any, ...]) -> bool:
    """Whether the chain can change only by an assignment to an attribute of a module, which is counted."""
    return all(isinstance(owner, Module) for owner in owners)
