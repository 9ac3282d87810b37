"""The law that mutated models are held to, and a campaign over seeds.

`mt.export.load_onnx` gives a module or an error with a code. A call of the module, on zeros or ones of the declared
shapes, gives results or an error with a code, eagerly and, for some, under `jit`. Neither opens a file outside of the
model's folder, gives a warning, or wraps an error that nobody wrote a message for: one that Python or NumPy raised.

Reading takes memory in proportion to the file's bytes. A call takes as much as the limits of `decoding/limits.py` say;
they are lowered here, so that what reaches them is small, and ends soon.
"""

from __future__ import annotations

import math
import os
import random
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import onnx

import minitorch as mt
from minitorch.errors import MinitorchError, OnnxError, TranslationError
from minitorch.interpreters import observing
from minitorch_onnx.reading import building, running
from minitorch_onnx.reading.decoding import limits
from minitorch_onnx.reading.rows import control

from ..files import Files, Watch, put
from . import changes, encoding, models

ENDS = ("ran", "stopped", "read", "refused")
"""Of a file that is no finding: its call gave results, or an error with a code; it was read, and its inputs are too
large to be made; it was not read."""

READING = 4 << 20, 200
"""Bytes that reading may take: for the nodes that functions multiply (`NODES`), some 2 kB each, and for each byte of
the files: a node of 10 bytes becomes a step of as many kB."""

HELD = 4 << 20
"""Bytes that the values of a call may take together, in place of those of the machine (`limits.most_held`)."""

RUNNING = 3
"""A call takes at most so many times `HELD`: the operands of a primitive may be copied, and its result widened."""

OBJECTS = 2 << 10
"""Bytes beside for each primitive that is applied: a tensor, its place on the tape, and an array of up to 1 kB."""

NODES, STEPS = 2_000, 2_000
"""`MOST_NODES` and `MOST_STEPS`, lowered."""

OPERATIONS = 60 * STEPS
"""Primitives that a call may apply: an operator is composed of some tens."""

INPUTS = 1 << 16
"""Elements of an input; files that declare larger ones are not called."""

JIT = 1 / 40
"""The part of the calls that is made under `jit`, too; tracing takes a hundred times as long as reading."""

OURS = Path(mt.__file__).parent

Load = Callable[[Path], Any]


class Overdue(BaseException):
    """A call has applied too many primitives. No `except Exception` stops it."""


class FoundError(Exception):
    """The law is broken."""


@contextmanager
def lowered() -> Iterator[None]:
    """The limits of a campaign."""
    places: list[tuple[Any, str, Any]] = [(building, "MOST_NODES", NODES), (limits, "most_held", lambda: HELD)]
    places += [(module, "MOST_STEPS", STEPS) for module in (running, control)]
    with ExitStack() as stack:
        for module, name, value in places:
            stack.enter_context(mock.patch.object(module, name, value))
        yield


def file_of(chance: random.Random, good: Sequence[Sequence[Files]]) -> Files:
    """The files of a mutated model."""
    files = dict(chance.choice(chance.choice(good)))
    content, kind = files[models.MODEL], chance.random()
    if kind < 0.15:
        files[models.MODEL] = encoding.blind(content, chance, chance.choice(chance.choice(good))[models.MODEL])
    elif kind < 0.35:
        files[models.MODEL] = encoding.mutated(content, chance)
    else:
        model = onnx.ModelProto.FromString(content)
        changes.mutated(model, chance)
        files[models.MODEL] = model.SerializeToString()
    others = [name for name in files if name != models.MODEL]
    if others and chance.random() < 0.1:
        name = chance.choice(others)
        files[name] = files[name][: chance.randrange(len(files[name]))]
    return files


def arguments(program: Any, chance: random.Random) -> list[Any] | None:
    """Zeros or ones of the shapes that a model declares; None if they are too large."""
    fill = chance.choice([mt.zeros, mt.ones])
    lengths: dict[str, int] = {}
    found: list[Any] = []
    for each in program.inputs:
        shape = [lengths.setdefault(n, chance.choice([1, 2, 2, 3, 0])) if isinstance(n, str) else 2 if n is None else n
                 for n in (each.shape or ())]  # fmt: skip
        if math.prod(length or 1 for length in shape) > INPUTS:
            return None
        tensor = fill(*shape, dtype=each.dtype or mt.float32)
        found.append([tensor, tensor] if "sequence" in each.nesting else tensor)
    return found


