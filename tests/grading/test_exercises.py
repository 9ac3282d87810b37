"""What students get is what `minitorch release` makes of the solutions, and holds nothing that is not for them."""

from __future__ import annotations

import ast
import difflib
import json
import shutil
from pathlib import Path

import nbformat
import pytest

from minitorch.__main__ import main
from minitorch.errors import CommandError
from minitorch_grading.check import check_notebook, table
from minitorch_grading.checks import EXERCISES, TASKS
from minitorch_grading.checks.score import MIME
from minitorch_grading.handing_out import release
from tests.notebook_runs import environment, execute
from tools.clone import RELEASED, SOLUTIONS

every = pytest.mark.parametrize("name", EXERCISES)


def cells(folder: Path, name: str) -> list[nbformat.NotebookNode]:
    return list(nbformat.read(folder / name / f"{name}.ipynb", as_version=4).cells)


def about(cell: nbformat.NotebookNode) -> nbformat.NotebookNode:
    return cell.metadata.get("nbgrader", {})


def is_written(cell: nbformat.NotebookNode) -> bool:
    """Whether a person reads the answer, and gives the points."""
    return bool(about(cell).get("grade") and about(cell).get("solution"))


def by_hand(name: str) -> int:
    """The points that a person gives."""
    return sum(about(cell).points for cell in cells(SOLUTIONS, name) if is_written(cell))


# Solutions ------------------------------------------------------------------------------------------------------


@every
def test_a_notebook_has_the_tasks_of_its_exercise_in_their_order(name: str) -> None:
    graded = [cell for cell in cells(SOLUTIONS, name) if about(cell).get("grade") and not is_written(cell)]
    tasks = EXERCISES[name]
    assert sum(task.points for task in tasks) + by_hand(name) == 100
    assert [about(cell).points for cell in graded] == [task.points for task in tasks]
    for cell, task in zip(graded, tasks, strict=True):
        wanted = task.name.partition(".")[2]
        assert cell.source.splitlines()[0] == f"checks.{task.name}({wanted})"
        assert "### BEGIN HIDDEN TESTS" in cell.source and about(cell).grade_id == f"{wanted.replace('_', '-')}-check"


@every
def test_a_notebook_is_what_nbgrader_expects(name: str) -> None:
    found = cells(SOLUTIONS, name)
    nbformat.validate(nbformat.read(SOLUTIONS / name / f"{name}.ipynb", as_version=4))
    for cell in found:
        if is_written(cell):
            assert cell.cell_type == "markdown"
        elif about(cell).get("solution"):
            assert cell.source.count("### BEGIN SOLUTION") == cell.source.count("### END SOLUTION") == 1
        if cell.cell_type == "code":
            assert not cell.outputs and cell.execution_count is None
    ids = [cell.id for cell in found]
    assert len(set(ids)) == len(ids)
    assert all(cell.id == about(cell).grade_id for cell in found if about(cell))


def test_every_exercise_has_a_folder_and_every_folder_is_an_exercise() -> None:
    assert release.exercises_in(SOLUTIONS) == sorted(EXERCISES) == sorted(path.name for path in RELEASED.iterdir())
    assert [str(path.relative_to(RELEASED)) for path in sorted(RELEASED.rglob("*.*"))] == [
        f"{name}/{name}.ipynb" for name in sorted(EXERCISES)
    ]


# Release --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def released() -> list[release.Released]:
    return list(release.release(SOLUTIONS))


def test_what_is_committed_is_what_release_makes(released: list[release.Released]) -> None:
    assert release.outdated(released, RELEASED) == [], "run `minitorch release` and `git add exercises`"


def test_a_release_is_the_same_bytes_every_time(released: list[release.Released]) -> None:
    before = [each for each in released if "07-fusion" in str(each)]
    assert before and list(release.release(SOLUTIONS, ["07-fusion"])) == before


def code_of(solution: str) -> list[str]:
    """The lines between the marks."""
    inside = solution.split("### BEGIN SOLUTION")[1].split("### END SOLUTION")[0]
    return [line.strip() for line in inside.splitlines() if len(line.strip()) > 12]


@every
def test_nothing_is_left_of_solutions_hidden_tests_and_outputs(name: str) -> None:
    text = (RELEASED / name / f"{name}.ipynb").read_text()
    shown = "\n".join(cell.source for cell in cells(RELEASED, name))
    assert "BEGIN" not in shown and "END" not in shown and "seeds=" not in shown
    assert '"outputs": [\n    {' not in text
    for cell in cells(SOLUTIONS, name):
        if is_written(cell):
            assert cell.source not in shown
        elif about(cell).get("solution"):
            kept = [line for line in code_of(cell.source) if line in shown]
            # What the text of the task or another cell says anyway is no solution.
            elsewhere = "\n".join(each.source for each in cells(SOLUTIONS, name) if each.id != cell.id)
            assert [line for line in kept if line not in elsewhere] == []


