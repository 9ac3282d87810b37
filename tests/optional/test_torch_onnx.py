"""What the installed PyTorch and skl2onnx export is read as they compute it; the records are such files."""

from __future__ import annotations

import numpy as np
import pytest

import minitorch as mt
from minitorch.export.onnx_format.reading.loading import module_of, parsed
from tests import foreign_models

pytest.importorskip("torch")
pytest.importorskip("onnxscript")
pytest.importorskip("skl2onnx")


@pytest.mark.parametrize("name", foreign_models.makers())
def test_a_fresh_export_is_read(name: str) -> None:
    content, inputs, wanted = foreign_models.makers()[name]()
    model = module_of(parsed(content)).eval()
    found = model(*[mt.tensor(inputs[each]) for each in model.input_names])
    results = found if isinstance(found, tuple) else (found,)
    for one, other in zip(results, wanted, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other, rtol=1e-5, atol=2e-6)
