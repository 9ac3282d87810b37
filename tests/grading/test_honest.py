"""Honest work keeps its points, whatever an editor has done to the notebook; and a check and a grade agree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings, strategies

from minitorch.__main__ import main
from minitorch_grading.grading.submission import preflight
from minitorch_grading.grading.submission.alignment import mend
from minitorch_grading.grading.submission.preflight import DamagedError, of_released, read_stripped, stripped
from tests import edits
from tests.grading import classes
from tests.grading.classes import added, known, notebook, sample
from tools.clone import RELEASED, SOLUTIONS

EXERCISE = "06-rewriting"

# --- reading --------------------------------------------------------------------------------------------------------

LEAVES = strategies.none() | strategies.booleans() | strategies.integers() | strategies.text()
KEYS = strategies.sampled_from(("outputs", "attachments", "widgets", "source", "a")) | strategies.text()
DATA = strategies.recursive(
    LEAVES,
    lambda inner: strategies.lists(inner) | strategies.dictionaries(KEYS, inner),
    max_leaves=30,
)


def without_outputs(data: Any) -> Any:
    if isinstance(data, list):
        return [without_outputs(each) for each in data]
    if not isinstance(data, dict):
        return data
    dropped = {key for key in ("outputs", "attachments", "widgets") if isinstance(data.get(key), list | dict)}
    return {key: type(each)() if key in dropped else without_outputs(each) for key, each in data.items()}


@settings(max_examples=300, deadline=None)
@given(DATA, strategies.sampled_from((None, 1)), strategies.booleans())
def test_outputs_are_dropped_and_nothing_else(data: Any, indent: int | None, is_ascii: bool) -> None:
    content = json.dumps(data, indent=indent, ensure_ascii=is_ascii).encode(errors="replace")
    assert json.loads(stripped(content, -1)) == without_outputs(json.loads(content))


@settings(max_examples=300, deadline=None)
@given(strategies.binary() | strategies.text(alphabet='"\\[]{}:,outputs ').map(str.encode))
def test_what_is_no_json_is_no_exception(content: bytes) -> None:
    assert len(stripped(content, -1)) <= len(content)


@pytest.mark.parametrize("text", [b'"' + b'\\"' * 10**6, b'{"outputs": ' + b"[" * 10**6, b'"outputs": [' * 10**5])
def test_a_hostile_text_takes_no_more_memory_than_its_own(text: bytes) -> None:
    def peak() -> int:
        tracemalloc.start()
        try:
            stripped(text, 0)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert min(peak() for _ in range(5)) < 4 * len(text)  # other threads of the process allocate, too


def test_a_file_of_two_gigabytes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.ipynb"
    with path.open("wb") as file:
        file.truncate(2 << 30)
    tracemalloc.start()
    try:
        with pytest.raises(DamagedError, match="too large"):
            read_stripped(path, 10**6)
        assert tracemalloc.get_traced_memory()[1] < 3 * preflight.FILE_BYTES
    finally:
        tracemalloc.stop()


def test_a_notebook_is_as_large_as_it_is_without_outputs(tmp_path: Path) -> None:
    cells = sample()
    cells[0]["outputs"] = [{"output_type": "display_data", "data": {"image/png": "A" * 30_000_000}, "metadata": {}}]
    (tmp_path / "a.ipynb").write_text(notebook(cells))
    assert len(read_stripped(tmp_path / "a.ipynb", 10_000)) < 10_000
    (tmp_path / "a.ipynb").write_text(notebook([*cells, added("#" * 20_000)]))
    with pytest.raises(DamagedError, match="too large"):
        read_stripped(tmp_path / "a.ipynb", 10_000)


# --- alignment ------------------------------------------------------------------------------------------------------


def aligned(*cells: dict[str, Any], release: list[dict[str, Any]] | None = None) -> list[str]:
    """The sources that are run, in order, and the kinds of incident."""
    read = {"cells": [{**cell} for cell in cells], "metadata": {}}
    parts, incidents = mend(read, of_released(release or sample()))
    run = [part.source.strip().partition("\n")[0] for part in parts if not part.skipped]
    return [*run, *dict.fromkeys(each.kind for each in incidents)]


SETUP, FIRST, FIRST_CHECK, SECOND, SECOND_CHECK = sample(classes.RIGHT, classes.RIGHT)
DEF = {name: f"def {name}(gradient, shape):" for name in ("first", "second")}
RUN = [
    "import minitorch as mt",
    DEF["first"],
    "checks.eager.unbroadcast(first)",
    DEF["second"],
    "checks.eager.unbroadcast(second)",
]


def bare(cell: dict[str, Any], source: str = "") -> dict[str, Any]:
    return added(source or cell["source"])


def test_cells_that_nobody_knows_stay_where_they_are() -> None:
    found = aligned(SETUP, added("one"), FIRST, added("two"), FIRST_CHECK, added("three"), SECOND, SECOND_CHECK)
    assert found == [RUN[0], "one", RUN[1], "two", RUN[2], "three", *RUN[3:]]


def test_what_was_lost_is_known_by_its_id_its_text_or_its_names() -> None:
    mine = bare(FIRST, f"# mine\n{FIRST['source']}")
    cells = [bare(SETUP), mine, bare(FIRST_CHECK), bare(SECOND, "second = len") | {"id": "second"}, bare(SECOND_CHECK)]
    assert aligned(*cells) == [RUN[0], "# mine", RUN[2], "second = len", RUN[4]]


def test_a_stub_never_runs_after_what_it_stands_for() -> None:
    stub = sample()[1]
    for cells in (
        [SETUP, bare(FIRST), stub, FIRST_CHECK],  # left under the answer
        [SETUP, stub, FIRST_CHECK, bare(FIRST)],  # left above it, and the answer at the end
        [SETUP, bare(FIRST), FIRST_CHECK],  # deleted
        [{**SETUP, "source": f"{SETUP['source']}\n\n{FIRST['source']}"}, FIRST_CHECK],  # merged into the imports
        [SETUP, {**FIRST_CHECK, "source": f"{FIRST_CHECK['source']}\n{FIRST['source']}"}],  # or into its check
    ):
        found = aligned(*cells, SECOND, SECOND_CHECK)
        assert not [each for each in found if "NotImplemented" in each]
        assert found.index(RUN[2]) > 0 and RUN[3:] == [each for each in found if "second" in each]
        parts, _ = mend({"cells": [*cells, SECOND, SECOND_CHECK]}, of_released(sample()))
        run = "\n".join(part.source for part in parts if not part.skipped)
        assert "raise NotImplementedError" not in run
        assert run.index("dims = ") < run.rindex(RUN[2])


def test_an_answer_that_a_person_reads_is_found_by_its_place() -> None:
    essay = known("Your answer", "essay", grade=True, solution=True, locked=False, points=5) | {"cell_type": "markdown"}
    release = [SETUP, essay, SECOND, SECOND_CHECK]
    mine = {"cell_type": "markdown", "metadata": {}, "source": "because"}
    parts, incidents = mend({"cells": [SETUP, mine, SECOND, SECOND_CHECK]}, of_released(release))
    assert [(part.source, part.blank) for part in parts if part.name == "essay"] == [("because", False)]
    assert not incidents


def test_an_example_is_skipped_whatever_the_ends_of_its_lines_are(tmp_path: Path) -> None:
    example = added("1\n2") | {"metadata": {"tags": ["example"]}}
    text = notebook([*sample(), example]).replace("\\n", "\\r\\n")
    (tmp_path / "a.ipynb").write_text(text)
    parts, incidents = mend(preflight.load(tmp_path / "a.ipynb", 10**6), of_released([*sample(), example]))
    assert [part.skipped for part in parts][-1] and not incidents and "\r" not in "".join(each.source for each in parts)


# --- a class ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def graded() -> Iterator[dict[str, dict[str, Any]]]:
    """By the name of each harmless edit, what the report says of the notebook that was edited so, several times."""
    classes.needs_bubblewrap()
    with tempfile.TemporaryDirectory(prefix="minitorch-honest-") as name:
        root = Path(name)
        for folder, source in (("exercises", RELEASED), ("solutions", SOLUTIONS)):
            path = root / folder / EXERCISE / f"{EXERCISE}.ipynb"
            path.parent.mkdir(parents=True)
            path.write_bytes((source / EXERCISE / path.name).read_bytes())
        for edit in edits.HARMLESS:
            text = edits.made(EXERCISE, [edit] * 2, Random(edit.__name__))
            classes.hand_in(root, edit.__name__, text, exercise=EXERCISE)
        yield classes.grade(root, "--workers", "2")


@pytest.mark.parametrize("edit", edits.HARMLESS, ids=lambda edit: edit.__name__)
def test_honest_work_keeps_its_points(edit: Any, graded: dict[str, dict[str, Any]]) -> None:
    row = graded[edit.__name__]
    assert row["points"] == row["of"] == 100, json.dumps(row, indent=1)
    assert not row["look"] and "withheld" not in classes.kinds(row)


def test_a_check_and_a_grade_agree(sweep: bool) -> None:
    """The law; `python -m tests.edits` is its long run."""
    classes.needs_bubblewrap()
    assert [each for each in edits.disagreements(range(40 if sweep else 16)) if each] == []


def without_linux(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command where all is missing that Windows does not have."""
    lacks = "os.fork, os.pidfd_open, os.geteuid, socket.send_fds, signal.pthread_sigmask, signal.setitimer"
    lines = (
        "import ctypes, multiprocessing.connection, nbgrader.api, os, psutil, signal, socket, sys",
        "sys.modules |= dict.fromkeys(('fcntl', 'resource', 'pwd', 'grp', 'termios'))",
        f"for name in {lacks!r}.split(', '):",
        "    module, _, inner = name.partition('.')",
        "    vars(sys.modules[module]).pop(inner, None)",
        "load = ctypes.CDLL.__init__",
        "ctypes.CDLL.__init__ = lambda library, name, *rest, **more: load(library, os.fspath(name), *rest, **more)",
        "from minitorch.__main__ import main",
        f"sys.exit(main({command!r}))",
    )
    return subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(classes.ROOT)},
    )


