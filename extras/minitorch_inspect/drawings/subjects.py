"""Subjects of pictures: from a program in any of its forms to a drawing, with names for its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from minitorch.autograd import no_grad
from minitorch.compiler.codegen.host import host
from minitorch.compiler.kernels.ledger import Ledger, ledger_of
from minitorch.graph import Graph, topological_order
from minitorch.interpreters import Staging, current_staging
from minitorch.ir import INPUT as INPUT_NODE
from minitorch.ir import Node, is_input_name, user_frame
from minitorch.modes.guards.surroundings import names_in
from minitorch.modes.tracing.program import Program
from minitorch.modes.tracing.traced import Traced
from minitorch.modes.ways_in.definition import Graph as SessionGraph
from minitorch.modes.ways_in.definition import GraphStaging
from minitorch.modes.ways_in.inspection import Inspectable
from minitorch.modes.ways_in.jit import Jitted
from minitorch.modes.ways_in.lazy import LazyStaging
from minitorch.modes.ways_in.session import Session
from minitorch.modes.ways_in.stages import Stages
from minitorch.nn import Module
from minitorch.passes import Run, lowered
from minitorch.primitives import constant
from minitorch.tensor import Tensor
from minitorch.tree import flatten

from ..colours import OUTPUT, UPDATE, Role
from .drawing import Drawing
from .graphs import Setting, of_graph
from .kernels import of_ledger
from .scopes import scopes
from .tape import of_tape

OUTCOMES: dict[str, tuple[Role, str]] = {  # the outputs of a traced call, by `Traced.outcomes`
    "result": (OUTPUT, "result"),
    "update": (UPDATE, "new"),
    "gradient": (UPDATE, "new"),
    "kept": (OUTPUT, "kept for backward"),
}


Draw = Callable[[Any, tuple[Any, ...], dict[str, Any], bool], Drawing]


def drawing_of(what: Any, args: tuple[Any, ...], kwargs: dict[str, Any], fused: bool) -> Drawing:
    """The complete drawing of any argument of `minitorch.inspect.show`."""
    for kind, draw in SUBJECTS:
        if isinstance(what, kind):
            return draw(what, args, kwargs, fused)
    instead = "; a plain function has a graph once it is traced: show(mt.jit(f), *args)" if callable(what) else ""
    raise TypeError(
        f"there is no picture of this {type(what).__name__}: show() takes a Graph, a jitted function or a Module with "
        f"arguments for it, a Session, a tensor, or several tensors{instead}"
    )


def _draw(graph: Graph, setting: Setting, fused: bool) -> Drawing:
    return of_ledger(ledger_of(lowered(graph), host()), setting) if fused else of_graph(graph, setting, opens=True)


def _draw_program(program: Program, setting: Setting, fused: bool) -> Drawing:
    return of_ledger(program.ledger, setting) if fused else of_graph(program.graph, setting, opens=True)


def _of_run(run: Run, args: tuple[Any, ...], kwargs: dict[str, Any], fused: bool) -> Drawing:
    if fused and isinstance(run, Stages):
        return of_ledger(run.ledger)
    return _draw(run.graph, Setting(), fused)


def _of_jitted(f: Inspectable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], fused: bool) -> Drawing:
    traced = f.traced(*args, **kwargs)
    return _draw_program(traced.program, setting_of(traced), fused)


def _of_module(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], fused: bool) -> Drawing:
    with no_grad():
        traced = Jitted(module, "interpret", None, (), 1).traced(*args, **kwargs)
    nesting = scopes(*traced.recorded)  # operations of no submodule stand outside
    innermost = {node: path[-1] for node, path in nesting.items() if len(path) > 1}
    return _draw_program(traced.program, replace(setting_of(traced), scopes=innermost), fused)


def setting_of(traced: Traced) -> Setting:
    """The roles of the inputs and outputs of a traced function's graph."""
    count = len(traced.program.graph.inputs)
    results = []
    for kind, name in traced.outcomes():
        role, word = OUTCOMES[kind]
        results.append((role, f"{word} {name}".strip()))
    return Setting(frozenset(range(count - len(traced.captured), count)), tuple(results))


def _of_session_graph(graph: SessionGraph, args: tuple[Any, ...], kwargs: dict[str, Any], fused: bool) -> Drawing:
    staging = graph.recording
    if staging is None:
        return _draw(graph, Setting(), fused)
    last = {id(item.variable): item for item in staging.writes}
    used = {operand for node in graph.nodes for operand in node.inputs} | {item.after for item in last.values()}
    names = {
        tensor._value: name
        for name, tensor in _variables().items()
        if isinstance(tensor, Tensor) and isinstance(tensor._value, Node)
    }
    results = [(UPDATE, f"new {item.variable.input.params['name']}") for item in last.values()]
    ends = [node for node in graph.nodes if node not in used and node.primitive is not constant]
    ends = [node for node in ends if node in names] or ends
    results += [(OUTPUT, names.get(node, "not used further")) for node in ends]
    outputs = (*(item.after for item in last.values()), *ends)
    whole = Graph(graph.inputs, outputs, graph.nodes, graph.name, verify=False)
    return _draw(whole, Setting(_captured(staging, graph), tuple(results)), fused)


