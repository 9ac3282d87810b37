"""PyTorch and onnxruntime take part in the benchmarks of models for inference, and compute the same."""

import warnings

import pytest

from benchmarks.cases import deviation, distance
from benchmarks.inference import CASES, CONTENDERS
from benchmarks.run import reference

RIVALS = [
    row.name for row in CONTENDERS.values() if row.package in ("torch", "onnxruntime") and "compiled" not in row.name
]


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_are_near_the_reference(name):
    pytest.importorskip(CONTENDERS[name].package)
    pytest.importorskip("onnx")
    with warnings.catch_warnings():
        library = CONTENDERS[name].make()
        for case in {case.group: case for case in CASES}.values():
            if not library.supports(case.program):
                continue
            inputs = case.make_inputs(case.tiny)
            (wanted,) = reference(case, inputs)
            found = library.numpy(case.prepare(library, inputs)())
            error = deviation(found, wanted) if library.tolerance else distance(found, wanted)
            assert error < (library.tolerance or 1e-5), case.name
