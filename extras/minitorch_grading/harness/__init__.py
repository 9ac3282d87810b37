"""The test harness: what runs beside the student's code when a task is checked, one case at a time.

A `Driver` calls the student's object with a case and gives back the answer. It knows no other case, no right answer and
no point: those are in `minitorch.classroom.checks`, which is not there while a class is graded. Of this package, a
graded submission has the drivers of its own exercise.
"""

from __future__ import annotations

from .driver import Driver, answer_grader, call_with_arguments, driver
from .needs import Needs

__all__ = ["Driver", "Needs", "answer_grader", "call_with_arguments", "driver"]
