"""The house as it is drawn: a room imports only from the rooms above it, and the engine needs three packages."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "minitorch"

# The order in which docs/architecture.md lists the rooms.
ROOMS = re.findall(r"^\| `([a-z_]+)(?:\.py|/)` \|", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE)


def room_of(parts: tuple[str, ...]) -> str:
    return parts[0].removesuffix(".py") if parts else "__init__"


def imports(path: Path) -> list[tuple[str, int]]:
    """The rooms that a file imports from, with the line; what is for type checkers only does not count."""
    tree = ast.parse(path.read_text())
    only_types = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for child in ast.walk(node)
    }
    here = path.relative_to(PACKAGE).parts[:-1]
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.level or id(node) in only_types:
            continue
        base = here[: len(here) - node.level + 1]
        target = base + tuple((node.module or "").split(".") if node.module else ())
        rooms = {room_of(target)} if target else {alias.name for alias in node.names}
        found += [(room, node.lineno) for room in rooms]
    return found


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.name != "__init__.py")


def test_every_room_is_drawn() -> None:
    rooms = {room_of(path.relative_to(PACKAGE).parts) for path in FILES} - {"__main__"}
    assert rooms == set(ROOMS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_upwards(path: Path) -> None:
    room = room_of(path.relative_to(PACKAGE).parts)
    if room == "__main__":
        return
    wrong = [
        f"line {line} imports {target}"
        for target, line in imports(path)
        if target in ROOMS and ROOMS.index(target) > ROOMS.index(room)
    ]
    assert not wrong, f"{room} may import only from rooms above it: {wrong}"


def test_import_needs_only_the_engine() -> None:
    heavy = "jax torch matplotlib sklearn scipy IPython ipywidgets tqdm pygraphviz onnx"
    code = f"import sys, minitorch; print([name for name in {heavy.split()!r} if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert output.strip() == "[]"
