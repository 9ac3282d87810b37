"""Contents and owners of objects: the user, this package, or a library."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import sysconfig
from collections.abc import Iterator
from types import CellType, FrameType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

from ...ir import is_ours as is_our_file
from ...packages import is_own


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING: Any = _Missing()
_LIBRARIES = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
PLAIN_METHODS = (FunctionType, staticmethod, classmethod)


@functools.cache
def is_users_file(file: str) -> bool:
    """Return whether a source file belongs to neither this package nor an installed one."""
    return not (is_our_file(file) or file.startswith(("<frozen", *_LIBRARIES)))


def is_users_frame(frame: FrameType) -> bool:
    """Return whether a frame runs the user's own function; code without a file is judged by its module."""
    file = frame.f_code.co_filename
    if not file.startswith("<"):
        return is_users_file(file)
    name = str(frame.f_globals.get("__name__", ""))
    return is_users_module(name) and not name.startswith("namedtuple_")


def is_users_module(module: object) -> bool:
    """Return whether a module belongs to the user's program; a library may set ``__module__`` to a non-string."""
    name = str(module)
    top = name.partition(".")[0]
    file = getattr(sys.modules.get(name) or sys.modules.get(top), "__file__", None)
    return is_users_file(file) if file else not (top in sys.stdlib_module_names or is_own(top))


def is_users_object(value: Any) -> bool:
    """Return whether only the user's own code reads the attributes of an object."""
    return isinstance(value, (type, ModuleType, SimpleNamespace)) or is_users_module(type(value).__module__)


def variables_of(function: FunctionType) -> Iterator[tuple[str, CellType]]:
    """Yield the variables of enclosing functions, as far as they have values."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):
            cell.cell_contents  # noqa: B018  there may be none
            yield name, cell


def space_of(value: Any) -> dict[str, Any] | None:
    """Return the attributes of an object itself."""
    try:
        space = vars(value) if isinstance(value, ModuleType) else object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return space if isinstance(space, dict) else None


def is_plain(found: Any) -> bool:
    """Return whether a class stores an attribute directly, without a property or the like."""
    return isinstance(found, (*PLAIN_METHODS, MethodType, type)) or not hasattr(type(found), "__get__")


def class_attribute(kind: type, name: str) -> Any:
    """Return the entry of a class under a name, unbound; `MISSING` if it has none."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), MISSING)
