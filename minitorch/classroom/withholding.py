"""Out of use for a while: the parts of the engine that an exercise does not need, in a process that has all of them.

In a student's notebook the whole engine is loaded. While a check calls the student's function, whatever will not be
there when the exercise is graded raises, by whatever name it is reached: the code of the functions is exchanged, not
their names. So nobody learns only from the grade that a function did the task for them. This is no protection; it can
be undone, and where a class is graded there is nothing to undo (`grading.sandbox.image`).

The session must not suffer. An interrupt may come at any instruction, also where the codes are put back, and other
threads may be at work in the engine. So a code that refuses looks at the stack first: where no check is calling the
student's function, it does what the function does, and all codes are put back if no thread is in a check.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar

from .asks.needs import Needs
from .parts import NAME, kept, withheld_names
from .withheld import refuse

KEPT = ("__del__", "__eq__", "__getattr__", "__hash__", "__repr__", "__str__")  # which Python calls by itself

T = TypeVar("T")

_functions: dict[str, FunctionType] = {}  # all that were ever out of use, by the names by which they refuse
_codes: dict[FunctionType, CodeType] = {}  # the code of each as it is defined; nothing is ever taken out again


def call_without(needs: Needs, work: Callable[[], T]) -> T:
    """Call a function that gets nothing of the engine but what an exercise needs.

    Args:
        needs: what it needs.
        work: the function.

    Example:
        >>> import minitorch as mt
        >>> from minitorch.classroom.asks.graph import NEEDS
        >>> from minitorch.classroom.withheld import WithheldError
        >>> x = mt.ones(2)
        >>> try:
        ...     call_without(NEEDS, lambda: mt.nn.functional.mse_loss(x, x))
        ... except WithheldError as error:
        ...     print(error)
        minitorch.nn.functional.mse_loss is no part of this exercise, and is not there when it is graded
    """
    refusing = _refusing(needs, len(sys.modules))
    try:
        for function, code in refusing.values():
            now = function.__code__
            if now.co_name != REFUSING:
                _codes[function] = now
            _give(function, code)
        return _check(refusing, work)
    finally:
        _put_back()


def call_with_all(work: Callable[[], T]) -> T:
    """Call a function of the judge's in the middle of `call_without`: nothing is withheld from it."""
    return _check({}, work)


def _check(refused: Mapping[str, object], work: Callable[[], T]) -> T:
    """Do the work; on the stack this frame says that a check is calling a student's function, and what is refused."""
    return work()


def _put_back() -> None:
    for function, code in _codes.items():
        if function.__code__.co_name == REFUSING:
            _give(function, code)


def _give(function: FunctionType, code: CodeType) -> None:
    """Give a function other code; Python 3.13 warns where one of the two is a generator's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        function.__code__ = code


def _called(name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """A call of a function whose code refuses: an error in a check that does without it, or what it always does."""
    refused = _refused_on(sys._getframe())
    if refused is not None and name in refused:
        refuse(name)
    if all(_refused_on(frame) is None for frame in sys._current_frames().values()):
        _put_back()  # a check was interrupted where it did that itself
    function = _functions[name]
    original = FunctionType(
        _codes[function], function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    original.__kwdefaults__ = function.__kwdefaults__
    return original(*arguments, **named)


def _refused_on(frame: FrameType | None) -> Mapping[str, object] | None:
    """What the innermost check on a stack refuses; None if there is no check on it."""
    while frame is not None:
        if frame.f_code is _check.__code__:
            found: Mapping[str, object] = frame.f_locals["refused"]
            return found
        frame = frame.f_back
    return None


@cache
def _refusing(needs: Needs, loaded: int) -> dict[str, tuple[FunctionType, CodeType]]:
    """The withheld functions by name, each with the code that it has meanwhile; `loaded` is how many modules are."""
    parts, names = kept(needs), withheld_names(needs)
    found = {}
    for module in [name for name in sys.modules if name.startswith(f"{NAME}.")]:
        if module.startswith(f"{NAME}.classroom"):
            continue
        for inner, function in _functions_in(sys.modules[module], module):
            if module not in parts or inner in names.get(module, ()):
                name = f"{module}.{inner}"
                _functions[name] = function
                found[name] = function, _code_that_refuses(name, function.__code__.co_freevars)
    return found


def _functions_in(holder: object, module: str, inside: str = "") -> Iterator[tuple[str, FunctionType]]:
    """The functions that are defined in a module, and the methods of its classes, by their names in it."""
    for name, value in list(vars(holder).items()):
        value = getattr(value, "__func__", value)  # of a static method, or one of the class
        if isinstance(value, FunctionType):
            if value.__module__ == module and name not in KEPT:
                yield f"{inside}{name}", value
        elif isinstance(value, type) and value.__module__ == module and not inside:
            yield from _functions_in(value, module, f"{name}.")


def _withheld_function(*arguments: object, **named: object) -> object:
    from minitorch.classroom.withholding import _called

    return _called("NAME", arguments, named)


def _code_that_refuses(name: str, free: tuple[str, ...]) -> CodeType:
    """The code for a function of this name; it has to have as many free variables as the function's own."""
    code = _withheld_function.__code__
    constants = tuple(name if each == "NAME" else each for each in code.co_consts)
    return code.replace(co_consts=constants, co_freevars=free)


REFUSING = _withheld_function.__name__  # which is also that of its code, wherever it is
