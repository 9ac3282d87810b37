"""Every notebook is committed without outputs, and runs in a fresh kernel without a word on stderr."""

import json
import re
from itertools import chain
from pathlib import Path

import nbformat
import pytest

from tests import notebook_runs
from tests.notebook_runs import complaints, execute
from tools import minutes
from tools.clone import NOTEBOOKS, ROOT, leftovers

EXPORT = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.onnx.exported import of_namespace
print(of_namespace(dict(globals())))
"""

every_notebook = pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)


def read(path):
    return nbformat.read(path, as_version=4)


@pytest.fixture
def environment(tmp_path):
    """What the kernel sees."""
    return notebook_runs.environment(tmp_path)


@every_notebook
def test_committed_without_outputs(path):
    found = list(leftovers(read(path)))
    clear = f"python -m jupyter nbconvert --clear-output --inplace notebooks/{path.name}"
    assert not found, f"{path.name}: {'; '.join(found)}. Clear it with: {clear}"


@every_notebook
def test_is_valid_and_asks_for_the_plain_kernel(path):
    notebook = read(path)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"


@every_notebook
def test_runs_from_top_to_bottom(path, environment):
    """Each on all cores or on one, by its number; ``make notebooks`` runs all under all conditions.

    Its models are exported to ONNX at the end, and compared with what runs and reads them.
    """
    condition = ("idle", "one core")[int(path.name[:2]) % 2]  # others run beside it anyway
    problem, outputs = notebook_runs.ran(path, condition, environment, EXPORT)
    if problem:
        pytest.fail(f"{condition}: {problem}", pytrace=False)
    recorded = json.loads(minutes.RECORD.read_text(encoding="utf-8"))[path.stem]
    command = f"python -m tests.notebook_runs {path.name[:2]} --on idle --record"
    near = all(abs(now - then) <= 10 + then / 4 for now, then in zip(chain(*outputs), chain(*recorded), strict=True))
    assert near, f"lines of output and pictures are {outputs}, recorded are {recorded}: {command}"


@every_notebook
def test_the_minutes_stated_are_those_estimated(path):
    found, _, stated = minutes.of_notebook(path)
    assert 0.8 <= found.minutes / stated <= 1.2, f"{found.minutes:.0f} minutes: {found}"
    rows = (NOTEBOOKS / "README.md").read_text(encoding="utf-8").splitlines()
    assert [row for row in rows if f"({path.name})" in row and f"| {stated} |" in row]


def test_each_statement_is_shown_where_the_table_says():
    table = (NOTEBOOKS / "README.md").read_text(encoding="utf-8").split("| statement |")[1].split("\n\n")[0]
    places = re.findall(r"\(([^()/]+\.ipynb)\)((?:,? §\d+)+)", table)
    assert len(places) > 20 and len({name for name, _ in places}) == len(list(NOTEBOOKS.glob("*.ipynb")))
    for name, sections in places:
        headings = "\n".join(cell.source for cell in read(NOTEBOOKS / name).cells if cell.cell_type == "markdown")
        for section in re.findall(r"\d+", sections):
            assert re.search(rf"^## {section} · ", headings, re.MULTILINE), f"{name} has no section {section}"
    for folder in re.findall(r"\(\.\./(exercises/[^)]+)\)", table):
        assert (NOTEBOOKS.parent / folder).is_dir(), folder


# --- the checks above can fail -------------------------------------------------------------------------


def notebook_of(*sources):
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])


def test_a_damaged_list_of_fonts_of_the_user_does_not_reach_a_kernel(tmp_path, environment):
    assert not Path(environment["MPLCONFIGDIR"]).is_relative_to(Path.home() / ".cache")
    notebook = notebook_of("from matplotlib import font_manager", "font_manager.findfont('STIXGeneral')")
    assert execute(notebook, tmp_path, environment) is None and not list(complaints(notebook))


def test_an_error_and_whatever_reaches_stderr_are_reported_with_their_cells(tmp_path, environment):
    # A thread of the kernel's passes on what is written to the descriptor, and may do so when the cell has ended.
    low = "import os, time; os.write(2, b'low'); time.sleep(1)"
    notebook = notebook_of("import warnings; warnings.warn('old')", "1", low, "1 / x", "x = 1")
    stopped = execute(notebook, tmp_path, environment)
    assert stopped.startswith("CellExecutionError in cell 4\n") and "1 / x" in stopped and "NameError" in stopped
    warning, low_level = complaints(notebook)
    assert warning.startswith("cell 1 ") and "UserWarning: old" in warning
    assert low_level.startswith("cell 3 ") and low_level.endswith("low")
    assert list(leftovers(notebook))[:2] == ["cell 1 has outputs", "cell 1 has the execution count 1"]


def test_reading_code_and_guessing_take_minutes(tmp_path):
    notebook = notebook_of("x = 1\n\n# a comment\ny = course.predict('How many?')")
    texts = ("# One\n\nTime: 7 minutes", "## Two (optional)\n\nmore", "### Three", "## Four")
    notebook.cells += [nbformat.v4.new_markdown_cell(text) for text in texts]
    path = tmp_path / "a.ipynb"
    nbformat.write(notebook, path)
    found, optional, stated = minutes.of_notebook(path)
    assert (found, optional, stated) == (minutes.Counts(5, 2, 1), minutes.Counts(4, 0, 0), 7)
    assert found.minutes == 5 / 200 + 2 / 10 + 1
    notebook.cells[0].outputs = [nbformat.v4.new_output("stream", text="one\n\ntwo\n")]
    assert notebook_runs.outputs(notebook) == [(2, 0), (0, 0)]
