"""The command line: a table of commands, help with examples, errors in one sentence, tables as JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from importlib import util
from pathlib import Path

import pytest

import minitorch
from minitorch.__main__ import COMMANDS, main, parser
from minitorch.errors import CommandError
from minitorch_grading import doctor, lab
from minitorch_grading.grading.sandbox import bubblewrap as sandbox

ROOT = Path(__file__).parents[2]
each = pytest.mark.parametrize("name", COMMANDS)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "minitorch", *arguments], capture_output=True, text=True, cwd=ROOT)


def test_the_console_script_is_the_same_program() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"minitorch": "minitorch.__main__:main"}


@each
def test_help_says_what_it_does_and_shows_how(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    text = capsys.readouterr().out
    row = COMMANDS[name]
    assert row.text[1:] in " ".join(text.split())
    assert row.examples and all(line in text for line, _ in row.examples)
    assert ("--json" in text) == row.json or name == "check"


@each
def test_every_example_can_be_typed(name: str) -> None:
    for line, _ in COMMANDS[name].examples:
        program, command, *arguments = line.partition(" #")[0].split()
        assert program == "minitorch" and command == name
        assert parser().parse_args([command, *arguments]).command == name


@pytest.mark.parametrize("arguments", [[], ["chek"], ["check"], ["cache", "eat"], ["lab", "--port", "x"]], ids=str)
def test_a_wrong_call_is_one_sentence(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1 and error.startswith("minitorch") and "--help" in error


def test_the_table_is_light() -> None:
    """Looking at the help loads nothing that a command needs."""
    code = "import sys; from minitorch.__main__ import parser; parser().format_help(); "
    code += "heavy = 'llvmlite', 'nbformat', 'minitorch_grading', 'IPython'; print(sys.modules.keys() & set(heavy))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("arguments", [["primitives"], ["machine"], ["doctor"]], ids=str)
def test_a_table_is_json_as_well(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert main([*arguments, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data and shown and not shown.lstrip().startswith(("{", "["))


def test_a_reader_who_has_had_enough_is_no_error() -> None:
    line = f"{sys.executable} -m minitorch primitives --json | head -n 1"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "[\n" and done.stderr == ""


# doctor ---------------------------------------------------------------------------------------------------------


def test_the_doctor_finds_this_machine_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[-1] == "all is well"
    assert all(about in text for about in ("Python", "compiler", "cache", "kernel", "Graphviz", "sandbox", "threads"))


def test_the_doctor_goes_on_when_something_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> object:
        raise OSError("no such library")

    monkeypatch.setattr(doctor, "jit", broken)
    found = {each.about: each for each in doctor.examine()}
    assert found["compiler"].state == "wrong" and found["compiler"].fix
    assert found["threads"].state == "good"
    assert doctor.table(list(found.values())).splitlines()[-1] == "1 thing to put right"


def test_the_doctor_says_what_to_do_about_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    there = util.find_spec
    gone = ("pygraphviz", "jax", "nbgrader")
    monkeypatch.setattr(util, "find_spec", lambda name: None if name in gone else there(name))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    sandbox.unavailable.cache_clear()
    request.addfinalizer(sandbox.unavailable.cache_clear)
    (tmp_path / "file").touch()
    monkeypatch.setenv("MINITORCH_CACHE_DIR", str(tmp_path / "file" / "cache"))
    found = {each.about: each for each in doctor.examine()}
    for extra, package in (("course", "nbgrader"), ("viz", "pygraphviz"), ("jax", "jax")):
        assert found[f"extra {extra}"].fix == f"pip install {package}"
    assert "pip install pygraphviz" in found["Graphviz"].fix
    assert "MINITORCH_CACHE_DIR" in found["cache"].fix
    if sys.platform.startswith("linux"):
        assert "apt-get install bubblewrap" in found["sandbox"].fix
    assert all(each.fix for each in found.values() if each.state != "good")


# lab ------------------------------------------------------------------------------------------------------------


def test_lab_finds_the_course_from_anywhere(tmp_path: Path) -> None:
    assert lab.course_folder(ROOT / "notebooks") == ROOT
    assert lab.course_folder(tmp_path) == ROOT  # the package knows where it was installed from


def test_without_notebooks_lab_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minitorch, "__file__", str(tmp_path / "site-packages" / "minitorch" / "__init__.py"))
    with pytest.raises(CommandError, match=r"there is no notebooks/00-start-here\.ipynb here"):
        lab.course_folder(tmp_path)


def test_lab_starts_jupyterlab_with_what_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(lab, "start", lambda line, environment: started.append(line) or 0)
    assert main(["lab", "--port", "8899", "--no-browser", "--", "--ip=0.0.0.0"]) == 0
    (line,) = started
    assert line[:3] == [sys.executable, "-m", "jupyterlab"]
    assert f"--ServerApp.root_dir={ROOT}" in line
    assert "--LabApp.default_url=/lab/tree/notebooks/00-start-here.ipynb" in line
    assert {"--ServerApp.port=8899", "--ServerApp.port_retries=0", "--no-browser", "--ip=0.0.0.0"} <= set(line)


@pytest.mark.parametrize(
    ("system", "environment", "seen"),
    [
        ("linux", {}, False),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
        ("darwin", {}, True),
        ("darwin", {"SSH_CONNECTION": "1"}, False),
    ],
)
def test_a_browser_is_started_where_it_can_be_seen(system: str, environment: dict[str, str], seen: bool) -> None:
    assert lab.has_display(system, environment) is seen
