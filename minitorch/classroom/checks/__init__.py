"""Checks of the exercises: `checks.eager.unbroadcast(unbroadcast)` in a cell gives points, and the reason.

`Task` (in `task.py`) says how a check is made: inputs, answers, verdict. A package holds the tasks of one exercise.
"""

from __future__ import annotations

from . import (
    autograd,
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
)
from .score import Part, Score
from .task import SEEDS, Task

# The exercises in the order of the course, each with its tasks in the order of its notebook.
EXERCISES: dict[str, tuple[Task, ...]] = {
    "01-eager": (eager.mean_squared_error, eager.first_bad, eager.observe, eager.unbroadcast),
    "02-autograd": (autograd.shares, autograd.difference, autograd.walk, autograd.backward_pass, autograd.saved),
    "03-graph": (graph.order, graph.run, graph.release, graph.backward),
    "04-tracing": (tracing.train, tracing.trace, tracing.signature, tracing.clipped, tracing.buckets),
    "05-deferred": (deferred.seen, deferred.lazy, deferred.key, deferred.descend, deferred.runs),
    "06-rewriting": (rewriting.dead_code, rewriting.fold_constants, rewriting.merge, rewriting.laws),
    "07-fusion": (fusion.kernel_bytes, fusion.partition, fusion.generate, fusion.merge, fusion.online_softmax),
    "08-schedules": (
        schedules.address,
        schedules.chain_schedule,
        schedules.pack_rows,
        schedules.vector_schedule,
        schedules.product_schedule,
    ),
    "09-reductions": (
        reductions.softmax,
        reductions.largest_and_total,
        reductions.merge_moments,
        reductions.logsumexp,
        reductions.variance,
        reductions.attention_row,
    ),
    "10-primitives": (
        primitives.hard_swish,
        primitives.asinh,
        primitives.layer_norm,
        primitives.lengths,
        primitives.mish,
    ),
    "11-memory": (memory.live_ranges, memory.best_fit, memory.may_overwrite, memory.plan, memory.checkpoints),
    "12-inference": (
        inference.fold_layer,
        inference.convincing,
        inference.fold,
        inference.error_bound,
        inference.serve,
    ),
    "13-quantization": (
        quantization.per_channel,
        quantization.round_trip,
        quantization.calibrate,
        quantization.product,
        quantization.scaler_step,
    ),
    "14-export": (export.hard_swish, export.masked_softmax, export.formulas, export.name_table, export.lower),
    "16-devices": (devices.all_gather, devices.train, devices.messages, devices.all_reduce),
}
TASKS: dict[str, Task] = {task.name: task for tasks in EXERCISES.values() for task in tasks}

__all__ = [
    "EXERCISES",
    "SEEDS",
    "TASKS",
    "Part",
    "Score",
    "Task",
    "autograd",
    "deferred",
    "devices",
    "eager",
    "export",
    "fusion",
    "graph",
    "inference",
    "memory",
    "primitives",
    "quantization",
    "reductions",
    "rewriting",
    "schedules",
    "tracing",
]
