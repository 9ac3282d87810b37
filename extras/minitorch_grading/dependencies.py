"""The parts of the packages: which module imports which, found in their sources, and what `Needs` leave of them."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import minitorch
from minitorch.packages import PACKAGES, real_name

from .harness.needs import EVERYTHING, Needs

PACKAGE = Path(minitorch.__file__).resolve().parent
NAME = PACKAGE.name


@cache
def folders() -> tuple[Path, ...]:
    """The folders of the packages of this distribution that are installed."""
    specs = [find_spec(name) for name in PACKAGES]
    return tuple(Path(spec.origin).resolve().parent for spec in specs if spec is not None and spec.origin is not None)


def place_of(path: Path) -> Path:
    """The path of a file as Python imports it, beginning with its package."""
    return next(path.relative_to(folder.parent) for folder in folders() if path.is_relative_to(folder))


def sources(room: Path | None = None) -> list[Path]:
    """The Python files of all packages, or of a room. Copies that an editor keeps in hidden folders are none."""
    rooms = folders() if room is None else (room,)
    return sorted(path for each in rooms for path in each.rglob("*.py") if not path.parent.name.startswith("."))


def digest_of(paths: Iterable[Path], room: Path | None = None) -> bytes:
    """A digest of files, with their places in the packages or in a room."""
    digest = hashlib.sha256()
    for path in paths:
        place = place_of(path) if room is None else path.relative_to(room)
        digest.update(b"\0" + place.as_posix().encode() + b"\0" + path.read_bytes())
    return digest.digest()


@cache
def modules() -> dict[str, Path]:
    """All modules of the packages, by their names: the file of each."""
    found = {}
    for path in sources():
        parts = place_of(path).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def kept(needs: Needs) -> frozenset[str]:
    """The modules of the engine that are left: those that are needed, and what they import, but for what is withheld.

    Raises:
        ValueError: for a name that the package does not have.
    """
    for name in (*needs.engine, *needs.without):
        if name not in EVERYTHING:
            _check(_whole(name))
    withheld = tuple(_whole(name) for name in ("classroom", *needs.without))  # no import brings the checks along
    if needs.engine == EVERYTHING:
        pending = [*modules()]
    else:
        pending = [each for name in needs.engine for each in _inside(_whole(name))]
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in found and not _is_inside(name, withheld):
            found.add(name)
            pending += _imported(name)
    return frozenset(found | {NAME})


def withheld_names(needs: Needs) -> dict[str, list[str]]:
    """The functions and methods that are withheld, by their modules."""
    found: dict[str, list[str]] = {}
    for name in needs.without:
        module, inner = _split(_whole(name))
        if inner:
            found.setdefault(module, []).append(inner)
    return found


def _whole(name: str) -> str:
    """The whole name of a module or function, from its name in `minitorch`."""
    return real_name(f"{NAME}.{name}") or f"{NAME}.{name}"


def _check(name: str) -> None:
    module, inner = _split(name)
    if module == NAME or (
        inner and definition(ast.parse(modules()[module].read_text(encoding="utf-8")), inner) is None
    ):
        raise ValueError(f"{name} is no module of the package, and no function or method in one")


def _split(name: str) -> tuple[str, str]:
    """The longest beginning of a name that is a module, and the rest."""
    module = next((each for each in (name, *_above(name)) if each in modules()), NAME)
    return module, name.removeprefix(module).removeprefix(".")


def _above(name: str) -> Iterator[str]:
    """What a dotted name is inside of, innermost first."""
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def _inside(name: str) -> Iterator[str]:
    return (each for each in modules() if _is_inside(each, (name,)))


def _is_inside(name: str, outer: Iterable[str]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in outer)


def _imported(name: str) -> list[str]:
    """The modules of the package that a module imports when it is itself imported."""
    path = modules()[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = []
    for node in _at_import(ast.parse(path.read_text(encoding="utf-8")).body):
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found += [module, *(f"{module}.{each.name}" for each in node.names)]
    return [each for each in found if each in modules() and each != NAME]


def _at_import(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported, also those inside others."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        for name in ("body", "orelse", "finalbody"):
            yield from _at_import(getattr(node, name, ()))
        for handler in getattr(node, "handlers", ()):
            yield from _at_import(handler.body)


def definition(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    """A function of a module, or a method (``Graph.subgraph``)."""
    holder: ast.AST | None = tree
    for part in name.split("."):
        inside = getattr(holder, "body", ())
        holder = next((each for each in inside if getattr(each, "name", None) == part), None)
    return holder if isinstance(holder, ast.FunctionDef) else None
