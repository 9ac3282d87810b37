"""Context managers as decorators: whatever kind of function is decorated runs in the block, and its caller does not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any

import pytest

import minitorch as mt
from minitorch.interpreters import current, current_watcher

# How to make a block, and what there is to see of it.
BLOCKS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "no_grad": (mt.no_grad, mt.is_grad_enabled),
    "enable_grad": (mt.enable_grad, lambda: not mt.is_grad_enabled()),
    "set_grad_enabled": (lambda: mt.set_grad_enabled(False), mt.is_grad_enabled),
    "autocast": (lambda: mt.autocast("cpu"), lambda: not mt.is_autocast_enabled()),
    "lazy": (mt.lazy, lambda: current().recording is None),
    "check_nan": (mt.debug.check_nan, lambda: current_watcher() is None),
    "profile": (mt.profile, lambda: current_watcher() is None),
}


def plain(is_out: Any, seen: list[bool]) -> Any:
    def run() -> int:
        seen.append(is_out())
        return 3

    return run


def generator(is_out: Any, seen: list[bool]) -> Any:
    def run() -> Generator[int, Any, int]:
        try:
            got = None
            for number in range(3):
                seen.append(is_out())
                try:
                    got = yield got or number
                except KeyError:
                    seen.append(is_out())
            return 3
        finally:
            seen.append(is_out())

    return run


def asynchronous(is_out: Any, seen: list[bool]) -> Any:
    async def run() -> int:
        seen.append(is_out())
        await asyncio.sleep(0)
        seen.append(is_out())
        return 3

    return run


def asynchronous_generator(is_out: Any, seen: list[bool]) -> Any:
    async def run() -> AsyncIterator[int]:
        try:
            for number in range(3):
                seen.append(is_out())
                await asyncio.sleep(0)
                seen.append(is_out())
                with contextlib.suppress(KeyError):
                    yield number
        finally:
            seen.append(is_out())

    return run


class Watching:
    """Drives what was decorated, and notes what its caller sees between the steps."""

    def __init__(self, is_out: Callable[[], bool]) -> None:
        self.is_out, self.seen = is_out, list[bool]()

    def look(self) -> None:
        self.seen.append(self.is_out())

    def drive(self, made: Any) -> Any:
        if hasattr(made, "__aiter__"):
            return asyncio.run(self._asynchronously(made))
        if hasattr(made, "send") and hasattr(made, "cr_frame"):
            return asyncio.run(self._beside(made))
        if hasattr(made, "send"):
            found = [next(made)]
            self.look()
            found.append(made.send(7))
            self.look()
            with contextlib.suppress(StopIteration):
                found.append(made.throw(KeyError("x")))
            self.look()
            made.close()
            return found
        return made

    async def _beside(self, made: Any) -> Any:
        task = asyncio.ensure_future(made)
        while not task.done():
            self.look()
            await asyncio.sleep(0)
        return task.result()

    async def _asynchronously(self, made: Any) -> Any:
        found = [await made.__anext__()]
        self.look()
        found.append(await made.athrow(KeyError("x")))
        self.look()
        await made.aclose()
        return found


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("kind", [plain, generator, asynchronous, asynchronous_generator])
def test_a_decorated_function_of_any_kind_runs_in_its_block(name: str, kind: Any) -> None:
    make, is_out = BLOCKS[name]
    with mt.set_grad_enabled(name != "enable_grad"):
        inside: list[bool] = []
        outside = Watching(is_out)
        expected = Watching(is_out).drive(kind(is_out, [])())
        assert outside.drive(make()(kind(is_out, inside))()) == expected
        outside.look()
    assert inside and not any(inside)
    assert all(outside.seen)


def test_a_decorated_class_is_said_to_be_a_class() -> None:
    with pytest.warns(FutureWarning, match="Model is a class"):

        @mt.no_grad()
        class Model:
            def __init__(self) -> None:
                self.enabled = mt.is_grad_enabled()

    assert Model().enabled is False
