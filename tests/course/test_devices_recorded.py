"""Notebook 16 counts on eight virtual devices what is recorded for readers without JAX.

``python -m tests.course.test_devices_recorded`` writes the record again, by running the notebook.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from minitorch import course
from minitorch_course.libraries import devices
from minitorch_course.libraries.records import RAN
from tests.notebook_runs import complaints, environment, execute
from tests.recorded_functions import called, recorded, write
from tools.clone import NOTEBOOKS

COMMAND = "python -m tests.course.test_devices_recorded"
NOTEBOOK = NOTEBOOKS / "16-more-than-one-device.ipynb"


def record() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(devices.RECORD.read_text(encoding="utf-8"))
    return found


def test_every_function_that_needs_devices_is_recorded_as_it_stands() -> None:
    sources = called(nbformat.read(NOTEBOOK, as_version=4), "with_devices")
    assert {name: each["source"] for name, each in record()["functions"].items()} == sources
    assert len(sources) > 5 and record()["where"].startswith("jax ")


def test_the_record_is_what_eight_devices_give() -> None:
    pytest.importorskip("jax")
    found = recorded("jax", COMMAND, "with_devices")
    assert record()["functions"] == found["functions"], f"write it again: {COMMAND}"


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
    assert capsys.readouterr().out == "two devices\n" and RAN["doubles"] == ("two devices", 2.0)


if __name__ == "__main__":
    write(recorded("jax", COMMAND, "with_devices"), devices.RECORD)
