"""The environment of a traced function: closures, globals, `self`, and the modules among them.

It gives captured tensors their names ("model.0.weight"), and the *watches*: plain values and objects that a function
reads from outside and that become constants of the graph, so that a change is noticed at the next call.
"""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import numpy as np

from ...amp import GradScaler
from ...errors import compose
from ...functional.generator import default_generator
from ...ir import warn_user
from ...nn import Module
from ...optim import Optimizer
from ...tensor import Tensor
from ...tree import Structure, flatten, paths
from .chains import class_attribute, follow, only_modules, roots_of
from .watch import SIMPLE, Watch, can_be_watched, watch

_MISSING = object()


def name(function: Callable[..., Any]) -> str:
    """The name of a function in messages."""
    return str(getattr(function, "__name__", type(function).__name__))


def parameters(function: Callable[..., Any], static_argnames: tuple[str, ...]) -> inspect.Signature | None:
    """The signature of a function, if Python knows it.

    Raises:
        ValueError: for a static argument that the function does not have.
    """
    target = function.forward if isinstance(function, Module) else function
    try:
        signature = getattr(function, "__signature__", None) or inspect.signature(target)
    except (TypeError, ValueError):
        return None
    for argument in static_argnames:
        if argument not in signature.parameters:
            has = ", ".join(signature.parameters)
            raise ValueError(f"static_argnames names {argument!r}, but {name(function)} takes ({has})")
    return signature


def usual_length(signature: inspect.Signature | None, static_argnames: tuple[str, ...]) -> int:
    """The number of positional arguments of a call in normal form; -1 if there is none."""
    if signature is None or static_argnames:
        return -1
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return len(kinds) if all(kind in plain for kind in kinds) else -1


def defaults(signature: inspect.Signature | None) -> tuple[Any, ...]:
    """The default values of the last parameters, as far as there are any."""
    values = [] if signature is None else [parameter.default for parameter in signature.parameters.values()]
    missing = [number for number, value in enumerate(values) if value is inspect.Parameter.empty]
    return tuple(values[missing[-1] + 1 if missing else 0 :])


def leaf_names(signature: inspect.Signature | None, structure: Structure) -> list[str]:
    """A name for each leaf of a call ``(args, kwargs)``, such as ``x`` or ``batch.images.0``."""
    positional, keyword = structure.children
    known = [] if signature is None else list(signature.parameters.values())
    names: list[str] = []
    for position, child in enumerate(positional.children):
        if position < len(known) and known[position].kind is not inspect.Parameter.VAR_POSITIONAL:
            base = known[position].name
        else:
            base = f"arg{position}"
        names += paths(child, base)
    for key, child in zip(keyword.keys, keyword.children, strict=True):
        names += paths(child, str(key))
    return [_plain_name(found) for found in names]


def _plain_name(path: str) -> str:
    """``batch['x'][0]`` as ``batch.x.0``, which a listing can have as a name."""
    text = path.replace("[", ".").replace("]", "").replace("'", "").replace('"', "")
    return "".join(letter if letter.isalnum() or letter in "._" else "_" for letter in text)


def _functions(function: Callable[..., Any]) -> Iterator[tuple[FunctionType, Any]]:
    """The plain functions behind a callable, with their `self`, and the helpers of their file."""
    pending: list[tuple[Any, Any]] = [(function, None)]
    seen: set[tuple[int, int]] = set()
    while pending:
        at, bound = pending.pop()
        if isinstance(at, MethodType):
            bound = at.__self__
            at = at.__func__
        if isinstance(at, Module):
            at, bound = type(at).forward, at
        at = getattr(at, "function", at) if type(at).__name__ == "Jitted" else at
        if not isinstance(at, FunctionType) or (id(at), id(bound)) in seen:
            continue
        seen.add((id(at), id(bound)))
        yield at, bound
        for chain, root in (pair for code in _codes(at.__code__) for pair in roots_of(at, code, bound, {})):
            reached = follow(chain, root)
            value = None if reached is None else reached.value
            if isinstance(value, (FunctionType, MethodType)) and value.__module__ == at.__module__:
                pending.append((value, None))
        for _, value in _outside_values(at):
            if isinstance(value, FunctionType) and value.__module__ == at.__module__:
                pending.append((value, None))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


