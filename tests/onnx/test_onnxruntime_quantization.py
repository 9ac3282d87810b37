"""What onnxruntime computes of a network in Q/DQ form: the record that `test_onnx_integers.py` reads is true.

``python -m tests.onnx.test_onnxruntime_quantization`` writes the record again, with the installed onnxruntime.
"""

from typing import Any

import pytest

from tests.onnx.onnx_models import ACTIVATIONS, inputs, onnx_model
from tests.support.records import read, write


def answers(onnxruntime: Any) -> dict[str, Any]:
    """The version, and the integers of every activation: with all optimisations, and of the model as it is."""
    levels = onnxruntime.GraphOptimizationLevel
    found: dict[str, Any] = {"onnxruntime": onnxruntime.__version__}
    for label, level in (("optimised", levels.ORT_ENABLE_ALL), ("plain", levels.ORT_DISABLE_ALL)):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = level
        session = onnxruntime.InferenceSession(
            onnx_model().SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        results = session.run([f"{name}.integers" for name in ACTIVATIONS], {"x": inputs()})
        for name, integers in zip(ACTIVATIONS, results, strict=True):
            found[f"{label} {name}"] = integers.tolist()
    return found


def test_the_record_is_onnxruntimes():
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    record = read("onnxruntime")
    if record["onnxruntime"] != onnxruntime.__version__:
        pytest.skip(f"recorded with onnxruntime {record['onnxruntime']}")
    from tests.onnx.exported import saturates

    if saturates():
        pytest.skip("on this processor onnxruntime saturates sums of products of 8-bit integers")
    assert record == answers(onnxruntime)


if __name__ == "__main__":
    import onnxruntime

    write("onnxruntime", answers(onnxruntime))
