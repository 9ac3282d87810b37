"""Exported models in ONNX Runtime, ours beside those of PyTorch's two exporters: the same model and numbers, in turns.

python -m benchmarks.exports            the table; needs torch and onnxscript
python -m benchmarks.exports --check    ends with 1 if ours is slower

All files run in one process, in sessions of their own with the same options, so that nothing differs but the graphs.
"""

from __future__ import annotations

import argparse
import io
import logging
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import minitorch as mt

from .inference.models import ROWS_OF_TABLE, state
from .libraries import Array
from .turns import medians

SECONDS = 4.0  # for each model
AT_MOST = (
    1.03  # times as slow as the faster one of PyTorch's: what two sessions of one file differ by on a busy machine
)
OPSET = 20

Make = Callable[[Any, Any], Any]
"""A module of `nn` and its `functional`; PyTorch's and ours have the same names."""


def recurrent(kind: str) -> Make:
    """An LSTM or a GRU of two layers."""
    return lambda nn, F: getattr(nn, kind)(64, 128, 2)


def attention(nn: Any, F: Any) -> Any:
    """Causal attention of eight heads."""

    class Attention(nn.Module):  # type: ignore[misc]
        def forward(self, q: Any, k: Any, v: Any) -> Any:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    return Attention()


def models() -> dict[str, tuple[Make, list[Array]]]:
    """How each module is made, and its arguments."""
    random = np.random.default_rng(18)
    found: dict[str, tuple[Make, list[Array]]] = {}
    for name, model, inputs, sizes, _ in ROWS_OF_TABLE:
        *parameters, x = inputs(random, *sizes)
        found[name] = (partial(_of_table, model, parameters), [x])
    steps = random.standard_normal((32, 8, 64)).astype(np.float32)
    found |= {f"{kind}, 2 layers, 32 steps of 8×64": (recurrent(kind), [steps]) for kind in ("LSTM", "GRU")}
    heads = [random.standard_normal((1, 8, 256, 64)).astype(np.float32) for _ in range(3)]
    return found | {"causal attention 8×256×64": (attention, heads)}


def _of_table(model: Any, parameters: list[Array], nn: Any, F: Any) -> Any:
    """A module of the inference benchmark, with these parameters."""
    module = model.module(nn, F, parameters)
    values = state(list(module.state_dict()), parameters)
    tensor = mt.tensor if nn is mt.nn else _torch().from_numpy
    module.load_state_dict({name: tensor(value) for name, value in values.items()}, strict=False)
    return module


def _torch() -> Any:
    import torch

    return torch


def files(make: Make, arrays: list[Array]) -> dict[str, bytes]:
    """The model as each exporter writes it."""
    torch = _torch()
    theirs = make(torch.nn, torch.nn.functional).eval()
    ours = make(mt.nn, mt.nn.functional).eval()
    ours.load_state_dict({name: mt.tensor(value.numpy()) for name, value in theirs.state_dict().items()})
    given = tuple([torch.from_numpy(each) for each in arrays])
    logging.disable()  # the exporters tell of packages that they could use
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        script = io.BytesIO()
        torch.onnx.export(theirs, given, script, dynamo=False, opset_version=OPSET)
        program = torch.onnx.export(theirs, given, dynamo=True, opset_version=OPSET, verbose=False)
    model = mt.export.onnx(ours, *map(mt.tensor, arrays), opset_version=OPSET)
    return {
        "ours": model.SerializeToString(),
        "torch, TorchScript": script.getvalue(),
        "torch, dynamo": program.model_proto.SerializeToString(),
    }


def session(content: bytes, cores: int) -> Any:
    """A session with so many threads, which do not spin between calls: the sessions take turns."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = cores, 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def compared(make: Make, arrays: list[Array], cores: int, seconds: float) -> tuple[dict[str, float], dict[str, int]]:
    """Seconds of a run and numbers of nodes, by exporter; all give the same numbers."""
    import onnx

    found = files(make, arrays)
    nodes = {name: len(onnx.ModelProto.FromString(content).graph.node) for name, content in found.items()}
    calls, results = {}, {}
    for name, content in found.items():
        runtime = session(content, cores)
        feeds = dict(zip([each.name for each in runtime.get_inputs()], arrays, strict=True))
        calls[name] = partial(runtime.run, None, feeds)
        results[name] = calls[name]()[0]
    for result in results.values():
        np.testing.assert_allclose(result, results["ours"], rtol=1e-3, atol=1e-4)
    return medians(calls, seconds), nodes


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="end with 1 if ours is slower")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1, help="threads of each session")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each model")
    parser.add_argument("--cases", default="", metavar="WORD", help="only models whose name has this in it")
    options = parser.parse_args()
    verdicts: Counter[bool] = Counter()
    for name, (make, arrays) in models().items():
        if options.cases not in name:
            continue
        times, nodes = compared(make, arrays, options.cores, options.seconds)
        ratio = times["ours"] / min(seconds for each, seconds in times.items() if each != "ours")
        verdicts[ratio <= AT_MOST] += 1
        parts = [f"{each} {seconds * 1e6:.0f} us ({nodes[each]} nodes)" for each, seconds in times.items()]
        print(f"{name:<34}{ratio:>6.2f}  {', '.join(parts)}{'' if ratio <= AT_MOST else '  <- slower'}", flush=True)
    return 1 if options.check and verdicts[False] else 0


if __name__ == "__main__":
    sys.exit(main())
