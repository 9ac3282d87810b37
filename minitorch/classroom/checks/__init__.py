"""Checks of the exercises: `checks.eager.unbroadcast(unbroadcast)` in a cell gives points, and the reason.

`Task` (in `task.py`) says how a check is made: inputs, answers, verdict. A package holds the tasks of one exercise.
"""

from __future__ import annotations

from . import eager, fusion, graph, rewriting
from .score import Part, Score
from .task import SEEDS, Task

# The exercises in the order of the course, each with its tasks in the order of its notebook.
EXERCISES: dict[str, tuple[Task, ...]] = {
    "01-eager": (eager.unbroadcast, eager.observe, eager.mean_squared_error, eager.first_bad),
    "03-graph": (graph.order, graph.run, graph.release, graph.backward),
    "06-rewriting": (rewriting.dead_code, rewriting.fold_constants, rewriting.merge, rewriting.laws),
    "07-fusion": (fusion.kernel_bytes, fusion.partition, fusion.generate, fusion.merge, fusion.online_softmax),
}
TASKS: dict[str, Task] = {task.name: task for tasks in EXERCISES.values() for task in tasks}

__all__ = [
    "EXERCISES",
    "SEEDS",
    "TASKS",
    "Part",
    "Score",
    "Task",
    "eager",
    "fusion",
    "graph",
    "rewriting",
]
