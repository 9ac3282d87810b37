"""`load_onnx`: a file becomes bytes, a message, a program, a module; each step trusts nothing of the one before."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from minitorch_checkpoints import opening

from ..common import package
from .building import Builder
from .decoding import wire
from .decoding.limits import MOST_BYTES, refuse
from .module import OnnxModule


def load_onnx(path: str | os.PathLike[str] | Any) -> OnnxModule:
    """Read an ONNX model as a module, which runs in every mode, and can be trained.

    A file may be hostile: reading takes memory in proportion to its bytes, and an eager call refuses a value for which
    the machine has no memory, and more than a million steps. Time is not bounded: a few nodes can ask for hours.

    Operators of the domain ai.onnx of opset 7 and newer are read, those that have not changed until then from older
    files, too, functions that the model defines, and what ONNX Runtime's quantiser and optimiser write. Sizes that the
    model computes, conditions that choose between results of different shapes, and how often a Loop turns whose turns
    have results, have to be known when a graph is made; in eager mode, all are.

    Args:
        path: of the file. Arrays in other files are read from its folder, and from nowhere else. An `onnx.ModelProto`
            is accepted, too, such as `mt.export.onnx` returns.

    Returns:
        A module in training mode, as every new one; its parameters have the names of the model's initializers.

    Raises:
        ModuleNotFoundError: without the package `onnx`.
        OnnxError: for a file that is not a model, or breaks a rule of the format (``MT801``).
        TranslationError: listing all operators and types that have no translation (``MT802``).
        OSError: if the file cannot be opened, or is not a regular one.

    Example:
        >>> import onnx, os, tempfile, minitorch as mt
        >>> path = os.path.join(tempfile.mkdtemp(), "model.onnx")
        >>> onnx.save(onnx.parser.parse_model('''
        ...     <ir_version: 8, opset_import: ["": 18]>
        ...     g (float[n,2] x) => (float[n,2] y) <float[2] slope = {0.1, 0.5}> { y = PRelu(x, slope) }'''), path)
        >>> model = mt.export.load_onnx(path)
        >>> model(mt.tensor([[-1.0, -1.0]])).tolist(), [name for name, _ in model.named_parameters()]
        ([[-0.10000000149011612, -0.5]], ['slope'])
    """
    if isinstance(path, package().ModelProto):
        return module_of(parsed(path.SerializeToString()))
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"load_onnx takes the path of a file or a ModelProto, not {type(path).__name__}")
    place = Path(os.path.abspath(path))
    with opening.regular(place) as file:
        size = os.fstat(file.fileno()).st_size
        if size > MOST_BYTES:
            refuse(f"{place.name} has {size} bytes; a model without external data has at most {MOST_BYTES}")
        content = file.read()
    return module_of(parsed(content), place.parent)


def parsed(content: bytes) -> Any:
    """The `ModelProto` of a file's bytes.

    Raises:
        OnnxError: if they are no such message (``MT801``).
    """
    onnx = package()
    wire.check(content, onnx.ModelProto.DESCRIPTOR)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except Exception as error:  # protobuf's DecodeError, in a package that is not imported otherwise
        refuse(f"it is no ONNX model: {error}")
    return model


def module_of(model: Any, folder: Path | None = None) -> OnnxModule:
    """A module of a `ModelProto`.

    Args:
        model: the message.
        folder: where its external data lies; None if it has no folder.

    Raises:
        OnnxError: for a model that breaks a rule of the format (``MT801``).
        TranslationError: listing all operators and types that have no translation (``MT802``).
    """
    if not model.HasField("graph"):
        refuse("it has no graph: it is no ONNX model")
    program = Builder(model, folder).program(model.graph)
    return OnnxModule(program, {each.key: each.value for each in model.metadata_props})
