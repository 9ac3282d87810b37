"""Programs as people write them for PyTorch compute what they compute there: eagerly, jitted, and deferred.

Each file in the folders beside this one says ``import torch``, which is minitorch here. Its `main` takes a decorator
for its training steps, and returns the losses and what the program ends with: modules, optimisers, tensors. PyTorch's
are recorded in `tests/recorded/programs.json`; ``python -m tests.programs.test_programs`` writes them again.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from tests.support.records import read, write

PROGRAMS = {path.stem: path for path in sorted(Path(__file__).parent.glob("*/*.py"))}

# Losses, and the tensors at the end: numbers of each, under the names that lead to it.
Outcome = tuple[list[float], dict[str, Any]]


def as_minitorch() -> AbstractContextManager[Any]:
    """Have `import torch` give minitorch."""
    return mt.as_torch(hide=True)


def load(path: Path) -> Callable[[Callable[..., Any]], Any]:
    """Import a program, with what `torch` is at the moment, and return its `main`."""
    spec = importlib.util.spec_from_file_location(f"program_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for it
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    return module.main


@cache
def main_of(name: str) -> Callable[[Callable[..., Any]], Any]:
    """A program's `main` on minitorch: the same function for all its runs."""
    with as_minitorch():
        return load(PROGRAMS[name])


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The tensors in what a program returns, as arrays, with their names; gradients are tensors, too."""
    if hasattr(value, "param_groups"):
        yield f"{name}.lr", np.asarray([float(group["lr"]) for group in value.param_groups])
        yield from leaves(value.state_dict()["state"], name)
    elif hasattr(value, "state_dict"):
        yield from leaves(value.state_dict(), name)
        parameters = value.named_parameters() if hasattr(value, "named_parameters") else ()
        yield from leaves({f"{key}.grad": each.grad for key, each in parameters}, name)
    elif isinstance(value, (dict, list, tuple)):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(each, f"{name}.{key}".lstrip("."))
    elif hasattr(value, "detach"):
        yield name, value.detach().numpy().copy()


def outcome(main: Callable[[Callable[..., Any]], Any], decorator: Callable[..., Any]) -> Outcome:
    """Run a program."""
    losses, end = main(decorator)
    return [float(each) for each in losses], dict(leaves(end))


def summary(array: Any) -> list[Any]:
    """A tensor's shape, its length, and its product with a vector of length 1."""
    flat = array.astype(np.float64).reshape(-1)
    direction = np.random.RandomState(flat.size).standard_normal(flat.size)
    direction /= np.linalg.norm(direction) or 1.0
    return [list(array.shape), float(np.linalg.norm(flat)), float(flat @ direction)]


def record(found: Outcome) -> dict[str, Any]:
    """An outcome as it is recorded."""
    return {"losses": found[0], "end": {name: summary(array) for name, array in found[1].items()}}


# --- modes ---------------------------------------------------------------------------------------------------------

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def eagerly(step: Callable[..., Any]) -> Callable[..., Any]:
    """Leave a step as it is."""
    return step


def alternating(step: Callable[..., Any]) -> Callable[..., Any]:
    """Jit every other call; no step is traced again and again, which would be a warning, and so an error."""
    both: Iterator[Callable[..., Any]] = itertools.cycle((mt.jit(step, backend="interpret", max_signatures=2), step))
    return lambda *args: next(both)(*args)


MODES: dict[str, tuple[Decorator, Callable[[], AbstractContextManager[Any]]]] = {
    "eager": (eagerly, nullcontext),
    "compiled": (mt.jit, nullcontext),
    "alternating": (alternating, nullcontext),
    "lazy": (eagerly, lambda: mt.lazy("interpret")),
}


def run(name: str, mode: str) -> Outcome:
    """Run a program in a mode."""
    decorator, block = MODES[mode]
    main = main_of(name)
    with as_minitorch(), block():
        return outcome(main, decorator)


first = cache(run)  # the first run of a program in a mode


# Float32 numbers differ by the order of sums, and training makes that more.
LOSSES, END = 2e-4, 2e-3


def near(found: Any, expected: Any, tolerance: float) -> bool:
    """Whether numbers are equal but for a share of the largest."""
    a, b = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    return a.shape == b.shape and bool(np.all(np.abs(a - b) <= tolerance * max(1e-2, np.abs(b).max(initial=0))))


def differences(found: Outcome, expected: dict[str, Any]) -> dict[str, Any]:
    """What of an outcome is not as recorded."""
    mine = record(found)
    pairs = {name: (mine["end"].get(name), expected["end"].get(name)) for name in mine["end"] | expected["end"]}
    wrong = {
        name: (ours, theirs)
        for name, (ours, theirs) in pairs.items()
        if ours is None or theirs is None or ours[0] != theirs[0] or not near(ours[1:], theirs[1:], END)
    }
    if not near(found[0], expected["losses"], LOSSES):
        wrong["losses"] = found[0], expected["losses"]
    return wrong


@pytest.mark.sweep
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "eager"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_train_as_with_pytorch(name: str, mode: str) -> None:
    """Losses and the state at the end: parameters and their gradients, buffers, the optimisers' tensors.

    Eagerly, and in one of the other modes, in turn.
    """
    found, eager = first(name, mode), first(name, "eager")
    assert not differences(eager, read("programs")[name])
    assert not differences(found, read("programs")[name])
    assert not [key for key, array in found[1].items() if not near(array, eager[1][key], END)]


@pytest.mark.sweep
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "compiled"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_second_run_in_the_same_process_gives_the_same_bits(name: str, mode: str) -> None:
    losses, end = first(name, mode)
    again, end_again = run(name, mode)
    assert again == losses
    assert not [key for key, array in end.items() if array.tobytes() != end_again[key].tobytes()]


@pytest.mark.filterwarnings("ignore")  # of PyTorch
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_record_is_pytorchs(name: str) -> None:
    pytest.importorskip("torch")
    assert not differences(outcome(load(PROGRAMS[name]), eagerly), read("programs")[name])


if __name__ == "__main__":
    write("programs", {name: record(outcome(load(path), eagerly)) for name, path in PROGRAMS.items()})
