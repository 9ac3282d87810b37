"""Notebook 16 counts on eight virtual devices what is recorded for readers without JAX.

``python -m tests.test_devices_recorded`` writes the record again, by running the notebook.
"""

from __future__ import annotations

import json
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat
import pytest

from minitorch import course
from minitorch.course import devices
from minitorch.course.conditions import settings
from tests.notebook_runs import complaints, environment, execute
from tests.recorded_functions import called
from tools.clone import NOTEBOOKS

COMMAND = "python -m tests.test_devices_recorded"
LAST = "import json; from minitorch.course.devices import RAN; print(json.dumps(RAN))"
NOTEBOOK = NOTEBOOKS / "16-more-than-one-device.ipynb"


def recorded(folder: Path) -> dict[str, Any]:
    """The record, made here."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    sources = called(notebook, "with_devices")
    notebook.cells.append(nbformat.v4.new_code_cell(LAST))
    stopped = execute(notebook, folder, environment(folder))
    assert stopped is None, stopped
    functions = {
        name: {"source": sources[name], "output": text.splitlines(), "value": value}
        for name, (text, value) in json.loads(notebook.cells[-1].outputs[0].text).items()
    }
    here = settings(threads=None, fresh=False)
    where = f"jax {version('jax')}, Python {here.versions['Python']}, {here.machine}"
    return {"command": COMMAND, "where": where, "functions": functions}


def record() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(devices.RECORD.read_text(encoding="utf-8"))
    return found


def test_every_function_that_needs_devices_is_recorded_as_it_stands() -> None:
    sources = called(nbformat.read(NOTEBOOK, as_version=4), "with_devices")
    assert {name: each["source"] for name, each in record()["functions"].items()} == sources
    assert len(sources) > 5 and record()["where"].startswith("jax ")


def test_the_record_is_what_eight_devices_give(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    assert record()["functions"] == recorded(tmp_path)["functions"], f"write it again: {COMMAND}"


def test_without_jax_the_notebook_shows_the_record_and_goes_on(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "jax.py").write_text("raise ModuleNotFoundError(\"No module named 'jax'\", name='jax')\n")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    stopped = execute(notebook, tmp_path, {**environment(tmp_path), "PYTHONPATH": str(hidden)})
    assert stopped is None, stopped
    assert not list(complaints(notebook))
    printed = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ()))
    assert printed.count("JAX is not installed; recorded with") == len(record()["functions"])


def doubles() -> float:
    print("two devices")
    return 2.0


def test_a_function_without_a_record_is_missed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(count: int) -> None:
        raise ModuleNotFoundError("no jax", name="jax")

    monkeypatch.setattr(devices, "use_virtual_devices", missing)
    monkeypatch.setattr(devices, "RECORD", tmp_path / "devices.json")
    functions = {"doubles": {"source": [], "output": ["one", "two"], "value": 2}}
    devices.RECORD.write_text(json.dumps({"where": "jax 1 on a machine", "functions": functions}))
    assert course.with_devices(doubles) == 2
    assert capsys.readouterr().out == "── JAX is not installed; recorded with jax 1 on a machine ──\none\ntwo\n"
    with pytest.raises(LookupError, match="no record of <lambda>"):
        course.with_devices(lambda: None)


def test_what_devices_do_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(devices, "use_virtual_devices", lambda count: None)
    assert course.with_devices(doubles) == 2.0
    assert capsys.readouterr().out == "two devices\n" and devices.RAN["doubles"] == ("two devices", 2.0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        made = recorded(Path(folder))
    devices.RECORD.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
