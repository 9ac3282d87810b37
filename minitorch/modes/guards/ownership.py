"""What objects are made of, and whose they are: the user's, this package's, or a library's."""

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
    """Whether a source file belongs to neither this package nor an installed one."""
    return not (is_our_file(file) or file.startswith(("<frozen", *_LIBRARIES)))


def is_users_frame(frame: FrameType) -> bool:
    """Whether a function of the user's own runs; of code without a file, its module says whose it is."""
    file = frame.f_code.co_filename
    if not file.startswith("<"):
        return is_users_file(file)
    name = str(frame.f_globals.get("__name__", ""))
    return is_users_module(name) and not name.startswith("namedtuple_")


def is_users_module(module: object) -> bool:
    """Whether a module belongs to the user's program; of a class, a library may make something else than a text."""
    name = str(module)
    top = name.partition(".")[0]
    file = getattr(sys.modules.get(name) or sys.modules.get(top), "__file__", None)
    return is_users_file(file) if file else not (top in sys.stdlib_module_names or is_own(top))


def is_users_object(value: Any) -> bool:
    """Whether the user's own code alone reads the attributes of an object."""
    return isinstance(value, (type, ModuleType, SimpleNamespace)) or is_users_module(type(value).__module__)


def variables_of(function: FunctionType) -> Iterator[tuple[str, CellType]]:
    """The variables of enclosing functions, as far as they have values."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):
            cell.cell_contents  # noqa: B018  there may be none
            yield name, cell


def space_of(value: Any) -> dict[str, Any] | None:
    """The attributes of an object itself."""
    try:
        space = vars(value) if isinstance(value, ModuleType) else object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return space if isinstance(space, dict) else None


def is_plain(found: Any) -> bool:
    """Whether a class has an attribute as it is, and not by a property or the like."""
    return isinstance(found, (*PLAIN_METHODS, MethodType, type)) or not hasattr(type(found), "__get__")


def class_attribute(kind: type, name: str) -> Any:
    """What a class has under a name, as it is; `MISSING` if it has nothing."""
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), MISSING)
