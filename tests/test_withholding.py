"""A check in a student's session: parts of the engine are out of use meanwhile, and afterwards nothing is different."""

from __future__ import annotations

import contextlib
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

import minitorch as mt
from minitorch.classroom import checks, parts, withholding
from minitorch.classroom.withheld import WithheldError
from minitorch.classroom.withholding import call_without

ASKS = dict.fromkeys(task.partition(".")[0] for task in checks.TASKS)
NEEDS = {name: import_module(f"minitorch.classroom.asks.{name}").NEEDS for name in ASKS}


def order(outputs: Any) -> Any:
    done: dict[Any, None] = {}
    pending = list(outputs)
    while pending:
        node = pending[-1]
        missing = [each for each in node.inputs if each not in done]
        pending += missing
        if not missing:
            done[pending.pop()] = None
    return list(done)


def unbroadcast(gradient: Any, shape: Any) -> Any:
    front = gradient.ndim - len(shape)
    dims = [*range(front), *(front + i for i, n in enumerate(shape) if n == 1)]
    return (gradient.sum(dim=dims) if dims else gradient).reshape(shape)


def loss() -> float:
    """Something of which no exercise needs a part."""
    x = mt.tensor([1.0, 2.0])
    return float(mt.nn.functional.mse_loss(x, x + 1).item())


def out_of_use() -> list[str]:
    """The names of the functions that have the code of a check."""
    return [name for name, each in withholding._functions.items() if each.__code__.co_name == withholding.REFUSING]


def is_refused(needs: Any, work: Callable[[], object]) -> bool:
    try:
        call_without(needs, work)
    except WithheldError:
        return True
    return False


@pytest.mark.parametrize("name", NEEDS)
def test_functions_with_variables_of_an_outer_one_are_out_of_use_too(name: str) -> None:
    x = mt.tensor([1.0])
    square = mt.nn.ReLU()  # made before; its methods are the engine's
    assert is_refused(NEEDS[name], lambda: square(x))
    assert is_refused(NEEDS[name], lambda: mt.exp(x)) == ("minitorch.functional" not in parts.kept(NEEDS[name]))
    assert mt.exp(square(x)).item() == pytest.approx(2.718, abs=1e-3)


def test_checks_in_two_threads_at_once_leave_the_engine_as_it_was() -> None:
    """The second begins in the first and ends after it."""
    entered, leave = threading.Event(), threading.Event()

    def first() -> None:
        call_without(NEEDS["graph"], lambda: (entered.set(), leave.wait(10)))

    def second() -> None:
        entered.wait(10)
        call_without(NEEDS["eager"], lambda: (leave.set(), one.join()))

    one, other = threading.Thread(target=first), threading.Thread(target=second)
    one.start(), other.start()
    other.join()
    assert loss() == 1
    assert not out_of_use()


def test_another_thread_has_the_whole_engine_during_a_check() -> None:
    found: list[object] = []

    def work() -> None:
        thread = threading.Thread(target=lambda: found.append(loss()))
        thread.start()
        thread.join()

    call_without(NEEDS["graph"], work)
    assert found == [1]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer on this system")
def test_an_interrupt_at_any_moment_leaves_the_engine_in_use() -> None:
    """The moments are drawn from the whole check, most of which is the exchange of codes, and from a little after."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def check() -> None:
        call_without(NEEDS["graph"], lambda: None)

    check()
    began = time.perf_counter()
    check()
    lasts = time.perf_counter() - began
    before = signal.signal(signal.SIGALRM, interrupt)
    drawn = random.Random(0)
    kept: list[BaseException] = []  # as IPython keeps the last one: with it, all frames on the way
    try:
        for _ in range(100):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-6 + 1.5 * lasts * drawn.random())
                check()
                time.sleep(1)
            except KeyboardInterrupt as error:
                kept.append(error)
            assert loss() == 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(kept) == 100


def test_what_an_interrupt_left_out_of_use_is_in_use_again_with_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(withholding, "_put_back", lambda: None)  # as if it had never been reached
        call_without(NEEDS["graph"], lambda: None)
    assert out_of_use()
    assert loss() == 1
    assert not out_of_use()


def test_a_check_in_a_check_withholds_for_both() -> None:
    def inner() -> bool:
        x = mt.tensor([1.0])
        assert is_refused(NEEDS["eager"], lambda: mt.nn.functional.relu(x))
        return is_refused(NEEDS["graph"], lambda: mt.exp(x))

    assert call_without(NEEDS["eager"], inner)
    assert loss() == 1


AROUND: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
    "lazy": mt.lazy,
    "no_grad": mt.no_grad,
    "Graph": mt.Graph,
    "profile": mt.profile,
}


@pytest.mark.parametrize("name", AROUND)
def test_a_check_answers_the_same_inside_of_any_block(name: str) -> None:
    with AROUND[name]():
        for score in (checks.graph.order.score(order, (0,)), checks.eager.unbroadcast.score(unbroadcast, (0,))):
            assert score.points == score.of, score
        assert mt.is_grad_enabled() == (name != "no_grad")
    with mt.lazy():
        total = mt.ones(2) + 1
    assert total.tolist() == [2, 2]


def test_a_student_who_switched_gradients_off_has_all_points() -> None:
    mt.set_grad_enabled(False)
    try:
        assert checks.eager.unbroadcast(unbroadcast).points == 30
        assert not mt.is_grad_enabled()
    finally:
        mt.set_grad_enabled(True)


def test_a_traced_session_is_checked_too() -> None:
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        assert checks.graph.order.score(order, (0,)).points == 30
    finally:
        sys.settrace(before)
