"""The packages of this distribution, and the public names that they have in `minitorch`.

`minitorch` is the engine. Everything else is a package beside it (`extras/` in the repository) that plugs into the
engine's tables, and is loaded when its name is used: ``mt.amp`` and ``import minitorch.amp`` both give `minitorch_amp`,
the same module under both names. Which packages there are is said in `minitorch/__init__.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import Any

ENGINE = __name__.partition(".")[0]
PACKAGES = [ENGINE]
BESIDE: dict[str, str] = {}  # public names of modules, from the engine on: the module of each; see `register`


def register(names: Mapping[str, str]) -> None:
    """Add modules of packages beside the engine, by the names that they have in it."""
    BESIDE.update(names)
    found = dict.fromkeys(name.partition(".")[0] for name in names.values())
    PACKAGES.extend(name for name in found if name not in PACKAGES)


def is_own(module: object) -> bool:
    """Return whether a module, by its name, belongs to this distribution; a class may have any object for a name."""
    return str(module).partition(".")[0] in PACKAGES


def real_name(public: str) -> str | None:
    """Return the name of the module behind a public name, None if the two are the same.

    Example:
        >>> real_name("minitorch.debug"), real_name("minitorch.nn")
        ('minitorch_checking.debug', None)
    """
    engine, _, rest = public.partition(".")
    if engine == ENGINE:
        for name, real in BESIDE.items():
            if rest == name or rest.startswith(f"{name}."):
                return real + rest.removeprefix(name)
    return None


def is_installed(package: str) -> bool:
    """Return whether a package beside the engine is there."""
    return find_spec(package) is not None


def load(name: str) -> ModuleType:
    """Import a module of a package beside the engine.

    Raises:
        ModuleNotFoundError: if the package is not installed.
    """
    _require(name)
    return import_module(name)


def names_from(
    home: str, table: Mapping[str, str], made: Callable[[str, Any], Any] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of the module `home`, which takes names from other modules when first used.

    Type checkers see another `__getattr__`, in ``if TYPE_CHECKING`` or a stub: with this one a misspelt name would be
    `Any`.

    Args:
        table: by name, the module that has it; a name of a module in `home` is that module.
        made: given a name and its value, returns what `home` has under this name; by default the value.

    `__getattr__` called by itself gives what the name has at first, also where something else has been put in its
    place; this is one object in all threads.
    """
    values: dict[str, Any] = {}

    def found(name: str) -> Any:
        if name not in table:
            text = f"module {home!r} has no attribute {name!r}{_reason(f'{home}.{name}')}"
            raise AttributeError(text, name=name, obj=sys.modules.get(home))
        if name not in values:
            module = load(table[name])
            value = module if table[name] == f"{home}.{name}" else getattr(module, name)
            values.setdefault(name, made(name, value) if made else value)
        vars(sys.modules[home]).setdefault(name, values[name])
        return values[name]

    return found, lambda: sorted({*vars(sys.modules[home]), *table})


def _reason(name: str) -> str:
    """Return why the engine lacks a name that PyTorch has, for the end of a message; empty if there is no reason."""
    if "._" in name or not is_installed("minitorch_torch"):
        return ""
    reason = load("minitorch_torch.absent").reason_for(name.partition(".")[2])
    return f": {reason}" if reason else ""


def _require(name: str) -> None:
    package = name.partition(".")[0]
    if not is_installed(package):
        raise ModuleNotFoundError(f"{name} needs the package {package}, which is not installed", name=package)


class Finder:
    """A finder of modules by names that are not their own (`importlib.abc.MetaPathFinder`).

    Args:
        real_name: returns the name of the module behind a name, or None.
    """

    def __init__(self, real_name: Callable[[str], str | None]) -> None:
        self._real_name = real_name

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        real = self._real_name(name)
        if real is None:
            return None
        _require(real)
        found = find_spec(real)
        return found and ModuleSpec(name, self, origin=found.origin)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = load(str(self._real_name(spec.name)))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own name; it has run already."""
        alias: Any = module.__spec__
        module.__spec__ = alias.loader_state

    def get_code(self, name: str) -> CodeType | None:
        """Return the code of a module for ``python -m``."""
        spec: Any = find_spec(str(self._real_name(name)))
        code: CodeType | None = spec.loader.get_code(spec.name)
        return code


sys.meta_path.insert(0, Finder(real_name))
