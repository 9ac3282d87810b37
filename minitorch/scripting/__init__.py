"""`script`: Python's own control flow over traced tensors, rewritten from a function's source."""

from __future__ import annotations

import ast
import copy
import functools
import linecache
from collections.abc import Callable
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, TypeVar

from ..errors import TracingError
from ..ir import Source
from ..nn.module import Module
from . import running
from .rewriting import FUNCTIONS, HELPERS, RewritingError, rewrite
from .variables import codes

__all__ = ["script"]

F = TypeVar("F", bound=Callable[..., Any])


def script(function: F) -> F:
    """Rewrite a function so that its `if`, `for` and `while` over traced tensors stay in a recording.

    Eagerly, and wherever conditions are Python's values or tensors with values, the function does what is written. In
    a recording (`jit`, `Session`) and within `vmap`, an ``if`` or ``while`` on a traced tensor, ``for x in tensor`` and
    ``for i in range(n)`` of a traced `n` become `cond`, `while_loop` and `scan`, with ``break``, ``continue``,
    ``return``, ``and``, ``or``, ``not``, ``a if t else b`` and ``a < b < c`` in them. Errors and graphs name the
    function's own lines. A function that it calls is not rewritten: decorate that, too.

    Args:
        function: one whose source can be read, a method, or a module, whose `forward` is rewritten, and which is
            returned. Other decorators go above this one.

    Raises:
        TracingError: if there is no source, or a statement has no other form; in a recording where a branch or loop
            cannot be kept (``MT117``).

    Example:
        >>> import minitorch as mt
        >>> @mt.jit
        ... @mt.script
        ... def steps(x):
        ...     count = 0
        ...     while x > 1:
        ...         x = x / 2 if x % 2 == 0 else 3 * x + 1
        ...         count += 1
        ...     return count
        >>> steps(mt.tensor(6.0)), steps(mt.tensor(27.0))
        (tensor(8), tensor(111))
    """
    given: Any = function
    if isinstance(given, Module):
        given.forward = script(given.forward)
        return function
    if isinstance(given, MethodType):
        return MethodType(script(given.__func__), given.__self__)  # type: ignore[return-value]
    if isinstance(given, (staticmethod, classmethod)):
        return type(given)(script(given.__func__))  # type: ignore[return-value]
    if not isinstance(given, FunctionType):
        raise TypeError(f"script: a function, a method or a module is needed, not {type(given).__name__}")
    if HELPERS in given.__code__.co_freevars:  # it is rewritten already
        return function
    if hasattr(given, "__wrapped__"):
        raise _refused(given, "it is wrapped by a decorator", "write @mt.script below the other decorators")
    code = _rewritten(given)
    known = dict(zip(given.__code__.co_freevars, given.__closure__ or (), strict=True))
    known[HELPERS] = CellType(running)
    cells = tuple([known[name] for name in code.co_freevars])
    made = FunctionType(code, given.__globals__, given.__name__, given.__defaults__, cells)
    made.__kwdefaults__ = given.__kwdefaults__
    functools.update_wrapper(made, given)
    del made.__wrapped__  # type: ignore[attr-defined]
    return made  # type: ignore[return-value]


def _refused(function: FunctionType, problem: str, fix: str, line: int | None = None) -> TracingError:
    code = function.__code__
    why = "a function is rewritten from its source, statement by statement"
    where = str(Source(code.co_filename, line or code.co_firstlineno))
    return TracingError("MT117", f"{function.__name__} cannot be rewritten: {problem}", where=where, why=why, fix=fix)


@functools.lru_cache(16)
def _parsed(text: str) -> list[tuple[Any, str]]:
    """Return the functions of a file, each with the name of the class around it."""
    found: list[tuple[Any, str]] = []
    pending: list[tuple[ast.AST, str]] = [(ast.parse(text), "")]
    for node, owner in pending:  # the list grows during the loop
        if isinstance(node, (*FUNCTIONS, ast.Lambda)):
            found.append((node, owner))
        inside = node.name if isinstance(node, ast.ClassDef) else owner
        pending += [(child, inside) for child in ast.iter_child_nodes(node)]
    return found


def _definition(function: FunctionType) -> tuple[Any, str]:
    """Return the syntax tree of a function, and the name of its class."""
    code = function.__code__
    text = "".join(linecache.getlines(code.co_filename, function.__globals__))
    try:
        functions = _parsed(text)
    except SyntaxError:
        functions = []
    found = [
        (node, owner)
        for node, owner in functions
        if min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))]) == code.co_firstlineno
        and getattr(node, "name", "<lambda>") == code.co_name
        and [each.arg for each in (*node.args.posonlyargs, *node.args.args)] == [*code.co_varnames[: code.co_argcount]]
    ]
    if not found:
        raise _refused(function, "there is no source for it", "define it in a file or a notebook")
    if len(found) > 1:
        raise _refused(function, "its line has several functions", "give each lambda a line of its own, or use def")
    return copy.deepcopy(found[0])


def _rewritten(function: FunctionType) -> CodeType:
    """Return the code of a function after it is rewritten, with the lines of the file."""
    node, owner = _definition(function)
    if not isinstance(node, ast.Lambda):
        node.decorator_list, node.lineno = [], function.__code__.co_firstlineno
    try:
        body: Any = rewrite(node)
    except RewritingError as error:
        raise _refused(function, str(error), "write it without", error.line) from None
    if isinstance(body, ast.Lambda):
        body = ast.copy_location(ast.Expr(body), body)
    if owner:  # names such as `self.__size` are the class's own
        body = ast.ClassDef(owner, [], [], [body], [])
    free = [*function.__code__.co_freevars, HELPERS]
    outside = [name for name in (owner, function.__name__) if name.isidentifier() and name not in free]
    tree: Any = ast.parse(f"def outer({', '.join(free)}):\n " + "".join(f"global {each};" for each in outside) + "pass")
    tree.body[0].body.append(ast.fix_missing_locations(body))
    flags = function.__code__.co_flags & annotations.compiler_flag
    code = compile(tree, function.__code__.co_filename, "exec", flags=flags, dont_inherit=True)
    made = next(each for each in codes(code) if each.co_name == function.__code__.co_name)
    return made.replace(co_qualname=function.__code__.co_qualname)
