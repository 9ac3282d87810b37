"""docs/core.md: its session runs, nothing is used before it is read, and the core imports nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from minitorch.errors import PARTS
from minitorch.ir import PRIMITIVES
from tests.project.test_architecture import PACKAGE, names_imported
from tests.support import pages
from tools.size import CORE

PAGE = (pages.DOCS / "core.md").read_text(encoding="utf-8")
ORDER = re.findall(r"^\| \*?`([a-z_/]+\.py)`\*? \|", PAGE, re.MULTILINE)
FILES = [path for room in CORE for path in (PACKAGE / f"{room}.py", *(PACKAGE / room).rglob("*.py"))]
FILES = [path for path in FILES if path.exists() and path.parent.name != ".ipynb_checkpoints"]  # JupyterLab's copies


def imported(path: Path) -> set[str]:
    """Return the files that a file imports; a name that a package shows is of no file."""
    found = set()
    for target, name, _ in names_imported(path):
        for parts in ((*target, name), target):
            module = PACKAGE.joinpath(*parts)
            if module.with_suffix(".py").exists() or module.is_dir():
                found.add(module.with_suffix(".py") if not module.is_dir() else module)
                break
    return {str(each.relative_to(PACKAGE)) for each in found if each != PACKAGE}


def test_the_page_has_every_file_of_the_core_once() -> None:
    assert sorted(ORDER) == sorted(str(path.relative_to(PACKAGE)) for path in FILES if path.name != "__init__.py")


@pytest.mark.parametrize("name", ORDER)
def test_a_file_uses_only_files_that_were_read_before(name: str) -> None:
    read = ORDER[: ORDER.index(name)]
    later = {
        used
        for used in imported(PACKAGE / name)
        if used not in read and not any(r.startswith(f"{used}/") for r in read)
    }
    assert not later


def test_the_core_imports_nothing_outside_itself() -> None:
    for path in FILES:
        outside = {used for used in imported(path) if used.split("/")[0].removesuffix(".py") not in CORE}
        assert not outside, path


def test_the_session() -> None:
    try:
        assert pages.run("core.md") > 30
    finally:
        PRIMITIVES.pop("cube", None)
        PARTS.discard("cube")
