"""The files of this machine that are shown in the sandbox, and the place of each inside.

Nothing is shown whole that may hold more than it should: of the system the programs and shared libraries, of this
Python the executable and the standard library, and of installed packages those that an exercise may import, with what
these require, as their metadata say (the specification "Core metadata" of the Python Packaging Authority). Other
environments, frameworks that could do most tasks, clones of this repository and other copies of `minitorch` are not
among them, wherever this Python is installed. The places of Python and its packages say nothing about this machine.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

COURSE = Path("/course")
PYTHON = COURSE / "python"
PACKAGES = Path(sysconfig.get_path("purelib", "posix_user", {"userbase": str(COURSE)}))
OURS = ("ipython", "ml-dtypes", "numpy")  # what the sandbox's own programs and the engine import

# Programs, shared libraries, and what the C library reads: locales, time zones, where its libraries are.
SYSTEM = ("/usr/bin", "/usr/lib64", "/usr/lib/locale", "/usr/share/zoneinfo", "/bin", "/lib64")
FILES = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime")
LIBRARIES = ("/usr/lib", "/lib")  # of which only the folders of shared libraries are shown


@cache
def system() -> Mapping[Path, Path]:
    """The shown folders of the system, by place; on most distributions some of them are links into /usr, and stay so.

    Distributions keep shared libraries in ``/usr/lib64``, in ``/usr/lib/x86_64-linux-gnu`` or in ``/usr/lib`` itself.
    """
    found = [Path(path) for path in (*SYSTEM, *FILES)]
    for path in map(Path, LIBRARIES):
        whole = path.is_symlink() or (path / "libc.so.6").exists()
        found += [path] if whole else sorted(path.glob("*-linux-*"))
    return {path: path for path in found if path.exists()}


@cache
def python() -> Mapping[Path, Path]:
    """This Python without installed packages, by place: executable, standard library, and its own shared libraries."""
    base = Path(sys.base_prefix)
    libraries = [] if base == Path("/usr") else base.glob("lib/*.so*")  # or they are the system's
    return {
        PYTHON / "bin" / "python3": Path(sys.executable).resolve(),
        Path(sysconfig.get_path("stdlib", vars={"installed_base": str(PYTHON)})): Path(sysconfig.get_path("stdlib")),
        **{PYTHON / "lib" / path.name: path for path in libraries if path.is_file()},
    }


def emptied() -> list[Path]:
    """The places inside of these where installed packages or another Python would be; they are empty folders there."""
    found = [place / name for place in python() for name in ("site-packages", "dist-packages")]
    kept = [path for path in found if (python()[path.parent] / path.name).is_dir()]
    return kept + [path for place in system() if not place.is_symlink() for path in place.glob("python*/")]


@cache
def packages(names: tuple[str, ...]) -> Mapping[Path, Path]:
    """The files and folders of some distributions, and of all that they require, by place.

    Those that are not installed are left out.
    """
    found = {
        PACKAGES / name: Path(str(it.locate_file(name))) for it in _closure([*OURS, *names]) for name in _names(it)
    }
    return {place: path for place, path in found.items() if path.exists()}


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
        requirements = map(Requirement, each.requires or ())
        pending += [it.name for it in requirements if it.marker is None or it.marker.evaluate({"extra": ""})]
    return [each for each in found.values() if each is not None]


def _names(each: Distribution) -> Iterable[str]:
    """Where the modules of a distribution are: outermost folders, and single files."""
    files = [file.parts for file in each.files or () if file.parts[0] != ".."]
    if not files:  # of a system's own package: it has no list of files
        return [name + end for name in (each.read_text("top_level.txt") or "").split() for end in ("", ".py")]
    return sorted({"/".join(parts[: 2 if parts[0] == "__pycache__" else 1]) for parts in files})
