"""A child process runs what may crash: whatever becomes of it, the parent goes on, and knows what happened."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psutil
import pytest

from minitorch_checking import isolation
from minitorch_checking.isolation import ChildDiedError, isolated

pytestmark = pytest.mark.skipif(not isolation.AVAILABLE, reason="no child processes by fork here")


@pytest.fixture
def no_child_left() -> Iterator[None]:
    """Of the children that a test starts, none is there afterwards; other tests may have left some."""
    before = set(psutil.Process().children())
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore interrupts
    yield
    signal.signal(signal.SIGINT, handler)
    assert set(psutil.Process().children()) <= before


def test_what_it_returns_comes_back_and_what_it_changes_does_not() -> None:
    array = np.zeros(3_000_000)

    def run() -> np.ndarray:
        array[:] = np.arange(3_000_000)
        return array

    assert (isolated(run, 60) == np.arange(3_000_000)).all()
    assert not array.any()


def crash() -> None:
    ctypes.memset(8, 0, 8)


@pytest.mark.parametrize(
    ("run", "seconds", "how"),
    [
        (crash, 60, "SIGSEGV"),
        (os.abort, 60, "SIGABRT"),
        (lambda: os._exit(3), 60, "status 3"),
        (lambda: os._exit(0), 60, "status 0"),
        (lambda: time.sleep(100), 1, "did not end within 1 s"),
        (lambda: signal.pause(), 1, "did not end within 1 s"),
    ],
)
def test_its_end_has_a_name(
    run: Callable[[], Any], seconds: float, how: str, capfd: pytest.CaptureFixture[str], no_child_left: None
) -> None:
    with pytest.raises(ChildDiedError, match=how):
        isolated(run, seconds)
    assert capfd.readouterr().err == ""


def test_what_it_raises_is_raised() -> None:
    def local() -> None:
        class HereError(Exception):
            pass

        raise HereError("unknown elsewhere")

    with pytest.raises(ZeroDivisionError):
        isolated(lambda: 1 // 0, 60)
    with pytest.raises(RuntimeError, match="HereError: unknown elsewhere"):
        isolated(local, 60)


def test_an_interrupt_ends_it(no_child_left: None) -> None:
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        isolated(lambda: time.sleep(100), 60)


def test_an_interrupt_while_the_process_forks_is_not_lost(no_child_left: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries have hooks called around a fork; Python drops what these raise."""
    fork = os.fork

    def interrupted() -> int:
        os.kill(os.getpid(), signal.SIGINT)
        with contextlib.suppress(KeyboardInterrupt):  # as Python does with a hook
            time.sleep(0.05)
        return fork()

    monkeypatch.setattr(os, "fork", interrupted)
    with pytest.raises(KeyboardInterrupt):
        isolated(lambda: time.sleep(100), 60)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_where_there_is_no_fork_it_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "AVAILABLE", False)
    found: list[int] = []
    assert isolated(lambda: found.append(1), 60) is None and found == [1]
