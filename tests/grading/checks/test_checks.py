"""Checks: inputs, answers and verdicts are plain data; no code of the student's decides on points, or runs for ever."""

from __future__ import annotations

import contextlib
import io
import json
import math
import pdb
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_output
from nbgrader.utils import determine_grade

import minitorch as mt
from minitorch.graph import Graph, evaluate
from minitorch.passes import DEAD_CODE
from minitorch_grading import harness
from minitorch_grading.checks import EXERCISES, TASKS, Task, fusion
from minitorch_grading.checks import task as task_module
from minitorch_grading.checks.samples import random_graph, values_for
from minitorch_grading.checks.score import Part, Score, weakest
from minitorch_grading.checks.smaller import smaller
from minitorch_grading.harness.limit import Limited
from minitorch_grading.harness.plain import TIMEOUT, Fault, Unknown, Value, decode, encode, plain
from tests.grading.checks.examining import examined

by_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


def blank(*arguments: object) -> object:
    raise NotImplementedError()


# Plain values ---------------------------------------------------------------------------------------------------

plain_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats() | st.text(max_size=5),
    lambda each: (
        st.lists(each, max_size=3) | st.tuples(each, each) | st.dictionaries(st.text(max_size=3), each, max_size=2)
    ),
    max_leaves=8,
)


def same(a: Any, b: Any) -> bool:
    """Equal with exact types, NaN and the sign of zero included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return (a == b and math.copysign(1, a) == math.copysign(1, b)) or a != a if isinstance(a, float) else a == b


@given(plain_values)
@settings(max_examples=100)
def test_plain_values_cross_as_they_are(value: Any) -> None:
    assert same(decode(json.loads(json.dumps(encode(value), allow_nan=False))), value)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8", "u1", "?"])
def test_arrays_cross_bit_for_bit(dtype: str) -> None:
    array = np.array([[0, 1], [-0.0, 7]]).astype(dtype)
    for given_, is_tensor in ((array, False), (mt.tensor(array), True)):
        value = plain(given_)
        assert type(value) is Value and value.is_tensor is is_tensor
        assert value.array.tobytes() == array.tobytes() and value.array.dtype == array.dtype


class Liar(float):
    """A number that is equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = float.__hash__


class FakeTensor(mt.Tensor):
    """A tensor that is not one."""


@pytest.mark.parametrize(
    "value",
    [Liar(3.0), np.float32(3), 3 + 0j, object(), FakeTensor(np.zeros(2)), 2**70, "x" * 10**6],
    ids=lambda v: type(v).__name__,
)
def test_whatever_is_not_plain_arrives_as_unknown(value: object) -> None:
    assert type(plain(value)) is Unknown
    assert type(plain([value])[0]) is Unknown


@pytest.mark.parametrize(
    "data",
    [
        {"float": "x"},
        {"array": [True, "f32", [2], "!!"]},
        {"array": [True, "f32", [3], "AAAA"]},
        {"a": 1, "b": 2},
        {"array": 7},
        {"dict": [[{"list": []}, 1]]},
        [1],
        1.5,
        {"fault": 3},
    ],
    ids=str,
)
def test_anything_else_is_refused(data: Any) -> None:
    with pytest.raises(ValueError):
        decode(data)


def nested(width: int, depth: int) -> list[Any]:
    """A list that is in memory a few times, and on paper more often than there is paper."""
    found: list[Any] = []
    for _ in range(depth):
        found = [found] * width
    return found


@pytest.mark.parametrize(
    "value",
    [nested(1000, 15), [np.zeros(1 << 19)] * 1000, ["x" * (1 << 18)] * 1000, dict.fromkeys(range(10_000), "x" * 1000)],
    ids=["lists", "arrays", "texts", "dict"],
)
def test_an_answer_is_small_however_large_the_value(value: object) -> None:
    assert len(json.dumps(encode(value))) < 8_000_000  # a grader reads no longer message
    assert type(plain(value)) is Unknown or depth_of(plain(value)) <= 21


def depth_of(value: object) -> int:
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, (list, tuple)) else 0


def test_what_has_arrived_can_be_sent_again() -> None:
    for value in (object(), np.zeros(3), mt.tensor([1.0]), nested(2, 2)):
        assert encode(plain(value)) == encode(value)


