"""Fusion golf: what is counted is the attempt, what computes something else has no score, and the best is reachable."""

from __future__ import annotations

import pytest

import minitorch as mt
from minitorch import course
from minitorch.compiler.target import TARGETS
from minitorch_course.golfing import Score, counted, differs
from minitorch_course.holes import HOLES

every_hole = pytest.mark.parametrize("name", HOLES)


@every_hole
def test_the_best_computes_the_same_and_moves_less(name, capsys):
    hole = course.golf(name)
    score = hole.play(HOLES[name].best)
    assert score == hole.best() < hole.start
    assert capsys.readouterr().out.endswith(f"best known: {score}. You found it.\n")


@every_hole
def test_who_has_changed_nothing_is_not_told_the_best(name, capsys):
    hole = course.golf(name)
    assert hole.play(hole.given) == hole.start
    assert "best" not in capsys.readouterr().out
    assert "best" not in repr(hole) and str(hole.start) in repr(hole)


@every_hole
@pytest.mark.parametrize("target", TARGETS)
def test_the_best_moves_less_on_every_target(name, target):
    hole = HOLES[name]
    arguments = hole.arguments(0)
    given, best = (
        sum(
            kernel.bytes_read + kernel.bytes_written
            for kernel in mt.jit(f).ledger(*arguments).for_target(target).kernels
        )
        for f in (hole.given, hole.best)
    )
    assert best < 0.75 * given


def test_an_attempt_that_computes_something_else_has_no_score(capsys):
    hole = course.golf("variance")
    wrong = {
        "has the shape [2048]": lambda x: x.var(1),
        "it returns tuple": lambda x: (x.mean(), x.var()),
        "should be": lambda x: x.std() * 0.5,
        "float": lambda x: 1.0,
        "is nan and": lambda x: (x - x).sum() / (x - x).sum(),
    }
    for reason, attempt in wrong.items():
        assert hole.play(attempt) is None
        said = capsys.readouterr().out
        assert said.startswith("no score: ") and reason in said and "best" not in said


def test_cancellation_is_found(capsys):
    """One pass without a shift is right for numbers around 0, and wrong for numbers around 500."""

    def naive(x):
        return x.square().sum(1).sum() / x.numel() - (x.sum(1).sum() / x.numel()).square()

    hole = course.golf("variance")
    assert not differs(naive, hole.given, hole.arguments)
    assert hole.play(naive) is None
    assert "for numbers from 49" in capsys.readouterr().out


def test_a_worse_attempt_is_counted_and_sees_the_best(capsys):
    hole = course.golf("weighted")

    def worse(x, w):
        return (x / x.sum(1, keepdim=True)).sort(1).values.sum(1, keepdim=True) * 0 + hole.given(x, w)

    assert hole.play(worse) > hole.start
    assert capsys.readouterr().out.splitlines()[-1] == f"best known: {hole.best()}."


def test_scores_compare_bytes_first_and_ignore_a_few():
    assert Score(1, 9) < Score(2, 1) < Score(2, 2)
    one, other = (counted(lambda x: x + 1, (mt.ones(size),)) for size in (4_000_000, 4_000_500))
    assert one == other and str(one) == "32 MB, 1 kernel"


def test_playing_leaves_the_generator_alone():
    mt.manual_seed(0)
    expected = mt.rand(3).tolist()
    mt.manual_seed(0)
    course.golf("softmax").play(lambda x: x.sum(0))
    assert mt.rand(3).tolist() == expected


def test_an_unknown_hole_is_refused():
    with pytest.raises(ValueError, match="there is no hole 'x'; there is 'softmax', 'variance', 'weighted'"):
        course.golf("x")