def _captured(staging: GraphStaging, graph: Graph) -> frozenset[int]:
    """The positions of the inputs that are not placeholders."""
    return frozenset(place for place, node in enumerate(graph.inputs) if node not in staging.placeholders)


def _of_session(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any], fused: bool) -> Drawing:
    if not args:
        return _of_session_graph(session.graph, args, kwargs, fused)
    program, fetched, written = session.program_for(*args)
    staging = session.graph.recording
    assert staging is not None
    results = [(OUTPUT, "fetched" if fetched == 1 else f"fetched {place}") for place in range(fetched)]
    results += [(UPDATE, f"new {name}") for name in written]
    return _draw_program(program, Setting(_captured(staging, program.graph), tuple(results)), fused)


def _variables() -> dict[str, Any]:
    """The caller's variables."""
    frame = user_frame()
    return {} if frame is None else {**frame.f_globals, **frame.f_locals}


def _of_several(tensors: Any, args: tuple[Any, ...], kwargs: dict[str, Any], fused: bool) -> Drawing:
    leaves = flatten(tensors)[0]
    strange = next((leaf for leaf in leaves if not isinstance(leaf, Tensor)), None)
    if strange is not None or not leaves:
        what = "nothing" if not leaves else f"something of type {type(strange).__name__}"
        raise TypeError(f"show() of several things takes tensors, and there is {what} among them")
    is_named = isinstance(tensors, dict) and len(leaves) == len(tensors)
    return _of_tensors(leaves, fused, {id(tensor): str(key) for key, tensor in tensors.items()} if is_named else {})


def _of_lazy(pending: LazyStaging, args: tuple[Any, ...], kwargs: dict[str, Any], fused: bool) -> Drawing:
    held = [tensor for reference in pending.made if (tensor := reference()) is not None]
    names = names_in(_variables())
    return _of_recorded([tensor for tensor in held if isinstance(tensor._value, Node)], names, fused)


def _of_tensors(tensors: list[Tensor], fused: bool, named: Mapping[int, str] = MappingProxyType({})) -> Drawing:
    names = {**names_in(_variables()), **named}
    if all(isinstance(tensor._value, Node) for tensor in tensors):
        return _of_recorded(tensors, names, fused)
    if fused:
        raise ValueError(
            "there are no kernels to show: these tensors were computed eagerly, operation by operation; fused=True "
            "takes a jitted function with its arguments, or tensors that are pending in a lazy block"
        )
    roots: dict[str, Tensor] = {}
    for place, tensor in enumerate(tensors):
        fallback = "result" if len(tensors) == 1 else f"result {place}"
        roots[names.get(id(tensor), fallback)] = tensor
    return of_tape(roots, names)


def _recording_of(tensor: Tensor) -> Staging | None:
    """The recording of a tensor: that under way, or that of a graph of the caller's."""
    graphs = [each for each in _variables().values() if isinstance(each, SessionGraph)]
    for staging in (current_staging(), *(graph.recording for graph in graphs)):
        if staging is not None and staging.trace is tensor._value.trace:
            return staging
    return None


def _of_recorded(tensors: list[Tensor], names: Mapping[int, str], fused: bool) -> Drawing:
    """The operations behind tensors of a recording."""
    staging = _recording_of(tensors[0]) if tensors else None
    outputs = [staging.node_of(each) if staging is current_staging() and staging else each._value for each in tensors]
    inputs = [node for node in topological_order(outputs) if node.primitive is INPUT_NODE]
    graph = Graph(inputs, outputs, name="pending" if staging and staging.defers else "recorded", verify=False)
    known = {item.input: item.tensor for item in staging.captured.values()} if staging else {}
    # Inputs of a lazy block may be data or weights; captured tensors of a graph or a traced function outlive the call.
    parameters = frozenset(
        place
        for place, node in enumerate(inputs)
        if node in known and (known[node]._requires_grad or not (staging and staging.defers))
    )
    results = tuple((OUTPUT, names.get(id(tensor), f"value {place}")) for place, tensor in enumerate(tensors))
    named = _renamed(graph, {node: names.get(id(tensor), "") for node, tensor in known.items()})
    return _draw(named, Setting(parameters, results), fused)


def _renamed(graph: Graph, names: Mapping[Node, str]) -> Graph:
    """The graph with the caller's variables as names of its inputs, where these are unique names."""
    found: dict[str, str] = {}
    taken = {str(node.params["name"]) for node in graph.inputs}
    for node in graph.inputs:
        old, new = str(node.params["name"]), names.get(node, "")
        if is_input_name(new) and new not in taken:
            taken.add(new)
            found[old] = new
    return graph.rename(found) if found else graph


# The types that `show` takes, the special before the general.
SUBJECTS: tuple[tuple[type | tuple[type, ...], Draw], ...] = (
    (SessionGraph, _of_session_graph),
    (Graph, lambda graph, args, kwargs, fused: _draw(graph, Setting(), fused)),
    (Ledger, lambda ledger, args, kwargs, fused: of_ledger(ledger)),
    (Run, _of_run),
    (Inspectable, _of_jitted),
    (Session, _of_session),
    (Module, _of_module),
    (Tensor, lambda tensor, args, kwargs, fused: _of_tensors([tensor], fused)),
    (LazyStaging, _of_lazy),
    ((list, tuple, dict), _of_several),
)