@every
def test_cells_are_the_same_but_for_what_is_to_be_written(name: str) -> None:
    before, after = cells(SOLUTIONS, name), cells(RELEASED, name)
    assert [cell.id for cell in before] == [cell.id for cell in after]
    for old, new in zip(before, after, strict=True):
        if is_written(old):
            assert new.source == "YOUR ANSWER HERE"
        elif about(old).get("solution"):
            assert "raise NotImplementedError()" in new.source
            names = [node.name for node in ast.parse(new.source).body if isinstance(node, ast.FunctionDef)]
            assert names == [old.id.replace("-", "_")]
        elif not about(old).get("grade"):
            assert old.source == new.source
        if about(new):
            assert about(new).checksum


def planted(tmp_path: Path, change: dict[str, str]) -> Path:
    """A copy of the solutions of one exercise with something replaced."""
    folder = tmp_path / "solutions" / "07-fusion"
    folder.mkdir(parents=True)
    text = (SOLUTIONS / "07-fusion" / "07-fusion.ipynb").read_text()
    for old, new in change.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "07-fusion.ipynb").write_text(text)
    return tmp_path / "solutions"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({'"id": "title"': '"id": "setup"'}, "Non-unique cell id 'setup'"),
        ({"### END SOLUTION": "pass"}, "no end solution statement"),
        ({"### END SOLUTION": "### BEGIN SOLUTION"}, "nested begin solution"),
        ({'"grade_id": "measure"': '"grade_id": "generate"'}, "failed to validate"),
    ],
    ids=["doubled id", "open solution", "nested solution", "doubled grade_id"],
)
def test_a_release_that_is_wrong_is_refused(tmp_path: Path, change: dict[str, str], says: str) -> None:
    with pytest.raises(CommandError, match=says):
        list(release.release(planted(tmp_path, change)))


def test_the_command_writes_what_has_changed_and_check_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["release", "07-fusion", "--source", str(SOLUTIONS), "--to", str(tmp_path)]
    assert main([*arguments, "--check"]) == 2
    assert "run `minitorch release`" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert main(arguments) == 0
    assert capsys.readouterr().out == f"{tmp_path / '07-fusion' / '07-fusion.ipynb'}\n"
    assert main(arguments) == 0 and main([*arguments, "--check"]) == 0
    assert capsys.readouterr().out == ""
    content = (tmp_path / "07-fusion" / "07-fusion.ipynb").read_text()
    committed = (RELEASED / "07-fusion" / "07-fusion.ipynb").read_text()
    assert list(difflib.unified_diff(committed.splitlines(), content.splitlines())) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["99-none", "--source", str(SOLUTIONS)], "there is no exercise 99-none"),
        (["--source", "nowhere"], "no exercises in"),
    ],
)
def test_what_cannot_be_released_is_said_in_a_sentence(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["release", *arguments]) == 2
    error = capsys.readouterr().err
    assert says in error and len(error.splitlines()) == 1


# Check ----------------------------------------------------------------------------------------------------------


@every
def test_a_solution_has_all_points_and_a_blank_none(name: str) -> None:
    written = [cell.id for cell in cells(SOLUTIONS, name) if is_written(cell)]
    for folder, points in ((SOLUTIONS, 100 - by_hand(name)), (RELEASED, 0)):
        checked = check_notebook(folder / name / f"{name}.ipynb", 120)
        assert not checked.incidents
        rows = checked.rows[: len(EXERCISES[name])]
        assert [row.task for row in checked.rows] == [*(task.name for task in EXERCISES[name]), *written]
        assert sum(row.points for row in checked.rows) == points and sum(row.of for row in checked.rows) == 100
        assert checked.is_complete is (points == 100)
        assert {row.reason for row in rows} == {"" if points else "it has not been written yet"}
        read = "a person reads this answer" if points else "left as it was handed out"
        assert all(row.reason == read for row in checked.rows[len(rows) :])


def test_a_blank_answer_is_known_where_what_was_handed_out_is_not(tmp_path: Path) -> None:
    name = "17-transformer"
    written = {cell.id: "a person reads this answer" for cell in cells(SOLUTIONS, name) if is_written(cell)}
    notebook = json.loads((RELEASED / name / f"{name}.ipynb").read_bytes())
    blank, *_ = [cell for cell in notebook["cells"] if cell["id"] in written]
    for cell in notebook["cells"]:
        if cell["id"] in written and cell is not blank:
            cell["source"] = "An answer."
    (path := tmp_path / "mine.ipynb").write_text(json.dumps(notebook))
    found = {row.task: row.reason for row in check_notebook(path, 120).rows if row.task in written}
    assert found == {**written, blank["id"]: "left as it was handed out"}


@every
def test_every_cell_runs_in_a_notebook(name: str, tmp_path: Path, sweep: bool) -> None:
    """With the whole engine, in a real kernel: the examples work, also where nothing has been written yet.

    One of both by its number, unless all are asked for.
    """
    both = [(SOLUTIONS, 100 - by_hand(name)), (RELEASED, 0)]
    for folder, points in both if sweep else [both[int(name[:2]) % 2]]:
        notebook = nbformat.read(folder / name / f"{name}.ipynb", as_version=4)
        assert execute(notebook, tmp_path, environment(tmp_path)) is None
        outputs = [each for cell in notebook.cells if cell.cell_type == "code" for each in cell.outputs]
        scores = [each["data"][MIME] for each in outputs if MIME in each.get("data", {})]
        assert sum(score["points"] for score in scores) == points


