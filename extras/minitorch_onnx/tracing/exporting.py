"""`mt.export.onnx`: a function or a model is traced, and written as an ONNX model.

    function ──trace, with symbolic sizes──► Graph ──passes, lifting──► Graph with operators ──rows──► ModelProto

Tracing is that of `jit`, without gradients. A tensor that the function uses from outside is a parameter of the model,
by its name in the module. What the function writes in place cannot be exported: an ONNX model has no state.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from minitorch.errors import TranslationError
from minitorch.functional.operands import from_array
from minitorch.graph import Graph
from minitorch.interpreters import Captured, current_handler, set_grad_enabled, set_handler
from minitorch.ir import INPUT, Node, as_input_name, is_input_name
from minitorch.modes.guards import surroundings
from minitorch.modes.guards.observed import Observed
from minitorch.modes.guards.signature import Signatures, plain
from minitorch.modes.objects.outcome import Argument, Output
from minitorch.modes.objects.places import Places
from minitorch.modes.tracing.recording import record
from minitorch.modes.tracing.sized import settled_pipeline
from minitorch.modes.ways_in.inspection import Inspectable
from minitorch.modes.ways_in.jit import Jitted
from minitorch.nn import Module, Parameter
from minitorch.passes import COMMON_SUBEXPRESSIONS, DEAD_CODE, LAWS, MOVEMENT, run_pipeline
from minitorch.passes.algebra import RECIPROCALS
from minitorch.passes.patterns import Match, number, op, wildcard
from minitorch.passes.pipeline import table_pass
from minitorch.passes.rewrite import Rule, Rules, rewrite
from minitorch.sizes import Guards
from minitorch.tensor import Tensor
from minitorch.tree import Structure
from minitorch_inference.frozen import Frozen
from minitorch_onnx.tracing.positions import POSITIONS
from minitorch_operators.lifting import LIFTING, MEANS
from minitorch_operators.lifting.recurrent import RECURRENCES

from ..common import DEFAULT_OPSET, FIRST_OPSET, newest_opset
from ..writing.files import write
from ..writing.model import Interface, model_of
from .sized import LEAST, ExportStaging, Traced, require_same_program

Array = np.ndarray[Any, Any]
Axes = Mapping[str, Mapping[int, str] | Sequence[int]] | Sequence[Mapping[int, str] | None]

LARGE = 1 << 30  # bytes of parameters from which on they have a file of their own; a protobuf message ends at 2**31
# A quotient stays one: a dynamic size is a power of two at times.
_LAWS = Rules(*(rule for rule in LAWS if rule not in tuple(RECIPROCALS)))
_ALGEBRA = table_pass("algebra", _LAWS, "laws of arithmetic that do not depend on a number")
# Constants are not folded: a model keeps its weights as they are, quantised ones as integers.
PASSES = (
    DEAD_CODE, COMMON_SUBEXPRESSIONS, MOVEMENT, _ALGEBRA, MOVEMENT, COMMON_SUBEXPRESSIONS, DEAD_CODE, LIFTING,
    RECURRENCES, MEANS,
)  # fmt: skip


def onnx(
    f: Callable[..., Any],
    *example: Any,
    path: str | os.PathLike[str] | None = None,
    dynamic_axes: Axes | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int = DEFAULT_OPSET,
    ir_version: int | None = None,
    external_data: bool | int = LARGE,
    **kwargs: Any,
) -> Any:
    """Write a function or a module as an ONNX model.

    Softmax, convolutions, layer normalization, recurrent layers and the like come out as the operators of these names,
    attention from opset 23 on. `scan`, `fori_loop`, `while_loop` and `cond` are Scan, Loop and If. All other operations
    are composed of ONNX operators that compute the same; ONNX Runtime adds up 64-bit integers in floating point, and so
    is off beyond 2**53. Parameters keep their names, unless an argument has the same; those of recurrent layers, which
    ONNX packs and has in another order of the gates, end in ONNX's letters for these: ``lstm.weight_ih_l0_iofc``. The
    model is that of evaluation: call ``model.eval()`` first. What the function stores in attributes while it is traced
    is undone.

    Args:
        f: a function of tensors, a module, or what `jit` or `freeze` has made of one.
        example: arguments; their shapes and types are those of the model's inputs.
        path: where to write the file.
        dynamic_axes: dimensions of any length, as in `torch.onnx.export`: by the name of an argument, names for
            dimensions, ``{"x": {0: "batch"}}``. Dimensions of one name have one length. Names of results are accepted,
            too: their lengths follow from those of the arguments.
        input_names: what the tensors among the arguments are called in the model; by default as in the function.
        output_names: likewise of the results; by default the keys of a dictionary, or "output".
        opset_version: the version of the operators, 13 or newer. By default 20, the oldest with Gelu.
        ir_version: the version of the format; by default the oldest that has these operators.
        external_data: whether arrays are written to a second file, ``path + ".data"``; or the bytes from which on. In
            place of a model that has such a file, it is ``path + ".1.data"``, so that both are replaced in one step.
        kwargs: further arguments, by name.

    Returns:
        The `onnx.ModelProto`.

    The function is traced once. The lengths of dynamic dimensions are symbolic (`minitorch.sizes`): arithmetic on them,
    and the bounds of slices, are computed by the model from the shapes of its inputs. A question whose answer is not
    the same for all lengths, such as ``if n > 8`` or ``range(n)``, refuses the export with its line. Lengths from 3 on
    are looked at: a function that treats a length of 1 or 2 in another way is written as it is for the others. Lengths
    that have to agree, in a sum or a product, are taken for equal by the model, too.

    Raises:
        ModuleNotFoundError: without the package `onnx`.
        ValueError: for names that are not there, too many or too few.
        TranslationError: for an operation that ONNX does not have (``MT802``); for a function that branches on a
            dynamic size, or fits one length alone (``MT803``).

    Example:
        >>> import minitorch as mt
        >>> model = mt.nn.Sequential(mt.nn.Linear(4, 3), mt.nn.ReLU()).eval()
        >>> found = mt.export.onnx(model, mt.ones(2, 4), dynamic_axes={"input": {0: "batch"}})
        >>> [node.op_type for node in found.graph.node]
        ['Gemm', 'Relu']
        >>> [each.name for each in found.graph.initializer]
        ['0.weight', '0.bias']
    """
    newest = newest_opset()
    if any(isinstance(each, (str, os.PathLike)) for each in example):
        raise TypeError("the file is given by name: mt.export.onnx(model, *example, path=...)")
    if type(opset_version) is not int:
        raise TypeError(f"opset_version is an int, not {type(opset_version).__name__}")
    if not FIRST_OPSET <= opset_version <= newest:
        raise ValueError(f"opset_version is from {FIRST_OPSET} to {newest}, not {opset_version}")
    if ir_version is not None and type(ir_version) is not int:
        raise TypeError(f"ir_version is an int, not {type(ir_version).__name__}")
    try:
        traced, graph, places = _traced(f, example, kwargs, dynamic_axes, input_names)
    except TypeError as error:
        if len(example) == 1 and type(example[0]) is tuple:
            error.add_note("arguments are not in a tuple: mt.export.onnx(model, x, y), or mt.export.onnx(model, *args)")
        raise
    outputs = _named("output_names", output_names, traced.outputs)
    unknown = [each for each in _foreign(dynamic_axes, traced.arguments) if each not in outputs]
    if unknown:
        known = ", ".join([*traced.arguments, *outputs])
        raise ValueError(f"dynamic_axes: there is no argument or result {unknown[0]!r}; there are {known}")
    _distinct(traced, input_names, output_names)
    interface = Interface(traced.parameters, traced.trained, outputs, places, traced.paths)
    with traced.guards.settled():
        model = model_of(graph, interface, opset_version, ir_version)
    if path is not None:
        write(model, path, external_data)
    return model


def _named(what: str, given: Sequence[str] | None, found: list[str]) -> list[str]:
    """The names that the user gives, in place of those found.

    Raises:
        ValueError: for another number of names, for one that comes twice, and for one that is none.
    """
    if given is None:
        return found
    names = list(given)
    if isinstance(given, str) or len(names) != len(found) or len(set(names)) < len(names):
        raise ValueError(f"{what} is {given!r}, and {len(found)} different names are wanted, for {', '.join(found)}")
    for name in names:
        if not is_input_name(name):
            raise ValueError(f"{what}: {name!r} is not a name of letters, digits, dots and underscores")
    return names


def _distinct(traced: Traced, input_names: Sequence[str] | None, output_names: Sequence[str] | None) -> None:
    """Require that the names that the user gives are of one value each.

    Raises:
        ValueError: for one that is another value's, too.
    """
    parameters = dict.fromkeys(traced.paths.values(), "a parameter")
    others = parameters | dict.fromkeys(traced.arguments, "an argument")
    for what, names, taken in (("input_names", input_names, parameters), ("output_names", output_names, others)):
        for name in names or ():
            if name in taken:
                raise ValueError(f"{what}: {name!r} is the name of {taken[name]}, too; give another one")


def _foreign(axes: Axes | None, arguments: Sequence[str]) -> list[str]:
    """The names in `dynamic_axes` that are not of arguments."""
    return [name for name in axes if name not in arguments] if isinstance(axes, Mapping) else []


def _traced(
    f: Callable[..., Any],
    example: tuple[Any, ...],
    kwargs: dict[str, Any],
    axes: Axes | None,
    input_names: Sequence[str] | None,
) -> tuple[Traced, Graph, dict[str, tuple[str, int]]]:
    """The trace, its graph after the passes, and for each symbol the argument that has it, and the dimension."""
    signatures = Signatures(f.function if isinstance(f, Inspectable) else f, (), ())
    given, structure, *_ = signatures.of(example, kwargs)
    leaves, names = plain(given), signatures.leaf_names(structure)
    tensors = [at for at, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    for at, name in zip(tensors, _named("input_names", input_names, [names[at] for at in tensors]), strict=True):
        names[at] = name
    dynamic = _dynamic(axes, names, leaves) if axes else {}
    lengths: dict[str, int] = {}
    named: dict[str, dict[int, str]] = {}
    for (at, axis), symbol in dynamic.items():
        length = leaves[at].shape[axis]
        if lengths.setdefault(symbol, length) != length:
            raise ValueError(
                f"dynamic_axes: the dimensions {symbol!r} have the lengths {sorted({lengths[symbol], length})}"
            )
        named.setdefault(as_input_name(names[at]), {})[axis] = symbol
    places: dict[str, tuple[str, int]] = {}
    for (at, axis), symbol in dynamic.items():
        places.setdefault(symbol, (names[at], axis))
    # With a length of 1, an operand would be repeated; and of a few more, terms such as ``n - 1`` are 0 or 1.
    larger = {symbol: length if length > LEAST else length + 4 for symbol, length in lengths.items()}
    try:
        return (*_passed(f, _resized(leaves, dynamic, larger), structure, names, named), places)
    except Exception as error:  # it is the example's size alone that the function takes
        if larger == lengths or isinstance(error, TranslationError):
            raise
        return (*_passed(f, _resized(leaves, dynamic, lengths), structure, names, named), places)


def _passed(
    f: Callable[..., Any],
    leaves: list[Any],
    structure: Structure,
    names: list[str],
    dynamic: Mapping[str, Mapping[int, str]],
) -> tuple[Traced, Graph]:
    """The trace of one call, and its graph after the passes."""
    guards = Guards()
    traced = _trace(f, leaves, structure, names, dynamic, guards)
    require_same_program(guards.found.values())
    graph = _without_floors(traced.graph, traced.parameters)
    if not dynamic:
        return traced, run_pipeline(graph, (*PASSES, POSITIONS)).graph
    return traced, settled_pipeline(graph, PASSES, guards).graph


def _dynamic(axes: Axes, names: Sequence[str], leaves: Sequence[Any]) -> dict[tuple[int, int], str]:
    """The names of dynamic dimensions, by argument and dimension."""
    tensors = [at for at, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    found: dict[tuple[int, int], str] = {}
    if not isinstance(axes, Mapping):
        axes = {names[at]: given for at, given in zip(tensors, axes, strict=False) if given}
    for name, given in axes.items():
        at = next((at for at in tensors if names[at] == name), None)
        if at is None:  # perhaps a result
            continue
        if not isinstance(given, (Mapping, list, tuple)):
            raise TypeError(f"dynamic_axes: for {name!r}, a dict of names by dimension or a list, not {given!r}")
        named: Any = given if isinstance(given, Mapping) else {axis: f"{name}_{axis}" for axis in given}
        rank = leaves[at].ndim
        for axis, symbol in named.items():
            if type(axis) is not int or not isinstance(symbol, str) or not symbol:
                raise TypeError(f"dynamic_axes: {name!r} has {{{axis!r}: {symbol!r}}}, not a dimension and its name")
            if not -rank <= axis < rank:
                raise ValueError(f"dynamic_axes: {name} has {rank} dimensions, and none of number {axis}")
            found[at, axis % rank] = symbol
    return found


def _resized(leaves: Sequence[Any], dynamic: Mapping[tuple[int, int], str], sizes: Mapping[str, int]) -> list[Any]:
    """The arguments with other sizes; a trace does not depend on their elements. No two are one tensor."""
    found = list(leaves)
    for at, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor):
            shape = [
                sizes[dynamic[at, axis]] if (at, axis) in dynamic else length for axis, length in enumerate(leaf.shape)
            ]
            found[at] = from_array(np.broadcast_to(np.zeros((), leaf.dtype.numpy), shape))  # takes no memory
    return found


def _trace(
    f: Callable[..., Any],
    leaves: list[Any],
    structure: Structure,
    names: list[str],
    dynamic: Mapping[str, Mapping[int, str]],
    guards: Guards,
) -> Traced:
    """The trace of one call; some dimensions of arguments have the names of sizes."""
    function, frozen = _behind(f)
    name = surroundings.name(function)
    around = Observed(function, zip(names, leaves, strict=True))
    reachable = Places(function, [leaf for leaf in leaves if not isinstance(leaf, Tensor)])
    staging = ExportStaging(name, around.names, dynamic, guards, LEAST)
    before = set_grad_enabled(False), set_handler(current_handler() if frozen is None else frozen.handler)
    try:
        recorded = record(function, leaves, structure, names, staging, around, copies=True)
    finally:
        set_grad_enabled(before[0])
        set_handler(before[1])
        reachable.undo()  # what the function keeps for its next call is nothing outside of the trace
    graph, captured = recorded.graph, list(staging.captured.values())
    if recorded.effects:
        raise _stateful(name, recorded.effects.nodes, captured)
    leaves = recorded.outcome.leaves
    if not all(isinstance(leaf, (Output, Argument)) for leaf in leaves):
        found = next(leaf for leaf in leaves if not isinstance(leaf, (Output, Argument)))
        raise TranslationError(
            "MT802",
            f"{name} returns {type(found).__name__}, which its graph does not compute",
            why="the results of an ONNX model are computed tensors",
            fix="return tensors alone",
        )
    outputs = [(graph.outputs if isinstance(leaf, Output) else graph.inputs)[leaf.position] for leaf in leaves]
    held = {str(item.input.params["name"]): item.tensor for item in captured}
    value = frozen.value_of if frozen is not None else (lambda tensor: tensor.detach().numpy())
    parameters = {inside: value(tensor) for inside, tensor in held.items()}
    trained = [inside for inside, tensor in held.items() if isinstance(tensor, Parameter)]
    by_id = {id(tensor): inside for inside, tensor in held.items()}
    paths = {by_id[key]: path for key, path in _paths(function).items() if key in by_id}
    whole = Graph(graph.inputs, outputs, graph.nodes, name, verify=False)
    names = _result_names(recorded.outcome.result, len(outputs))
    return Traced(whole, parameters, trained, paths, names, guards)


def _behind(f: Callable[..., Any]) -> tuple[Callable[..., Any], Frozen[..., Any] | None]:
    """The function that is traced, and the frozen one whose constants it has."""
    if isinstance(f, Jitted):
        return f.function, None
    if type(f) is Frozen and not f.is_changed:
        return f.function, f
    return f, None


def _without_floors(graph: Graph, parameters: Mapping[str, Array]) -> Graph:
    """The graph with scales themselves where it has `maximum(scale, floor)` of scales that lie above their floors."""

    def scale(match: Match) -> Node | None:
        array = parameters.get(str(match["scale"].params["name"])) if match["scale"].primitive is INPUT else None
        return match["scale"] if array is not None and (array >= match["floor"].params["value"]).all() else None

    return rewrite(graph, Rules(Rule(op.maximum(wildcard("scale"), number("floor")), scale)))


def _paths(function: Callable[..., Any]) -> dict[int, str]:
    """The names of a module's parameters and buffers, by id."""
    module = function if isinstance(function, Module) else getattr(function, "__self__", None)
    if not isinstance(module, Module):
        return {}
    named = (*module.named_parameters(), *module.named_buffers())
    return {id(tensor): name for name, tensor in named}


def _result_names(structure: Structure, count: int) -> list[str]:
    """The names of the results: keys of a dictionary, or "output" with a number."""
    keys = [str(key) for key in structure.keys]
    if structure.kind is dict and len(keys) == count and len(set(keys)) == count and all(map(is_input_name, keys)):
        return keys
    return ["output"] if count == 1 else [f"output_{place}" for place in range(count)]


def _stateful(name: str, nodes: Sequence[Node], captured: Sequence[Captured]) -> TranslationError:
    """The error for a function that writes to tensors from outside, or to its arguments."""
    written = [str(item.input.params["name"]) for item in captured if item.node is not item.input]
    source = next((node.source for node in nodes if node.source), None)
    return TranslationError(
        "MT802",
        f"{name} writes in place to {', '.join(written) or 'an argument'}, which an ONNX model cannot",
        where=str(source) if source else None,
        why="a model maps inputs to outputs and keeps no state; random numbers and training write to theirs",
        fix="call eval() on the model, and return new values instead of writing them",
    )
