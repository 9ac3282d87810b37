"""Count PyTorch's operators by kind, and record it for the course: ``python -m tools.operators``.

It needs an installed torch, and writes `extras/minitorch_course/records/pytorch-operators.json`, which
``course.record("pytorch-operators")`` reads. What is counted are the overloads of the namespace `aten` that the
dispatcher knows: one for each form of arguments, each of which a backend has to support. Every overload has one kind,
the first in `KINDS` that fits. Whether it writes is read from its schema; the rest follows from names, since nothing
else in torch says it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

RECORD = Path(__file__).resolve().parent.parent / "extras" / "minitorch_course" / "records" / "pytorch-operators.json"
COMMAND = "python -m tools.operators"
EXAMPLES = 6  # of each kind, spread over the alphabet

FUSED = re.compile(
    r"fused|attention|encoder_layer|fp32_activation|^_addmm_activation"  # whole blocks, and optimisers' steps
    r"|^(add(mm|mv|r|bmm|cmul|cdiv)|baddbmm|_add_relu|linear|bilinear)$|convolution_(add_)?relu"  # a product and a sum
    r"|^((quantized|miopen|mkldnn|_cudnn)_)?(lstm|gru|rnn)"  # recurrent cells
)
LAYOUTS = re.compile(
    r"cudnn|miopen|mkldnn|mps|fbgemm|nnpack|vulkan|xla|sparse|_[cb]s[rc]|coalesce|quantiz|^q_|qscheme|int_repr"
    r"|nested|jagged|padded|int[48]pack"
)

KINDS: dict[str, tuple[str, Callable[[str, Any], object]]] = {
    "out=": ("the result is written into a tensor that is given", lambda name, schema: any(_outs(schema))),
    "in place": (
        "the operand is overwritten: add_",
        lambda name, schema: name.endswith("_") and any(_writes(schema)),
    ),
    "backward": ("the gradient of another operator", lambda name, schema: "backward" in name),
    "over lists": ("one call for a list of tensors: _foreach_add", lambda name, schema: name.startswith("_foreach_")),
    "fused by hand": (
        "several steps in one: addcmul, lstm_cell, _fused_adamw",
        lambda name, schema: FUSED.search(name),
    ),
    "library or layout": (
        "for one library, or for sparse, quantized or nested tensors",
        lambda name, schema: LAYOUTS.search(name),
    ),
    "copy of a view": (
        "a view's result in memory of its own",
        lambda name, schema: "view_copy" in _tags(full_name(schema)),
    ),
    "internal": ("the name begins with an underscore", lambda name, schema: name.startswith("_")),
    "variant": ("a further form of arguments of a function that is counted below", lambda name, schema: False),
    "function": ("what is left: one for each name", lambda name, schema: True),
}


def _writes(schema: Any) -> Iterator[bool]:
    return (bool(each.alias_info and each.alias_info.is_write) for each in schema.arguments)


def _outs(schema: Any) -> Iterator[bool]:
    return (bool(each.is_out) for each in schema.arguments)


def _tags(full: str) -> set[str]:
    import torch

    name, _, form = full.removeprefix("aten::").partition(".")
    return {tag.name for tag in getattr(getattr(torch.ops.aten, name), form or "default").tags}


def full_name(schema: Any) -> str:
    """The name of an overload, as the dispatcher writes it: ``aten::add.Tensor``."""
    return f"{schema.name}.{schema.overload_name}" if schema.overload_name else str(schema.name)


def classified() -> dict[str, list[str]]:
    """All overloads of aten, without the namespace, by kind."""
    import torch

    known = set(torch._C._dispatch_get_all_op_names())
    schemas = {full_name(each): each for each in torch._C._jit_get_all_schemas() if each.name.startswith("aten::")}
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    names: set[str] = set()
    for full in sorted(known & set(schemas)):
        schema = schemas[full]
        name = schema.name.removeprefix("aten::")
        kind = next(kind for kind, (_, fits) in KINDS.items() if fits(name, schema))
        if kind == "function":
            kind = "variant" if name in names else "function"
            names.add(name)
        found[kind].append(full.removeprefix("aten::"))
    return found


def record() -> dict[str, Any]:
    """What is recorded: counts, examples, and how they came about."""
    import torch
    import torch.nn.functional as F

    found = classified()
    overloads = [each for kind in found.values() for each in kind]
    core = [each for each in overloads if "core" in _tags(each)]
    everything = torch._C._dispatch_get_all_op_names()
    decompositions = len(torch._decomp.core_aten_decompositions())
    decomposed = {  # last: tracing loads modules that register operators of their own
        "mish": _decomposed(lambda x: F.mish(x), (4, 8)),
        "huber_loss": _decomposed(lambda x, y: F.huber_loss(x, y), (4, 8), (4, 8)),
        "layer_norm": _decomposed(lambda x: F.layer_norm(x, (8,)), (4, 8)),
        "gelu": _decomposed(lambda x: F.gelu(x), (4, 8)),
    }
    return {
        "command": COMMAND,
        "torch": torch.__version__,
        "overloads": len(overloads),
        "names": len({each.partition(".")[0] for each in overloads}),
        "kinds": {
            kind: {"count": len(each), "meaning": KINDS[kind][0], "examples": _spread(each)}
            for kind, each in found.items()
        },
        "fused": found["fused by hand"],
        "core": {"overloads": len(core), "names": len({each.partition(".")[0] for each in core})},
        "prims": len({each.partition(".")[0] for each in everything if each.startswith("prims::")}),
        "every namespace": len(everything),
        "decompositions": decompositions,
        "decomposed": decomposed,
    }


def _decomposed(function: Callable[..., Any], *shapes: tuple[int, ...]) -> list[str]:
    """The core operators that a function is traced to."""
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    traced = make_fx(function, decomposition_table=torch._decomp.core_aten_decompositions())
    graph = traced(*(torch.ones(shape) for shape in shapes)).graph
    names = [str(node.target) for node in graph.nodes if node.op == "call_function"]
    return [name.removeprefix("aten.") for name in names if name.startswith("aten.")]


def _spread(names: list[str]) -> list[str]:
    return [names[number * len(names) // EXAMPLES] for number in range(EXAMPLES)]


def main() -> None:
    """Write the record."""
    RECORD.write_text(json.dumps(record(), indent=1) + "\n", encoding="utf-8")
    print(f"{RECORD.name}: written", file=sys.stderr)


if __name__ == "__main__":
    main()
