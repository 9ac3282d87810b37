"""The record of what PyTorch prints in the notebooks is that of the installed PyTorch.

``python -m tests.course.test_torch_recorded`` writes it again, by running the notebooks.
"""

import json
import warnings

import pytest

from minitorch_course.libraries.pytorch import RECORD
from tests.recorded_functions import recorded, write

COMMAND = "python -m tests.course.test_torch_recorded"


def test_the_record_is_pytorchs():
    pytest.importorskip("torch")
    assert json.loads(RECORD.read_text(encoding="utf-8"))["functions"] == recorded("torch", COMMAND)["functions"]


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
    write(recorded("torch", COMMAND), RECORD)
