"""The commands of the classroom, as `minitorch.__main__` calls them: from options to an exit status."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path


def check(options: Namespace) -> int:
    """``minitorch check``: the points and the reason for each task of some exercises."""
    from .check import check_notebook, notebooks, table

    found = [check_notebook(path, options.time) for path in notebooks(options.paths)]
    print(json.dumps([each.to_json() for each in found], indent=2) if options.json else "\n\n".join(map(table, found)))
    return int(not all(each.is_complete for each in found))


def grade(options: Namespace) -> int:
    """``minitorch grade``: a class is graded; the status is 1 if a person should look at a submission."""
    from .grading.course import Course, default_workers
    from .grading.course import grade as grade_course
    from .grading.limits import MIB, Limits
    from .grading.progress import Progress
    from .grading.report import Row

    submitted = Path(options.submitted)
    exercises = Path(options.exercises) if options.exercises else submitted.resolve().parent / "exercises"
    limits = Limits(cell_seconds=options.cell_time, seconds=options.time, memory=options.memory * MIB)
    course = Course(submitted, exercises)
    workers = options.workers or default_workers()
    progress: list[Progress] = []

    def step(row: Row, total: int) -> None:
        if not progress:
            progress.append(Progress(total, sys.stderr))
        progress[0].step(str(row), row.result.look)

    try:
        report = grade_course(course, limits, workers, not options.unsafe, options.only, options.again, step)
    except KeyboardInterrupt:
        print("\nstopped; what is done is kept, and the same command goes on from there", file=sys.stderr)
        return 130
    if options.json:
        print(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
    else:
        print(f"{report}\n\nPoints are in {course.gradebook}, pages for students in {course.root / 'feedback'}.")
    return int(any(row.result.look for row in report.rows))
