"""The page about the architecture is true: its session runs, and a room imports only from the rooms above it."""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import linecache
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "minitorch"
EXTRAS = ROOT / "extras"

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

# In the order of the page: the rooms of the package, and those of a room that is divided itself.
DRAWN = re.findall(r"^\| `([a-z_/]+?)(?:\.py|/)` \|", PAGE, re.MULTILINE)
ROOMS = [tuple(room.split("/")) for room in DRAWN]
DIVIDED = {room[:-1] for room in ROOMS if len(room) > 1}  # the rooms that have rooms
ORDER = {room: number for number, room in enumerate(ROOMS)}


def room_of(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The innermost room of a module that is drawn."""
    parts = tuple(part.removesuffix(".py") for part in parts) or ("__init__",)
    depth = 1
    while parts[:depth] in DIVIDED and parts[depth : depth + 1] not in ((), ("__init__",)):
        depth += 1
    return parts[:depth]


def parts_of(path: Path) -> tuple[str, ...]:
    """A file's place as rooms are named: from the engine's folder, or from that of the packages beside it."""
    return path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else EXTRAS).parts


def names_imported(path: Path) -> list[tuple[tuple[str, ...], str, int]]:
    """Module, name and line of what a file imports from the packages; what is for type checkers only does not count."""
    tree = ast.parse(path.read_text())
    only_types = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for child in ast.walk(node)
    }
    here = parts_of(path)[:-1]
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or id(node) in only_types:
            continue
        target = tuple(node.module.split(".") if node.module else ())
        if node.level:
            target = here[: len(here) - node.level + 1] + target
        elif target[0] == PACKAGE.name:
            target = target[1:]
        elif not target[0].startswith(f"{PACKAGE.name}_"):
            continue
        found += [(target, alias.name, node.lineno) for alias in node.names]
    return found


def imports(path: Path) -> list[tuple[tuple[str, ...], int]]:
    """The rooms that a file imports from, with the line."""
    return [
        (room_of((*target, name) if target in ((), *DIVIDED) else target), line)
        for target, name, line in names_imported(path)
    ]


def is_below(room: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether a room is drawn further down than another; those of a divided room are all where that is, to others.

    What a divided room shows to others is collected by its own `__init__`, from all of its rooms.
    """
    for depth in range(1, min(len(room), len(other)) + 1):
        if room[:depth] != other[:depth]:
            return ORDER[room[:depth]] > ORDER[other[:depth]]
    return False  # one of them contains the other


def written(folder: Path) -> list[Path]:
    """Python files in a folder, without what JupyterLab keeps beside them."""
    return sorted(path for path in folder.rglob("*.py") if path.parent.name != ".ipynb_checkpoints")


FILES = [path for path in (*written(PACKAGE), *written(EXTRAS)) if path != PACKAGE / "__init__.py"]


def files_imported(path: Path) -> Iterator[Path]:
    """The files of the package that a file imports, at its top or later; not what is for type checkers only."""
    for target, name, _ in names_imported(path):
        for parts in ((*target, name), target):
            module = (EXTRAS if parts and parts[0].startswith(f"{PACKAGE.name}_") else PACKAGE).joinpath(*parts)
            found = [each for each in (module.with_suffix(".py"), module / "__init__.py") if each.exists()]
            if found:
                yield from found
                break


def test_files_do_not_import_in_circles() -> None:
    """The package's own file apart, which the version is read from."""
    root = PACKAGE / "__init__.py"
    graph = {path: {each for each in files_imported(path) if each != root} for path in FILES}
    list(TopologicalSorter(graph).static_order())  # an error names the circle


def test_the_page_shows_what_the_program_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its one program runs as the file ``layer.py``, then its session, example by example; empty lines do not count."""
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.setitem(linecache.cache, "layer.py", (len(program), None, program.splitlines(True), "layer.py"))
    space: dict[str, Any] = {}
    exec(compile(program, "layer.py", "exec"), space)
    sessions = re.findall(r"```pycon\n(.*?)```", PAGE, re.DOTALL)
    examples = [each for text in sessions for each in doctest.DocTestParser().get_examples(text)]
    for example in examples:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(example.source, "<session>", "single"), space)
        assert [line for line in printed.getvalue().splitlines() if line] == example.want.splitlines()
    assert len(examples) >= 8


def test_every_room_is_drawn() -> None:
    rooms = {room_of(parts_of(path)) for path in FILES} - {("__main__",)}
    assert rooms == set(ROOMS)


def test_tests_lie_in_folders_named_after_what_they_test() -> None:
    """So each package has its folder, which goes with it."""
    packages = {path.parent.name.removeprefix("minitorch_") for path in EXTRAS.glob("minitorch_*/__init__.py")}
    folders = {path.relative_to(ROOT / "tests").parts[0] for path in ROOT.glob("tests/**/test_*.py")}
    others = {"core", "benchmarks", "fuzz", "foreign", "programs", "project"}
    assert packages <= folders <= packages | others | {room[0] for room in ROOMS}


# Rooms of more than a dozen files, and of how many. This list may only shrink: one file for each exercise or notebook
# stays; what is else in such a room belongs together by ideas that have names.
LARGE = {
    "extras/minitorch_course/blanks": 15,
    "extras/minitorch_grading/checks": 25,
    "extras/minitorch_grading/harness": 25,
    "minitorch": 13,
    "tests/grading/wrong_solutions": 20,
}


def test_a_room_has_at_most_a_dozen_files() -> None:
    counts = Counter(str(path.parent.relative_to(ROOT)) for path in [*FILES, *written(ROOT / "tests")])
    assert not {room: count for room, count in counts.items() if count > LARGE.get(room, 12)}
    assert all(counts[room] > 12 for room in LARGE), "no room stays in this list that is small"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_upwards(path: Path) -> None:
    room = room_of(parts_of(path))
    if room == ("__main__",):
        return
    wrong = [
        f"line {line} imports {'.'.join(target)}"
        for target, line in imports(path)
        if target in ORDER and is_below(target, room)
    ]
    assert not wrong, f"{'/'.join(room)} may import only from rooms above it: {wrong}"


# The compiler's files, but those that run code, and the one that finds out what this machine is.
MIDDLE = [
    path
    for path in FILES
    if path.is_relative_to(PACKAGE / "compiler")
    and path.parent.name != "runtime"
    and path != PACKAGE / "compiler" / "codegen" / "host.py"
]


@pytest.mark.parametrize("path", MIDDLE, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_in_the_middle_asks_for_the_host(path: Path) -> None:
    """Code depends on the target that is passed along, so that it can be made for any target on any machine."""
    tree = ast.parse(path.read_text())
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {part for alias in node.names for part in alias.name.split(".")}
            names |= set((getattr(node, "module", None) or "").split("."))
    about_here = {"host", "executable_targets", "get_host_cpu_features", "get_host_cpu_name", "cpu_count", "environ"}
    assert not names & about_here


@pytest.mark.parametrize("path", MIDDLE, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_cache_keeps_kernels_alive(path: Path) -> None:
    """What is cached by its arguments is cached for a number of them."""
    functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    unbounded = {"cache", "functools.cache", "lru_cache", "lru_cache(None)", "lru_cache(maxsize=None)"}
    assert not [
        node.name
        for node in functions
        if node.args.args and any(ast.unparse(decorator) in unbounded for decorator in node.decorator_list)
    ]


def test_the_scheduler_does_not_load_llvm() -> None:
    rooms = ("loop_ir", "fusion", "scheduling")
    files = [path.relative_to(ROOT).with_suffix("") for room in rooms for path in written(PACKAGE / "compiler" / room)]
    names = ["minitorch.compiler.target", *(".".join(file.parts) for file in files)]
    code = f"import importlib, sys; list(map(importlib.import_module, {names!r})); print('llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "False\n"


def test_import_needs_only_the_engine() -> None:
    heavy = "jax torch matplotlib sklearn scipy IPython ipywidgets tqdm pygraphviz onnx"
    code = f"import sys, minitorch; print([name for name in {heavy.split()!r} if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert output.strip() == "[]"
