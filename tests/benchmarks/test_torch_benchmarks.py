"""PyTorch takes part in the benchmarks and computes the same."""

import pytest

from benchmarks.cases import CASES, distance, flat
from benchmarks.contenders import CONTENDERS
from benchmarks.run import reference

pytest.importorskip("torch")


def test_torch_agrees_with_the_reference():
    library = CONTENDERS["torch"].make()
    for case in CASES:
        inputs = case.make_inputs(case.tiny)
        results = [library.numpy(each) for each in flat(case.prepare(library, inputs)())]
        for result, wanted in zip(results, reference(case, inputs), strict=True):
            assert distance(result, wanted) < 1e-5, case.name
