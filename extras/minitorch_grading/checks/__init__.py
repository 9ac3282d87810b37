"""Checks of the exercises: `checks.eager.unbroadcast(unbroadcast)` in a cell gives points, and the reason.

`Task` (in `task.py`) says how a check is made: inputs, answers, verdict. A module holds the tasks of one exercise.
"""

from __future__ import annotations

from importlib import import_module

from .score import Part, Score
from .task import SEEDS, Task

# The exercises in the order of the course, each with its tasks in the order of its notebook. Each has a module.
EXERCISES: dict[str, tuple[Task, ...]] = {
    name: import_module(f".{name.partition('-')[2]}", __name__).TASKS
    for name in (
        "01-eager", "02-autograd", "03-graph", "04-tracing", "05-deferred", "06-rewriting", "07-fusion", "08-schedules",
        "09-reductions", "10-primitives", "11-memory", "12-inference", "13-quantization", "14-export", "15-compilers",
        "16-devices", "17-transformer",
    )
}  # fmt: skip
TASKS: dict[str, Task] = {task.name: task for tasks in EXERCISES.values() for task in tasks}

__all__ = ["EXERCISES", "SEEDS", "TASKS", "Part", "Score", "Task"]
