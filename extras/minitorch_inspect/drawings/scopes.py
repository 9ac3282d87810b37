"""Scopes: the calls of modules that a recorded operation is a part of, from the outermost one to the innermost.

A gradient has the scope of the operation that it is a gradient of, inside a scope for the backward pass. Scopes are for
pictures only: no graph and no pass knows of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from minitorch.interpreters import Span
from minitorch.ir import Node
from minitorch.nn import Module

Scope = tuple[str, str]  # an id that is unique in the recording, and a name
Nesting = tuple[Scope, ...]

BACKWARD: Scope = ("backward", "backward pass")


def scopes(nodes: Sequence[Node], calls: Iterable[Span], rules: Iterable[Span]) -> dict[Node, Nesting]:
    """The path of every node that has one.

    Args:
        nodes: of a recording, in order.
        calls: of modules.
        rules: of gradients.

    Example:
        >>> import minitorch as mt
        >>> model = mt.nn.Sequential(mt.nn.Linear(2, 2), mt.nn.Linear(2, 2))
        >>> traced = mt.jit(lambda x: mt.grad(lambda x: model(x).sum())(x)).traced(mt.ones(1, 2))
        >>> found = scopes(*traced.recorded)
        >>> for node in traced.program.graph.nodes:
        ...     if node.primitive.name == "dot":
        ...         print(" / ".join(name for _, name in found[node]))
        Sequential / 0 · Linear
        Sequential / 1 · Linear
        backward pass / Sequential / 1 · Linear
        backward pass / Sequential / 0 · Linear
    """
    found: dict[Node, Nesting] = {}
    # The innermost span of every node and entry: longer spans first, and overwritten by shorter ones.
    spans = sorted(calls, key=lambda span: (span.begin, -span.last))
    names: Mapping[int, str] = {}
    open_: list[tuple[Span, Nesting]] = []
    moments: list[int] = []  # serial numbers at which the path changes, and the path from there on
    paths: list[Nesting] = []
    for number, span in enumerate(spans):
        while open_ and open_[-1][0].last < span.first:
            _close(open_, moments, paths)
        if not open_:
            names = _names(span.what)
        path = (*(open_[-1][1] if open_ else ()), (f"m{number}", _label(span.what, names, bool(open_))))
        open_.append((span, path))
        moments.append(span.first)
        paths.append(path)
        for node in nodes[span.begin : span.end]:
            found[node] = path
    while open_:
        _close(open_, moments, paths)
    for span in rules:
        at = bisect_right(moments, span.first) - 1
        forward = paths[at] if at >= 0 else ()
        path = (BACKWARD, *((f"b{id}", name) for id, name in forward))
        for node in nodes[span.begin : span.end]:
            found[node] = path
    return found


def _close(open_: list[tuple[Span, Nesting]], moments: list[int], paths: list[Nesting]) -> None:
    span, _ = open_.pop()
    moments.append(span.last)
    paths.append(open_[-1][1] if open_ else ())


def _names(module: Module) -> dict[int, str]:
    return {id(each): name for name, each in module.named_modules()}


def _label(module: Module, names: Mapping[int, str], is_part: bool) -> str:
    kind = type(module).__name__
    name = names.get(id(module), "")
    return f"{name} · {kind}" if is_part and name else kind
