"""The set-up says the same everywhere, installs when it has to, and says what is missing in one sentence."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import warnings
from contextlib import suppress
from importlib import import_module, metadata, util
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
OLDEST = "3.11"


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


PYPROJECT = tomllib.loads(read("pyproject.toml"))
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]
PINS = {
    canonicalize_name(requirement.name): requirement
    for line in read("requirements.txt").splitlines()
    if line and not line.startswith("#")
    for requirement in [Requirement(line)]
}
ASKED_FOR = [
    pytest.param(Requirement(text), id=f"{section}-{text.partition(';')[0]}")
    for section, texts in {
        "build-system": PYPROJECT["build-system"]["requires"],
        "dependencies": PROJECT["dependencies"],
        **EXTRAS,
    }.items()
    for text in texts
    if Requirement(text).name != PROJECT["name"]  # an extra that contains other extras
]


def version_of(pin):
    (specifier,) = pin.specifier
    return specifier.version


# --- the lock ------------------------------------------------------------------------------------------


def test_the_engine_needs_three_packages_and_the_extras_are_five():
    assert [Requirement(text).name for text in PROJECT["dependencies"]] == ["numpy", "ml_dtypes", "llvmlite"]
    assert set(EXTRAS) == {"jax", "onnx", "viz", "course", "cluster", "dev"}


@pytest.mark.parametrize("asked", ASKED_FOR)
def test_what_pyproject_asks_for_is_pinned(asked):
    pin = PINS.get(canonicalize_name(asked.name))
    assert pin is not None, f"requirements.txt has no {asked.name}: run `make lock`"
    assert asked.specifier.contains(version_of(pin)), f"{pin} is not {asked}: run `make lock`"


def test_every_package_is_pinned_once_and_exactly():
    lines = [line for line in read("requirements.txt").splitlines() if not line.startswith("#")]
    assert len(lines) == len(PINS)
    assert [str(pin) for pin in PINS.values() if not re.fullmatch(r"==\d[\da-z.]*", str(pin.specifier))] == []


def test_the_lock_is_closed():
    """What a pinned package needs on this machine is pinned as well, so that pip has nothing to choose."""
    here: dict[str, Any] = {**default_environment()}
    installed = [name for name, pin in PINS.items() if pin.marker is None or pin.marker.evaluate(here)]
    unpinned = {
        f"{name} needs {need.name}"
        for name in installed
        for need in map(Requirement, metadata.requires(name) or ())
        if need.marker is None or need.marker.evaluate({**here, "extra": ""})
        if canonicalize_name(need.name) not in PINS
    }
    assert unpinned == set()


@pytest.mark.parametrize("name", ["requirements.txt", "environment.yml", "pyproject.toml"])
def test_names_no_registry_and_no_path(name):
    text = re.sub(r"(?m)^\s*#.*$", "", read(name))
    assert re.findall(r"://|index-url|find-links|trusted-host| @ |file:|(?<![\w.])/\w+/", text) == []


# --- one version of Python, everywhere -----------------------------------------------------------------


def test_the_oldest_python_is_the_same_everywhere():
    assert PROJECT["requires-python"] == f">={OLDEST}"
    assert PYPROJECT["tool"]["mypy"]["python_version"] == OLDEST
    assert "target-version" not in PYPROJECT["tool"]["ruff"]  # ruff reads requires-python
    assert f"--python-version {OLDEST} " in read("Makefile")
    assert ".".join(map(str, check_python().OLDEST)) == OLDEST
    assert SpecifierSet(f">={OLDEST}").contains(f"{sys.version_info.major}.{sys.version_info.minor}")


def later_syntax(text):
    """The constructs of a regular expression that `re` matches wrongly before Python 3.11.5 (gh-106052)."""
    parse, found = import_module("re._parser").parse, set()
    for flags in (0, re.VERBOSE):
        with warnings.catch_warnings(action="ignore"), suppress(re.error, OverflowError, RecursionError):
            found |= {"POSSESSIVE_REPEAT", "ATOMIC_GROUP"} & set(re.findall(r"\w+", str(parse(text, flags))))
    return found


def test_regular_expressions_mean_the_same_in_the_oldest_python():
    """Every text in a file that imports `re` is read as a regular expression."""
    assert later_syntax("[^a]*" + "+ b") and later_syntax("(?" + ">a)")
    sources = {
        path: path.read_text(encoding="utf-8")
        for top in ("minitorch", "tests", "fuzz", "benchmarks", "tools")
        for path in (ROOT / top).rglob("[!.]*.py")
    }
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} {' and '.join(later_syntax(node.value))}"
        for path, source in sources.items()
        if re.search(r"^\s*(import|from) re\b", source, re.MULTILINE)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and later_syntax(node.value)
    ]
    assert not wrong and len(sources) > 500


def test_conda_takes_python_alone_and_the_rest_from_the_lock():
    environment = yaml.safe_load(read("environment.yml"))
    assert environment["name"] == PROJECT["name"]
    assert environment["channels"] == ["conda-forge", "nodefaults"]
    python, pip, rest = environment["dependencies"]
    name, specifiers = python.split(" ", 1)
    assert name == "python" and f">={OLDEST}" in specifiers.split(",")
    assert pip == "pip"
    assert rest == {"pip": ["-r requirements.txt", "-e ."]}


def test_the_licence_is_bsd_3_clause():
    text = read("LICENSE")
    assert text.startswith("BSD 3-Clause License\n")
    assert "The minitorch authors" in text and "Neither the name of the copyright holder" in text
    assert PROJECT["license"] == "BSD-3-Clause"


# --- what a person with the wrong Python reads ---------------------------------------------------------


def check_python():
    spec = util.spec_from_file_location("check_python", ROOT / "tools" / "check_python.py")
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("version", "missing", "system", "machine", "words"),
    [
        ((2, 7), [], "linux", "x86_64", ["Python 3.11 or later", "this is Python 2.7", "PYTHON="]),
        ((3, 10), ["ensurepip"], "linux", "x86_64", ["Python 3.11 or later", "this is Python 3.10"]),
        ((3, 11), ["ensurepip"], "linux", "x86_64", ["has no ensurepip", "apt-get install python3-venv"]),
        ((3, 11), ["venv", "ensurepip"], "linux", "aarch64", ["no venv and no ensurepip"]),
        ((3, 13), [], "darwin", "x86_64", ["llvmlite", "Intel Macs"]),
    ],
)
def test_one_sentence_says_what_is_missing(version, missing, system, machine, words):
    sentence = check_python().find_problem(version, missing, system, machine)
    assert all(word in sentence for word in words)
    assert "\n" not in sentence and sentence.endswith(".")


@pytest.mark.parametrize(
    ("version", "system", "machine"),
    [((3, 11), "linux", "x86_64"), ((3, 14), "darwin", "arm64"), ((3, 12), "win32", "AMD64")],
)
def test_a_python_that_will_do_is_passed_over_in_silence(version, system, machine):
    assert check_python().find_problem(version, [], system, machine) is None


needs_sh = pytest.mark.skipif(shutil.which("sh") is None, reason="the set-up scripts are for a POSIX shell")


@pytest.fixture
def fresh_clone(tmp_path):
    """A copy of what the set-up reads, and a folder of commands in which `python3` can be planted."""
    clone = tmp_path / "a folder with spaces"
    (clone / "tools").mkdir(parents=True)
    for name in ["Makefile", "requirements.txt", "pyproject.toml", "tools/setup.sh", "tools/check_python.py"]:
        shutil.copy(ROOT / name, clone / name)
    commands = tmp_path / "commands"
    commands.mkdir()
    for name in ["sh", "cat", "cksum", "dirname", "head", "mkdir", "rm", "touch"]:
        (commands / name).symlink_to(shutil.which(name))
    return clone, commands


def plant(commands, name, script):
    path = commands / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def set_up(clone, commands, *arguments):
    environment = {**os.environ, "PATH": str(commands)}
    return subprocess.run(
        [commands / "sh", clone / "tools" / "setup.sh", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )


@needs_sh
def test_without_python_the_set_up_says_what_to_install(fresh_clone):
    result = set_up(*fresh_clone)
    assert result.returncode != 0
    assert result.stderr.startswith("There is no python3: install Python 3.11 or later")
    assert len(result.stderr.splitlines()) == 1


@needs_sh
def test_with_an_old_python_the_set_up_says_so_and_leaves_nothing_behind(fresh_clone):
    clone, commands = fresh_clone
    old = "import sys; sys.version_info = (3, 9, 2, 'final', 0); sys.argv = sys.argv[1:]; "
    run = "exec(compile(open(sys.argv[0]).read(), sys.argv[0], 'exec'))"
    plant(commands, "python3", f'exec "{sys.executable}" -c "{old}{run}" "$@"')
    result = set_up(clone, commands)
    assert result.returncode != 0
    assert result.stderr.startswith("minitorch needs Python 3.11 or later, and this is Python 3.9")
    assert len(result.stderr.splitlines()) == 1
    assert not (clone / ".venv").exists()


@needs_sh
def test_an_environment_that_is_linked_is_left_alone(fresh_clone, tmp_path):
    clone, commands = fresh_clone
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "bin").mkdir(parents=True)
    (clone / ".venv").symlink_to(elsewhere)
    plant(commands, "python3", "exit 0")
    result = set_up(clone, commands)
    assert result.returncode != 0 and ".venv is a link" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert (elsewhere / "bin").is_dir() and not list((elsewhere / "bin").iterdir())


# A stand-in for Python: `-m venv` makes a folder with a copy of itself, and every call is noted.
STAND_IN = r"""
echo "$*" >>"$LOG"
case "$*" in
    "-m venv --clear "*)
        rm -rf "$4"; mkdir -p "$4/bin"; cat "$0" >"$4/bin/python"; "$CHMOD" +x "$4/bin/python" ;;
    *"--requirement"*) [ -z "${BREAK:-}" ] ;;
