"""Asks: what runs beside the student's code when a task is checked, one case at a time.

An `Ask` calls the student's object with a case and gives back the answer. It knows no other case, no right answer and
no point: those are in `minitorch.classroom.checks`, which is not there while a class is graded. Of this package, a
graded submission has the asks of its own exercise.
"""

from __future__ import annotations

from .ask import Ask, ask_grader, asks, call_with_arguments
from .needs import Needs

__all__ = ["Ask", "Needs", "ask_grader", "asks", "call_with_arguments"]
