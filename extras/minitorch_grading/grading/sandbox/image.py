"""The image of an exercise: all of our files that are in the sandbox, as one zip archive in memory.

It holds the programs of `inside`, the part of the engine that the exercise needs, and the drivers of its tasks, under
the name of the checks. In place of every other module of the package there is one that can be imported and whose names
raise when they are used; in place of a withheld function, one that raises. What is not needed is not there: neither
solutions nor right answers can be found, by whatever way.

The archive is not written to any disk, and Python imports from it as it is (`zipimport`). Modules are compiled here.
"""

from __future__ import annotations

import ast
import importlib.util
import io
import marshal
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, reduce
from importlib import import_module
from importlib.machinery import SourceFileLoader
from operator import or_
from pathlib import Path
from types import CodeType, ModuleType

from ...dependencies import NAME, PACKAGE, definition, kept, modules, place_of, withheld_names
from ...harness.needs import Needs
from ...own_checks import PACKAGED, Checks

INSIDE = Path(__file__).resolve().with_name("inside")
PROGRAMS = "grading_sandbox"  # the package of the programs in `inside`, as it is called there
CLASSROOM = "minitorch_grading"
CHECKS = f"{CLASSROOM}.checks"
HARNESS = f"{CLASSROOM}.harness"
SETTINGS = {"PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # of its processes
OWN = "checks"  # the module of an exercise's own checks
ALWAYS = {CLASSROOM, f"{CLASSROOM}.withheld", HARNESS}
ALWAYS |= {f"{HARNESS}.{each}" for each in ("driver", "garbage", "limit", "needs", "nodes", "plain", "recording")}

PAGES = "error_pages"  # which `minitorch.errors` reads

EPOCH = (1980, 1, 1, 0, 0, 0)  # the same bytes for the same content
UNCHECKED = (1).to_bytes(4, "little")  # of a .pyc: it holds a hash, which is not compared (PEP 552)

STUB = f"from {CLASSROOM}.withheld import names_of\n\n__getattr__ = names_of(__name__)\n"
ROOT = f"from {CLASSROOM}.withheld import complete\n\ncomplete(globals(), {{public!r}}, {{hidden!r}})\n"
REFUSAL = f"from {CLASSROOM}.withheld import refuse; refuse({{!r}})"


@dataclass(frozen=True)
class Contents:
    """What is in an image besides the programs.

    Attributes:
        needs: what the exercise needs of the engine.
        harness: the modules with drivers, by their last names, that become attributes of `checks`.
        files: further modules, by their names: the source of each.
    """

    needs: Needs = field(default_factory=Needs)
    harness: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def checks(self) -> str:
        """The module of the checks, as cells know it."""
        return OWN if OWN in self.files else CHECKS


def contents(tasks: Iterable[str | None], checks: Checks = PACKAGED) -> Contents:
    """The contents of the image for an exercise whose cells ask for some tasks: the drivers, and what these need."""
    wanted = checks.tasks if checks.sources else set(tasks)
    drivers = [task.driver for name, task in checks.tasks.items() if name in wanted]
    rooms = [] if checks.sources else sorted({each.name.partition(".")[0] for each in drivers})
    return Contents(reduce(or_, [each.needs for each in drivers]) if drivers else Needs(), tuple(rooms), checks.inside)


def image(contents: Contents, place: str) -> bytes:
    """The archive, for Python to import from.

    Args:
        contents: what is in it.
        place: the path at which it will be found, for tracebacks.
    """
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        for module in _modules(contents):
            path = module.path
            for name, content in ((path, module.source.encode()), (f"{path}c", module.compiled(f"{place}/{path}"))):
                packed.writestr(zipfile.ZipInfo(name, EPOCH), content)
        for page in sorted((PACKAGE / PAGES).glob("*.md")):
            packed.writestr(zipfile.ZipInfo(f"{NAME}/{PAGES}/{page.name}", EPOCH), page.read_bytes())
    return archive.getvalue()


@dataclass(frozen=True)
class _Module:
    """A module of an image: its path in it, its source, and its code if there is any already."""

    path: str
    source: str
    code: CodeType | None = None

    def compiled(self, file: str) -> bytes:
        """The content of its .pyc file."""
        code = self.code or compile(self.source, file, "exec", dont_inherit=True)
        source_hash = importlib.util.source_hash(self.source.encode())
        return importlib.util.MAGIC_NUMBER + UNCHECKED + source_hash + marshal.dumps(_in_file(code, file))


def _in_file(code: CodeType, file: str) -> CodeType:
    """Code that says of itself that it is from another file."""
    inner = tuple(_in_file(each, file) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_filename=file, co_consts=inner)


def _modules(contents: Contents) -> Iterator[_Module]:
    for path in sorted(INSIDE.glob("*.py")):
        yield _of_file(f"{PROGRAMS}.{path.stem}", path, f"{PROGRAMS}/{path.name}")
    parts = {*kept(contents.needs), *ALWAYS, *(f"{HARNESS}.{each}" for each in contents.harness)}
    names = withheld_names(contents.needs)
    root = import_module(NAME)
    public, files = sorted(root.__all__), modules()
    hidden = [each for each in public if f"{NAME}.{each}" in files and not isinstance(getattr(root, each), ModuleType)]
    for module, path in modules().items():
        place = place_of(path).as_posix()
        if module == CHECKS:
            yield _Module(place, f"from {HARNESS} import {', '.join(contents.harness)}\n" if contents.harness else "")
        elif module.startswith(f"{CLASSROOM}.") and module not in parts:
            continue  # of which there is no trace
        elif module not in parts:
            yield _Module(place, STUB)
        elif module == NAME:
            yield _Module(place, _text(path) + "\n" + ROOT.format(public=public, hidden=hidden))
        elif module in names:
            yield _Module(place, without(_text(path), module, names[module]))
        else:
            yield _of_file(module, path, place)
    for name, source in contents.files.items():
        yield _Module(f"{name.replace('.', '/')}.py", source)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _of_file(name: str, path: Path, place: str) -> _Module:
    """A module as it is; its code as Python has cached it, if it has."""
    return _Module(place, _text(path), SourceFileLoader(name, str(path)).get_code(name))


def without(source: str, module: str, names: Iterable[str]) -> str:
    """The source of a module in which some functions or methods raise, and whose other lines are where they were.

    Example:
        >>> source = "def one():" + chr(10) + "    return 1" + chr(10)
        >>> print(without(source, "minitorch.numbers", ["one"]))
        def one():
            from minitorch_grading.withheld import refuse; refuse('minitorch.numbers.one')
        <BLANKLINE>
    """
    lines = source.splitlines(keepends=True)
    tree = ast.parse(source)
    for name in names:
        found = definition(tree, name)
        assert found is not None and found.end_lineno is not None, name
        first, last = found.body[0].lineno - 1, found.end_lineno
        indent = " " * found.body[0].col_offset
        lines[first:last] = [f"{indent}{REFUSAL.format(f'{module}.{name}')}\n", *["\n"] * (last - first - 1)]
    return "".join(lines)