def test_a_check_needs_nothing_that_only_linux_has(tmp_path: Path) -> None:
    path = tmp_path / "01-eager.ipynb"
    path.write_text(edits.made("01-eager", [], Random(0)))
    done = without_linux(tmp_path, "check", str(path))
    assert done.returncode == 0, done.stderr
    assert "100 of 100 points" in done.stdout


def test_the_machine_with_the_course_may_have_any_system(tmp_path: Path) -> None:
    root = classes.course(tmp_path)
    classes.hand_in(root, "ana", notebook(sample()))
    done = without_linux(root, "grade", "submitted", "--scheduler", "tcp://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (2, "") and "Traceback" not in done.stderr
    assert "tcp://127.0.0.1:9" in done.stderr or "dask[distributed]" in done.stderr


def test_a_check_has_the_packages_of_a_grade(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = edits.solution("01-eager")
    place = book.answers()[0]
    book.cells[place]["source"] = f"import pytest\n{book.cells[place]['source']}"
    (tmp_path / "01-eager.ipynb").write_text(book.text())
    assert main(["check", str(tmp_path / "01-eager.ipynb"), "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert found["tasks"][0]["points"] == 0 and "No module named 'pytest'" in found["tasks"][0]["reason"]
    assert sum(each["points"] for each in found["tasks"][1:]) == sum(each["of"] for each in found["tasks"][1:])
