"""`load`: what was saved, in new tensors, or read straight into the modules and optimisers that are there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

import numpy as np

from minitorch.autograd import no_grad
from minitorch.dtypes import bool_
from minitorch.errors import CheckpointError, MinitorchError
from minitorch.functional.creation.generator import Generator
from minitorch.functional.inplace import assign
from minitorch.interpreters import Eager, current, current_staging
from minitorch.nn import Module
from minitorch.nn.module import IncompatibleKeys
from minitorch.packages import load as package
from minitorch.tensor import Remote, Tensor, note_write

from .. import pytorch_files
from . import regions, structure
from .reading import Checkpoint

MOST_SHOWN = 20  # problems in a message
MOST_COMPARED = 1 << 20  # bytes of two tensors that are compared at a time; raising it takes more memory


def load(
    path: str | os.PathLike[str] | IO[bytes],
    into: Any = None,
    *,
    strict: bool = True,
    cast: bool = False,
    map_location: Any = None,
    weights_only: bool = True,
) -> Any:
    """Read what `save` wrote, or what other programs have written as safetensors or by `torch.save`.

    Args:
        path: of a safetensors file, of an index, or of their folder; of a file of `torch.save`, or one that is open.
        into: a module, or a dict as it was saved, with modules, optimisers, schedulers, scalers and generators in their
            places (of a file of `torch.save`, one object alone). Each takes its state; modules read their tensors one
            by one into the memory that they have. Numbers and texts in it stay as they are, and what was saved in their
            places is returned.
        strict: whether the names have to be those of the module.
        cast: convert tensors to the types that the module has, as `load_state_dict` does; else types have to be equal.
        map_location, weights_only: PyTorch's, without effect: there is the CPU alone, and other objects are never read.

    Returns:
        What was saved. In the place of an object of `into` is what its `load_state_dict` returns: of a module, the
        names that are missing and unexpected.

    Raises:
        CheckpointError: for a file that breaks a rule, and for a pickle (``MT804``); listing all names, shapes and
            types of modules that do not fit, and what other objects refuse (``MT805``). Nothing was loaded then.
        TypeError: for anything else in `into`; nothing was loaded then.
        OSError: if it cannot be read; where a disk fails while modules are read, some of their tensors have been.

        What the `load_state_dict` of a class of your own raises: such an object is loaded after all checks, and before
        everything else.

    Example:
        >>> import os, tempfile, minitorch as mt
        >>> path = os.path.join(tempfile.mkdtemp(), "training")
        >>> model = mt.nn.Linear(2, 1)
        >>> optimizer = mt.optim.Adam(model.parameters())
        >>> mt.save({"model": model, "optimizer": optimizer, "epoch": 3}, path)
        >>> mt.load(path, into={"model": model, "optimizer": optimizer})["epoch"]
        3
    """
    if not isinstance(path, (str, os.PathLike)) or pytorch_files.is_one(path):
        found = pytorch_files.read(path, str(path))
        if isinstance(into, Mapping):
            raise TypeError("a file of torch.save is read whole: load it, and give each object its state")
        return into.load_state_dict(found, strict=strict) if hasattr(into, "load_state_dict") else found
    with Checkpoint(path) as checkpoint:
        problems: list[str] = []
        plan = list(_plan(checkpoint, into, checkpoint.structure, problems, strict, cast, ()))
        if problems:
            more = [f"... and {len(problems) - MOST_SHOWN} more"] if len(problems) > MOST_SHOWN else []
            head = f"{checkpoint.path} does not fit, and nothing was loaded:"
            raise CheckpointError(
                "MT805",
                "\n    ".join([head, *problems[:MOST_SHOWN], *more]),
                fix="build the objects as they were when they were saved; strict=False loads what has a name, "
                "cast=True converts types",
            )
        result = _rest(checkpoint, into, checkpoint.structure)
        for keys, write in sorted(plan, key=lambda row: row[1].turn):
            result = _placed(result, keys, write.run())
        return result


PLAIN = (bool, int, float, str)  # in the place of what is returned alone

Keys = tuple[Any, ...]  # the way to an object in `into`


@dataclass(frozen=True)
class _Write:
    """One object's state, checked.

    Attributes:
        run: writes it; returns what the object's `load_state_dict` returns.
        turn: 0 if that can fail, so it is done first, then modules, which are read from the disk, then all others.
    """

    run: Callable[[], Any]
    turn: int


def _plan(
    checkpoint: Checkpoint, into: Any, part: Any, problems: list[str], strict: bool, cast: bool, keys: Keys
) -> Iterator[tuple[Keys, _Write]]:
    """The objects of `into`, and how each gets its part of the structure; nothing is written yet."""
    name = ".".join(map(str, keys))
    if into is None or isinstance(into, PLAIN):
        return
    if isinstance(into, Module):
        parts = structure.items(part)
        names = {str(key): found for key, each in (parts or {}).items() if (found := structure.name_in(each))}
        own = into._state()
        if not keys:
            names |= {each: saved for each in own if each not in names and (saved := checkpoint.hint(each))}
        if parts is None:
            problems.append(f"{name or 'it'} is no dict of tensors")
        problems += _problems(checkpoint, into, own, parts or {}, names, f"{name}." if name else "", strict, cast)
        yield keys, _Write(partial(_fill, into, names, part, checkpoint), 1)
    elif _is_object(into):
        state = structure.together(part, checkpoint.__getitem__)
        loading = _loading(into)
        if loading is None:
            yield keys, _Write(partial(into.load_state_dict, state), 0)
            return
        try:
            write = _Write(loading(state), 2)
        except (TypeError, ValueError, LookupError, ArithmeticError, RuntimeError) as error:
            said = error.what if isinstance(error, MinitorchError) else [*error.args, type(error).__name__][0]
            problems.append(f"{name or 'it'}: {said}")
        else:
            yield keys, write
    elif isinstance(into, dict):
        parts = structure.items(part)
        for key, each in into.items():
            if parts is None or key not in parts:
                problems.append(f"missing: {'.'.join(map(str, (*keys, key)))}")
            else:
                yield from _plan(checkpoint, each, parts[key], problems, strict, cast, (*keys, key))
    else:
        where = "into" if not keys else f"into{''.join(f'[{key!r}]' for key in keys)}"
        raise TypeError(
            f"load: {where} is a {type(into).__name__}, and modules, what has load_state_dict, and dicts of these take "
            "a state; leave it out: what load returns has it"
        )


def _is_object(value: Any) -> bool:
    return isinstance(value, Module | Generator) or hasattr(value, "load_state_dict")


def _loading(target: Any) -> Callable[[Any], Callable[[], None]] | None:
    """The method of a class of minitorch that checks a state, and gives a function which writes it.

    None for a class of the user's, and where it has a `load_state_dict` of its own.
    """
    method = "set_state" if isinstance(target, Generator) else "load_state_dict"
    owner = next((kind for kind in type(target).__mro__ if method in vars(kind)), None)
    return target._loading if owner is not None and "_loading" in vars(owner) else None


def _problems(
    checkpoint: Checkpoint,
    module: Module,
    own: dict[str, Tensor],
    parts: dict[Any, Any],
    names: dict[str, str],
    inside: str,
    strict: bool,
    cast: bool,
) -> Iterator[str]:
    given: dict[int, list[str]] = {}  # the names of each tensor of the module
    for name, tensor in own.items():
        if name in names:
            given.setdefault(id(tensor), []).append(name)
    if strict:
        yield from (f"missing: {inside}{name}" for name in own if name not in names and id(own[name]) not in given)
        yield from (f"unexpected: {inside}{key}" for key in parts if key not in own)
    for name, tensor in own.items():
        if name in names:
            spec = checkpoint.spec(names[name])
            if spec.shape != tensor.shape or (spec.dtype is not tensor.dtype and not cast):
                yield f"{inside}{name} is {tensor.spec} in the module and {spec} in the checkpoint"
            if spec.dtype is bool_:
                checkpoint.load_slice(names[name])  # its bytes can be wrong
    for first, *others in given.values():
        for name in others:
            if _differ(checkpoint, names[first], names[name]):
                yield f"{inside}{first} and {inside}{name} are one tensor in the module, and differ in the checkpoint"
    if any(type(each).state_problems is not Module.state_problems for each in module.modules()):
        for path, each in module.named_modules():
            start = f"{path}." if path else ""
            buffers = {key for key, _ in each.named_buffers(recurse=False)}
            values = {key: checkpoint[names[start + key]] for key in sorted(buffers) if start + key in names}
            yield from (f"{inside}{start}{problem}" for problem in each.state_problems(values))


def _differ(checkpoint: Checkpoint, a: str, b: str) -> bool:
    """Whether two tensors have other bits; a part of them is in memory at a time."""
    spec = checkpoint.spec(a)
    if checkpoint.tied.get(a, a) == checkpoint.tied.get(b, b):
        return False
    if spec != checkpoint.spec(b):
        return True
    length = spec.shape[0] if spec.shape else 1
    step = max(1, length * MOST_COMPARED // max(1, spec.nbytes))
    for start in range(0, length, step):
        part = [slice(start, start + step)] if spec.shape else []
        one, other = (checkpoint.load_slice(name, part)._value.tobytes() for name in (a, b))
        if one != other:
            return True
    return False


def _fill(module: Module, names: dict[str, str], part: Any, checkpoint: Checkpoint) -> IncompatibleKeys:
    """Read the tensors of a module."""
    own = module._state()
    with no_grad():
        for name, tensor in own.items():
            if name in names:
                array = tensor._value
                is_plain = isinstance(array, np.ndarray) and array.flags.c_contiguous and array.flags.writeable
                is_same = checkpoint.spec(names[name]).dtype is tensor.dtype
                if is_plain and is_same and type(current()) is Eager:
                    checkpoint.read(names[name], array)
                    note_write(tensor)
                elif isinstance(array, Remote) and tensor._view is None and current_staging() is None:
                    tensor._value = _on_devices(array, names[name], checkpoint)
                    note_write(tensor)
                else:
                    assign(tensor, checkpoint.load_slice(names[name]), "load")
    keys = [str(key) for key in structure.items(part) or {}]
    return IncompatibleKeys([name for name in own if name not in names], [key for key in keys if key not in own])


def _on_devices(value: Remote, name: str, checkpoint: Checkpoint) -> Remote:
    """A tensor where another one is: each device gets its part, and this process reads those of its devices."""

    def read(box: regions.Box) -> np.ndarray[Any, Any]:
        part = np.empty(regions.shape_of(box), checkpoint.spec(name).dtype.numpy)
        checkpoint.read(name, part, box)
        return part.astype(value.dtype.numpy, copy=False)

    found: Remote = package("minitorch_xla.backend.partitions").filled(value, read)
    return found


def _rest(checkpoint: Checkpoint, into: Any, part: Any) -> Any:
    """What is loaded, but for objects that take their states; these have None in their places."""
    if _is_object(into):
        return None
    if isinstance(into, dict):
        return {key: _rest(checkpoint, into.get(key), each) for key, each in (structure.items(part) or {}).items()}
    return structure.together(part, checkpoint.__getitem__)


def _placed(result: Any, keys: Keys, value: Any) -> Any:
    """The result with a value in the place of an object."""
    if not keys:
        return value
    inside = result
    for key in keys[:-1]:
        inside = inside[key]
    inside[keys[-1]] = value
    return result
