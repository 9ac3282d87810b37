"""Operators with weights as layers: what a program computes with its parameters becomes calls of modules.

A Conv, Gemm or MatMul whose weight is an initializer that nobody else reads, or computed from such ones, becomes
`Conv1d`, `Conv2d` or `Linear`, and the BatchNormalization of a convolution's result `BatchNorm1d` or `BatchNorm2d`. So
the tools that look for layers, such as `minitorch.quantization.prepare`, find them. Products of a quantised operand
and a quantised weight stay as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from minitorch.autograd import no_grad
from minitorch.functional.operands import from_array
from minitorch.nn import BatchNorm1d, BatchNorm2d, Conv1d, Conv2d, Linear, Module, Parameter
from minitorch.tensor import Tensor

from .program import Program, Row, Step, all_steps, reads
from .running import Call, Frame, Run, Value, take

CONVOLUTIONS: tuple[Any, ...] = (Conv1d, Conv2d)
NORMALIZATIONS: tuple[Any, ...] = (BatchNorm1d, BatchNorm2d)


def _call(x: Tensor, call: Call) -> Any:
    return call.run.layers[call.step.name](x)


LAYER = Row(_call)


def layers_of(program: Program, state: Mapping[str, Tensor]) -> tuple[Program, dict[str, Module]]:
    """The program with calls of layers, and these by the names of their nodes.

    Args:
        program: that of a module.
        state: its parameters and buffers by name.
    """
    readers = Counter(name for step in all_steps(program.steps) for name in step.inputs)
    readers.update(program.outputs)
    frame = Frame({name: Value(tensor) for name, tensor in state.items()})
    frame.values.update({name: Value(from_array(array)) for name, array in program.constants.items()})
    trained = {name for name, tensor in state.items() if isinstance(tensor, Parameter) and readers[name] > 1}
    own = {*state, *program.constants} - trained  # what a layer may have for its own
    made = {name: step.op for step in program.steps for name in step.outputs}
    unused: set[str] = set()  # steps that computed weights of layers
    layers: dict[str, Module] = {}
    steps: list[Step] = []
    dims: dict[str, int] = {}  # of the results of convolutions
    for step in program.steps:
        if step.row.folds and not step.bodies and all(name in frame.values for name in step.inputs if name):
            with no_grad():
                take(replace(step, frees=()), frame, Run())
            unused.update(step.outputs)
            own.update(
                name for name in step.outputs if readers[name] == 1 and own.issuperset(filter(None, step.inputs))
            )
        held = {name: frame.values[name].data for name in step.inputs[1:] if name in own and name in frame.values}
        is_quantised = {made.get(name) for name in step.inputs[:2]} == {"DequantizeLinear"}  # stays as it is
        layer = None if step.name in layers or is_quantised else _layer(step, held, dims)
        if layer is not None:
            layers[step.name] = layer
            step = replace(step, row=LAYER, inputs=step.inputs[:1], bodies={})
        steps.append(step)
    kept: list[Step] = []
    read = set(program.outputs)
    for step in reversed(steps):
        if read.intersection(step.outputs) or not unused.issuperset(step.outputs):
            kept.append(step)
            read |= reads([step])
    state_kept = tuple([name for name in program.state if name in read])
    return replace(program, steps=tuple(kept[::-1]), state=state_kept), layers


def _layer(step: Step, own: Mapping[str, Tensor], dims: dict[str, int]) -> Module | None:
    """The layer of a step whose weights are its own; None if there is no such layer."""
    op, given, names = step.op, step.attributes, step.inputs[1:]
    held = [own.get(name) if name else None for name in names]
    missing = any(name and found is None for name, found in zip(names, held, strict=True))
    if missing or not held or held[0] is None or sum(map(bool, step.outputs)) > 1:
        return None
    if op == "BatchNormalization":
        return _normalization(step, [each for each in held if each is not None], dims.get(step.inputs[0], 0))
    weight, bias = held[0], held[1] if len(held) > 1 else None
    if op == "Conv":
        return _convolution(step, weight, bias, dims)
    is_linear = op == "MatMul" or (op == "Gemm" and not given["transA"] and given["alpha"] == 1)
    if not is_linear or weight.ndim != 2 or (bias is not None and given["beta"] != 1):
        return None
    weight = weight if given.get("transB") else weight.t()
    if bias is not None and bias.shape != weight.shape[:1]:
        return None
    return _filled(Linear(weight.shape[1], weight.shape[0], bias=bias is not None), weight, bias)


def _convolution(step: Step, weight: Tensor, bias: Tensor | None, dims: dict[str, int]) -> Module | None:
    n, given = weight.ndim - 2, step.attributes
    pads = given["pads"] or [0] * (2 * n)
    if n not in (1, 2) or given["auto_pad"] not in (None, "NOTSET") or len(pads) != 2 * n or pads[:n] != pads[n:]:
        return None
    if min(pads) < 0 or any(len(given[name] or [1] * n) != n for name in ("strides", "dilations")):
        return None
    groups = given["group"]
    layer: Module = CONVOLUTIONS[n - 1](
        weight.shape[1] * groups, weight.shape[0], tuple(weight.shape[2:]), tuple(given["strides"] or [1] * n),
        tuple(pads[:n]), tuple(given["dilations"] or [1] * n), groups, bias is not None,
    )  # fmt: skip
    dims[step.outputs[0]] = n
    return _filled(layer, weight, bias)


def _normalization(step: Step, held: list[Tensor], n: int) -> Module | None:
    if not n or len(held) != 4 or step.attributes["training_mode"] or step.attributes.get("spatial") == 0:
        return None
    layer: Module = NORMALIZATIONS[n - 1](held[0].shape[0], eps=step.attributes["epsilon"])
    for name, tensor in zip(("running_mean", "running_var"), held[2:], strict=True):
        getattr(layer, name).copy_(tensor.detach())
    return _filled(layer, held[0], held[1])


def _filled(layer: Any, weight: Tensor, bias: Tensor | None) -> Module:
    """A layer with these parameters."""
    layer.weight = Parameter(weight.detach().clone())
    if bias is not None:
        layer.bias = Parameter(bias.detach().clone())
    found: Module = layer
    return found
