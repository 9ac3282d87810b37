"""The functions of notebooks that a runner, such as `course.with_torch`, runs, or shows the record of.

    python -m tests.recorded_functions

writes the record of ONNX Runtime again, by running the notebooks; `test_torch_recorded` does the same for PyTorch.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from minitorch_course.conditions import settings, version_of
from minitorch_course.libraries.pytorch import RUNTIME_RECORD
from tests.notebook_runs import execute
from tools.clone import NOTEBOOKS

LAST = "import json; from minitorch.course.libraries.records import RAN; print(json.dumps(RAN))"


def called(notebook: NotebookNode, runner: str = "with_torch") -> dict[str, list[str]]:
    """The source of the cell that calls each of them."""
    return {
        name: cell.source.splitlines()
        for cell in notebook.cells
        if cell.cell_type == "code"
        for name in re.findall(rf"course\.{runner}\((\w+)\)", cell.source)
    }


def read() -> Iterator[NotebookNode]:
    """The notebooks."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        yield nbformat.read(path, as_version=4)


def recorded(package: str, command: str, runner: str = "") -> dict[str, Any]:
    """A record of the functions that are called with a package, made here; `runner` calls them, if not its name."""
    functions = {}
    for notebook in read():
        if not (sources := called(notebook, runner or f"with_{package}")):
            continue
        notebook.cells.append(nbformat.v4.new_code_cell(LAST))
        stopped = execute(notebook, NOTEBOOKS, {**os.environ, "JAX_PLATFORMS": "cpu"})
        assert stopped is None, stopped
        for name, (text, value) in json.loads(notebook.cells[-1].outputs[0].text).items():
            if name in sources:
                functions[name] = {"source": sources[name], "output": text.splitlines(), "value": value}
    here = settings(threads=None, fresh=False)
    where = f"{package} {version_of(package)}, Python {here.versions['Python']}, {here.machine}"
    return {"command": command, "where": where, "functions": functions}


def write(record: dict[str, Any], path: Path) -> None:
    """Keep a record."""
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(recorded("onnxruntime", "python -m tests.recorded_functions"), RUNTIME_RECORD)
