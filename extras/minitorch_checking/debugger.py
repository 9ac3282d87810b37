"""Python's debugger on lines whose values a graph computed: each stop is a frame made for the purpose.

The frame has the user's file and line, and the names and values that belong there, so `pdb` shows the line, evaluates
expressions and steps as usual. The engine's own frames are passed over.
"""

from __future__ import annotations

import ast
import os
import pdb
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from minitorch.ir import Source
from minitorch.packages import PACKAGES

SKIPPED = (*PACKAGES, *(f"{package}.*" for package in PACKAGES), "numpy", "numpy.*", "contextlib")
DO = "__do__"  # the name of the action in a line's namespace


def line(source: Source, function: str) -> CodeType:
    """Code with a file and a line number that calls the action under `DO` of its namespace."""
    call = ast.Expr(ast.Call(ast.Name(DO, ast.Load()), [], []))
    ast.fix_missing_locations(call)
    for node in ast.walk(call):
        if isinstance(node, (ast.expr, ast.stmt)):
            node.lineno = node.end_lineno = source.line
    code: CodeType = compile(ast.Module([call], []), source.file, "exec")
    return code.replace(co_name=function, co_qualname=function)


class Debugger(pdb.Pdb):
    """`pdb` for code made by `line`: it does not stop at calls and returns."""

    def __init__(self) -> None:
        super().__init__(skip=SKIPPED)

    def stop_here(self, frame: FrameType) -> bool:
        """Whether to stop in a frame.

        IPython's debugger, which a kernel of Jupyter puts in the place of `pdb`, says a line for each that is skipped.
        """
        module = frame.f_globals.get("__name__", "")
        return not self.is_skipped_module(module) and super().stop_here(frame)

    def user_call(self, frame: FrameType, argument_list: None) -> None:
        """A function is called."""
        if DO not in frame.f_locals:
            super().user_call(frame, argument_list)

    def user_return(self, frame: FrameType, return_value: Any) -> None:
        """A function is about to return."""
        if DO not in frame.f_locals:
            super().user_return(frame, return_value)

    def stop_next(self) -> None:
        """Stop at the next line."""
        sys.settrace(None)  # a stepping debugger would otherwise stop in its own functions
        self.reset()
        self.set_step()
        sys.settrace(self.trace_dispatch)

    @contextmanager
    def attached(self) -> Iterator[None]:
        """A block that ends the debugging."""
        before = sys.gettrace()
        try:
            yield
        finally:
            sys.settrace(before)


def stop_at(source: Source, function: str, outside: Mapping[str, Any], names: Mapping[str, Any]) -> None:
    """Stop at a line that has run, with these values of its names.

    Args:
        function: the name of the function that the line is in.
        outside: the global names.
        names: the local ones.

    Raises:
        BdbQuit: if the user quits the debugger.
    """

    def do_nothing() -> None:
        return None

    code = line(source, function)
    if _is_replaced():
        exec(code, dict(outside), {**names, DO: sys.breakpointhook})
        return
    debugger = Debugger()
    with debugger.attached():
        debugger.stop_next()
        exec(code, dict(outside), {**names, DO: do_nothing})


def stop_in(frame: FrameType) -> None:
    """Stop in a running frame."""
    if _is_replaced():
        stop_at(Source(frame.f_code.co_filename, frame.f_lineno), frame.f_code.co_name, frame.f_globals, frame.f_locals)
    else:
        Debugger().set_trace(frame)


def _is_replaced() -> bool:
    """Whether the user has chosen another debugger.

    A kernel of Jupyter has JupyterLab's, which passes over breakpoints unless it is switched on.
    """
    if getattr(sys.breakpointhook, "__name__", "") == "debugpy_breakpointhook":
        return bool(sys.modules["debugpy"].is_client_connected())
    return sys.breakpointhook is not sys.__breakpointhook__ or bool(os.environ.get("PYTHONBREAKPOINT"))
