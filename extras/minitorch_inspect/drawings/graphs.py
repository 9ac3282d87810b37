"""Drawings of graphs: a mark for each input, operation and output. With `kernels.py`, also of ledgers."""

from __future__ import annotations

import linecache
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from minitorch.graph import Graph
from minitorch.graph.array_text import array_text
from minitorch.graph.cost import costs, flops, transcendentals
from minitorch.graph.text import node_names, operand_text, ordered_params, value_text
from minitorch.graph.values import bodies, is_splat, siblings
from minitorch.ir import INPUT as INPUT_NODE
from minitorch.ir import Node, Source, Spec
from minitorch.primitives import constant

from ..colours import CONSTANT, INPUT, OUTPUT, PARAMETER, Role, family_of
from .drawing import LOOP, MODULE, NO_WORK, Arrow, Cluster, Details, Drawing, Mark, Work

Names = Mapping[Node, str]


class Parts(NamedTuple):
    """Parts of a drawing."""

    marks: list[Mark]
    arrows: list[Arrow]
    clusters: list[Cluster]


MOST_OF_AN_ARRAY = 40  # characters of its values
IMPLIED = ("shape", "dtype")  # parameters that the result's shape and type repeat


@dataclass(frozen=True)
class Setting:
    """The roles of a graph's inputs and outputs for its caller.

    Attributes:
        parameters: the positions of the inputs that are state.
        results: for each output what it is, and its name; by default it is ``output``, with its number if there are
            several.
        scopes: the calls of modules that nodes are a part of: an id, and what was called.
    """

    parameters: frozenset[int] = frozenset()
    results: tuple[tuple[Role, str], ...] = ()
    scopes: Mapping[Node, tuple[str, str]] = field(default_factory=dict)

    def result(self, place: int, count: int) -> tuple[Role, str]:
        """The name of an output, of so many."""
        if place < len(self.results):
            return self.results[place]
        return OUTPUT, "output" if count == 1 else f"output {place}"


def label_of(node: Node, names: Names) -> str:
    """A node as in the listing, without its shape and type.

    Example:
        >>> graph = Graph.parse("graph(x: f32[2]): %0 = expand(x, shape=[3,2]) %1 = mul(%0, 2.0) return %1")
        >>> [label_of(node, node_names(graph)) for node in graph.nodes if node in node_names(graph)]
        ['expand(x)', 'mul(%0, 2.0)']
    """
    if node.primitive.together:
        return f"{node.primitive.name} ×{node.params['length']}" if "length" in node.params else node.primitive.name
    if node.primitive is constant and not is_splat(node):
        text = array_text(node.params["value"].array)
        return text if len(text) <= MOST_OF_AN_ARRAY else f"{node.spec.size} numbers"
    operands = [operand_text(operand, node, dict(names)).split(":")[0] for operand in node.inputs]
    params = [
        f"{name}={value_text(node.params[name])}"
        for name in ordered_params(node)
        if not (name in IMPLIED and node.params[name] == getattr(node.spec, name))
    ]
    return f"{node.primitive.name}({', '.join(operands + params)})"


def described(spec: Spec) -> Details:
    """Shape and type as text."""
    return ("shape", str(spec.shape)), ("dtype", spec.dtype.name)


def code_at(source: Source | None) -> str:
    """The text of a line of the user's program, if it can be read."""
    return linecache.getline(source.file, source.line).strip() if source else ""


def origin(source: Source | None, scope: str = "") -> Details:
    """The origin of an operation, as far as it is known."""
    line = f"{source}  {code_at(source)}".rstrip() if source else ""
    return tuple((name, text) for name, text in (("line", line), ("module", scope)) if text)


def operation(
    node: Node,
    names: Names,
    traffic: tuple[int, int],
    id: str,
    scope: str = "",
    cluster: str | None = None,
    more: Details = (),
    group: Sequence[Node] = (),
) -> Mark:
    """The mark of a node that computes, or of a loop with its results; `traffic` are the bytes it reads and writes."""
    work = Work(flops(node), transcendentals(node), *traffic)
    group = group or [node]
    repeated = [(part, str(body).partition("\n")[2]) for part, body in bodies(node).items()]
    return Mark(
        id,
        family_of(node.primitive.kind).name,
        ", ".join([names[each] for each in group if each in names]),
        label_of(node, names),
        ", ".join([str(each.spec) for each in group]),
        (*described(node.spec), *work.details, *origin(node.source, scope), *more, *repeated),
        cluster,
        str(node.source or ""),
        code_at(node.source),
        scope,
        work,
    )