def test_a_check_runs_no_example_as_grading_does_not(tmp_path: Path) -> None:
    """A solution that is built on a name of an example's is one that the check refuses, too."""
    notebook = nbformat.read(SOLUTIONS / "01-eager" / "01-eager.ipynb", as_version=4)
    cell = next(each for each in notebook.cells if each.id == "unbroadcast")
    cell.source = f"print(b.grad)  # of the example above\n{cell.source}"
    path = tmp_path / "01-eager.ipynb"
    nbformat.write(notebook, path)
    rows = check_notebook(path, 120).rows
    assert sum(row.points for row in rows) == 70
    assert "the cell `unbroadcast` above did not run (NameError: name 'b' is not defined)" in rows[-1].reason


def test_a_check_withholds_what_a_grade_withholds(tmp_path: Path) -> None:
    """The engine's own table of laws is there in a notebook, and neither in a check nor in a grade."""
    notebook = nbformat.read(SOLUTIONS / "06-rewriting" / "06-rewriting.ipynb", as_version=4)
    cell = next(each for each in notebook.cells if each.id == "laws")
    cell.source = "def laws():\n    from minitorch.passes import LAWS\n    return LAWS"
    nbformat.write(notebook, tmp_path / "06-rewriting.ipynb")
    row = check_notebook(tmp_path / "06-rewriting.ipynb", 120).rows[-1]
    assert row.points == 0 and row.reason, row


def test_a_table_has_points_and_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "07-fusion.ipynb"
    shutil.copy(RELEASED / "07-fusion" / path.name, path)
    notebook = nbformat.read(path, as_version=4)
    sources = {
        "measure": "def measure(run, wait, clock, rounds):\n    return 0.0",
        "kernel-bytes": "def kernel_bites(graph, kernel):\n    return 0",
        "partition": "def partition(graph):\n    return graph +",
        "generate": "def generate(graph):\n    return input()",
    }
    for cell in notebook.cells:
        cell.source = sources.get(cell.id, cell.source)
    nbformat.write(notebook, path)
    assert main(["check", str(path), "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["points"], found["of"]) == (0, 100)
    assert [line.partition(":")[0] for line in found["incidents"]] == ["input in cell generate-check"]
    by_task = {row["task"]: row for row in found["tasks"]}
    assert "the program was run 0 times" in by_task["fusion.measure"]["reason"]
    assert "no cell above defines `kernel_bytes` (NameError)" in by_task["fusion.kernel_bytes"]["reason"]
    assert by_task["fusion.partition"]["reason"].startswith("the cell `partition` above did not run (SyntaxError: ")
    assert "StdinNotImplementedError" in by_task["fusion.generate"]["reason"]
    assert set(by_task) == {task.name for task in TASKS.values() if task.name.startswith("fusion")}


def test_a_notebook_that_does_not_end_is_stopped(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=cells(RELEASED, "07-fusion"))
    notebook.cells[1].source = "while True:\n    pass"
    nbformat.write(notebook, tmp_path / "endless.ipynb")
    checked = check_notebook(tmp_path / "endless.ipynb", 5)
    assert [each.kind for each in checked.incidents][:2] == ["cell-time", "submission-time"]
    assert not checked.is_complete and "submission-time in cell" in table(checked)


def test_a_kernel_that_dies_is_said(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=cells(RELEASED, "07-fusion"))
    notebook.cells[1].source = "import os\nos._exit(1)"
    nbformat.write(notebook, tmp_path / "dead.ipynb")
    assert [each.kind for each in check_notebook(tmp_path / "dead.ipynb", 60).incidents] == ["kernel-died"]


@pytest.mark.parametrize(("content", "says"), [("{", "cannot be read"), (None, "there is no notebook")])
def test_what_is_no_notebook_is_said_in_a_sentence(
    tmp_path: Path, content: str | None, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / "some.ipynb").write_text(content)
    assert main(["check", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert says in error and len(error.splitlines()) == 1


def test_the_path_of_a_clone_is_told_from_that_of_an_unpacked_zip(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "03-graph").mkdir()
    for typed in ("exercises/03-graph", "exercises/03-graph/03-graph.ipynb"):
        assert main(["check", typed]) == 2
        assert "minitorch check" not in capsys.readouterr().err.removeprefix("minitorch check:")
    (tmp_path / "03-graph" / "03-graph.ipynb").write_text("{")
    for typed in ("exercises/03-graph", "exercises/03-graph.ipynb"):
        assert main(["check", typed]) == 2
        assert "there is one in 03-graph: minitorch check 03-graph" in capsys.readouterr().err


@every
def test_formulas_have_single_backslashes(name: str) -> None:
    """Two of them are a new line in TeX, and `\\sum` is a word then."""
    for cell in cells(SOLUTIONS, name):
        if cell.cell_type == "markdown":
            assert "\\\\" not in cell.source, cell.id
