"""What is handed out is complete, holds nothing that is for whoever grades, and is the same bytes every time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from minitorch.__main__ import main
from minitorch.errors import CommandError
from minitorch_grading import lab
from minitorch_grading.handing_out import package, release
from tools.clone import SOLUTIONS

pytest.importorskip("nbgrader", reason="releasing needs the course extra")

ROOT = Path(__file__).parents[2]
EXERCISES = ("01-eager", "03-graph")


def build_folders() -> list[str]:
    """What the build backend writes into the folder that it is given."""
    return sorted(path.name for path in ROOT.iterdir() if path.name in ("build", "dist") or path.suffix == ".egg-info")


BEFORE = build_folders()


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the command writes, in a course."""
    course = tmp_path_factory.mktemp("course")
    source, target = str(SOLUTIONS), course / "package"
    assert main(["release", *EXERCISES, "--source", source, "--to", str(course), "--package", str(target)]) == 0
    return target


def the_wheel(folder: Path) -> Path:
    (found,) = folder.glob("*.whl")
    return found


def test_there_are_a_wheel_and_a_zip_for_each_exercise(handed_out: Path) -> None:
    wheel = the_wheel(handed_out)
    zips = [*(f"{name}.zip" for name in EXERCISES), wheel.name, "notebooks.zip"]
    assert sorted(path.name for path in handed_out.iterdir()) == zips
    for name in EXERCISES:
        with zipfile.ZipFile(handed_out / f"{name}.zip") as archive:
            assert archive.namelist() == [f"{name}/{name}.ipynb"]
            released = (handed_out.parent / name / f"{name}.ipynb").read_bytes()
            assert archive.read(f"{name}/{name}.ipynb") == released


def test_the_notebooks_are_all_there_and_open_in_the_lab(handed_out: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(handed_out / "notebooks.zip", tmp_path)
    (unpacked,) = tmp_path.iterdir()
    there = {
        path.name: path.read_bytes() for path in (ROOT / "notebooks").glob("[!.]*") if path.suffix in (".ipynb", ".md")
    }
    assert {path.name: path.read_bytes() for path in unpacked.iterdir()} == there
    assert lab.course_folder(tmp_path / "notebooks") == tmp_path


def test_points_that_grading_would_refuse_are_not_handed_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(SOLUTIONS / "03-graph", tmp_path / "solutions" / "03-graph")
    path = tmp_path / "solutions" / "03-graph" / "03-graph.ipynb"
    path.write_text(path.read_text().replace('"points": 30', '"points": 25', 1))
    for more in ([], ["--package", str(tmp_path / "package")]):
        where = ["--source", str(tmp_path / "solutions"), "--to", str(tmp_path / "exercises")]
        assert main(["release", *where, *more]) == 2
        assert not (tmp_path / "exercises").exists() and not (tmp_path / "package").exists()
        assert "says 25 points, and minitorch gives 30 for its task graph" in capsys.readouterr().err


def test_a_wheel_has_all_of_the_package_and_nothing_else(handed_out: Path) -> None:
    wheel = the_wheel(handed_out)
    with zipfile.ZipFile(wheel) as archive:
        names = {PurePosixPath(name) for name in archive.namelist()}
    about = {name for name in names if name.parts[0].endswith(".dist-info")}
    here = {
        PurePosixPath(path.relative_to(base).as_posix())
        for base, pattern in ((ROOT, "minitorch/**/*"), (ROOT / "extras", "minitorch_*/**/*"))
        for path in base.glob(pattern)
        if path.is_file() and not {"__pycache__", ".ipynb_checkpoints"} & {*path.parts}
    }
    exercises = {
        PurePosixPath("minitorch", "exercises", name, f"{name}.ipynb") for name in release.exercises_in(SOLUTIONS)
    }
    assert names - about == here | exercises
    assert [name for name in names if {"solutions", "wrong_solutions", "tests"} & set(name.parts)] == []


def test_the_files_are_the_same_bytes_every_time(handed_out: Path, tmp_path: Path) -> None:
    again = [*package.zips(reversed(list(release.release(SOLUTIONS, EXERCISES))), tmp_path)]
    for path in (*again, package.wheel(tmp_path)):
        assert path.read_bytes() == (handed_out / path.name).read_bytes()


def test_the_clone_stays_as_it_is(handed_out: Path) -> None:
    assert build_folders() == BEFORE


def test_a_student_can_work_with_them_alone(handed_out: Path, tmp_path: Path) -> None:
    """The wheel comes before the clone on the path, and the only file besides it is what was unpacked."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(tmp_path / "site"), str(the_wheel(handed_out))], check=True)
    shutil.unpack_archive(handed_out / "01-eager.zip", tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "PYTHONWARNINGS": ""}

    def typed(*line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *line], cwd=tmp_path, env=environment, capture_output=True, text=True)

    assert typed("-c", "import minitorch; print(minitorch.__file__)").stdout.startswith(str(tmp_path / "site"))
    checked = typed("-m", "minitorch", "check", "01-eager")
    assert checked.returncode == 1, checked.stderr
    assert checked.stdout.startswith(f"{Path('01-eager', '01-eager.ipynb')}: 0 of 100 points")
    assert checked.stdout.count("it has not been written yet") == 4


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda patch, folder: patch.setattr(package, "CLONE", folder), "built from a clone of the repository"),
        (lambda patch, folder: patch.setattr(package, "BUILT_FROM", ()), "the wheel cannot be built: "),
    ],
    ids=["no clone", "no pyproject.toml"],
)
def test_a_wheel_that_cannot_be_built_is_said_in_a_sentence(
    change, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(monkeypatch, tmp_path)
    with pytest.raises(CommandError, match=says) as caught:
        package.wheel(tmp_path)
    assert len(str(caught.value).splitlines()) == 1