esac
"""


@needs_sh
def test_the_set_up_works_once_and_again_when_it_has_to(fresh_clone, tmp_path, monkeypatch):
    clone, commands = fresh_clone
    log = tmp_path / "log"
    monkeypatch.setenv("LOG", str(log))
    monkeypatch.setenv("CHMOD", shutil.which("chmod"))
    plant(commands, "python3", STAND_IN)

    def made_and_installed():
        """Whether the next call makes the environment, and whether it installs."""
        log.write_text("")
        succeeded = set_up(clone, commands).returncode == 0
        assert succeeded != ("BREAK" in os.environ)
        return "venv --clear" in log.read_text(), "--requirement" in log.read_text()

    assert made_and_installed() == (True, True)
    assert made_and_installed() == (False, False)

    with open(clone / "requirements.txt", "a") as file:
        file.write("# changed\n")
    assert made_and_installed() == (False, True)
    assert made_and_installed() == (False, False)

    (clone / ".venv" / "bin" / "python").unlink()  # its interpreter has vanished
    assert made_and_installed() == (True, True)

    (clone / ".venv" / ".installed").unlink()
    with monkeypatch.context() as patch:
        patch.setenv("BREAK", "1")  # interrupted half-way
        assert made_and_installed() == (False, True)
    assert made_and_installed() == (True, True)
    assert made_and_installed() == (False, False)

    clone = clone.rename(tmp_path / "moved")
    assert made_and_installed() == (True, True)
    assert made_and_installed() == (False, False)


# --- the name on the index is somebody else's ---------------------------------------------------------------------

BY_NAME = re.compile(r"""\bpip\S*\s+install\s+(?:[-'"\w.,\[\]=/]+\s+)*?['"]?minitorch(?![-_/.\w])""")
TEXTS = ("*.md", "*.py", "*.ipynb", "*.toml", "*.yml", "*.html", "Makefile")


OTHERS = {Path(__file__), ".ipynb_checkpoints"}


def test_nothing_says_to_install_minitorch_by_its_name():
    """On PyPI that is another package, with a module `torch`: a wheel has a file name, and what is missing its own."""
    there = [path for path in ROOT.iterdir() if not path.name.startswith(".") or path.name == ".github"]
    files = [found for path in there for form in TEXTS for found in (path.rglob(form) if path.is_dir() else [path])]
    texts = {
        path: path.read_text(encoding="utf-8")
        for path in {*files}
        if path.is_file() and not {path, path.parent.name} & OTHERS
    }
    assert len(texts) > 1000
    assert [f"{path}: {found[0]}" for path, text in texts.items() for found in BY_NAME.finditer(text)] == []
    for line in ("pip install minitorch", "python -m pip install -q 'minitorch[viz]'"):
        assert BY_NAME.search(line)
    for line in ("pip install 'minitorch-1.0-py3-none-any.whl[course]'", "pip install -e .; minitorch doctor"):
        assert not BY_NAME.search(line)