class EndlessError(Exception):
    """An exception whose text never ends."""

    def __str__(self) -> str:
        while True:
            pass


def test_the_text_of_an_exception_has_to_come_within_the_time() -> None:
    def shout() -> None:
        raise EndlessError

    assert Limited(shout, 0.05)().kind == TIMEOUT


@pytest.mark.parametrize("setting", [np.errstate, warnings.catch_warnings, contextlib.redirect_stderr])
def test_an_interrupt_where_a_setting_is_put_back_leaves_none(setting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    before = np.geterr(), list(warnings.filters), sys.stderr
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(setting, "__exit__", interrupted)
        Limited(lambda: None)()
    assert (np.geterr(), list(warnings.filters), sys.stderr) == before


@pytest.mark.skipif(not hasattr(time, "pthread_getcpuclockid"), reason="this system tells no thread's own time")
def test_a_busy_machine_takes_no_points_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minitorch.classroom.harness.limit.PATIENCE", 100.0)

    def works(seconds: float) -> str:
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass
        return "done"

    over = threading.Event()

    def compete() -> None:
        while not over.is_set():
            pass

    others = [threading.Thread(target=compete) for _ in range(4)]
    for other in others:
        other.start()
    try:
        start = time.monotonic()
        assert Limited(works, 0.3)(0.15) == "done"
        assert time.monotonic() - start > 0.3  # longer than the limit, on the clock
        assert Limited(works, 0.1)(30.0) == Fault(TIMEOUT, "0.1")
    finally:
        over.set()


def test_code_that_only_waits_is_stopped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minitorch.classroom.harness.limit.PATIENCE", 2.0)

    def waits() -> None:
        while True:
            time.sleep(0.01)

    assert Limited(waits, 0.1)() == Fault(TIMEOUT, "0.1")


def test_whoever_debugs_a_function_is_not_in_a_hurry() -> None:
    class Hesitating:
        def readline(self) -> str:
            time.sleep(1.0)
            return "continue\n"

    def debugged() -> int:
        keyboard: Any = Hesitating()
        pdb.Pdb(stdin=keyboard, stdout=io.StringIO(), nosigint=True).set_trace()
        return 7

    before = sys.gettrace()
    try:
        assert Limited(debugged, 0.1)() == 7
    finally:
        sys.settrace(before)


def test_names_of_an_exception_and_a_function_are_cut_off() -> None:
    places: dict[str, Any] = {}
    exec(compile(f"def {'f' * 100_000}():\n    raise ValueError", "<cell>", "exec"), places)
    (function,) = (each for name, each in places.items() if name.startswith("f"))
    assert len(str(Limited(function)())) < 500
    with pytest.raises(ValueError, match="not an encoded value"):
        decode({"fault": ["ValueError"]})
    assert len(str(decode({"fault": ["V" * 100_000] * 3}))) < 2000


def test_a_reason_is_no_longer_than_somebody_reads() -> None:
    driver = harness.driver("arithmetic.double", harness.Needs())(lambda call, case: call(*case))
    task = Task(driver, {"all": 4}, lambda random: [("all", 1)], lambda part, case, answer: "x" * 1_000_000)
    reason = task.judge([("all", 1)], {"list": [1]}).reason
    assert len(reason) < 6000 and reason.endswith("1000000 characters)")


def test_one_mistake_is_said_once() -> None:
    reasons = ("a list was expected, and it is 3\n  x", "", "f(2) = 3, not 4", "f(-inf) = nan, not 5")
    again = ("what cannot run saves nothing: a list was expected, and it is 3", "the list is empty")
    score = Score("a", tuple(Part("part", 0, 1, reason) for reason in (*reasons, *again)))
    assert score.reason.splitlines() == [*reasons[0].splitlines(), reasons[2], again[1]]
    twice = Score("a", (Part("one", 0, 1, "wrong"), Part("other", 0, 1, "wrong"), Part("third", 1, 1)))
    assert twice._repr_mimebundle_()["text/html"].count(">as above</td>") == 1


def test_the_search_for_smaller_cases_of_a_slow_answer_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(graph: Graph) -> Graph:
        time.sleep(0.05)
        return graph

    monkeypatch.setattr(task_module, "SHRINKING_SECONDS", 0.5)
    calls: list[Graph] = []
    score = TASKS["rewriting.merge"].score(lambda graph: (calls.append(graph), slow(graph))[1], (0, 1))
    cases = sum(len(TASKS["rewriting.merge"].inputs(seed)) for seed in (0, 1))
    assert score.points < 30 and "before" in score.reason
    assert cases < len(calls) < cases + 15  # ten in half a second, and one that was begun for each part


# The judge's end of a function ----------------------------------------------------------------------------------


class Doubling:
    """An oracle that doubles numbers, and takes `seconds` for each."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds, self.seen = seconds, list[float]()

    def reply(self, question: Any) -> float:
        end = time.thread_time() + self.seconds
        while time.thread_time() < end:
            pass
        if type(question) is not float:
            raise TypeError("only floats are doubled")
        self.seen.append(question)
        return 2 * question


def consulting(oracle: Callable[[], Doubling], seconds: float = 2.0) -> Task:
    """A task whose function is given one that doubles: is 8 what it returns, and has it been called three times?"""
    driver = harness.driver("eager.nothing", harness.Needs(), seconds)(lambda call, case: call(call.consult))

    def wrong(part: str, case: int, answer: Any) -> str | None:
        return None if answer == (8.0, [1.0, 2.0, 4.0]) else f"it is {answer}"

    cases = [("it", 1)]
    return Task(driver, {"it": 10}, lambda random: cases, wrong, oracle=lambda case: oracle())


def test_calls_of_an_oracle_are_seen_by_the_judge_through_json_as_well() -> None:
    task = consulting(Doubling)

    def right(double: Any) -> float:
        return double(double(double(1.0)))

    for score in (task(right), examined(task, partial(task.driver.answering, right), (5,))):
        assert score.points == 10, score
    assert "[])" in task(lambda double: 8.0).reason, "no call can be made up"


def test_an_oracle_refuses_with_an_error_at_the_call() -> None:
    score = consulting(Doubling)(lambda double: double("1"))
    assert score.reason.startswith("it raises ValueError (in line") and score.reason.endswith("only floats are doubled")


def test_whoever_calls_for_ever_ends() -> None:
    def swallows(double: Any) -> None:
        while True:
            with contextlib.suppress(ValueError):
                double(1.0)

    def ends(double: Any) -> None:
        while True:
            double(1.0)

    assert "more than 1000 times" in consulting(Doubling)(ends).reason
    assert "does a loop never end?" in consulting(Doubling, 0.2)(swallows).reason


def test_no_limit_stops_a_message_half_way() -> None:
    """Nearly all of the time is the oracle's; were it stopped there, the dialogue would be over, and no score."""
    score = consulting(partial(Doubling, 0.1), 0.15)(lambda double: [double(float(each)) for each in range(99)])
    assert score.reason == "it was stopped after 0.15 seconds: does a loop never end?"


# Limits ---------------------------------------------------------------------------------------------------------


def test_a_loop_without_end_is_stopped_even_if_it_catches_everything_it_should() -> None:
    def endless() -> None:
        while True:
            try:
                while True:
                    pass
            except Exception:
                pass

    start = time.perf_counter()
    fault = Limited(endless, 0.1)()
    assert fault.kind == "timeout" and time.perf_counter() - start < 30
    assert Limited(lambda: 7, 5)() == 7  # and nothing is left of it


def test_a_limit_works_in_any_thread() -> None:
    found: list[Any] = []

    def endless() -> None:
        while True:
            pass

    thread = threading.Thread(target=lambda: found.append(Limited(endless, 0.05)()))
    thread.start()
    thread.join(30)
    assert found[0].kind == "timeout"


@pytest.mark.parametrize("error", [ValueError("a\nb"), SystemExit(3), RecursionError(), KeyError("x")], ids=repr)
def test_whatever_is_raised_is_an_answer(error: BaseException) -> None:
    def fail() -> None:
        raise error

    fault = Limited(fail)()
    assert fault.kind == type(error).__name__ and "\n" not in fault.text and "of fail" in fault.where


def test_a_keyboard_interrupt_is_the_users() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Limited(interrupted)()


def test_nothing_reaches_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    def noisy() -> float:
        print("hello", file=sys.stderr)
        return float(np.float32(1) / np.float32(0))

    assert Limited(noisy)() == math.inf
    assert capsys.readouterr() == ("hello\n", "")


# Tasks ----------------------------------------------------------------------------------------------------------


def test_every_exercise_has_three_to_six_tasks() -> None:
    assert all(3 <= len(tasks) <= 6 for tasks in EXERCISES.values())


@by_task
def test_inputs_are_plain_and_the_same_for_the_same_seed(task: Task) -> None:
    one, other = encode(task.inputs(5)), encode(task.inputs(5))
    assert one == other and "unknown" not in json.dumps(one)
    assert encode(task.inputs(6)) != one


@pytest.mark.sweep(3)
@by_task
def test_a_student_cannot_reach_the_judges_inputs(task: Task) -> None:
    """Whoever changes what he is given changes his own copy."""

    def vandal(*arguments: Any) -> Any:
        for each in arguments:
            if isinstance(each, dict):
                each.clear()
            if isinstance(each, list):
                each.clear()
            if isinstance(each, mt.Tensor):
                each.fill_(0)
        raise NotImplementedError()

    before = encode(task.inputs(1))
    task(vandal)
    assert encode(task.inputs(1)) == before


def corrupted(data: Any) -> list[Any]:
    """What somebody might send instead."""
    return [
        None,
        {},
        [],
        7,
        "nan",
        {"answers": []},
        {"answers": 3},
        {"answers": [[0]]},
        {"answers": [[0, {"list": [7]}]]},
        {"answers": [[0, {"float": "inf"}]]},
        {"answers": [["0", data]]},
        {"answers": [[[], data]]},
        {"answers": [[0, {"list": [{"tuple": [None, None]}] * 99}]]},
    ]


def answers_always(sent: Any, send: object) -> Callable[[object], Any]:
    """What answers every case with the same."""
    return partial(always, sent)


def always(sent: Any, inputs: object) -> Any:
    """An answer that does not depend on the question."""
    return sent


@by_task
def test_whatever_is_sent_is_judged(task: Task) -> None:
    for sent in corrupted(task.driver.answering(blank)(encode(task.inputs(0)[0]))):
        score = examined(task, partial(answers_always, sent), (0,))
        assert score.points == 0 and score.of == task.points and score.reason


def test_a_graph_that_is_far_too_large_is_not_computed() -> None:
    task = TASKS["rewriting.dead_code"]
    bomb = "graph(x: f32[2,3], y: f32[2,3]): %0 = reshape(x, shape=[6]) %1 = expand(%0, shape=[99999999,6]) "
    bomb += "%2 = neg(%1) %3 = reduce_sum(%2, dims=[0]) %4 = reshape(%3, shape=[2,3]) return %4"
    answers = encode([(bomb, None) for _ in task.inputs(0)])
    assert "far larger" in task.judge(task.inputs(0), answers).reason


def test_a_smaller_graph_is_told_only_of_an_answer_that_is_wrong() -> None:
    task = TASKS["rewriting.dead_code"]
    small = ("graph(x: f32[2]): %0 = neg(x) return %0", "graph(x: f32[2]): %0 = exp(x) return %0")
    cases = task.inputs(0)
    told = task.judge(cases, encode([(text, small) for _, text in cases])).reason  # nothing was removed
    assert "f32[2]" in told.replace("f32[2,3]", "")
    right = task.judge(cases, encode([(str(DEAD_CODE(Graph.parse(text))), small) for _, text in cases]))
    assert right.points == right.of


# Grading --------------------------------------------------------------------------------------------------------


def grade(score: Score) -> tuple[float, float]:
    """What nbgrader makes of a cell that shows a score."""
    data = score._repr_mimebundle_()
    about = {"grade": True, "solution": False, "points": score.of, "grade_id": "x"}
    cell = new_code_cell("", metadata={"nbgrader": about}, outputs=[new_output("execute_result", data)])
    points, of = determine_grade(cell)
    return float(points), float(of)


@pytest.mark.parametrize("points", [0, 2.5, 10])
def test_nbgrader_reads_partial_credit(points: float) -> None:
    score = Score("a.b", (Part("one", points, 10, "" if points == 10 else "<why>"), Part("two", 1, 1)))
    assert grade(score) == (points + 1, 11)
    page = score._repr_mimebundle_()["text/html"]
    assert "<why>" not in page and ("&lt;why&gt;" in page or points == 10)


def test_a_part_counts_as_it_does_on_the_worst_inputs() -> None:
    good, bad = Part("a", 5, 5), Part("a", 2, 5, "why")
    other = Part("b", 3, 3)
    score = weakest([Score("t", (good, other)), Score("t", (bad, other))])
    assert (score.points, score.reason) == (5, "why")


def test_an_ask_answers_questions_and_has_no_score() -> None:
    task = TASKS["reductions.merge_moments"]
    said: list[Any] = []
    questions = [*map(encode, task.inputs(40)[:2]), None]

    def send(message: Any) -> Any:
        said.append(message)
        return {"case": questions[len(said) - 1]}

    harness.answer_grader(send)
    try:
        assert task.driver(lambda a, b: (0, 0.0, 0.0)) is None
    finally:
        harness.answer_grader(None)
    assert said[0] == {"task": task.name} and [list(each) for each in said[1:]] == [["answer"]] * 2
    assert "40" not in json.dumps(said), "seeds stay outside"
    assert examined(task, partial(answers_always, said[1]["answer"]), (40,)).points == 0
    with pytest.raises(RuntimeError, match="by a grader only"):
        task.driver(blank)


def test_the_picture_of_a_roofline_shows_what_is_right() -> None:
    rows = {row.name: row for row in fusion.picture().rows}
    right = {key: row[1] for key, row in fusion.READINGS.items()}
    assert right["ridge"] == fusion.PEAK / fusion.BANDWIDTH
    assert (rows["a"].bytes / rows["b"].bytes, rows["a"].seconds / rows["b"].seconds) == (right["bytes"], right["time"])
    share = {name: max(row.of_bandwidth, row.of_peak) for name, row in rows.items()}  # of the nearer roof
    assert right["below"] == "".join(name for name in rows if share[name] < 0.9)
    assert right["above"] == "".join(name for name in rows if share[name] > 1.1)
    assert right["memory"] == "".join(name for name in rows if rows[name].of_bandwidth == 1)
    assert right["arithmetic"] == "".join(name for name in rows if rows[name].of_peak == 1)


# Samples --------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 15))
@settings(max_examples=60)
def test_random_graphs_are_legal_run_and_read_back(seed: int, size: int) -> None:
    import random

    graph = random_graph(random.Random(seed), size, constants=0.3, repeats=0.3, outputs=2)
    again = Graph.parse(str(graph))
    assert again == graph
    arrays = values_for(graph, np.random.default_rng(seed))
    for one, other in zip(evaluate(graph, arrays), evaluate(again, arrays), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["sub", "exp", "maximum"])
@pytest.mark.parametrize("seed", range(3))
def test_shrinking_ends_at_a_graph_from_which_nothing_can_be_left_out(name: str, seed: int) -> None:
    import random

    draws = random.Random(seed)
    graph = next(each for each in iter(lambda: random_graph(draws, 14, outputs=3), None) if each.count()[name])
    dialogue = smaller("", str(graph), True, lambda part, text, answer: "wrong" if answer else None, 60)
    answer = None
    with pytest.raises(StopIteration) as end:
        while True:
            _, text = decode(dialogue.send(answer))
            answer = Graph.parse(text).count()[name] > 0
    small = Graph.parse(decode(end.value.value)[0])
    assert small.count() == {name: 1} and len(small.outputs) == 1 and len(small.inputs) <= 1


def test_faults_say_what_to_do() -> None:
    assert "does a loop never end" in str(Fault("timeout", "5"))
    assert "needs a loop" in str(Fault("RecursionError"))
    assert str(Fault("NotImplementedError")) == "it has not been written yet"


def test_a_debugger_works_after_something_was_stopped() -> None:
    """In Python 3.11 a function that is traced was never entered again: so this is tried in a process of its own."""
    program = """
import subprocess
import sys
from minitorch.classroom.harness.limit import limited

def endless():
    while True:
        pass

limited(endless, 0.05)
sys.settrace(lambda *_: None)
print((lambda: "entered")())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "entered\n"
