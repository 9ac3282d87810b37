"""The functions of a notebook that `course.with_torch` or `course.with_devices` runs, or shows the record of."""

import re

from nbformat import NotebookNode


def called(notebook: NotebookNode, runner: str = "with_torch") -> dict[str, list[str]]:
    """The source of the cell that calls each of them."""
    return {
        name: cell.source.splitlines()
        for cell in notebook.cells
        if cell.cell_type == "code"
        for name in re.findall(rf"course\.{runner}\((\w+)\)", cell.source)
    }
