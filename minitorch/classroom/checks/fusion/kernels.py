"""The bytes that a kernel moves."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from ....graph import Graph
from ....graph.text import node_names
from ....ir import Node
from ....primitives import constant
from ...asks import fusion as asks
from ...asks.fusion import operations
from ...asks.plain import described
from ..smaller import indented
from ..task import Task, cases_with
from .graphs import CHAIN, DIAMOND, SOFTMAX, Cases, random_kernels, text_of
from .measure import bytes_of, reference

BYTES = {"what is read": 8, "what is written": 8, "numbers and reductions": 4}


def _kernels(seed: int) -> Cases:
    """The text of a graph, and the places of a kernel's nodes among its operations."""
    random = Random(seed)
    numbers = text_of("%0 = mul(x, 2.0)", "%1 = add(%0, 1.0)", "%2 = reduce_sum(%1, dims=[0])", "%3 = neg(%2)", "%3")
    cases: Cases = [
        ("what is read", (CHAIN, [0, 1, 2])),
        ("what is read", (DIAMOND, [1, 2, 3])),
        ("what is read", (text_of("%0 = mul(x, x)", "%1 = add(%0, x)", "%1"), [0, 1])),
        ("what is written", (DIAMOND, [0, 1])),
        ("what is written", (text_of("%0 = exp(x)", "%1 = neg(%0)", "%1, %0"), [0, 1])),
        ("what is written", (SOFTMAX, [2, 3, 4])),
        ("numbers and reductions", (numbers, [0, 1, 2])),
        ("numbers and reductions", (numbers, [0])),
    ]
    for part in ("what is read", "what is written"):
        graph = random_kernels(random, 8)
        kernel = random.choice([each for each in reference(graph) if len(each) > 1] or [operations(graph)[:1]])
        cases.append((part, (str(graph), [operations(graph).index(node) for node in kernel])))
    return cases


def _wrong_bytes(case: Any, answer: Any) -> str | None:
    text, places = case
    graph = Graph.parse(text)
    kernel = [operations(graph)[place] for place in places]
    read, written = bytes_of(graph, kernel)
    names = ", ".join(node_names(graph)[node] for node in kernel)
    what = f"the kernel of {names} in\n{indented(str(graph))}"
    if type(answer) is not int:
        return f"a whole number was expected, and it is {described(answer)}, for {what}"
    if answer == read + written:
        return None
    unfused = sum(sum(bytes_of(graph, [node])) for node in kernel)
    every = sum(operand.spec.nbytes for node in kernel for operand in node.inputs if operand not in set(kernel))
    constants = {each for node in kernel for each in node.inputs if each.primitive is constant}
    numbers = sum(node.spec.nbytes for node in constants)
    inside = sum(node.spec.nbytes for node in kernel if node in graph.outputs and _is_read(node, kernel))
    hints = (
        (unfused, "those are the bytes of one kernel for each operation; inside a kernel a value stays in a register"),
        (read + numbers + written, "a number in the program is part of the instruction, and is not read"),
        (every + written, "a value that is read by two operations is loaded once, and a number is not loaded at all"),
        (read + sum(node.spec.nbytes for node in kernel), "a value that nobody outside reads is never written"),
        (read + written - inside, "an output is written even if it is read inside"),
        (read, "what others read, and what the graph returns, has to be written"),
        (written, "what comes from outside has to be read"),
        ((read + written) // 4, "those are elements; an element of float32 is 4 bytes"),
    )
    hint = next((why for number, why in hints if number == answer), f"{read} are read and {written} written")
    return f"{answer} instead of {read + written} bytes: {hint}; {what}"


def _is_read(node: Node, kernel: Sequence[Node]) -> bool:
    return any(node in other.inputs for other in kernel)


kernel_bytes = Task(
    asks.kernel_bytes,
    BYTES,
    _kernels,
    cases_with(BYTES, _wrong_bytes),
)