@functools.lru_cache(maxsize=1024)
def _globals_in(code: CodeType) -> tuple[str, ...]:
    """The global variables that a piece of code reads; `co_names` has attributes among them."""
    found = (step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    return tuple(dict.fromkeys(found))


def _outside_values(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The closure variables and globals that a function names, with their present values."""
    for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield variable, cell.cell_contents
        except ValueError:
            continue  # not assigned yet
    for code in _codes(function.__code__):
        for variable in _globals_in(code):
            value = function.__globals__.get(variable, _MISSING)
            if value is not _MISSING:
                yield variable, value


@functools.cache
def names_in_methods(kind: Any) -> frozenset[str]:
    """The attributes that the methods of a class name, constructors and `__repr__` apart."""
    found: set[str] = set()
    for ancestor in kind.__mro__:
        if ancestor not in (Module, object):
            for name, method in vars(ancestor).items():
                function = getattr(method, "function", method) if type(method).__name__ == "Jitted" else method
                if isinstance(function, FunctionType) and name not in ("__init__", "__repr__", "extra_repr"):
                    found.update(*(code.co_names for code in _codes(function.__code__)))
    return frozenset(found)


def follows_training(module: Module) -> bool:
    """Whether a module depends on `training`, as far as its code shows.

    Example:
        >>> import minitorch as mt
        >>> follows_training(mt.nn.Dropout()), follows_training(mt.nn.Linear(2, 2))
        (True, False)
    """
    kind: Any = type(module)
    options = getattr(module, "function_parameters", None)
    return "training" in (names_in_methods(kind) if options is None else options)


def names_in(variables: dict[str, Any]) -> dict[int, str]:
    """Names for the tensors behind some variables, in modules and optimisers too, by `id`."""
    found = Surroundings(None, [(name, value) for name, value in variables.items() if not name.startswith("_")])
    for name, value in variables.items():
        if isinstance(value, Tensor):
            found.names[id(value)] = name
    return found.names


def _parts_of(space: dict[str, Any]) -> tuple[str, ...]:
    """The names of a module's parameters, buffers and children."""
    return tuple([attribute for attribute, value in space.items() if isinstance(value, (Module, Tensor))])


class Surroundings:
    """The environment of a function, examined once when it is traced.

    Attributes:
        names: names of the tensors found, by `id`.
        watches: variables whose values the graph depends on.
        module_watches: likewise, attributes of modules.
        modules: the modules found, with their training flags.
        owners: these, and the objects whose methods are called.
    """

    def __init__(self, function: Callable[..., Any] | None, arguments: list[tuple[str, Any]]) -> None:
        self.names: dict[int, str] = {id(default_generator._state): "random_state"}
        self.watches: list[Watch] = []
        self.module_watches: list[Watch] = []
        self.modules: list[tuple[Module, bool]] = []
        self.owners: list[Any] = []
        self._seen: set[int] = set()
        self._helpers: set[int] = set()
        for variable, value in arguments:
            if not isinstance(value, Tensor):
                self._add(variable, value)
        if isinstance(function, Module):
            self._add("", function)
        if function is None:
            return
        called = list(_functions(function))
        self._helpers = {id(at) for at, _ in called}
        for at, bound in called:
            if bound is not None:
                self._add("self", bound)
                if not isinstance(bound, Module):
                    self.owners += [bound] if hasattr(bound, "__dict__") else []
                    self._watch_attributes("self", bound)
                for attribute, value in getattr(bound, "__dict__", {}).items():
                    self._add(attribute, value)
            for variable, cell in zip(at.__code__.co_freevars, at.__closure__ or (), strict=True):
                self._watch(variable, cell)
            for code in _codes(at.__code__):
                for variable in _globals_in(code):
                    self._watch_global(variable, at.__globals__)
                modules = {name: value for name, value in arguments if isinstance(value, Module)}
                self._watch_chains(at, code, bound, modules if at is called[0][0] else {})

    def _watch(self, variable: str, cell: Any) -> None:
        try:
            value = cell.cell_contents
        except ValueError:
            return
        self._note(variable, value, lambda: cell.cell_contents)

    def _watch_global(self, variable: str, space: dict[str, Any]) -> None:
        value = space.get(variable, _MISSING)
        if value is not _MISSING:
            self._note(variable, value, lambda: space.get(variable))

    def _watch_chains(self, function: FunctionType, code: CodeType, bound: Any, arguments: dict[str, Any]) -> None:
        """Watch the attributes that a piece of code reads from variables."""
        for chain, root in roots_of(function, code, bound, arguments):
            reached = follow(chain, root)
            if reached is None or not can_be_watched(reached.value):
                continue
            owner, attribute = reached.owners[-1], reached.name.rpartition(".")[2]
            in_modules, kind = only_modules(reached.owners), cast(Any, type(owner))
            space = getattr(owner, "__dict__", None)
            known = isinstance(space, dict) and id(space) in self._seen and attribute in names_in_methods(kind)
            if attribute == "training" and in_modules:
                continue
            self._add(reached.name, reached.value)
            if not (known and len(reached.owners) == 1):  # then `_watch_attributes` watches it
                watches = self.module_watches if in_modules and attribute in vars(owner) else self.watches
                watches.append(watch(reached.name, reached.look, reached.value))

    def _note(self, variable: str, value: Any, look: Callable[[], Any]) -> None:
        if id(value) in self._helpers:  # it is defined in the same file, and may be redefined
            self.watches.append(Watch(variable, look, value))
        if isinstance(value, (ModuleType, type, FunctionType, BuiltinFunctionType)):
            return
        self._add(variable, value)
        if can_be_watched(value):
            self.watches.append(watch(variable, look, value))

    def _watch_attributes(self, path: str, owner: Any) -> None:
        """Watch the plain attributes of an object that its methods name, such as a factor or a probability."""
        space = getattr(owner, "__dict__", {})
        kind: Any = type(owner)
        named = names_in_methods(kind) - {"training"}
        if id(space) in self._seen:
            return
        self._seen.add(id(space))
        if "getattr" in named:  # under names that the code does not contain
            named = frozenset(name for name in space if not name.startswith("_")) - {"training"}
        parts = _parts_of(space) if isinstance(owner, Module) else ()
        if parts:
            self.module_watches.append(Watch(f"{path}.children", functools.partial(_parts_of, space), parts))
        for attribute in (named & space.keys()) | set(parts):
            value = space[attribute]
            if can_be_watched(value):
                look = functools.partial(space.get, attribute)
                watches = self.module_watches if isinstance(owner, Module) else self.watches
                watches.append(watch(f"{path}.{attribute}", look, value))
        for attribute in named - space.keys():
            value = class_attribute(kind, attribute)
            if value is not None and can_be_watched(value):
                self.watches.append(watch(f"{path}.{attribute}", functools.partial(getattr, owner, attribute), value))

    def _add(self, variable: str, value: Any) -> None:
        """Name the tensors inside a value, and note its modules."""
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, Module):
            prefix = f"{variable}." if variable and variable != "self" else ""
            for path, tensor in (*value.named_parameters(), *value.named_buffers()):
                self.names.setdefault(id(tensor), prefix + path)
            for path, module in value.named_modules():
                self.modules.append((module, module.training))
                self.owners.append(module)
                self._watch_attributes(".".join(filter(None, (variable or "self", path))), module)
        elif isinstance(value, (Optimizer, GradScaler)):
            for path, tensor in value.named_tensors():
                self.names.setdefault(id(tensor), f"{variable or 'optimizer'}.{path}")
            if isinstance(value, GradScaler):
                self.watches.append(watch(f"{variable or 'scaler'}.under_way()", value.under_way, value.under_way()))
        elif isinstance(value, Tensor):
            self.names.setdefault(id(value), variable)
        elif type(value) in (list, tuple, dict):
            leaves, structure = flatten(value)
            for path, leaf in zip(paths(structure, variable), leaves, strict=True):
                if isinstance(leaf, (Tensor, Module)):
                    self._add(_plain_name(path), leaf)

    def constants(self) -> dict[str, Any]:
        """The plain values, containers and arrays that became constants of a graph, and module modes, by name."""
        found = {
            watched.name: watched.expected
            for watched in (*self.watches, *self.module_watches)
            if isinstance(watched.expected, (*SIMPLE, np.ndarray)) and not watched.name.endswith(".children")
        }
        return found | {f"{type(module).__name__}.training": training for module, training in self.modules}

    def settle(self, name: str, warn: bool) -> list[str]:
        """After the trace: accept the function's own changes, warn of them, and return their names."""
        changed = []
        for watched in (*self.watches, *self.module_watches):
            if watched.holds():
                continue
            changed.append(watched.name)
            if warn:
                warn_user(
                    compose(
                        "MT105",
                        f"{name} changes `{watched.name}` while it is traced: it {watched.change()}",
                        why="the function runs once, while it is traced; later calls run the graph, and change nothing",
                        fix=f"return the new value, and assign `{watched.name}` outside",
                    )
                )
            watched.settle()
        return changed