def campaign(
    seeds: Iterator[int],
    load: Load = mt.export.load_onnx,
    good: Sequence[Sequence[Files]] | None = None,
    jit: float = JIT,
) -> Iterator[tuple[int, str]]:
    """How each seed ends: one of `ENDS`, or the finding.

    Args:
        seeds: of the files.
        load: what reads a file as a module.
        good: groups of models that are mutated, each group as often; by default all that there are.
        jit: the part of the calls that is made under `jit`, too.
    """
    good = [models.good(), models.of_operators()] if good is None else good
    watch = Watch()
    with tempfile.TemporaryDirectory(prefix="minitorch-fuzz-") as place, lowered():
        folder = Path(os.path.realpath(place)) / "model"
        folder.mkdir()
        (folder.parent / "secret").write_bytes(bytes(1 << 16))
        _written(folder, good[0][0])
        _call(mt.export.load_onnx, folder, watch, random.Random(0), 1.0)  # so that all modules are imported
        for seed in seeds:
            chance = random.Random(seed)
            files = file_of(chance, good)
            _written(folder, files)
            try:
                with warnings.catch_warnings(record=True) as warned:
                    warnings.simplefilter("always")
                    result = _call(load, folder, watch, chance, jit)
                if warned:
                    result = f"it gave a warning: {warned[0].message}"
            except FoundError as found:
                result = str(found)
            yield seed, result


def _written(folder: Path, files: Files) -> None:
    """Make these the files of a folder, beside links that lead out of it, and a pipe."""
    put(folder, files)
    (folder / "link").symlink_to("../secret")
    (folder / "up").symlink_to("..")
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "pipe")


def _call(load: Load, folder: Path, watch: Watch, chance: random.Random, jit: float) -> str:
    """How the model of a folder ends.

    Raises:
        FoundError: if the law is broken.
    """
    size = sum(path.lstat().st_size for path in folder.iterdir() if path.is_file() and not path.is_symlink())
    with _inside(folder, watch, "it"), judged("load_onnx", (OnnxError, TranslationError)) as refused, watch.watching():
        model = load(folder / models.MODEL)
    if watch.peak > READING[0] + READING[1] * size:
        raise FoundError(f"reading {size} bytes took {watch.peak}")
    if refused:
        return "refused"
    inputs = arguments(model.program, chance)
    if inputs is None:
        return "read"
    operations = 0

    def counted(*what: Any) -> None:
        nonlocal operations
        operations += 1
        if operations > OPERATIONS:
            raise Overdue

    with (
        _inside(folder, watch, "the call"),
        judged("the call", (MinitorchError,)) as stopped,
        watch.watching(),
        observing(counted),
    ):
        model(*inputs)
    if watch.peak > RUNNING * HELD + OBJECTS * operations + READING[1] * size:
        raise FoundError(f"the call took {watch.peak} bytes")
    if not stopped and chance.random() < jit:
        with judged("the call under jit", (MinitorchError, IndexError)):
            mt.jit(model, backend="interpret")(*inputs)
    return "stopped" if stopped else "ran"


@contextmanager
def _inside(folder: Path, watch: Watch, what: str) -> Iterator[None]:
    """A watched block that opens nothing outside of a folder, whichever way it ends.

    Raises:
        FoundError: if it does.
    """
    try:
        yield
    finally:
        if outside := watch.outside(folder):
            raise FoundError(f"{what} opened {outside}")


@contextmanager
def judged(what: str, named: tuple[type[Exception], ...]) -> Iterator[list[Exception]]:
    """A block that may end with one of some errors, which is then in the list that it is given.

    Raises:
        FoundError: for any other error, and for one that wraps an accident.
    """
    ended: list[Exception] = []
    try:
        yield ended
    except Overdue:
        raise FoundError(f"{what} applied more than {OPERATIONS} primitives") from None
    except named as error:
        ended.append(error)
        cause = error.__cause__
        if cause is not None and not _is_meant(cause):
            raise FoundError(f"{what} ended by accident: {error}") from error
    except Exception as error:
        raise FoundError(f"{what}: {type(error).__name__}: {error}") from error


def _is_meant(error: BaseException) -> bool:
    """Whether an error comes from a line that raises it, in code of ours: its message was written for its reader."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return (place.line or "").startswith("raise") and Path(place.filename).is_relative_to(OURS)
