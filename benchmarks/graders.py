"""Contenders of `benchmarks.grading`, each in a process of its own: who grades a class, and how long it takes.

The class is the same for all: some students hand in the blank exercise, after them as many the right solutions. The
time of a submission is the distance from one that is done to the next, so a program's own start is not in it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from minitorch_grading.grading.course.folders import Course
from minitorch_grading.grading.course.gradebook.gradebook import Book
from minitorch_grading.grading.course.gradebook.ledger import Cells, Ledger
from minitorch_grading.grading.course.running.grade import grade, read_release
from minitorch_grading.grading.limits import Limits
from minitorch_grading.grading.submission.preflight import EXAMPLE
from tools.clone import RELEASED, SOLUTIONS

ROOT = Path(__file__).resolve().parent.parent
EXERCISES = tuple(sorted(path.name for path in RELEASED.iterdir()))
KINDS = ("blank", "right")
LOOK_SECONDS = 0.01  # between two looks at processor time; raising it loses more of what ends in between
Step = tuple[float, float]  # seconds of time and of processor time


@dataclass(frozen=True)
class Timed:
    """What one contender needs.

    Attributes:
        each: time and processor time of a submission, by kind; the time is that of one worker.
        start: seconds until the first submissions were done, less what these take.
    """

    each: dict[str, Step]
    start: float = 0.0

    @classmethod
    def of(cls, begun: float, steps: list[Step], students: int, workers: int) -> Timed:
        """From the moments at which the submissions were done: blank ones first, then as many right ones."""
        blank = _between(steps[workers - 1], steps[students - 1], students - workers, workers)
        right = _between(steps[students - 1], steps[2 * students - workers], students + 1 - workers, workers)
        start = steps[workers - 1][0] - begun - blank[0]
        return cls(dict(zip(KINDS, (blank, right), strict=True)), start)


def _between(first: Step, last: Step, count: int, workers: int) -> Step:
    return (last[0] - first[0]) * workers / count, (last[1] - first[1]) / count


@dataclass
class Steps:
    """The moments at which submissions are done. Grading takes it for its progress."""

    begun: float = field(default_factory=time.perf_counter)
    used: Used = field(default_factory=lambda: Used())
    found: list[Step] = field(default_factory=list)

    def begin(self, total: int, before: int) -> None:
        """Nothing is to be seen yet."""

    def step(self, what: str = "", alert: bool = False) -> None:
        """One more is done."""
        self.found.append((time.perf_counter(), self.used.look()))


class Used(threading.Thread):
    """Processor time of this process and of all that it starts, by looking at them a hundred times a second.

    The system adds up what has ended only where somebody waits for it. A sandbox is killed as a whole, so what student
    code has used would be missing. Of each process the last look counts: some five milliseconds of it are lost.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._last: dict[int, float] = {}
        self.start()

    def run(self) -> None:
        """Look, as long as this process runs."""
        while True:
            self.look()
            time.sleep(LOOK_SECONDS)

    def look(self) -> float:
        """Seconds until now."""
        waiting = [os.getpid()]
        while waiting:
            process = waiting.pop()
            with contextlib.suppress(OSError, ValueError):  # it has ended
                folder = Path(f"/proc/{process}/task")
                threads = os.listdir(folder)
                self._last[process] = sum(int((folder / each / "schedstat").read_text().split()[0]) for each in threads)
                waiting += [
                    int(child) for each in threads for child in (folder / each / "children").read_text().split()
                ]
        return sum(self._last.values()) * 1e-9


# --- the class ---------------------------------------------------------------------------------------------------


