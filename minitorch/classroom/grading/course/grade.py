"""``minitorch grade``: all submissions of a course, resumed where it was left.

This process alone writes: the journal, `autograded/`, `feedback/` and the gradebook, in the folders and forms of
nbgrader. Students' work is run elsewhere, in worker processes (`local`) or on other machines (`cluster`). A submission
counts as done when its line is in the journal; the gradebook follows the journal.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from ....errors import CommandError
from ...own import checks_from, sources_in
from ..cluster.client import on_cluster
from ..collecting.submitted import note_result
from ..exporting.after import Rules
from ..incidents import Incident
from ..limits import Limits
from ..results import Graded, Result
from ..sandbox import bubblewrap as sandbox
from ..sandbox import groups
from ..submission import feedback
from ..submission.judging import JUDGE_SECONDS
from ..submission.preflight import DamagedError, Part, released
from ..submission.run import GradingError, task_of, with_tests
from ..submission.worker import Job
from .bests import bests_of, tell
from .config import configure, lets_code_run
from .folders import Course, Submission, submissions
from .journal import Journal
from .keeper import Keeper
from .keys import conditions_of
from .local import here
from .plan import Item, Plan, exercises_with, items, merged, planned, planned_task
from .private import replace, tighten
from .progress import Progress
from .recorder import Recorder
from .report import Report, Row


def grade(
    course: Course,
    limits: Limits,
    workers: int | None = None,
    safe: bool = True,
    only: Sequence[str] = (),
    again: bool = False,
    progress: Progress | None = None,
    task: str = "",
    scheduler: str = "",
) -> Report:
    """Grade everything that is not graded yet, and report on everything.

    Args:
        course: where things are.
        limits: what a submission may use.
        workers: number of submissions that are graded at the same time; by default as many as there are processors.
        safe: run student code in a sandbox.
        only: names of students, of exercises, or of both; all by default.
        again: grade what was graded before, too.
        progress: is told of each submission that is done.
        task: grade this task alone; all other points and reasons stay as they were recorded.
        scheduler: the address of a Dask cluster on whose machines student code is run.

    Raises:
        CommandError: if grading cannot begin: no sandbox, nothing to grade, a course that does not fit.
    """
    if not scheduler:  # or the sandbox is where the workers are, and they have no course
        check_safety(course, safe)
        if safe:
            groups.prepare()
    rules = Rules.of(course)
    found, strays = submissions(course, only)
    releases = {exercise: read_release(course, exercise) for exercise in sorted({each.exercise for each in found})}
    cells: dict[str, str] = {}
    if task:
        checks = [part for each in releases.values() for part in each if part.is_check]
        tasks = {part.name or "": part.task for part in checks if part.task is not None}
        cells = exercises_with(task, releases, tasks)
        found = [each for each in found if each.exercise in cells]
        releases = {exercise: releases[exercise] for exercise in cells}
    conditions = {
        exercise: conditions_of(
            course.release(exercise), limits, safe, tests_of(release), own_sources(course, exercise)
        )
        for exercise, release in releases.items()
    }
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(course.journal))
        looked_at = items(found, conditions, journal.entries, limits.notebook)
        plan = planned_task(looked_at, cells, releases) if task else planned(course, looked_at, again)
        configure(course)
        notes = _warnings(course, tighten(*course.private))
        recorder = stack.enter_context(Recorder(course, journal.entries))
        for exercise, release in releases.items():
            recorder.exercise(exercise, release)
        keeper = Keeper(journal, recorder, partial(_write, course), partial(note_result, course))
        for item in plan.kept:
            assert item.before is not None
            keeper.known(item, Result.from_json(item.before.result))
        if progress is not None:
            progress.begin(len(plan.todo) + len(plan.kept), len(plan.kept))
        todo = {item.submission: item for item in plan.todo if not item.trouble}

        def done(item: Item, result: Result) -> None:
            order = [part.name or "" for part in releases[item.submission.exercise] if part.points is not None]
            why = "graded again" if item.before else "graded"
            if task and item.before is not None:
                result = merged(Result.from_json(item.before.result), result, cells[item.submission.exercise], order)
                why = f"the task {task} was graded again"
            row = keeper.done(item, result, why, bool(task))
            if progress is not None:
                progress.step(str(row), row.result.look)

        for item in plan.todo:
            if item.trouble:
                done(item, _result({"error": item.trouble}, releases[item.submission.exercise]))
        one_by_one = sorted(todo, key=attrgetter("exercise"))  # a sandbox is that of an exercise, and starts in seconds
        jobs = {each: _job(course, each, releases[each.exercise], journal.seeds, limits, safe) for each in one_by_one}
        if jobs and safe and not scheduler and (seen := sandbox.copies(releases)):
            raise CommandError(seen)
        grading = on_cluster(jobs, scheduler, workers) if scheduler else here(jobs, workers)
        for each, answer in stack.enter_context(grading):
            done(todo[each], _result(answer, releases[each.exercise]))
        bests = bests_of(journal.entries, conditions)
        tell(course, bests, journal.entries)
    rows = [keeper.rows[each] for each in found if each in keeper.rows]
    notes += [
        *journal.notes,
        *rules.apply(course, releases),
        *recorder.notes,
        *_failed(journal, rows),
        *_passed_over(plan),
    ]
    return Report(rows, strays, notes, bests)


def _failed(journal: Journal, rows: list[Row]) -> list[str]:
    """Of which submissions the grader itself failed, and whether it will try again."""
    failed = [row for row in rows if row.result.failed]
    final = [row for row in failed if journal.entries[row.student, row.exercise].is_final]
    again = [row for row in failed if row not in final]
    notes = []
    if again:
        notes.append(f"The grader itself failed on {_names(again)}; the same command tries once more.")
    if final:
        notes.append(f"The grader itself failed on {_names(final)}, which stays so; `--again` tries once more.")
    return notes


def _passed_over(plan: Plan) -> list[str]:
    if not plan.passed_over:
        return []
    names = ", ".join(" ".join(item.who) for item in plan.passed_over)
    return [f"Not graded, since there is no result of this work whose other tasks could stay: {names}."]


def _names(rows: Sequence[Row]) -> str:
    return ", ".join(f"{row.student} {row.exercise}" for row in rows)


def _warnings(course: Course, readable: list[Path]) -> list[str]:
    notes = []
    if readable:
        notes.append(f"Others can read {readable[0]}, which belongs to somebody else ({len(readable)} such files).")
    if unsafe := lets_code_run(course.root):
        notes.append(f"{unsafe[0].upper()}{unsafe[1:]}.")
    return notes


def check_safety(course: Course, safe: bool) -> None:
    """See that student code can be kept from the course.

    Raises:
        CommandError: if it cannot.
    """
    if not safe:
        return
    reason = sandbox.unavailable()
    if reason is not None:
        raise CommandError(f"{reason}: {sandbox.remedy()}; {sandbox.UNSAFE}")
    shown = sandbox.exposed(course.root)
    if shown is not None:
        raise CommandError(f"the course is in {shown}, which student code can read: move {course.root} elsewhere")


def read_release(course: Course, exercise: str) -> list[Part]:
    """The cells of an exercise that was handed out, with the hidden tests of its assert cells.

    Raises:
        CommandError: if they cannot be graded.
    """
    path = course.release(exercise)
    try:
        release = released(path)
        checks = [part for part in release if part.is_check]
        own = checks_from(own_sources(course, exercise), str(course.solution(exercise).parent))
        if None in [task_of(part, own) for part in checks]:
            release = with_tests(release, _solution(course, exercise))
    except DamagedError as error:
        raise CommandError(f"{path}: {error.incident.text}; `minitorch release` makes it again") from None
    except GradingError as error:
        raise CommandError(f"{path}: {error}; correct solutions/ and run `minitorch release`") from None
    if not checks:
        raise CommandError(f"{path} has no graded cell; `minitorch release` makes it again")
    return release


def _solution(course: Course, exercise: str) -> list[Part]:
    path = course.solution(exercise)
    if not path.is_file():
        raise CommandError(f"there is no {path}, where the hidden tests of {exercise} are")
    try:
        return released(path)
    except DamagedError as error:
        raise CommandError(f"{path}: {error.incident.text}") from None


def own_sources(course: Course, exercise: str) -> dict[str, str]:
    """The sources of an exercise's own checks; empty if it has none."""
    return sources_in(course.solution(exercise).parent)


