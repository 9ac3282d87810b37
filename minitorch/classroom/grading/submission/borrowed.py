"""Borrowed solutions: names of the engine, or of the checks, that a student's cells use and the exercise does not.

The package is on every student's disk, also in the sandbox, and can do everything that a task asks for. So nothing is
forbidden and no point is lost; the report tells a person where to look. The search reads the text of the cells, and can
be evaded on purpose.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterable, Iterator

PACKAGE = "minitorch"
MOST, DEPTH = 1000, 20  # names that are reported, and parts of a name that are looked at
# Ways to reach what was not imported: the caller's variables, modules by a name that is a text, all objects.
REACHING = ("_getframe", "currentframe", "get_objects", "import_module", "__import__", "tb_frame", "f_back", "f_locals")


def borrowed(sources: Iterable[str], handed_out: Iterable[str]) -> list[str]:
    """Names that these sources use and the exercise, as it was handed out, does not; sorted.

    Args:
        sources: of the student's cells.
        handed_out: of the cells of the exercise.

    Example:
        >>> setup = "import minitorch as mt" + chr(10) + "from minitorch.graph import Graph"
        >>> borrowed(["from minitorch.graph import topological_order"], [setup])
        ['minitorch.graph.topological_order']
        >>> borrowed(["mt.ones(3).sum()", "from minitorch.graph import Graph"], [setup])
        []
        >>> borrowed(["mt.classroom.checks.graph.orders"], [setup])
        ['minitorch.classroom.checks.graph.orders']
    """
    trees = list(_trees(sources))
    known = list(_trees(handed_out))
    aliases = {PACKAGE: PACKAGE} | _aliases([*known, *trees])
    given = _used(known, aliases)
    found = {name for name in _used(trees, aliases) - given if not any(_is_part(each, given) for each in _above(name))}
    inner = {above for name in found for above in _above(name)}
    return sorted(found - inner)[:MOST]


def _above(name: str) -> Iterator[str]:
    """What a dotted name is an attribute of; of a name that nobody means, the outermost alone."""
    parts = name.split(".")[:DEPTH]
    return (".".join(parts[:count]) for count in range(1, len(parts)))


def _is_part(name: str, given: set[str]) -> bool:
    """Whether a name was given, and is no module."""
    return name in given and not _is_module(name.removeprefix(f"{PACKAGE}."))


def _trees(sources: Iterable[str]) -> Iterator[ast.Module]:
    for source in sources:
        lines = [line for line in source.splitlines() if not line.lstrip().startswith(("%", "!"))]  # IPython's own
        try:
            yield ast.parse("\n".join(lines))
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # then it does not run either
            continue


def _aliases(trees: Iterable[ast.Module]) -> dict[str, str]:
    """The object of an imported name."""
    found: dict[str, str] = {}
    for tree in trees:
        for node in ast.walk(tree):
            match node:
                case ast.Import(names=names):
                    found |= {each.asname: each.name for each in names if each.asname}
                case ast.ImportFrom(module=str(module), names=names, level=0):
                    found |= {each.asname or each.name: f"{module}.{each.name}" for each in names}
    return {name: path for name, path in found.items() if _is_ours(path)}


def _used(trees: Iterable[ast.Module], aliases: dict[str, str]) -> set[str]:
    return {name for tree in trees for node in ast.walk(tree) for name in _names(node, aliases)}


def _names(node: ast.AST, aliases: dict[str, str]) -> Iterator[str]:
    """The name that is reached in one place of a program, if it is one that matters."""
    match node:
        case ast.Import(names=names):
            yield from (each.name for each in names if _is_ours(each.name) and each.name != PACKAGE)
        case ast.ImportFrom(module=str(module), names=names, level=0) if _is_ours(module):
            # The package's public names are for everybody.
            yield from (f"{module}.{each.name}" for each in names if module != PACKAGE or _is_module(each.name))
        case ast.Attribute(attr=name) | ast.Name(id=name) if name in REACHING:
            yield name
        case ast.Attribute():
            path = _path(node, aliases)
            if path is not None and _is_module(path.split(".")[1]):
                yield path


def _path(node: ast.expr, aliases: dict[str, str]) -> str | None:
    """The dotted name of an attribute of something that was imported from the package."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in aliases:
        return None
    return ".".join([aliases[node.id], *reversed(names)])


def _is_ours(path: str) -> bool:
    return path == PACKAGE or path.startswith(f"{PACKAGE}.")


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(f"{PACKAGE}.{name}") is not None
    except ModuleNotFoundError:  # part of something that is no package
        return False
