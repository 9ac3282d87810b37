"""The functions of a notebook that `course.with_torch` runs, or shows the record of."""

import re

from nbformat import NotebookNode


def called(notebook: NotebookNode) -> dict[str, list[str]]:
    """The source of the cell that calls each of them."""
    return {
        name: cell.source.splitlines()
        for cell in notebook.cells
        if cell.cell_type == "code"
        for name in re.findall(r"course\.with_torch\((\w+)\)", cell.source)
    }