def tests_of(release: list[Part]) -> dict[str, str]:
    """The sources of assert cells with their hidden tests, by `grade_id`."""
    return {part.name or "": part.tests for part in release if part.tests is not None}


def _job(
    course: Course, each: Submission, release: list[Part], seeds: tuple[int, ...], limits: Limits, safe: bool
) -> Job:
    checks = sum(part.is_check for part in release)
    return Job(
        student=each.student,
        folder=str(each.folder.resolve()),
        exercise=each.exercise,
        release=str(course.release(each.exercise).resolve()),
        seeds=seeds,
        limits=limits,
        slot=0,
        safe=safe,
        seconds=limits.seconds + 4 * limits.start_seconds + checks * JUDGE_SECONDS + 30,
        tests=tests_of(release),
        own=own_sources(course, each.exercise),
    )


def _result(answer: dict[str, Any], release: list[Part]) -> Result:
    """The result of a worker; a failure of the grader's is an incident, with no points yet."""
    if "fatal" in answer:
        raise CommandError(answer["fatal"])
    if "error" not in answer:
        return Result.from_json(answer)
    incident = Incident("grader", answer["error"])
    missing = [
        Graded(part.name or "", 0.0, part.points, f"not graded yet: {incident.text}", manual=True)
        for part in release
        if part.points is not None
    ]
    return Result(missing, [incident])


def _write(course: Course, each: Submission, result: Result) -> None:
    if result.text is not None:
        replace(course.autograded(each.student, each.exercise), result.text)
    page = result.page or feedback.page(each.student, each.exercise, result)
    replace(course.feedback(each.student, each.exercise), page)
