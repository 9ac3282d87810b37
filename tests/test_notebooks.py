"""Every notebook is committed without outputs, and runs in a fresh kernel without a word on stderr."""

import os
import re
from pathlib import Path

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from tools import minutes

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
SECONDS_PER_CELL = 120

every_notebook = pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)


def read(path):
    return nbformat.read(path, as_version=4)


def code_cells(notebook):
    """The code cells with their position among all cells, from 1, as a reader counts them."""
    return [(number, cell) for number, cell in enumerate(notebook.cells, 1) if cell.cell_type == "code"]


def leftovers(notebook):
    """What an execution has left in the notebook, one line each."""
    for number, cell in code_cells(notebook):
        if cell.outputs:
            yield f"cell {number} has outputs"
        if cell.execution_count is not None:
            yield f"cell {number} has the execution count {cell.execution_count}"
    if "widgets" in notebook.metadata:
        yield "the metadata hold the state of widgets"


def complaints(notebook):
    """What the executed notebook has written to stderr, one entry a cell."""
    for number, cell in code_cells(notebook):
        text = "".join(output.text for output in cell.outputs if output.get("name") == "stderr")
        if text:
            yield f"cell {number} wrote to stderr:\n\n{cell.source}\n\n{text}"


def execute(notebook, folder, environment):
    """Run all cells, in place, in a fresh kernel of this interpreter; return what stopped it, or None."""
    # With no folder to search, jupyter_client's own "python3" is left, which is always sys.executable.
    kernel = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    client = NotebookClient(
        notebook, km=kernel, timeout=SECONDS_PER_CELL, resources={"metadata": {"path": str(folder)}}
    )
    try:
        client.execute(cleanup_kc=True, env=environment)
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        reached = max((number for number, cell in code_cells(notebook) if cell.execution_count), default=1)
        text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))  # no colours
        return f"{type(error).__name__} in cell {reached}\n{text}"
    return None


@pytest.fixture
def environment(tmp_path):
    """What the kernel sees: nothing of this user's configuration, history and accelerators."""
    import matplotlib.font_manager  # noqa: F401  builds its cache, once per machine, and warns while it does

    return {
        **{name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"},
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "JUPYTER_CONFIG_DIR": str(tmp_path / "jupyter"),
        "JAX_PLATFORMS": "cpu",  # JAX warns of a GPU that it was not installed for
    }


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
    notebook = read(path)
    stopped = execute(notebook, FOLDER, environment)
    if stopped:
        pytest.fail(stopped, pytrace=False)
    found = list(complaints(notebook))
    if found:
        pytest.fail("\n\n".join(found), pytrace=False)


@every_notebook
def test_the_minutes_stated_are_those_estimated(path):
    found, _, stated = minutes.of_notebook(path)
    assert 0.8 <= found.minutes / stated <= 1.2, f"{found.minutes:.0f} minutes: {found}"
    rows = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    assert [row for row in rows if f"({path.name})" in row and f"| {stated} |" in row]


# --- the checks above can fail -------------------------------------------------------------------------


def notebook_of(*sources):
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])


def test_an_error_is_reported_with_its_cell(tmp_path, environment):
    stopped = execute(notebook_of("x = 0", "1 / x", "x = 1"), tmp_path, environment)
    assert stopped.startswith("CellExecutionError in cell 2\n")
    assert "1 / x" in stopped and "ZeroDivisionError" in stopped


def test_whatever_reaches_stderr_is_reported(tmp_path, environment):
    notebook = notebook_of("import warnings; warnings.warn('old')", "1", "import os; os.write(2, b'low');")
    assert execute(notebook, tmp_path, environment) is None
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
