"""The installed packages that are shown in the sandbox: those that an exercise may import, and nothing beside them.

An environment for grading has other frameworks in it, which could do most tasks, and maybe minitorch itself. So the
folders of installed packages are empty inside, but for what belongs to some distributions and what these require, as
their metadata say (the specification "Core metadata" of the Python Packaging Authority).
"""

from __future__ import annotations

import site
import sys
import sysconfig
from collections.abc import Iterable
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

OURS = ("ipython", "ml-dtypes", "numpy")  # what the sandbox's own programs and the engine import


@cache
def folders() -> tuple[Path, ...]:
    """The folders of installed packages: of this environment, of the Python that it is made from, and of the system."""
    base = {"base": sys.base_prefix, "platbase": sys.base_prefix}
    found = [*site.getsitepackages(), *(sysconfig.get_path(name, vars=base) for name in ("purelib", "platlib"))]
    system = [*Path("/usr/lib").glob("python3*"), *Path("/usr/local/lib").glob("python3*")]
    others = [path / name for path in system for name in ("site-packages", "dist-packages")]
    return tuple(path for path in dict.fromkeys([*map(Path, found), *others]) if path.is_dir())


@cache
def shown(names: tuple[str, ...]) -> tuple[Path, ...]:
    """The files and folders of some distributions, and of all that they require; those not installed are left out."""
    found: dict[Path, None] = {}
    for each in _closure([*OURS, *names]):
        found |= dict.fromkeys(_places(each))
    return tuple(path for path in found if any(path.is_relative_to(folder) for folder in folders()) and path.exists())


def _closure(names: Iterable[str]) -> Iterable[Distribution]:
    found: dict[str, Distribution | None] = {}
    pending = list(names)
    while pending:
        name = pending.pop().lower().replace("_", "-")
        if name in found:
            continue
        try:
            found[name] = each = distribution(name)
        except PackageNotFoundError:
            found[name] = None
            continue
        for text in each.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                pending.append(requirement.name)
    return [each for each in found.values() if each is not None]


def _places(each: Distribution) -> Iterable[Path]:
    """Where the modules of a distribution are: outermost folders, and single files."""
    files = [file.parts for file in each.files or ()]
    if not files:  # of a system's own package: it has no list of files
        files = [(name,) for name in (each.read_text("top_level.txt") or "").split()]
        files += [(f"{name}.py",) for (name,) in files]
    for parts in files:
        if parts[0] != "..":
            yield Path(str(each.locate_file("/".join(parts[: 2 if parts[0] == "__pycache__" else 1]))))