def notebook(exercise: str, kind: str) -> str:
    """What a student of this kind hands in: what was handed out, with the solutions' cells if they are right."""
    made, solved = (
        json.loads((folder / exercise / f"{exercise}.ipynb").read_text(encoding="utf-8"))
        for folder in (RELEASED, SOLUTIONS)
    )
    if kind == "right":
        sources = {cell["id"]: cell["source"] for cell in solved["cells"]}
        for cell in made["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("solution"):
                cell["source"] = sources[cell["id"]]
    return json.dumps(made)


def make_class(root: Path, exercises: tuple[str, ...], students: int, kinds: tuple[str, ...] = KINDS) -> Course:
    """A course with so many students of each kind."""
    for exercise in exercises:
        for folder in (RELEASED, SOLUTIONS):
            shutil.copytree(folder / exercise, root / folder.name / exercise)
        for kind in kinds:
            text = notebook(exercise, kind)
            for number in range(students):
                work = root / "submitted" / f"{kind}-{number:03}" / exercise
                work.mkdir(parents=True)
                (work / f"{exercise}.ipynb").write_text(text, encoding="utf-8")
    return Course(root / "submitted", root / "exercises")


# --- who grades it -----------------------------------------------------------------------------------------------


def check_points(course: Course, students: int) -> None:
    """See that all are graded, that the right ones have all points, and the blank ones none.

    Raises:
        SystemExit: if not.
    """
    graded = Ledger.read(course.gradebook).marks
    if len(graded) != students * len(KINDS):
        raise SystemExit(f"{len(graded)} of {students * len(KINDS)} submissions are graded")
    for (student, exercise), marks in graded.items():
        decided = [mark for mark in marks.values() if mark.program is not None]  # a person reads the others
        points, most = sum(mark.points for mark in decided), sum(mark.of for mark in decided)
        if points != most * student.startswith("right"):
            raise SystemExit(f"{student} has {points:g} of {most:g} points for {exercise}")


def ours(course: Course, exercise: str, students: int, workers: int) -> Timed:
    """`minitorch grade`."""
    steps: Any = Steps()
    grade(course, Limits(), workers, progress=steps)
    check_points(course, students)
    return Timed.of(steps.begun, steps.found, students, workers)


def nbgrader(course: Course, exercise: str, students: int, workers: int) -> Timed:
    """`nbgrader autograde`, all students in one process: a Jupyter kernel for each notebook, without any protection."""
    from nbgrader.converters import Autograde
    from nbgrader.coursedir import CourseDirectory
    from traitlets.config import Config

    book = Book(course.gradebook)
    with book.transaction():
        book.exercise(exercise, Cells.of(read_release(course, exercise)))
    book.close()
    steps = Steps()

    class Watched(Autograde):  # type: ignore[misc]  # nbgrader has no types
        def run_post_convert_hook(self) -> None:
            super().run_post_convert_hook()
            steps.step()

    config = Config()
    config.CourseDirectory.root, config.CourseDirectory.assignment_id = str(course.root), exercise
    config.CourseDirectory.source_directory = "solutions"
    Watched(coursedir=CourseDirectory(config=config), config=config).start()
    check_points(course, students)
    return Timed.of(steps.begun, steps.found, students, 1)


def cells(course: Course, exercise: str, students: int, workers: int) -> Timed:
    """The cells that are graded alone, in an IPython that has run them before; a copy of it for each student."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    shell: Any = InteractiveShell.instance(config=config)
    found: dict[str, Step] = {}
    for kind in KINDS:
        every = [cell for cell in json.loads(notebook(exercise, kind))["cells"] if cell["cell_type"] == "code"]
        sources = ["".join(cell["source"]) for cell in every if EXAMPLE not in cell["metadata"].get("tags", ())]
        with _silence():
            _run(shell, sources)
            shell.reset(new_session=False)
        steps = [_in_a_copy(shell, sources) for _ in range(students)]
        found[kind] = (_median([time for time, _ in steps]), _median([used for _, used in steps]))
    return Timed(found)


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
        yield


def _run(shell: Any, sources: list[str]) -> Step:
    begun, used = time.perf_counter(), time.process_time()
    for source in sources:
        shell.run_cell(source, store_history=False)
    return time.perf_counter() - begun, time.process_time() - used


def _in_a_copy(shell: Any, sources: list[str]) -> Step:
    """Run cells in a copy of this process."""
    reading, writing = os.pipe()
    if (copy := os.fork()) == 0:
        try:
            with _silence():
                os.write(writing, json.dumps(_run(shell, sources)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        wall, used = json.load(file)
    os.waitpid(copy, 0)
    return wall, used


@dataclass(frozen=True)
class Contender:
    """A row of the table: a name, who grades, and with how many workers."""

    name: str
    grade: Callable[[Course, str, int, int], Timed]
    workers: int = 1


CONTENDERS = {
    row.name: row
    for row in (
        Contender("cells", cells),
        Contender("minitorch, 1 worker", ours, 1),
        Contender("minitorch, 2 workers", ours, 2),
        Contender("nbgrader autograde", nbgrader),
    )
}


def main(name: str, exercise: str, students: str) -> None:
    """Be one contender: grade a class in a folder that goes afterwards, and print the times."""
    contender = CONTENDERS[name]
    with tempfile.TemporaryDirectory(prefix="minitorch-graders-") as folder:
        os.environ["MINITORCH_CACHE_DIR"] = str(Path(folder) / "cache")
        course = make_class(Path(folder) / "course", (exercise,), int(students))
        answers = os.dup(1)
        os.dup2(2, 1)  # whatever else is printed is not an answer
        timed = contender.grade(course, exercise, int(students), contender.workers)
        os.write(answers, json.dumps(asdict(timed)).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
