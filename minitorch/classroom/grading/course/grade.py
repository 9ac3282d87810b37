"""``minitorch grade``: all submissions of a course, in several processes, resumed where it was left.

This process alone writes: the journal, `autograded/`, `feedback/` and the gradebook, in the folders and forms of
nbgrader. A submission counts as done when its line is in the journal, which is the last file to be written.
"""

from __future__ import annotations

import os
import queue
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from ....errors import CommandError
from ..collecting.points import note_result
from ..incidents import Incident
from ..limits import Limits
from ..results import Graded, Result
from ..sandbox import bubblewrap as sandbox
from ..submission import feedback
from ..submission.judging import JUDGE_SECONDS
from ..submission.preflight import DamagedError, Part, released
from ..submission.run import GradingError, task_of
from ..submission.worker import Job, Worker
from .config import configure, lets_code_run
from .folders import Course, Submission, submissions
from .gradebook import Book
from .handed_in import handed_in
from .journal import Journal, key_of
from .private import replace, tighten
from .progress import Progress
from .report import Report, Row


def grade(
    course: Course,
    limits: Limits,
    workers: int,
    safe: bool = True,
    only: Sequence[str] = (),
    again: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Grade everything that is not graded yet, and report on everything.

    Args:
        course: where things are.
        limits: what a submission may use.
        workers: number of submissions that are graded at the same time.
        safe: run student code in a sandbox.
        only: names of students or exercises; all by default.
        again: grade what was graded before, too.
        progress: is told of each submission that is done.

    Raises:
        CommandError: if grading cannot begin: no sandbox, nothing to grade, a course that does not fit.
    """
    check_safety(course, safe)
    found, strays = submissions(course, only)
    releases = {exercise: read_release(course, exercise) for exercise in sorted({each.exercise for each in found})}
    with ExitStack() as stack:
        journal = stack.enter_context(Journal(course.journal))
        book = stack.enter_context(Book(course.gradebook))
        configure(course)
        notes = _warnings(course, tighten(*course.private))
        for exercise, release in releases.items():
            book.exercise(exercise, release)
        keys = {each: key_of(each.folder, course.release(each.exercise), limits, safe) for each in found}
        rows: dict[Submission, Row] = {}

        def finish(each: Submission, result: Result) -> None:
            when, wrong = handed_in(each.folder)
            if wrong is not None:
                result.incidents.append(wrong)
            book.record(each.student, each.exercise, result, when)
            note_result(course, each, result)
            rows[each] = Row(each.student, each.exercise, result)

        todo = []
        for each in found:
            before = None if again else journal.done(each.student, each.exercise, keys[each])
            if before is None or not course.feedback(each.student, each.exercise).exists():
                todo.append(each)
            else:
                finish(each, Result.from_json(before))
        if progress is not None:
            progress.begin(len(found), len(rows))
        for each, result in stack.enter_context(_graded(course, todo, releases, journal.seeds, limits, workers, safe)):
            _write(course, each, result)
            if not any(incident.kind == "grader" for incident in result.incidents):  # that is to be tried again
                journal.add(each.student, each.exercise, keys[each], result.to_json())
            finish(each, result)
            if progress is not None:
                progress.step(str(rows[each]), result.look)
    if failed := sum(any(incident.kind == "grader" for incident in row.result.incidents) for row in rows.values()):
        notes.append(f"The grader itself failed {failed} times; the same command tries these submissions again.")
    return Report([rows[each] for each in found], strays, notes)


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
    """The cells of an exercise that was handed out.

    Raises:
        CommandError: if they cannot be graded.
    """
    path = course.release(exercise)
    try:
        release = released(path)
        checks = [part for part in release if part.is_check]
        for part in checks:
            task_of(part)
    except DamagedError as error:
        raise CommandError(f"{path}: {error.incident.text}; `minitorch release` makes it again") from None
    except GradingError as error:
        raise CommandError(f"{path}: {error}; `minitorch release` makes it again") from None
    if not checks:
        raise CommandError(f"{path} has no graded cell; `minitorch release` makes it again")
    return release


@contextmanager
def _graded(
    course: Course,
    todo: list[Submission],
    releases: dict[str, list[Part]],
    seeds: tuple[int, ...],
    limits: Limits,
    workers: int,
    safe: bool,
) -> Iterator[Iterator[tuple[Submission, Result]]]:
    """Results as they come, from as many worker processes as asked for; nothing of them is left at the end."""
    with ExitStack() as stack:
        count = max(1, min(workers, len(todo)))
        free: queue.Queue[tuple[int, Worker]] = queue.Queue()
        if todo:
            first = os.getpid() * sandbox.SLOTS
            for slot in range(first, first + count):
                free.put((slot, stack.enter_context(Worker())))
        pool = stack.enter_context(ThreadPoolExecutor(count))
        stack.callback(pool.shutdown, wait=True, cancel_futures=True)

        def one(each: Submission) -> Result:
            slot, worker = free.get()
            try:
                release = releases[each.exercise]
                checks = sum(part.is_check for part in release)
                job = Job(
                    student=each.student,
                    folder=str(each.folder.resolve()),
                    exercise=each.exercise,
                    release=str(course.release(each.exercise).resolve()),
                    seeds=seeds,
                    limits=limits,
                    slot=slot,
                    safe=safe,
                    seconds=limits.seconds + 4 * limits.start_seconds + checks * JUDGE_SECONDS + 30,
                )
                return _result(worker.do(job), release)
            finally:
                free.put((slot, worker))

        def each_as_it_comes() -> Iterator[tuple[Submission, Result]]:
            # Few are handed out at a time, so that an interruption finds none waiting.
            waiting = iter(todo)
            running: dict[Future[Result], Submission] = {}
            while True:
                while len(running) < count and (each := next(waiting, None)) is not None:
                    running[pool.submit(one, each)] = each
                if not running:
                    return
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(done), done.result()

        yield each_as_it_comes()


def _result(answer: dict[str, Any], release: list[Part]) -> Result:
    """The result of a worker; a failure of the grader's is an incident, with no points yet."""
    if "fatal" in answer:
        raise CommandError(answer["fatal"])
    if "error" not in answer:
        return Result.from_json(answer)
    incident = Incident("grader", answer["error"])
    missing = [
        Graded(part.name or "", 0.0, part.points, f"not graded yet: {incident.text}")
        for part in release
        if part.points is not None
    ]
    return Result(missing, [incident])


def _write(course: Course, each: Submission, result: Result) -> None:
    if result.text is not None:
        replace(course.autograded(each.student, each.exercise), result.text)
    page = result.page or feedback.page(each.student, each.exercise, result)
    replace(course.feedback(each.student, each.exercise), page)


def default_workers() -> int:
    """As many as there are processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
