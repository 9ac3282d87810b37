"""What is saved, taken apart into tensors with names and a structure in JSON, and put together again.

A name is the way to the tensor: ``{"model": {"weight": w}}`` has the tensor ``model.weight``. In the structure, None,
bools, ints, texts, finite floats and lists are themselves; else it has an object with one key, which says what it is:

    {"tensor": name}    {"dict": [[key, value], ...]}    {"tuple": [...]}    {"float": "nan"}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from minitorch.errors import CheckpointError
from minitorch.functional.creation.generator import Generator
from minitorch.nn import Module
from minitorch.tensor import Tensor

MOST_DEPTH = 64  # of containers in containers; raising it takes more of Python's stack
MOST_BITS = 14_000  # of an int; Python reads no int of more than 4300 digits


def state_of(value: Any) -> Any:
    """The state of something that has one: of modules, optimisers and the like, their `state_dict`."""
    if isinstance(value, Generator):
        return value.get_state()
    if isinstance(value, Module) and type(value).state_dict is Module.state_dict:
        return value._state()  # not detached: what is divided among devices stays there
    return value.state_dict() if hasattr(value, "state_dict") else value


def apart(value: Any) -> tuple[dict[str, Any], Any]:
    """The tensors by name, and the structure that they are in.

    Args:
        value: nested dicts, lists and tuples of tensors, arrays, numbers, texts and None, and of what has a
            ``state_dict()``.

    Raises:
        CheckpointError: for anything else, and for two tensors of one name (``MT806``).

    Example:
        >>> import minitorch as mt
        >>> tensors, structure = apart({"model": {"w": mt.zeros(2)}, "epoch": 3})
        >>> tensors, structure
        ({'model.w': tensor([0., 0.])}, {'dict': [['model', {'dict': [['w', {'tensor': 'model.w'}]]}], ['epoch', 3]]})
    """
    found: dict[str, Any] = {}
    return found, _apart(value, "", found, 0)


def _apart(value: Any, name: str, found: dict[str, Any], depth: int) -> Any:
    value = state_of(value)
    if depth > MOST_DEPTH:
        raise CheckpointError(
            "MT806", f"{name[:60]!r} is nested more than {MOST_DEPTH} deep", fix="save a flatter dict"
        )
    if isinstance(value, Tensor | np.ndarray):
        if name in found:
            raise CheckpointError("MT806", f"two tensors would have the name {name!r}", fix="rename one of the keys")
        found[name] = value
        return {"tensor": name}
    if isinstance(value, Mapping):
        rows = [(_key(key, name), _apart(each, _joined(name, key), found, depth + 1)) for key, each in value.items()]
        return {"dict": [list(row) for row in rows]}
    if type(value) is tuple:
        return {"tuple": [_apart(each, _joined(name, place), found, depth + 1) for place, each in enumerate(value)]}
    if isinstance(value, list):
        return [_apart(each, _joined(name, place), found, depth + 1) for place, each in enumerate(value)]
    if type(value) is float and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or type(value) in (bool, int, float, str):
        return _readable(value, name or "the value")
    raise CheckpointError(
        "MT806",
        f"{name or 'the value'} is of type {type(value).__name__}, which a checkpoint does not hold",
        why="a checkpoint has tensors, numbers, texts, None, and lists, tuples and dicts of them: data, and no code",
        fix="save what the object is made from, or give its class state_dict() and load_state_dict()",
    )


def _key(key: Any, name: str) -> Any:
    if type(key) is int:
        return _readable(key, f"a key of {name or 'the dict'}")
    if type(key) is not str:
        raise CheckpointError(
            "MT806", f"a key of {name or 'the dict'} is {key!r:.60}", fix="use texts or whole numbers as keys"
        )
    return key


def _readable(value: Any, what: str) -> Any:
    if type(value) is int and value.bit_length() > MOST_BITS:
        raise CheckpointError(
            "MT806",
            f"{what} is an int of {value.bit_length()} bits, and {MOST_BITS} are the most",
            fix="save it as a text, hex(number)",
        )
    return value


def _joined(name: str, key: Any) -> str:
    return f"{name}.{key}" if name else str(key)


def is_flat(structure: Any) -> bool:
    """Whether it is a dict of tensors under their own names: then the names say all."""
    rows = structure.get("dict") if isinstance(structure, dict) else None
    return rows is not None and all(type(key) is str and each == {"tensor": key} for key, each in rows)


def flat(names: Iterator[str]) -> Any:
    """The structure of a dict of tensors."""
    return {"dict": [[name, {"tensor": name}] for name in names]}


def items(structure: Any) -> dict[Any, Any] | None:
    """The parts of a dict, by key; None if it is none."""
    return dict(structure["dict"]) if isinstance(structure, dict) and "dict" in structure else None


def name_in(structure: Any) -> str | None:
    """The name of a tensor; None if it is none."""
    return structure.get("tensor") if isinstance(structure, dict) else None


def names_in(structure: Any) -> Iterator[str]:
    """The names of all tensors in it."""
    if isinstance(structure, list):
        for each in structure:
            yield from names_in(each)
    elif isinstance(structure, dict):
        ((kind, inside),) = structure.items()
        if kind == "tensor":
            yield inside
        elif kind != "float":
            yield from names_in([each for _, each in inside] if kind == "dict" else inside)


def together(structure: Any, tensor: Callable[[str], Any]) -> Any:
    """What was taken apart; tensors are asked for by name."""
    if isinstance(structure, list):
        return [together(each, tensor) for each in structure]
    if not isinstance(structure, dict):
        return structure
    ((kind, inside),) = structure.items()
    if kind == "tensor":
        return tensor(inside)
    if kind == "float":
        return float(inside)
    if kind == "tuple":
        return tuple([together(each, tensor) for each in inside])
    return {key: together(each, tensor) for key, each in inside}


def problem(structure: Any, depth: int = 0) -> str | None:
    """The rule that a structure from a file breaks, if it breaks one."""
    if depth > 2 * MOST_DEPTH:
        return "it is nested too deep"
    if isinstance(structure, list):
        return next(filter(None, (problem(each, depth + 1) for each in structure)), None)
    if not isinstance(structure, dict):
        return None
    if len(structure) != 1:
        return f"{structure!r:.60} has not one key"
    ((kind, inside),) = structure.items()
    if kind == "tensor" and isinstance(inside, str):
        return None
    if kind == "float" and inside in ("nan", "inf", "-inf"):
        return None
    if kind == "tuple" and isinstance(inside, list):
        return problem(inside, depth + 1)
    if kind == "dict" and isinstance(inside, list):
        if not all(isinstance(row, list) and len(row) == 2 and type(row[0]) in (str, int) for row in inside):
            return f"{inside!r:.60} are no keys with values"
        if len({row[0] for row in inside}) < len(inside):
            return "a key is there twice"
        return problem([row[1] for row in inside], depth + 1)
    return f"{structure!r:.60} is nothing known"
