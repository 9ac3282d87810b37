"""Checks of the exercises: `checks.eager.unbroadcast(unbroadcast)` in a cell gives points, and the reason.

`Task` (in `task.py`) says how a check is made: inputs, answers, verdict. A module holds the tasks of one exercise.
"""

from __future__ import annotations

from . import (
    autograd,
    compilers,
    deferred,
    devices,
    eager,
    export,
    fusion,
    graph,
    inference,
    memory,
    primitives,
    quantization,
    reductions,
    rewriting,
    schedules,
    tracing,
    transformer,
)
from .score import Part, Score
from .task import SEEDS, Task

# The exercises in the order of the course, each with its tasks in the order of its notebook.
EXERCISES: dict[str, tuple[Task, ...]] = {
    "01-eager": eager.TASKS,
    "02-autograd": autograd.TASKS,
    "03-graph": graph.TASKS,
    "04-tracing": tracing.TASKS,
    "05-deferred": deferred.TASKS,
    "06-rewriting": rewriting.TASKS,
    "07-fusion": fusion.TASKS,
    "08-schedules": schedules.TASKS,
    "09-reductions": reductions.TASKS,
    "10-primitives": primitives.TASKS,
    "11-memory": memory.TASKS,
    "12-inference": inference.TASKS,
    "13-quantization": quantization.TASKS,
    "14-export": export.TASKS,
    "15-compilers": compilers.TASKS,
    "16-devices": devices.TASKS,
    "17-transformer": transformer.TASKS,
}
TASKS: dict[str, Task] = {task.name: task for tasks in EXERCISES.values() for task in tasks}

__all__ = ["EXERCISES", "SEEDS", "TASKS", "Part", "Score", "Task"]