def value(role: Role, name: str, label: str, spec: Spec, id: str, source: Source | None = None) -> Mark:
    """The mark of a value that no operation computes."""
    details = (("kind", f"{role.name}, {role.doc}"), *described(spec), ("FLOPs", "0"), ("bytes", f"{spec.nbytes:,}"))
    return Mark(id, role.name, name, label, str(spec), (*details, *origin(source)), source=str(source or ""))


def given(graph: Graph, setting: Setting, names: Names, ids: Mapping[Node, str]) -> list[Mark]:
    """The marks of a graph's inputs."""
    marks = []
    used = {operand for node in graph.nodes for operand in node.inputs} | set(graph.outputs)
    for place, node in enumerate(graph.inputs):
        if place in setting.parameters and node not in used:
            continue  # optimised away
        role = PARAMETER if place in setting.parameters else INPUT
        marks.append(value(role, names[node], names[node], node.spec, ids[node], node.source))
    return marks


def literal(node: Node, names: Names, id: str) -> Mark:
    """The mark of a constant."""
    text = operand_text(node, None, dict(names)).split(":")[0] if is_splat(node) else label_of(node, names)
    return value(CONSTANT, names.get(node, ""), text, node.spec, id, node.source)


def results(graph: Graph, setting: Setting, ids: Mapping[Node, str]) -> tuple[list[Mark], list[Arrow]]:
    """The marks of a graph's outputs, and the arrows to them. Outputs of one name share a mark."""
    count = len(graph.outputs)
    ends: dict[tuple[Role, str], dict[Node, None]] = {}
    for place, node in enumerate(graph.outputs):
        ends.setdefault(setting.result(place, count), {})[node] = None
    marks, arrows = [], []
    for number, ((role, name), nodes) in enumerate(ends.items()):
        mark = value(role, name, name, next(iter(nodes)).spec, f"o{number}")
        if len(nodes) > 1:
            size = sum(node.spec.nbytes for node in nodes)
            shapes = ", ".join(dict.fromkeys(str(node.spec) for node in nodes))
            details = (*mark.details[:1], ("shapes", shapes), ("FLOPs", "0"), ("bytes", f"{size:,}"))
            mark = replace(mark, caption=f"{len(nodes)} values", details=details, count=len(nodes))
        marks.append(mark)
        arrows += [Arrow(ids[node], mark.id) for node in nodes]
    return marks, arrows


def ids_of(graph: Graph, names: Names) -> dict[Node, str]:
    """An id for every mark of a graph: inputs, named nodes, literal outputs."""
    ids = {node: f"i{place}" for place, node in enumerate(graph.inputs)}
    for place, node in enumerate(graph.nodes):
        if node in names:
            ids[node] = f"n{names[node][1:]}"
        elif node in graph.outputs:
            ids[node] = f"c{place}"
    return ids


def loops_of(graph: Graph, ids: dict[Node, str]) -> dict[Node, list[Node]]:
    """The results of each loop or branch, which are one mark, by the first of them; the others get its id."""
    groups = siblings(graph.nodes)
    ids |= {node: ids[first] for first, group in groups.items() for node in group if first in ids}
    return groups


def _operations(
    graph: Graph, names: Names, ids: dict[Node, str], scopes: Mapping[Node, tuple[str, str]], opens: bool = False
) -> Parts:
    """The marks of a graph's operations and constants, the arrows to them, and frames of bodies."""
    marks, arrows, clusters = Parts([], [], [])
    counted, groups = costs(graph), loops_of(graph, ids)
    later = {node for group in groups.values() for node in group[1:]}
    for node in graph.nodes:
        if node not in ids or node in later:
            continue
        if node.primitive is constant:
            marks.append(literal(node, names, ids[node]))
            continue
        outer, group = node.inputs, groups.get(node, [node])
        if opens and group[0] in groups:
            inner = _bodies(node, ids, names)
            marks, arrows, clusters = marks + inner.marks, arrows + inner.arrows, clusters + inner.clusters
            outer = outer[: len(outer) - len(next(iter(bodies(node).values())).inputs)]  # the condition of a branch
        read, written = (sum(counted[each][side] for each in group) for side in (0, 1))
        cluster, scope = scopes.get(node, (None, ""))
        marks.append(operation(node, names, (read, written), ids[node], scope, cluster, group=group))
        arrows += [Arrow(tail, ids[node]) for tail in dict.fromkeys(ids[each] for each in outer if each in ids)]
    return Parts(marks, arrows, clusters)


