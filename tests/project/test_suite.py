"""How the suite is run: its tenth touches everything, what is coming is printed, and nobody who runs it needs root."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from tests import suite
from tests.project.test_architecture import FILES, parts_of, room_of, written

ROOT = Path(__file__).parents[2]
TESTS = [path for path in written(ROOT / "tests") if path.name.startswith("test_")]
NEEDS = r'^(?:\w+ = )?pytest\.importorskip\("(\w+)'  # what a whole file needs


def run(*arguments: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_a_tenth_of_the_tests_touches_every_room_and_all_files_but_slow_ones() -> None:
    lines = run("--fast", "--collect-only")
    chosen = [line for line in lines if "::" in line]
    files = {suite.file_of(name) for name in chosen}
    there = [path for path in TESTS if all(map(find_spec, re.findall(NEEDS, path.read_text(), re.MULTILINE)))]
    left_out = {str(path.relative_to(ROOT)) for path in there} - files
    assert left_out <= {suite.file_of(name) for name, seconds in suite.recorded().items() if seconds > suite.FAST}
    assert len(left_out) < 5
    modules = [path for path in FILES if path.stem != "__main__" and ">>> " in path.read_text(encoding="utf-8")]
    with_examples = {room_of(parts_of(path)) for path in modules}
    assert with_examples <= {room_of(Path(name).parts[1:]) for name in files if not name.startswith("tests/")}
    (left,) = re.findall(r"(\d+) deselected", lines[-1])
    assert len(chosen) < 0.2 * (len(chosen) + int(left))


def test_the_choice_is_always_the_same_and_has_nothing_that_is_slow() -> None:
    costs = {f"{file}::test[{case}]": case / 10 for file in "ab" for case in range(40)} | {"c::test": suite.FAST + 1}
    chosen = suite.fast(costs)
    assert chosen == suite.fast(dict(reversed(costs.items())))
    assert {suite.file_of(name) for name in chosen} == {"a", "b"}
    assert len(chosen) == 2 * -(-(int(10 * suite.FAST) + 1) // suite.SHARE)
    assert max(costs[name] for name in chosen) <= suite.FAST


def test_what_is_coming_is_printed_and_no_letters() -> None:
    lines = run("--progress", "tests/project/test_glossary.py", "-k", "term")
    assert re.fullmatch(r"\d+ tests, about \d+:\d\d minutes if this machine does nothing else", lines[0])
    assert not any(re.match(r"[.sF]+( |$)", line) for line in lines)


def test_no_test_asks_for_root_or_for_a_clone_in_which_nobody_works() -> None:
    """Root runs what everybody runs; notebooks, exercises and solutions are those of `tools.clone`."""
    rights = r"os\.l?chown\(|os\.sete?[ug]id\(|geteuid\(\) [=!]= 0"
    course = r"(?:ROOT|parents\[\d\]|parent)\)? / \"(?:notebooks|exercises|solutions)\" / "
    sources = {path: path.read_text(encoding="utf-8") for path in TESTS if path != Path(__file__)}
    assert not {path: found for path, text in sources.items() if (found := re.findall(f"{rights}|{course}", text))}


def test_what_depends_on_who_runs_it_runs_as_an_ordinary_user_in_ci() -> None:
    assert 'make test ARGS="-m user"' in (ROOT / ".ci" / "run").read_text()
    marked = {path.stem for path in TESTS if suite.depends_on_user(path)}
    named = "adversarial hostile killed cluster class setup notebooks exercises commands browser disk_cache images"
    assert {f"test_{name}" for name in named.split()} <= marked
    assert len(marked) < len(TESTS) / 3
