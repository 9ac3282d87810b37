"""Wherever Python and the clone are installed, student code finds no solution and no other copy of the engine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from minitorch_grading.grading.sandbox import bubblewrap, shown
from tests.grading import classes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Linux")

# What a student's cell finds: packages and notebooks in all folders, and what tells of the machine outside.
LOOK = """
import importlib.util, os, sys
for folder, inner, names in os.walk("/"):
    inner[:] = [name for name in inner if os.path.join(folder, name) != "/proc"]
    for name in [*inner, *names]:
        if "minitorch" in name or name.endswith((".ipynb", "gradebook.db")) or name in ("solutions", "torch", "envs"):
            print("FOUND", os.path.join(folder, name))
for name in ("mountinfo", "mounts", "mountstats", "maps"):
    text = open(f"/proc/self/{name}").read()
    print(*[f"TOLD {name} {word}" for word in WORDS if word in text])
print(*[f"TOLD {word}" for word in WORDS for path in [*sys.path, sys.prefix, sys.executable] if word in path])
import numpy, matplotlib, minitorch
print("PLACES", numpy.__file__, minitorch.__file__)
"""


@pytest.fixture(scope="module")
def prefix() -> Iterator[Path]:
    """A Python like conda's: with other environments, packages and a clone of the course in its folder."""
    classes.needs_bubblewrap()
    with tempfile.TemporaryDirectory(prefix="minitorch-prefix-") as folder:
        root = Path(folder) / "base"
        library = Path(sysconfig.get_path("stdlib"))
        here = root / library.relative_to(sys.base_prefix)
        left_out = shutil.ignore_patterns("site-packages", "dist-packages", "test", "tests", "config-*", "idlelib")
        shutil.copytree(library, here, ignore=left_out, symlinks=True)
        (root / "bin").mkdir()
        shutil.copy(Path(sys.executable).resolve(), root / "bin" / "python3")
        for path in Path(sys.base_prefix).glob("lib/libpython*.so*"):
            shutil.copy(path, root / "lib")
        for place in (here / "site-packages", root / "envs" / "old" / "lib", root / "pkgs", root / "src"):
            copy_of_the_course(place)
        yield root


def copy_of_the_course(place: Path) -> None:
    (place / "minitorch").mkdir(parents=True)
    (place / "minitorch" / "__init__.py").write_text("solution = 1")
    classes.course(place)


def graded_with(python: Path, course: Path) -> subprocess.CompletedProcess[str]:
    """Grade a course with another Python, which has the packages of this one."""
    packages = os.pathsep.join(
        [str(classes.ROOT), str(classes.ROOT / "extras"), *(path for path in sys.path if path.endswith("-packages"))]
    )
    command = [str(python), *classes.command(course)[1:], "--workers", "1"]
    environment = classes.environment(course) | {"PYTHONPATH": packages}
    return subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True)


def test_from_inside_there_is_no_other_copy_and_no_word_about_the_machine(prefix: Path, tmp_path: Path) -> None:
    root = classes.course(tmp_path / "course")
    words = [str(prefix), str(classes.ROOT), str(tmp_path), sysconfig.get_path("stdlib")]
    cells = classes.sample(classes.RIGHT, classes.BLANK)
    cells.insert(1, classes.added(LOOK.replace("WORDS", repr(words))))
    classes.hand_in(root, "ana", classes.notebook(cells))
    done = graded_with(prefix / "bin" / "python3", root)
    (row,) = json.loads(done.stdout)["submissions"]
    assert classes.points(row) == {"first": 30, "second": 0}
    path = root / "autograded" / "ana" / classes.EXERCISE / f"{classes.EXERCISE}.ipynb"
    cells = json.loads(path.read_text())["cells"]
    (outputs,) = (cell["outputs"] for cell in cells if "PLACES" in cell["source"])
    said = " ".join("".join(output.get("text", "") or output["evalue"] for output in outputs).split())
    assert said == f"PLACES {shown.PACKAGES}/numpy/__init__.py {bubblewrap.IMAGE}/minitorch/__init__.pyc"


@pytest.mark.parametrize("what", ["minitorch", "notebook"])
def test_a_copy_that_would_be_seen_is_refused(prefix: Path, tmp_path: Path, what: str) -> None:
    root = classes.course(tmp_path / "course")
    classes.hand_in(root, "ana", classes.notebook(classes.sample()))
    library = next(prefix.glob("lib*/python*"))
    path = library / ("minitorch/__init__.py" if what == "minitorch" else f"email/{classes.EXERCISE}.ipynb")
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    done = graded_with(prefix / "bin" / "python3", root)
    path.unlink()
    shutil.rmtree(library / "minitorch", ignore_errors=True)
    assert done.returncode == 2
    assert f"student code can read {path.parent if what == 'minitorch' else path}: move it" in done.stderr


def test_a_course_in_a_folder_that_is_shown_is_refused() -> None:
    for path in (*shown.system().values(), *shown.python().values()):
        assert bubblewrap.exposed(path / "course") is not None
    assert bubblewrap.exposed(Path("/usr/src/minitorch")) is None
    assert bubblewrap.exposed(Path(sys.base_prefix) / "envs" / "course") is None
