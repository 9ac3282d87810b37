"""Models of PyPI's packages load, run in every mode, and agree with ONNX Runtime: `pytest tests/foreign --foreign`.

The option downloads the packages, about 300 MB, once. Without it this file has one test, which is skipped.
"""

from __future__ import annotations

import numpy as np
import pytest

import minitorch as mt


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each model, if they are asked for."""
    if "model" not in metafunc.fixturenames:
        return
    if not metafunc.config.getoption("--foreign"):
        skipped = pytest.mark.skip(reason="downloads packages; ask for it with --foreign")
        metafunc.parametrize("model", [pytest.param(None, marks=skipped, id="none")])
        return
    from tests.foreign.models import models

    metafunc.parametrize("model", models(), ids=lambda each: each.name)


def test_it_agrees_with_onnxruntime_in_every_mode(model) -> None:
    from tests.foreign.models import MODES

    wanted, arguments = model.session()(), model.arguments()
    loaded = mt.export.load_onnx(model.path).eval()
    errors = {}
    with mt.no_grad():
        for mode, run in MODES.items():
            errors[mode] = model.error(run(loaded, arguments), wanted)
    assert all(np.isfinite(each) and each <= model.package.tolerance for each in errors.values()), errors
