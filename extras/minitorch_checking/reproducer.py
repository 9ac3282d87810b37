"""Reproducers: a folder that shadow mode wrote, with a graph, its inputs and its options, is run again."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from minitorch import passes
from minitorch.errors import MismatchError
from minitorch.graph import Graph
from minitorch.modes.tracing.options import Options
from minitorch.modes.tracing.program import Program
from minitorch_checkpoints import safetensors

from .shadow import GRAPH, INPUTS, Report, Shadow, Shadowed


def reproduce(folder: str | Path) -> Report:
    """Compile a reproducer's graph with its options, run it, and compare.

    Raises:
        ParseError, CheckpointError: for files that are not what `write` writes.
        ValueError: if the graph was compiled with passes of the user's own, or the inputs are not those of the graph.

    Example:
        >>> import numpy as np, tempfile
        >>> from minitorch_checking.shadow import write
        >>> folder = Path(tempfile.mkdtemp())
        >>> program = Program(Graph.parse("graph(x: f32[2]): %0 = exp(x) return %0"), Options("llvm"))
        >>> write(folder, program, [np.zeros(2, np.float32)], Report("graph", ()))
        >>> print(reproduce(folder))
        graph: as in eager mode
          output 0 f32[2]: equal
    """
    folder = Path(folder)
    graph = Graph.parse((folder / GRAPH).read_text(encoding="utf-8"))
    inputs, metadata = safetensors.load(folder / INPUTS)
    known = {each.name: each for each in (*passes.DEFAULT, *passes.LOWERING)}
    names = json.loads(metadata["passes"])
    strange = [name for name in names if name not in known]
    if strange:
        raise ValueError(f"the graph in {folder} was compiled with passes that minitorch does not have: {strange}")
    wanted = {str(node.params["name"]): node.spec for node in graph.inputs}
    if {name: (array.shape, array.dtype) for name, array in inputs.items()} != {
        name: (spec.shape, spec.dtype.numpy) for name, spec in wanted.items()
    }:
        raise ValueError(f"the inputs in {folder} are not those of its graph: {', '.join(wanted)}")
    updates = dict(json.loads(metadata["updates"]))
    donated = json.loads(metadata["donated"])
    options = Options(metadata["backend"], [known[name] for name in names], policy=Shadow(folder))
    program = Program(graph, options, updates, donated)
    assert isinstance(program.execute, Shadowed)
    with suppress(MismatchError):  # it is in the report
        program.execute([inputs[name] for name in wanted])
    assert program.execute.report is not None
    return program.execute.report
