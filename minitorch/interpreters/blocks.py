"""Context managers as decorators, also of generators and asynchronous functions, which run in the block.

`contextlib.ContextDecorator` opens its block around the call, which runs no step of a generator. While a generator is
suspended at a `yield` or an `await`, its caller keeps the caller's own modes.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

Make = Callable[[], AbstractContextManager[Any]]


def decorated(make: Make, function: Callable[..., Any]) -> Any:
    """Wrap a function so that each run opens its own block, which threads do not share.

    Args:
        make: makes the context manager of a block.

    Warns:
        FutureWarning: for a class: only the creation of its objects runs in the block, as in PyTorch.

    Example:
        >>> import minitorch as mt
        >>> @mt.no_grad()
        ... def flags():
        ...     yield mt.is_grad_enabled()
        >>> list(flags())
        [False]
    """
    if inspect.isclass(function):
        text = f"{function.__name__} is a class, and only the making of its objects is in the block: decorate methods"
        warnings.warn(text, FutureWarning, stacklevel=3)
    called: Any

    def plain(*args: Any, **options: Any) -> Any:
        with make():
            return function(*args, **options)

    def generator(*args: Any, **options: Any) -> Any:
        return (yield from _steps(make, function(*args, **options)))

    async def awaited(*args: Any, **options: Any) -> Any:
        return await _Awaited(make, function(*args, **options))

    def asynchronous(*args: Any, **options: Any) -> Any:
        return _asynchronous_steps(make, function(*args, **options))

    if inspect.isgeneratorfunction(function):
        called = generator
    elif inspect.iscoroutinefunction(function):
        called = awaited
    else:
        called = asynchronous if inspect.isasyncgenfunction(function) else plain
    return functools.wraps(function)(called)


def _steps(make: Make, steps: Any) -> Generator[Any, Any, Any]:
    """Run a generator or a coroutine, each step of it in a block."""
    resume, given = steps.send, None
    try:
        while True:
            with make():
                result = resume(given)
            try:
                given = yield result
                resume = steps.send
            except GeneratorExit:
                with make():
                    steps.close()
                raise
            except BaseException as error:
                resume, given = steps.throw, error
    except StopIteration as end:
        return end.value


class _Awaited:
    """An awaitable, each step of which runs in a block."""

    def __init__(self, make: Make, steps: Any) -> None:
        self.make, self.steps = make, steps

    def __await__(self) -> Generator[Any, Any, Any]:
        return _steps(self.make, self.steps)


async def _asynchronous_steps(make: Make, steps: Any) -> AsyncIterator[Any]:
    resume, given = steps.asend, None
    while True:
        try:
            result = await _Awaited(make, resume(given))
        except StopAsyncIteration:
            return
        try:
            given = yield result
            resume = steps.asend
        except GeneratorExit:
            await _Awaited(make, steps.aclose())
            raise
        except BaseException as error:
            resume, given = steps.athrow, error


class _Block(AbstractContextManager[Any]):
    """The context manager and decorator that a function decorated with `block` returns."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._open: list[AbstractContextManager[Any]] = []

    def __enter__(self) -> Any:
        self._open.append(self._make())
        return self._open[-1].__enter__()

    def __exit__(self, *exception: Any) -> bool | None:
        return self._open.pop().__exit__(*exception)

    def __call__(self, function: Callable[..., Any]) -> Any:
        return decorated(self._make, function)


def block(function: Callable[..., Iterator[Any]]) -> Callable[..., _Block]:
    """Make a context manager as `contextlib.contextmanager` does, which also decorates all kinds of functions."""
    make = contextmanager(function)

    @functools.wraps(function)
    def made(*args: Any, **options: Any) -> _Block:
        return _Block(lambda: make(*args, **options))

    return made
