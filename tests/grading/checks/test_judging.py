"""Judging outside the sandbox: answers may be anything, and cost neither time nor memory nor unearned points."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from minitorch.compiler.scheduling import rewrites as R
from minitorch.graph import Graph
from minitorch_grading.checks import TASKS, Task
from minitorch_grading.checks.compare import different
from minitorch_grading.checks.machines.accesses import counts
from minitorch_grading.checks.score import Score
from minitorch_grading.grading.course.journal.journal import SEEDS
from minitorch_grading.grading.incidents import Incident
from minitorch_grading.grading.limits import MIB, Limits
from minitorch_grading.grading.submission.judging import Examination
from minitorch_grading.harness import Driver, Needs
from minitorch_grading.harness.plain import TIMEOUT, Fault, encode
from minitorch_grading.harness.schedules import product, scheduled

HUGE = "graph(x: f32[4], y: f32[4]):\n%0 = expand(x, shape=[1000000000,4])\n%1 = reduce_sum(%0, dims=[0])\nreturn %1"

NOTHING = Driver("eager.nothing", lambda call, case: None, Needs())


def slow(seconds: float) -> Task:
    """A task that takes so long to judge, and says what an `except Exception` of its makes of that."""

    def wrong(part: str, case: object, answer: object) -> None:
        time.sleep(seconds)

    return Task(NOTHING, {"it": 10}, lambda random: [("it", random.random())], wrong)


def always(sent: Any, inputs: object) -> Any:
    """An answer that does not depend on the question."""
    return sent


def verdict(task: Task, answer: Callable[[Any], Any], seeds: Sequence[int], seconds: float = 60) -> Any:
    """What comes of a task for these answers."""
    examination, answers = Examination(task, seeds, seconds), None
    while (inputs := examination.next(answers)) is not None:
        answers = answer(inputs)
    return examination.verdict


def test_judging_ends_when_its_time_is_over() -> None:
    pytest.importorskip("resource", reason="there are no timers on Windows")
    began = time.monotonic()
    found = verdict(slow(30), lambda inputs: None, (1, 2), seconds=0.1)
    assert isinstance(found, Incident) and (found.kind, found.look) == ("not-judged", True)
    assert time.monotonic() - began < 10
    assert isinstance(verdict(slow(0), lambda inputs: None, (1,)), Score)


def test_a_huge_graph_is_not_computed() -> None:
    """Sixteen gigabytes, if the answer were believed."""
    resource = pytest.importorskip("resource", reason="memory is not limited on Windows")
    for name in ("rewriting.laws", "rewriting.dead_code"):
        task = TASKS[name]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        score = verdict(task, partial(always, encode(HUGE)), (5,))
        assert isinstance(score, Score) and score.points == 0
        assert "far larger than the graph" in score.reason
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500 * MIB // 1024


def test_memory_is_limited_while_judging() -> None:
    pytest.importorskip("resource", reason="memory is not limited on Windows")

    def wrong(part: str, case: object, answer: object) -> str:
        return f"{len(bytearray(1 << 32))} bytes"

    task = Task(NOTHING, {"it": 10}, lambda random: [("it", random.random())], wrong)
    score = verdict(task, lambda inputs: None, (1,))
    assert isinstance(score, Score) and score.reason == "the answers cannot be read (MemoryError)"
    assert len(bytearray(1 << 31)) == 1 << 31, "afterwards there is no limit"


@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_no_number_is_near_infinity(infinity: float) -> None:
    right = np.array([infinity, 1.0])
    for wrong in (0.0, 3e38, -infinity, np.nan):
        assert different(np.array([wrong, 1.0]), right, 1e-5) is not None
    assert different(right.copy(), right, 1e-5) is None


def test_the_source_of_a_generator_is_looked_at_as_a_whole() -> None:
    def generate(graph: Graph) -> str:
        loops = "\n".join(f"    for i in range(1): pass  {'#' * 300}" for _ in range(100))
        parameters = ", ".join(str(node.params["name"]) for node in graph.inputs)
        return f"def kernel({parameters}, out):\n    pass\n{'#' * 21_000}\n{loops}"

    score = TASKS["fusion.generate"](generate)
    assert score.points == 0


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_a_function_that_never_ends_is_stopped_before_its_cell_is(task: Task) -> None:
    """Counted, not timed: the seconds that all calls together have, for the seeds of a grader."""
    granted: list[float] = []

    def drive(call: Any, case: Any) -> Any:
        granted.append(call.seconds)
        return Fault(TIMEOUT)

    replace(task, driver=replace(task.driver, function=drive)).score(None, range(SEEDS))
    assert sum(granted) < Limits().cell_seconds - 10


# Answers that no student's function gives, and that somebody may send ------------------------------------------


ROW = "load x 0\nload x 1\nmaximum %0 %1\nstore out 0 %2\n"


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (ROW + "store out 1 %-1", "no record of a kernel"),  # whose number would not be held
        (ROW + "store out 1 %7", "no record of a kernel"),
        (ROW + "load x -1\nstore out 1 %3", "no record of a kernel"),
        (ROW + "load x 99\nstore out 1 %3", "no record of a kernel"),
        (ROW + "load y 0\nstore out 1 %3", "no record of a kernel"),
        (ROW + "__import__ os\nstore out 1 %3", "no record of a kernel"),
        (ROW + "store x 0 %2\nstore out 1 %2", "is an argument that others read"),
        (ROW + "load out 1\nstore out 1 %3", "before anything was stored there"),
        (ROW, "nothing is stored to out[1]"),
        ("\n".join(["load x 0"] * 10_001), "instructions"),
    ],
)
def test_a_record_is_run_as_it_is_counted(record: str, says: str) -> None:
    task = TASKS["reductions.largest_and_total"]
    score = task.judge(task.inputs(0), encode([record for _ in task.inputs(0)]))
    assert score.points == 0 and says in score.reason, score


@pytest.mark.parametrize(
    "rewrite",
    [
        "split('i0', 4, 'a b', 'c')",
        "split('i0', 4, 'a):\\n        import os\\n        for i in (', 'c')",
        "split_reduction('total0', 'j0', 'print()')",
        "split('i0', 10**9, 'a', 'b')",
        "split('i0', 99999999, 'a', 'b')",
        "split(*[1, 2])",
        "outline('total0')",
        "__import__('os').system('true')",
        "(lambda: 1)()",
        None,
        7,
    ],
)
def test_a_rewrite_is_a_call_with_names_and_numbers(rewrite: object) -> None:
    task = TASKS["schedules.product_schedule"]
    score = task.judge(task.inputs(0), encode([[rewrite] for _ in task.inputs(0)]))
    assert score.points == 0 and "rewrite 1" in score.reason, score


def test_accesses_are_those_of_the_listing_in_the_notebook() -> None:
    """Notebook 08 counts in assembly: 4 accesses of the plain loop, 8 loads of a tile of 6 rows by 2 vectors."""
    plain = counts(product(12, 16, 100)).accesses - counts(product(12, 16, 99)).accesses
    assert plain == 4 * 12 * 16
    tile = [R.split("i0", 6, "it", "r"), R.split("i1", 8, "v", "l"), R.reorder("it", "r", "v", "l")]
    tile += [R.lift("total0", "r", "v", "l"), R.distribute("r", "v", "l"), R.reorder("j0", "r", "v", "l")]
    tile += [R.unroll("r"), R.unroll("v"), R.vectorise("l"), R.in_registers("total0", "j0", "tile")]
    more, fewer = (counts(scheduled(product(12, 16, inner), tile)) for inner in (100, 99))
    assert more.accesses - fewer.accesses == 2 * 8 and more.registers == 15


def test_a_graph_of_very_many_operations_is_not_compiled() -> None:
    task = TASKS["primitives.layer_norm"]
    lines = ["graph(x: f32[16,32]):", "%0 = neg(x)", *(f"%{i} = neg(%{i - 1})" for i in range(1, 2000)), "return %1999"]
    score = task.judge(task.inputs(0), encode(["\n".join(lines) for _ in task.inputs(0)]))
    assert score.points == 0 and "far larger" in score.reason
