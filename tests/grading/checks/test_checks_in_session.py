"""A check in a student's session answers the same, whatever the session is inside of and has switched off."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import pytest

import minitorch as mt
from minitorch_grading import checks


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


AROUND: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
    "lazy": mt.lazy,
    "no_grad": mt.no_grad,
    "Graph": mt.Graph,
    "profile": mt.profile,
}


@pytest.mark.parametrize("name", AROUND)
def test_a_check_answers_the_same_inside_of_any_block(name: str) -> None:
    with AROUND[name]():
        for score in (
            checks.TASKS["graph.order"].score(order, (0,)),
            checks.TASKS["eager.unbroadcast"].score(unbroadcast, (0,)),
        ):
            assert score.points == score.of, score
        assert mt.is_grad_enabled() == (name != "no_grad")
    with mt.lazy():
        total = mt.ones(2) + 1
    assert total.tolist() == [2, 2]


def test_a_student_who_switched_gradients_off_has_all_points() -> None:
    mt.set_grad_enabled(False)
    try:
        assert checks.TASKS["eager.unbroadcast"](unbroadcast).points == 30
        assert not mt.is_grad_enabled()
    finally:
        mt.set_grad_enabled(True)


def test_a_traced_session_is_checked_too() -> None:
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        assert checks.TASKS["graph.order"].score(order, (0,)).points == 30
    finally:
        sys.settrace(before)
