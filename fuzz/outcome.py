"""One run of a program in one way, and all that can be seen of it afterwards."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import minitorch as mt
from minitorch.errors import ScheduleWarning
from minitorch.interpreters import Interpreter, interpreting
from minitorch.nn import functional as F
from minitorch.tree import flatten

from .failures import is_raw, place_of
from .modes import MODES, TORCH
from .noise import UndefinedError
from .program import Program

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Failure:
    """An error, told apart from others by `kind` and `place`."""

    kind: str  # the name of its class
    code: str  # MT201, or empty
    place: str
    message: str
    raw: bool
    bases: tuple[str, ...] = ()  # names of the classes above it


@dataclass(frozen=True)
class Outcome:
    """What can be seen of a run.

    Attributes:
        values: arrays by name: results of each call, then arguments, gradients, and the state outside.
        dtypes: the names of their types, or of Python types.
        sharing: pairs of results and arguments that share memory, after the last call.
        identical: those of them that are one tensor.
        differentiable: the results that require a gradient.
        error: what was raised, if anything was.
    """

    values: dict[str, Any] = field(default_factory=dict)
    dtypes: dict[str, str] = field(default_factory=dict)
    sharing: frozenset[tuple[str, str]] = frozenset()
    identical: frozenset[tuple[str, str]] = frozenset()
    differentiable: frozenset[str] = frozenset()
    error: Failure | None = None
    skipped: str = ""


def torch_is_installed() -> bool:
    """Whether PyTorch can be asked."""
    return importlib.util.find_spec("torch") is not None


def library_of(mode: str) -> tuple[Any, Any]:
    """`minitorch` and its functional, or PyTorch's."""
    if mode != TORCH:
        return mt, F
    import torch

    return torch, torch.nn.functional


NARROW = re.compile(r"\bmt\.(float16|bfloat16|float32)\b")


def widened(text: str) -> str:
    """A program, or an argument, with float64 in the place of all other float types."""
    return NARROW.sub("mt.float64", text)


def arguments_of(program: Program, library: Any, wide: bool = False) -> dict[str, Any]:
    """The arguments, new ones; `wide` gives the same numbers as float64."""
    made: dict[str, Any] = {}
    for each in program.inputs:
        numbers: Any = None
        if not each.view_of:
            numbers = each.memory
            if library is not mt:
                numbers = numbers.astype(np.float32) if each.dtype == "bfloat16" else numbers
        text = each.text("numbers")
        made[each.name] = eval(widened(text) if wide else text, {"mt": library, "numbers": numbers, **made})
    return made


def run(program: Program, mode: str, interpreter: Interpreter | None = None, wide: bool = False) -> Outcome:
    """Run a program; nothing is raised but by an interpreter that refuses something.

    Args:
        program: what to run.
        mode: in which way.
        interpreter: of eager mode, in place of the usual one.
        wide: whether to compute in float64, whatever the types are; with PyTorch alone.
    """
    library, functional = library_of(mode)
    way: Callable[..., Any] = (lambda function: function) if mode == TORCH else MODES[mode]
    values: dict[str, Any] = {}
    arguments: dict[str, Any] = {}
    results: list[Any] = []
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", ScheduleWarning)  # a finding
            if interpreter is not None:
                stack.enter_context(interpreting(interpreter))
            if wide:
                stack.callback(library.set_default_dtype, library.get_default_dtype())
                library.set_default_dtype(library.float64)
            mt.manual_seed(0)
            arguments = arguments_of(program, library, wide)
            space: dict[str, Any] = {}
            exec(compile(PRELUDE + (widened(program.text) if wide else program.text), "program.py", "exec"), space)
            function, state = space["make"](library, functional)
            called = way(function)
            if program.warm:
                called(*[copied(each) for each in arguments.values()])
            for call in range(program.calls):
                results = flatten(_plain(called(*arguments.values())))[0]
                if program.backward:
                    backward(library, results)
                values |= {f"call {call}, {name}": visible(each) for name, each in _named(program, results)}
            values |= {f"{name} afterwards": visible(each) for name, each in arguments.items()}
            values |= {f"{name}.grad": visible(each.grad) for name, each in arguments.items() if each.grad is not None}
            values |= {f"state {place}": visible(each) for place, each in enumerate(state())}
    except UndefinedError:
        return Outcome(skipped="undefined")
    except Exception as error:
        return Outcome(error=failure(error))
    dtypes = {name: dtype for name, (_, dtype) in values.items()}
    known = [*_named(program, results), *arguments.items()]
    pairs = [(one, two) for place, one in enumerate(known[: len(results)]) for two in known[place + 1 :]]
    return Outcome(
        {name: value for name, (value, _) in values.items()},
        dtypes,
        frozenset((a, b) for (a, one), (b, two) in pairs if memory(one) is not None and memory(one) == memory(two)),
        frozenset((a, b) for (a, one), (b, two) in pairs if one is two),
        frozenset(name for name, each in known[: len(results)] if getattr(each, "requires_grad", False)),
    )


