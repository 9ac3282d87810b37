"""``minitorch release --package``: what students get: a wheel of `minitorch`, and zips of notebooks and exercises.

The wheel is built by the project's own build backend, through pip, from a copy of the package alone: nothing of the
clone but `minitorch` and the exercises can come into it, and the clone stays as it is. Nothing is downloaded, because
hatchling is in the environment that `make setup` makes. Both kinds of files are the same bytes every time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from importlib.machinery import PathFinder
from pathlib import Path

from minitorch.errors import CommandError

from ..dependencies import folders
from .release import HANDED_OUT, Released

CLONE = Path(__file__).resolve().parents[3]
BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE")  # what the build backend reads besides the package
BEGIN = 315_532_800  # 1980, the first time that a zip can hold, in seconds since 1970


def zips(released: Iterable[Released], folder: Path) -> list[Path]:
    """Write ``FOLDER.zip`` for each exercise, with all that was released of it in a folder of its name.

    Files are stored as they are, in order and with a fixed time: compressed, they would depend on the library.

    Returns:
        The paths that were written, in order.
    """
    folder.mkdir(parents=True, exist_ok=True)
    exercises: dict[str, list[Released]] = {}
    for each in released:
        exercises.setdefault(each.path.parts[0], []).append(each)
    written = []
    for name, files in exercises.items():
        target = folder / f"{name}.zip"
        with zipfile.ZipFile(target, "w") as archive:
            for each in sorted(files, key=lambda each: each.path.as_posix()):
                entry = zipfile.ZipInfo(each.path.as_posix())
                entry.create_system, entry.external_attr = 3, 0o100644 << 16  # as on Unix, wherever it is made
                archive.writestr(entry, each.content)
        written.append(target)
    return written


def notebooks() -> list[Released]:
    """The notebooks of the course and what they refer to, as one folder."""
    found = sorted(path for path in (CLONE / "notebooks").glob("[!.]*") if path.suffix in (".ipynb", ".md"))
    return [Released(path.relative_to(CLONE), path.read_bytes()) for path in found]


def wheel(folder: Path) -> Path:
    """Build the wheel of `minitorch` into a folder; returns its path.

    Raises:
        CommandError: if this minitorch is no clone of the repository, or has no pip and hatchling beside it, or the
            build fails.
    """
    if missing := [name for name in BUILT_FROM if not (CLONE / name).is_file()]:
        raise CommandError(
            f"a wheel is built from a clone of the repository, and there is no {missing[0]} in {CLONE}: "
            "give students the wheel that this minitorch was installed from"
        )
    if missing := [name for name in ("pip", "hatchling") if PathFinder.find_spec(name) is None]:
        raise CommandError(f"a wheel is built by {missing[0]}, which is not here: install minitorch with `make setup`")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="minitorch-wheel-") as temporary:
        source, built = Path(temporary) / "source", Path(temporary) / "built"
        for each in folders():
            shutil.copytree(each, source / each.relative_to(CLONE), ignore=shutil.ignore_patterns("__pycache__", ".*"))
        for name in BUILT_FROM:
            shutil.copy(CLONE / name, source)
        # By what was handed out, `minitorch check` finds what a student has moved, changed or deleted.
        for path in (CLONE / HANDED_OUT).glob("[!.]*/*.ipynb"):
            if path.stem == path.parent.name:
                (target := source / "minitorch" / HANDED_OUT / path.stem).mkdir(parents=True)
                shutil.copy(path, target)
        for path in source.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        options = ("--no-deps", "--no-build-isolation", "--no-index", "--no-cache-dir", "--disable-pip-version-check")
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", *options, "--wheel-dir", str(built), str(source)]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(BEGIN)}
        done = subprocess.run(command, cwd=temporary, env=environment, capture_output=True, text=True)
        if done.returncode:
            reason = next(iter((done.stderr or done.stdout).strip().splitlines()[-1:]), "no reason given")
            raise CommandError(f"the wheel cannot be built: {reason}")
        (made,) = built.glob("*.whl")
        return Path(shutil.copyfile(made, folder / made.name))
