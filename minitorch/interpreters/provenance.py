"""Provenance of recorded values: the text that errors and `repr` give about a traced tensor."""

from __future__ import annotations

import threading

from ..errors import TracingError
from ..ir import INPUT, Node, user_source
from ..tensor import Batched, Tensor


class Trace:
    """The token of one recording. Its nodes carry it, so that an escaped node can be recognised.

    Attributes:
        name: of the recorded program.
        is_definition: whether it defines the graph of a Session.
        defers: whether it computes pending values when one is needed (`lazy`).
        thread: the thread that records it now, or None.
    """

    __slots__ = ("__weakref__", "defers", "is_definition", "name", "thread")

    def __init__(self, name: str, is_definition: bool = False, defers: bool = False) -> None:
        self.name = name
        self.is_definition = is_definition
        self.defers = defers
        self.thread: threading.Thread | None = None


def leaked(tensor: Tensor) -> TracingError:
    """Return the error for a tensor of another recording."""
    node = tensor._value
    if isinstance(node, Batched):
        return TracingError(
            "MT104",
            f"{tensor.spec}, the value of one example within vmap, was used after vmap had returned",
            where=str(user_source()),
            why="it stands for the values of all examples; it got out through a variable, list or attribute that "
            "outlives the function that vmap calls",
            fix="return it from the function and use the result",
        )
    if isinstance(node.trace, Trace) and node.trace.is_definition:
        return TracingError(
            "MT104",
            f"{tensor.spec}, a part of a `with mt.Graph()` block, was used outside of it",
            where=f"it is {made_by(node)}",
            why="it stands for a value inside a graph that a Session runs, and has no value outside of a run",
            fix="fetch it, session.run(y), and use the result; or compute with it inside the graph's `with` block",
        )
    thread = node.trace.thread if isinstance(node.trace, Trace) else None
    if thread is not None and thread is not threading.current_thread():
        return TracingError(
            "MT104",
            f"{tensor.spec}, a value of {node.trace.name}, was used in another thread",
            where=f"it is {made_by(node)}",
            why=f"the thread {thread.name!r} is recording it; a recording belongs to its thread, and others can "
            "neither add to it nor see what it has not computed yet",
            fix="use the result when the recording is over, or pass on a value that is computed (x.numpy(), if lazy)",
        )
    if thread is not None:
        return TracingError(
            "MT104",
            f"{tensor.spec}, a value of {node.trace.name}, was used in a trace of its own within it",
            where=f"it is {made_by(node)}",
            why=f"{node.trace.name} is still being recorded, so the value is not known yet, and freezing needs it",
            fix="pass it as an argument, or freeze the function outside",
        )
    if isinstance(node.trace, Trace) and node.trace.defers:
        return TracingError(
            "MT104",
            f"{tensor.spec} was pending in {node.trace.name}, and was never computed",
            where=f"it is {made_by(node)}",
            why="the run that would have computed it failed, and all values that were pending in it are lost",
            fix="compute it again; what has to outlive a failure is asked for before it (x.item(), x.numpy())",
        )
    return TracingError(
        "MT104",
        f"a traced value {tensor.spec} was used after its trace ended",
        where=f"it is {made_by(node)}",
        why="it stands for a value inside a recorded graph, and was never computed; it got out through a variable, "
        "list or attribute that outlives the traced function",
        fix="return it from the traced function and use the result",
    )


def origins(node: Node) -> list[Node]:
    """Return the inputs of the graph that a node depends on, in the order in which they are found."""
    seen, found, pending = {id(node)}, [], [node]
    while pending:
        at = pending.pop()
        if at.primitive is INPUT:
            found.append(at)
        for operand in reversed(at.inputs):
            if id(operand) not in seen:
                seen.add(id(operand))
                pending.append(operand)
    return found


def made_by(node: Node) -> str:
    """Return a node's origin, for messages: ``the input `x` ``, or ``made by mul at train.py:3 from `x`, `w` ``."""
    if node.primitive is INPUT:
        return f"the input `{node.params['name']}`, given at {node.source}"
    made = f"made by {node.primitive.name} at {node.source}"
    return f"{made} from {origins_text(node)}" if origins(node) else made


def origins_text(node: Node, most: int = 3) -> str:
    """Return the inputs that a node depends on, as text."""
    names = [f"`{origin.params['name']}`" for origin in origins(node)]
    if not names:
        return "no input (it is made inside the graph)"
    shown = ", ".join(names[:most])
    return shown + (f" and {len(names) - most} more inputs" if len(names) > most else "")