def _bodies(node: Node, ids: Mapping[Node, str], names: Names) -> Parts:
    """The bodies of a loop or branch as frames in front of its mark; a loop within a body is a mark alone."""
    marks, arrows, clusters = Parts([], [], [])
    end, label = ids[node], label_of(node, names)
    roles = ["carried"] * node.params.get("carried", 0) + ["slice"] * node.params.get("sliced", 0)
    for part, body in bodies(node).items():
        frame, known = f"{end}/{part}", node_names(body)
        clusters.append(Cluster(frame, LOOP, label if part == "body" else f"{label}: {part}"))
        inner = {each: f"{frame}/{place}" for place, each in enumerate(known)}
        operands = node.inputs[len(node.inputs) - len(body.inputs) :]
        read = {*body.outputs, *(operand for each in body.nodes for operand in each.inputs)}
        for place, (given, operand) in enumerate(zip(body.inputs, operands, strict=True)):
            if place < len(roles) and given in read:
                mark = value(INPUT, known[given], roles[place], given.spec, inner[given], given.source)
                marks.append(replace(mark, cluster=frame))
                arrows += [Arrow(ids[operand], inner[given])] if operand in ids else []
                continue
            known[given] = operand_text(operand, None, dict(names))  # it is read as it is
            del inner[given]
            inner |= {given: ids[operand]} if operand in ids else {}
        found = _operations(body, known, inner, dict.fromkeys(body.nodes, (frame, label)))
        marks += [replace(mark, cluster=frame, work=NO_WORK) for mark in found.marks]  # the mark of the loop has it all
        arrows += found.arrows
        arrows += [Arrow(tail, end) for tail in dict.fromkeys(inner[each] for each in body.outputs if each in inner)]
    return Parts(marks, list(dict.fromkeys(arrows)), clusters)


def of_graph(
    graph: Graph, setting: Setting | None = None, ids: Mapping[Node, str] | None = None, opens: bool = False
) -> Drawing:
    """The drawing of a graph: each node is an operation that is run by itself; a loop is one, with all its results.

    Args:
        setting: what its inputs and outputs are.
        ids: an id for each input and node with a name, where several graphs are to have the same for the same node.
        opens: whether the bodies of loops and branches are drawn, too.

    Example:
        >>> drawing = of_graph(Graph.parse("graph(x: f32[2]): %0 = mul(x, 2.0) %1 = exp(%0) return %1"))
        >>> [(mark.kind, mark.heading) for mark in drawing.marks]
        [('input', 'x'), ('pointwise', '%0 = mul(x, 2.0)'), ('pointwise', '%1 = exp(%0)'), ('output', 'output')]
        >>> print(drawing.marks[2].title)
        %1 = exp(%0)
        shape: (2,)
        dtype: float32
        FLOPs: 0
        exp, log and the like: 2
        bytes: 8 read, 8 written
    """
    setting = setting or Setting()
    names = node_names(graph)
    ids = ids_of(graph, names) | dict(ids or {})
    found = _operations(graph, names, ids, setting.scopes, opens)
    ends, last = results(graph, setting, ids)
    modules = [Cluster(id, MODULE, title) for id, title in dict.fromkeys(setting.scopes.values())]
    everything = *given(graph, setting, names, ids), *found.marks, *ends
    return Drawing(heading(graph), everything, (*found.arrows, *last), (*modules, *found.clusters))


def heading(graph: Graph) -> str:
    """The title of a graph's drawing."""
    later = sum(len(group) - 1 for group in siblings(graph.nodes).values())
    count = sum(node.primitive not in (constant, INPUT_NODE) for node in graph.nodes) - later
    return f"{graph.name}: {count} operation{'s' if count != 1 else ''}"
