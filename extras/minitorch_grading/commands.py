"""The commands of the classroom, as `minitorch.__main__` calls them: from options to an exit status."""

from __future__ import annotations

import json
import sys
import traceback
from argparse import Namespace
from pathlib import Path
from typing import Any

from minitorch.errors import CommandError


def show(found: Any, options: Namespace) -> None:
    """Print a result, as JSON if that is asked for."""
    print(json.dumps(found.to_json(), indent=2) if options.json else found)


def check(options: Namespace) -> int:
    """``minitorch check``: the points and the reason for each task of some exercises."""
    from .check import check_notebook, notebooks, table

    found = [check_notebook(path, options.time) for path in notebooks(options.paths)]
    print(json.dumps([each.to_json() for each in found], indent=2) if options.json else "\n\n".join(map(table, found)))
    return int(not all(each.is_complete for each in found))


def release(options: Namespace) -> int:
    """``minitorch release``: exercises made of solutions, and packed; with ``--check``, only looked at."""
    from .grading.submission.run import refuse_other_points
    from .handing_out import package
    from .handing_out import release as releasing

    folder = Path(options.to)
    released = list(releasing.release(Path(options.source), options.names))
    for each in released:
        if each.path.suffix == ".ipynb":
            refuse_other_points(each.content, Path(options.source) / each.path.parent)
    if options.check:
        if old := releasing.outdated(released, folder):
            raise CommandError(f"{folder / old[0]} is not what {options.source} gives: run `minitorch release`")
        return 0
    for path in releasing.write(released, folder):
        print(folder / path)
    if options.package is not None:
        for path in package.zips([*package.notebooks(), *released], Path(options.package)):
            print(path)
        print(package.wheel(Path(options.package)))
    return 0


def new_exercise(options: Namespace) -> int:
    """``minitorch new-exercise``: an exercise that works, to be made into another one."""
    from .handing_out.new_exercise import new_exercise as make

    for path in make(options.exercise, Path(options.source), Path(options.wrong)):
        print(path)
    return 0


def wrong_solutions(options: Namespace) -> int:
    """``minitorch wrong-solutions``: judge an exercise's solution, and wrong ones; return 1 if a verdict is wrong."""
    from .wrong_solutions import run_solutions, table

    found = run_solutions(options.exercise, Path(options.source), Path(options.wrong), options.time)
    print(json.dumps([vars(each) for each in found], indent=2) if options.json else table(options.exercise, found))
    return int(any(each.wrong for each in found))


def lab(options: Namespace) -> int:
    """``minitorch lab``: JupyterLab at the first notebook."""
    from .lab import run

    return run(options.port, options.no_browser, options.options)


def doctor(options: Namespace) -> int:
    """``minitorch doctor``: what is wrong with this installation."""
    from .doctor import examine, table

    findings = examine()
    print(json.dumps([vars(each) for each in findings], indent=2) if options.json else table(findings))
    return int(any(each.state == "wrong" for each in findings))


def collect(options: Namespace) -> int:
    """``minitorch collect``: a download into `submitted/`; the status is 1 if a person should look."""
    from .grading.collecting.collect import collect as bring
    from .grading.course.folders import Course
    from .grading.enrolment.deadlines import Rules
    from .grading.enrolment.worksheet import participants_of

    submitted = Path(options.to)
    course = Course(submitted, submitted.resolve().parent / "exercises")
    rules = Rules.of(course.root, options.roster, is_begun=False)
    participants = participants_of(options.worksheet, pairs(options.column), rules.deadlines.zone)
    found = bring(Path(options.source), course, rules, participants, options.exercise)
    show(found, options)
    return int(found.look)


def pairs(texts: list[str]) -> dict[str, str]:
    """Options of the form ``WHAT=NAME``."""
    if strange := [text for text in texts if "=" not in text]:
        raise CommandError(f"`{strange[0]}` has to be WHAT=NAME")
    return {what: name for what, _, name in (text.partition("=") for text in texts)}


def grade(options: Namespace) -> int:
    """``minitorch grade``: a class is graded; the status is 1 if the grader itself failed on a submission."""
    from .grading.course.folders import Course
    from .grading.course.gradebook.trouble import said
    from .grading.course.running.grade import grade as grade_course
    from .grading.course.running.progress import Progress
    from .grading.limits import MIB, Limits

    submitted = Path(options.submitted)
    exercises = Path(options.exercises) if options.exercises else submitted.resolve().parent / "exercises"
    limits = Limits(cell_seconds=options.cell_time, seconds=options.time, memory=options.memory * MIB)
    course = Course(submitted, exercises)
    progress = Progress(sys.stderr)
    try:
        chosen = (options.workers, not options.unsafe, options.only, options.again)
        report = grade_course(course, limits, *chosen, progress, options.task, options.scheduler)
    except KeyboardInterrupt:
        print("\nstopped; what is done is kept, and the same command goes on from there", file=sys.stderr)
        return 130
    except OSError as error:  # a full disk, a folder that may not be written to: what is done is in the journal
        raise CommandError(f"{said(error)}; what is done is kept") from error
    except CommandError:
        raise
    except Exception:
        traceback.print_exc()
        print("minitorch grade: the grader itself failed, which is our fault; what is done is kept", file=sys.stderr)
        return 3
    show(report, options)
    if not options.json:
        print(f"\nPoints are in {course.gradebook}, pages for students in {course.root / 'feedback'}.")
    return int(any(row.result.failed for row in report.rows))


def similar(options: Namespace) -> int:
    """``minitorch similar``: where the submissions for an exercise are alike."""
    from .grading.course.folders import Course
    from .grading.similar import common_lines, write
    from .grading.similar import similar as compare

    course = Course.at(Path(options.course))
    found = compare(course, options.exercise, options.common, options.at_least, options.pairs)
    written = write(found, course.root / "similar")
    show(found, options)
    if not options.json:
        print(f"\n{common_lines(found.pairs)}" * options.lines)
        print("The lines side by side are in " + " and ".join(map(str, written)) + ".")
    return 0


def export(options: Namespace) -> int:
    """``minitorch export``: points and feedback for a platform; the status is 1 if points are missing in it."""
    from .grading.course.folders import Course
    from .grading.enrolment.deadlines import Rules
    from .grading.exporting.export import export as write
    from .grading.exporting.filled import Choices

    course = Course.at(Path(options.course))
    choices = Choices(options.missing == "zero", options.scale, pairs(options.column))
    file = Path(options.file) if options.file else None
    rules = Rules.of(course.root, options.roster)
    found = write(options.form, file, Path(options.to), course, rules, options.exercise, choices)
    show(found, options)
    return int(not found.is_complete)


def report(options: Namespace) -> int:
    """``minitorch report``: a graded class as a whole; the status is 1 if a file of the course is damaged in part."""
    from .grading.course.folders import Course
    from .grading.course.private import replace
    from .grading.overview import overview, page, sheet, text

    course = Course.at(Path(options.course))
    found = overview(course, options.only)
    if options.json:
        show(found, options)
    elif options.csv:
        print(sheet(found), end="")
    else:
        target = Path(options.page) if options.page else course.root / "report.html"
        where = f"The page is {target}."
        try:
            replace(target, page(found))
        except OSError as error:
            if options.page:
                raise CommandError(f"{target} cannot be written: {error.strerror}") from None
            where = (
                f"There is no page, since {target} cannot be written ({error.strerror}): --page FILE puts it elsewhere."
            )
        print(f"{text(found)}\n\n{where}")
    return int(bool(found.notes))