def copied(tensor: Any) -> Any:
    """The same numbers, in memory of its own and in order."""
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


PRELUDE = "from fuzz.training import fill\n"


def _plain(results: Any) -> Any:
    """Shapes as one value each: PyTorch's are no plain tuples."""
    if not isinstance(results, (tuple, list)):
        return results
    shapes = [isinstance(each, tuple) and all(type(n) is int for n in each) for each in results]
    return [str(tuple(each)) if shape else each for each, shape in zip(results, shapes, strict=True)]


def _named(program: Program, results: Sequence[Any]) -> list[tuple[str, Any]]:
    names = program.results if len(program.results) == len(results) else [str(place) for place in range(len(results))]
    return list(zip(names, results, strict=True))


def backward(library: Any, results: Sequence[Any]) -> None:
    """Gradients of the results, each weighted by a few different numbers."""
    total: Any = None
    for each in results:
        if getattr(each, "requires_grad", False):
            weights = (library.arange(each.numel()).reshape(each.shape) % 5 - 2).to(each.dtype)
            term = (each * weights).sum()
            total = term if total is None else total + term
    if total is not None:
        total.backward()


def failure(error: Exception) -> Failure:
    """What is kept of an error."""
    lines = str(error).strip().splitlines() or [""]
    bases = tuple(each.__name__ for each in type(error).__mro__)
    return Failure(
        type(error).__name__, getattr(error, "code", ""), place_of(error), lines[0][:300], is_raw(error), bases
    )


def visible(value: Any) -> tuple[Any, str]:
    """A copy of a value, an array if it is a tensor, and the name of its type."""
    if isinstance(value, mt.Tensor):
        return np.array(mt.Tensor.detach(value)._value), value.dtype.name
    if type(value).__module__.split(".")[0] == "torch" and hasattr(value, "detach"):
        import torch

        name = str(value.dtype).removeprefix("torch.")
        plain = torch.zeros_like(value) if value._is_zerotensor() else value.detach().contiguous()
        if plain.dtype == torch.bfloat16:
            return plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16).copy(), name
        return plain.numpy(force=True).copy(), name
    return (
        (str(value).replace("minitorch.", "torch."), "str")
        if not isinstance(value, (bool, int, float))
        else (value, type(value).__name__)
    )


def memory(value: Any) -> int | None:
    """A number that is the same for tensors with the same memory; None for what has none."""
    if isinstance(value, mt.Tensor):
        owner: Any = value._value
        if not isinstance(owner, np.ndarray) or not owner.size:
            return None
        while getattr(owner, "base", None) is not None:
            owner = owner.base
        return id(owner)
    if hasattr(value, "untyped_storage") and value.numel() and not value._is_zerotensor():
        return int(value.untyped_storage().data_ptr())
    return None
