"""`Observed`: the values that a function reads from outside while it is traced, so that the next call notices a change.

Python reports each function that begins to run. The user's own code is read once (`reads`): its global variables,
those of enclosing functions, its defaults, and the attributes of its arguments. Each becomes a `Watch`, with the
value that it has before the function goes on. Where an attribute is read from an object that the code does not name,
such as the variable of a loop, it is watched on all objects found.
"""

from __future__ import annotations

import gc
import io
import operator
import os
import sys
import weakref
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from types import (
    CodeType,
    FrameType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any, cast

import numpy as np

from ...functional.creation.generator import default_generator
from ...ir import Source
from ...nn.module import Module, Stateful
from ...packages import is_own
from ...tensor import Tensor
from . import kinds
from .kinds import How, items_of, kind_of, parts_of
from .ownership import (
    MISSING,
    PLAIN_METHODS,
    class_attribute,
    is_plain,
    is_users_file,
    is_users_module,
    is_users_object,
    space_of,
    variables_of,
)
from .reads import CELL, GLOBAL, IMPORT, Chain, reads_in
from .running import Profile, functions_observed
from .surroundings import children_of, names_in_methods, plain_name, tensors_in
from .watch import Watch, Watches, warn_of_change, warn_of_unknown

_ENDS = object()  # of a chain, at something whose attributes do not change
_COMPUTED = object()  # by a property or the like: it runs, and is observed itself


class Observed:
    """Surroundings of a function, observed once while it is traced.

    Args:
        function: the traced function; None for nothing.
        arguments: its arguments by name; those that are not tensors may be read from.
        libraries: whether the state of library modules counts, such as that of ``random``.

    Attributes:
        names: names of the tensors found, by `id`.
        watches: variables and attributes that the graph depends on.
        module_watches: those that only an assignment to an attribute of a module can change, which is counted.
        modules: the modules found, with their training flags.
    """

    def __init__(
        self, function: Callable[..., Any] | None, arguments: Iterable[tuple[str, Any]] = (), libraries: bool = True
    ) -> None:
        self.names: dict[int, str] = {id(default_generator._state): "random_state"}
        self.watches = Watches()
        self.module_watches = Watches()
        self.modules: list[tuple[Module, bool]] = []
        self._found: dict[tuple[Any, Any], Watch] = {}
        self._seen: dict[int, Any] = {}
        self._known: dict[int, tuple[Any, str]] = {}
        self._open: list[tuple[Any, str]] = []  # the objects whose attributes may be read from any variable
        self._free: set[str] = set()
        self._asked: set[str] = set()  # of these, those that an object may not have
        self._reads_all = False
        self._libraries = libraries
        self._functions: dict[CodeType, list[FunctionType]] = {}
        self._inner: set[CodeType] = set()  # of functions that are made during the trace
        self._imports: set[str] = set()
        self._frames: set[Any] = set()
        self._place = ""
        self._unknown: dict[str, tuple[Any, str]] = {}
        for variable, value in arguments:
            if not isinstance(value, Tensor):
                self._escape(value, variable)
        if function is not None:
            self._escape(function, "" if isinstance(function, Module) else "self")
            self._of_class(type(function), "__call__", "self")
        for label, _ in parts_of(function) if isinstance(function, partial) else ():
            self._watch(label, getattr, function, label)

    # Which code runs ------------------------------------------------------------------------------------

    def running(self) -> AbstractContextManager[Profile | None]:
        """Observe what runs inside the block; yield the profile function that may be set aside, or None."""
        return functions_observed(self._entered)

    def _entered(self, frame: FrameType) -> None:
        code, given = frame.f_code, frame.f_locals
        function = self._function_of(frame)
        known = [id(value) for value in given.values() if id(value) in self._known]
        key = code, id(function), id(frame.f_globals), *known
        if key in self._frames:
            return
        self._frames.add(key)
        self._place = str(Source(code.co_filename, frame.f_lineno))
        if function is not None:
            for name in ("__code__", "__defaults__", "__kwdefaults__"):
                if getattr(function, name) is not None:
                    self._escape(self._watch(f"{code.co_name}.{name}", getattr, function, name), code.co_name)
        self._inner.update(constant for constant in code.co_consts if isinstance(constant, CodeType))
        reads = reads_in(code)
        for chain in reads.chains:
            self._read_chain(chain, frame, function)
        self._asked |= reads.asked
        if reads.is_computed:
            self._read_all()
        self._add_free(reads.free)

    def _function_of(self, frame: FrameType) -> FunctionType | None:
        """Return the function that runs in a frame, unless it was made during the trace."""
        code, given = frame.f_code, frame.f_locals
        found = self._functions.setdefault(code, [])
        while True:
            for function in found:
                if all(given.get(name, MISSING) is cell.cell_contents for name, cell in variables_of(function)):
                    return function
            if code in self._inner or code.co_name == "<module>" or code.co_filename == "<string>":
                return None
            found += [function for function in gc.get_referrers(code) if isinstance(function, FunctionType)]
            self._inner.add(code)

    # Reads ----------------------------------------------------------------------------------------------

    def _read_chain(self, chain: Chain, frame: FrameType, function: FunctionType | None) -> None:
        variable, written = chain.variable, chain.is_written and not chain.attributes
        name = variable
        if chain.kind == GLOBAL:
            if _is_made_here(frame.f_globals):
                return
            value = self._watch(variable, dict.get, frame.f_globals, variable, written)
        elif chain.kind == CELL:
            names = [] if function is None else function.__code__.co_freevars
            if function is None or variable not in names or variable == "__class__":
                return
            cell = (function.__closure__ or ())[names.index(variable)]
            value = self._watch(variable, getattr, cell, "cell_contents", written)
        elif chain.kind == IMPORT:
            self._imports.add(variable)
            value = sys.modules.get(variable, MISSING)
        else:
            value = frame.f_locals.get(variable, MISSING)
            if id(value) in self._known:
                name = self._known[id(value)][1] or "self"
            elif not isinstance(value, type):  # made during the trace; but what is in it may be from outside
                if chain.attributes:
                    self._of_class(type(value), chain.attributes[0], variable)
                self._add_free(chain.attributes)
                return
        self._follow(value, name, chain)

    def _follow(self, value: Any, name: str, chain: Chain) -> None:
        """Watch the attributes of a chain, as far as plain reads go."""
        for place, attribute in enumerate(chain.attributes, 1):
            self._pass(value, name)
            is_last = place == len(chain.attributes)
            found = self._read(value, attribute, f"{name}.{attribute}", chain.is_written and is_last)
            if found is _COMPUTED:
                self._add_free(chain.attributes[place:])
            if found is _COMPUTED or found is _ENDS:
                return
            value, name = found, f"{name}.{attribute}"
        if not chain.is_written:
            self._escape(value, name)

    def _watch(
        self, name: str, read: Callable[..., Any], owner: Any, key: Any, written: bool = False, same: Any = None
    ) -> Any:
        """Watch a value, and return it. A recorded value was put there by the function itself."""
        place = (id(owner) if same is None else same, key)
        watched = self._found.get(place)
        if watched is None:
            watched = Watch(name, read, owner, key, written)
            if not watched.is_settled:
                return watched.look()
            self._found[place] = watched
            if watched.too_large is not None:
                self._unknown.setdefault(name, (watched.too_large, self._place))
        watched.is_written &= written
        return watched.look()

    def _read(self, owner: Any, attribute: str, name: str, written: bool = False) -> Any:
        """Watch an attribute of an object, and return its value."""
        if isinstance(owner, ModuleType) and not is_users_module(owner.__name__):
            found = _ENDS if is_own(owner.__name__) else getattr(owner, attribute, _ENDS)
            found = os.environ if found is os.getenv else found
            leads_on = isinstance(found, (ModuleType, type(os.environ))) or kind_of(found) in (How.PARTS, How.UNKNOWN)
            return found if self._libraries and leads_on and not isinstance(found, io.IOBase) else _ENDS
        if isinstance(owner, type):
            for kind in (owner, type(owner)):
                found = self._of_class(kind, attribute, name.rpartition(".")[0])
                if found is not MISSING:
                    return found if is_plain(found) else _ENDS
            return _ENDS
        if isinstance(owner, Tensor) and attribute == "requires_grad":
            return self._watch(name, getattr, owner, attribute)
        how, space, is_module = kind_of(owner), space_of(owner), isinstance(owner, Module)
        if isinstance(owner, Tensor) and space is not None and not hasattr(type(owner), attribute):
            return self._watch(name, dict.get, space, attribute, written)  # a user's note on a parameter
        if (how is How.VALUE and not space) or (how is not How.OBJECT and is_own(type(owner).__module__)):
            return _ENDS
        if attribute == "training" and is_module:
            return _ENDS
        found = class_attribute(type(owner), attribute)
        is_first = hasattr(type(found), "__set__")  # before the attributes of the object itself
        if space is not None and attribute in space and not is_first:
            return self._watch(name, dict.get, space, attribute, written)
        self._of_class(type(owner), attribute, name.rpartition(".")[0])
        if is_users_object(owner) and not is_module:
            self._watch(f"{name.rpartition('.')[0]}.__class__", getattr, owner, "__class__")
        if isinstance(found, MemberDescriptorType):
            return self._watch(name, getattr, owner, attribute, written)
        if found is not MISSING and not is_plain(found):
            self._escape(found, name)
            return _ENDS if attribute == "__dict__" else _COMPUTED
        if space is not None:
            self._watch(name, dict.get, space, attribute, written)
        if isinstance(found, FunctionType) and not is_users_file(found.__code__.co_filename):
            self._escape(owner, name.rpartition(".")[0])  # to code of a library, which is not observed
        return getattr(found, "__func__", found) if isinstance(found, PLAIN_METHODS) else found

    def _of_class(self, kind: type, attribute: str, name: str) -> Any:
        """Return the entry of a class under a name, unbound; watch it in the user's classes."""
        for base in kind.__mro__:
            space = vars(base)
            if is_users_module(base.__module__):
                self._watch(f"{name}.{attribute}", MappingProxyType.get, space, attribute, same=id(base))
            if attribute in space:
                return space[attribute]
        return MISSING

    def _add_free(self, names: Iterable[str]) -> None:
        """Watch these attributes of all objects found so far or later."""
        new = set(names) - self._free
        self._free |= new
        for value, name in list(self._open) if new else ():
            self._read_free(value, name, new)

    def _read_all(self) -> None:
        """Watch the attributes of all names on all objects."""
        if not self._reads_all:
            self._reads_all = True
            for value, name in list(self._open):
                self._read_free(value, name, self._free)

    def _read_free(self, value: Any, name: str, names: set[str]) -> None:
        space = space_of(value) or {}
        has = set(space).union(*(vars(base) for base in type(value).__mro__ if is_users_module(base.__module__)))
        if isinstance(value, type):
            has = set(dir(value)) if is_users_module(value.__module__) else set()
        by_others = not (isinstance(value, Module) or is_users_object(value))  # whose code is not observed
        every = [each for each in has if not each.startswith("__")] if self._reads_all or by_others else ()
        if self._reads_all and space:
            self._watch(f"{name}.__dict__", _names_in, space, "")
        for attribute in sorted({*((has | self._asked) & names), *every}, key=str):
            found = self._read(value, attribute, f"{name}.{attribute}" if name else attribute)
            if found is not _ENDS and found is not _COMPUTED:
                self._escape(found, f"{name}.{attribute}" if name else attribute)

    # Objects found --------------------------------------------------------------------------------------

    def _pass(self, value: Any, name: str) -> None:
        """Note an object whose attributes are read."""
        known = kind_of(value) is How.OBJECT and not isinstance(value, Module)
        self._know(value, name) if known else self._escape(value, name)

    def _know(self, value: Any, name: str) -> None:
        self._known.setdefault(id(value), (value, name))

    def _escape(self, value: Any, name: str) -> None:
        """Note a value that any code may read from: its contents, and the attributes with free names."""
        how = kind_of(value)
        if how is How.VALUE or id(value) in self._seen or value is MISSING or kinds.is_traced(value):
            return
        self._seen[id(value)] = value
        for path, tensor in tensors_in(plain_name(name.removeprefix("self.")) if name != "self" else "", value):
            self.names.setdefault(id(tensor), path)
        if isinstance(value, Module):
            self._module(value, name)
        elif isinstance(value, Stateful) and hasattr(value, "condition"):
            self._watch(f"{name}.condition()", lambda held, key, default: held.condition(), value, "")
        elif how is How.ITEMS:
            for label, item in items_of(value) if len(value) <= kinds.MOST_ITEMS else ():
                self._escape(item, f"{name}{label}")
        elif isinstance(value, FunctionType) and not is_users_file(value.__code__.co_filename):
            for variable, cell in variables_of(value):  # a decorator: the user's function is in it
                kind = kind_of(cell.cell_contents)
                if is_own(value.__module__):  # whose variables stay as they are
                    self._escape(cell.cell_contents if kind is How.PARTS else MISSING, variable)
                elif kind in (How.PARTS, How.ITEMS):
                    self._escape(self._watch(variable, getattr, cell, "cell_contents"), variable)
        elif how is How.ELEMENTS:
            for item in value.flat if getattr(value, "dtype", None) == np.dtype(object) else ():
                self._escape(item, f"{name}[...]")
        elif how is How.PARTS:
            if isinstance(value, FunctionType):
                self._functions.setdefault(value.__code__, []).append(value)
            for label, part in parts_of(value):
                self._pass(part, name) if label == "__self__" else self._escape(part, f"{name}.{label}")
        elif how is How.UNKNOWN:
            self._unknown.setdefault(name, (value, self._place))
        elif isinstance(value, weakref.ReferenceType):
            self._escape(value(), name)
        elif isinstance(value, (operator.attrgetter, operator.methodcaller)):
            self._read_all()
        elif is_own(type(value).__module__):
            self._escape((space_of(value) or {}).get("function"), name)
        if isinstance(value, ModuleType) and not is_users_module(value.__name__):
            return
        has_attributes = how is How.OBJECT or (space_of(value) and is_users_object(value))  # a list, too
        has_attributes = has_attributes or (isinstance(value, Tensor) and space_of(value) is not None)
        if has_attributes or isinstance(value, (ModuleType, type, FunctionType)):
            self._know(value, name)
            self._open.append((value, name))
            self._read_free(value, name, self._free)

    def _module(self, value: Module, name: str) -> None:
        """Note a module and those in it: the engine's are read by code that is not observed."""
        for path, module in value.named_modules():
            if module is not value and id(module) in self._seen:
                continue
            self._seen[id(module)] = module
            place, space = ".".join(filter(None, (name or "self", path))), vars(module)
            self._know(module, place if name or path else "")
            self.modules.append((module, module.training))
            names: Any = names_in_methods(cast(Any, type(module)), "minitorch.")
            if "getattr" in names:
                names = {each for each in space if not each.startswith("_")}
            children = self._watch(f"{place}.children", children_of, space, MISSING)
            for when in module._hooks:
                self._escape(self._watch(f"{place}.hooks", dict.get, module._hooks, when), f"{place}.hooks")
            for attribute in sorted({"forward", *children, *(names & space.keys())} - {"training"}):
                found = self._read(module, attribute, f"{place}.{attribute}")
                if not isinstance(found, Module) and found is not _ENDS and found is not _COMPUTED:
                    self._escape(found, f"{place}.{attribute}")
            for each, tensor in vars(module).items():
                if isinstance(tensor, Tensor):
                    self._escape(tensor, f"{place}.{each}")
            if module is not value:
                self._open.append((module, place))
                self._read_free(module, place, self._free)

    # After the trace ------------------------------------------------------------------------------------

    def constants(self) -> dict[str, Any]:
        """Return the plain values, containers and arrays that became constants, and module modes, by name."""
        found = {
            watched.name: watched.value
            for watched in (*self.watches, *self.module_watches)
            if watched.value is not MISSING and not watched.name.endswith((".children", "__", ".condition()"))
        }
        return found | {f"{type(module).__name__}.training": training for module, training in self.modules}

    @property
    def seen(self) -> list[Watch]:
        """The watches on all values outside that the function has read or written so far."""
        return list(self._found.values())

    def settle(self, name: str, warn: bool) -> list[str]:
        """Accept the function's own changes after the trace, warn of them, and return their names."""
        for module in self._imports & sys.modules.keys():
            self._escape(sys.modules[module], module)
        changed: dict[str, None] = {}
        for watched in list(self._found.values()):
            if not watched.holds():
                if warn and watched.name not in changed and watched.read is not _names_in:
                    warn_of_change(name, watched)
                changed[watched.name] = None
                watched.settle()
        spaces = {id(vars(module)) for module, _ in self.modules}
        hooks = {id(module._hooks) for module, _ in self.modules}
        for watched in self._found.values():
            owner = id(watched.owner)
            is_counted = owner in hooks or (owner in spaces and not watched.has_insides)
            is_counted |= isinstance(watched.owner, Stateful) and watched.owner.is_counted
            if not watched.is_written:
                (self.module_watches if is_counted else self.watches).append(watched)
        for read, (value, place) in self._unknown.items():
            warn_of_unknown(name, read, value, place)
        return list(changed)


@lru_cache(256)
def _same(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return equal names as one object: watches are compared by identity first."""
    return names


def _names_in(space: dict[str, Any], key: str, default: object) -> tuple[str, ...]:
    """Return the attributes of an object, for code that asks for names that it does not contain."""
    return _same(tuple([name for name in space if not name.startswith("_")]))


def _is_made_here(variables: dict[str, Any]) -> bool:
    """Return whether global variables are those that the traced function gives to `eval` or `exec`."""
    module = sys.modules.get(str(variables.get("__name__")))
    is_modules = module is not None and vars(module) is variables
    return not is_modules and any(map(kinds.is_traced, variables.values()))
