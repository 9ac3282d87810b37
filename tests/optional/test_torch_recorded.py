"""The record of what PyTorch prints in the notebooks is that of the installed PyTorch.

``python -m tests.optional.test_torch_recorded`` writes it again, by running the notebooks.
"""

import json
import os
import warnings

import nbformat
import pytest

from minitorch.course.conditions import settings, version_of
from minitorch.course.pytorch import RECORD
from tests.notebook_runs import execute
from tests.recorded_functions import called
from tools.clone import NOTEBOOKS

COMMAND = "python -m tests.optional.test_torch_recorded"
LAST = "import json; from minitorch.course.pytorch import RAN; print(json.dumps(RAN))"


def recorded():
    """The record, made here."""
    functions = {}
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        if not (sources := called(notebook)):
            continue
        notebook.cells.append(nbformat.v4.new_code_cell(LAST))
        stopped = execute(notebook, NOTEBOOKS, {**os.environ, "JAX_PLATFORMS": "cpu"})
        assert stopped is None, stopped
        for name, (text, value) in json.loads(notebook.cells[-1].outputs[0].text).items():
            functions[name] = {"source": sources[name], "output": text.splitlines(), "value": value}
    here = settings(threads=None, fresh=False)
    where = f"torch {version_of('torch')}, Python {here.versions['Python']}, {here.machine}"
    return {"command": COMMAND, "where": where, "functions": functions}


def test_the_record_is_pytorchs():
    pytest.importorskip("torch")
    assert json.loads(RECORD.read_text(encoding="utf-8"))["functions"] == recorded()["functions"]


def test_the_table_of_ways_to_a_graph_is_right_about_print(capfd):
    """The column on `print` at the end of notebook 04's page on PyTorch."""
    torch = pytest.importorskip("torch")
    x = torch.ones(2)

    def told(x):
        print("told")
        return x + 1

    model = type("Model", (torch.nn.Module,), {"forward": lambda self, x: told(x)})()

    def lines(prepare):
        capfd.readouterr()
        function = prepare()
        for _ in range(3):
            function(x)
        return capfd.readouterr().out.count("told")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch._dynamo.reset()
        assert lines(lambda: torch.jit.trace(told, (x,), check_trace=False)) == 1
        assert lines(lambda: torch.jit.script(told)) == 3
        assert lines(lambda: torch.compile(told, backend="eager")) == 3
        assert lines(lambda: torch.export.export(model, (x,)).module()) == 1


if __name__ == "__main__":
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps(recorded(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
