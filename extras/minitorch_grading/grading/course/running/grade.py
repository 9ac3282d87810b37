"""``minitorch grade``: all submissions of a course, resumed where it was left.

This process alone writes: the journal, `autograded/`, `feedback/` and the gradebook, in the folders and forms of
nbgrader. Students' work is run elsewhere, in worker processes (`local`) or on other machines (`cluster`). A submission
counts as done when its line is in the journal; the gradebook follows the journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from minitorch.errors import CommandError

from ....own_checks import checks_from, sources_in
from ...cluster.client import on_cluster
from ...enrolment.deadlines import Rules
from ...exporting.standings import apply
from ...incidents import Incident
from ...limits import Limits
from ...results import Result
from ...sandbox import bubblewrap as sandbox
from ...sandbox import cgroups
from ...submission.judging import JUDGE_SECONDS
from ...submission.preflight import DamagedError, Part, released
from ...submission.run import GradingError, task_of, ungraded, with_tests
from ...submission.worker import Job
from ..bests import bests_of
from ..config import configure, lets_code_run
from ..folders import Course, read_exercise, submissions
from ..gradebook.recorder import Recorder
from ..journal.journal import Journal
from ..names import sentences
from ..private import tighten
from ..report import Report, Row
from ..returned import refresh
from .keeper import Keeper
from .keys import conditions_of
from .local import here
from .plan import Item, Plan, cells_of_task, looked_at, merged, planned, planned_task
from .progress import Progress


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
    if safe and not scheduler:  # or the sandbox is where the workers are, and they have no course
        check_safety(course)
        cgroups.prepare()
    rules = Rules.of(course.root)
    found, strays = submissions(course, only)
    releases = {exercise: read_release(course, exercise) for exercise in sorted({exercise for _, exercise in found})}
    cells = cells_of_task(task, releases) if task else dict.fromkeys(releases, "")
    found = [who for who in found if who[1] in cells]
    releases = {exercise: releases[exercise] for exercise in cells}
    own = {exercise: _own_sources(course, exercise) for exercise in releases}
    conditions = {name: conditions_of(release, own[name], limits, safe) for name, release in releases.items()}
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(course.journal))
        entries = journal.entries
        items = [looked_at(course, who, conditions[who[1]], entries.get(who), limits.notebook) for who in found]
        plan = planned_task(items, cells, releases) if task else planned(course, items, again)
        configure(course)
        notes = _warnings(course, tighten(*course.private))
        recorder = stack.enter_context(Recorder(course, entries))
        for exercise, release in releases.items():
            recorder.exercise(exercise, release)
        keeper = Keeper(course, journal, recorder)
        for item in plan.kept:
            assert item.before is not None
            keeper.known(item, item.before.result)
        if progress is not None:
            progress.begin(len(plan.todo) + len(plan.kept), len(plan.kept))

        def done(item: Item, answer: dict[str, Any]) -> None:
            release = releases[item.who[1]]
            result, why = _result(answer, release), "graded again" if item.before else "graded"
            item = replace(item, work=answer.get("work", item.work))  # other work may lie there by now
            if task and item.before is not None and item.before.work == item.work:
                order = [part.name or "" for part in release if part.points is not None]
                result = merged(item.before.result, result, cells[item.who[1]], order)
                why = f"the task {task} was graded again"
            row = keeper.done(item, result, why)
            if progress is not None:
                progress.step(str(row), row.result.look)

        for item in plan.todo:
            if item.trouble:
                done(item, {"error": item.trouble})
        todo = {item.who: item for item in plan.todo if not item.trouble}
        jobs = {}
        for who in sorted(todo, key=itemgetter(1)):  # a sandbox is that of an exercise, and starts in seconds
            exercise, release = who[1], releases[who[1]]
            seconds = limits.seconds + 4 * limits.start_seconds + 30
            seconds += JUDGE_SECONDS * sum(part.is_check for part in release)
            folder = course.submitted.joinpath(*who).resolve()
            jobs[who] = Job(folder, exercise, release, journal.seeds, limits, safe, seconds, own[exercise])
        if jobs and safe and not scheduler and (seen := sandbox.copies(releases)):
            raise CommandError(seen)
        grading = on_cluster(jobs, scheduler, workers) if scheduler else here(jobs, workers)
        for who, answer in stack.enter_context(grading):
            done(todo[who], answer)
        bests = bests_of(entries)
        refresh(course, bests, entries)
    rows = [keeper.rows[who] for who in found if who in keeper.rows]
    notes += [*journal.notes, *apply(rules, course, releases), *recorder.notes, *_left(journal, rows, plan)]
    return Report(rows, strays, notes, bests)


def _left(journal: Journal, rows: list[Row], plan: Plan) -> list[str]:
    """On which submissions the grader itself failed, whether it tries again, and what was not graded in part."""
    failed = [(row.student, row.exercise) for row in rows if row.result.failed]
    final = [who for who in failed if journal.entries[who].is_final]
    again = [who for who in failed if who not in final]
    return sentences(
        ("The grader itself failed on {}; the same command tries once more.", map(" ".join, again)),
        ("The grader itself failed on {}, which stays so; `--again` tries once more.", map(" ".join, final)),
        (
            "Not graded, since there is no result of this work whose other tasks could stay: {}.",
            (" ".join(item.who) for item in plan.passed_over),
        ),
    )


def _warnings(course: Course, readable: list[Path]) -> list[str]:
    notes = []
    if readable:
        notes.append(f"Others can read {readable[0]}, which belongs to somebody else ({len(readable)} such files).")
    if unsafe := lets_code_run(course.root):
        notes.append(f"{unsafe[0].upper()}{unsafe[1:]}.")
    return notes


def check_safety(course: Course) -> None:
    """See that student code can be kept from the course.

    Raises:
        CommandError: if it cannot.
    """
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
    path, release = course.release(exercise), read_exercise(course, exercise)
    checks = [part for part in release if part.is_check]
    own = checks_from(_own_sources(course, exercise), str(course.solution(exercise).parent))
    try:
        if None in [task_of(part, own) for part in checks]:
            release = with_tests(release, _solution(course, exercise))
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


def _own_sources(course: Course, exercise: str) -> dict[str, str]:
    return sources_in(course.solution(exercise).parent)


def _result(answer: dict[str, Any], release: Iterable[Part]) -> Result:
    """The result of a worker; a failure of the grader's is an incident, with no points yet."""
    if "fatal" in answer:
        raise CommandError(answer["fatal"])
    if "error" not in answer:
        return Result.from_json(answer)
    return ungraded(release, "not graded yet", Incident("grader", answer["error"]))
