"""Checks of the exercises: `checks.eager.unbroadcast(unbroadcast)` in a cell gives points, and the reason.

`Task` (in `task.py`) says how a check is made: inputs, answers, verdict. A module holds the tasks of one exercise.
"""

from __future__ import annotations

from . import eager
from .score import Part, Score
from .task import MIME, SEEDS, TASKS, Task, answer_for

# The exercises in the order of the course, each with its tasks in the order of its notebook.
EXERCISES: dict[str, tuple[Task, ...]] = {
    name: tuple(task for task in TASKS.values() if task.name.startswith(f"{module}."))
    for name, module in {"01-eager": "eager"}.items()
}

__all__ = ["EXERCISES", "MIME", "SEEDS", "TASKS", "Part", "Score", "Task", "answer_for", "eager"]
