"""A part of `python -m fuzz.onnx`; and a careless loader, whose faults it finds."""

from __future__ import annotations

import warnings
from itertools import count, islice
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import onnx

import minitorch as mt
from fuzz.onnx import campaign as fuzzing
from fuzz.onnx import models
from minitorch.errors import OnnxError


def test_mutated_models_are_read_or_refused() -> None:
    """A part of `python -m fuzz.onnx`."""
    found = list(fuzzing.campaign(islice(count(7), 200), good=[models.good(heavy=False)], jit=1 / 100))
    wrong = [f"seed {seed}: {result}" for seed, result in found if result not in fuzzing.ENDS]
    assert not wrong
    assert {result for _, result in found} >= {"ran", "stopped", "refused"}


class Careless:
    """A model that is read by somebody who trusts it."""

    def __init__(self, path: Path) -> None:
        self.model = onnx.load(path, load_external_data=False)
        for tensor in self.model.graph.initializer:
            for entry in tensor.external_data:
                if entry.key == "location":
                    (path.parent / entry.value).read_bytes()
            np.ones([max(length, 0) % 2**22 for length in tensor.dims])
        self.program = SimpleNamespace(inputs=())

    def __call__(self) -> None:
        if self.model.functions:
            x = mt.ones(1)
            while True:
                x = x + 1
        if len(self.model.graph.node) > 12:
            warnings.warn("a large model", stacklevel=1)
        if len(self.model.graph.input) > 3:
            try:
                dict[str, str]()["nobody"]
            except KeyError as error:
                raise OnnxError("MT801", "wrapped") from error


def test_the_campaign_finds_what_it_looks_for() -> None:
    with mock.patch.object(fuzzing, "OPERATIONS", 100):
        good = [models.good(heavy=False)]
        found = " ".join(result for _, result in fuzzing.campaign(islice(count(7), 400), Careless, good, jit=0))
    for text in (
        "it opened ",
        "reading ",
        "DecodeError",
        "a warning: a large",
        "more than 100 primitives",
        "by accident",
    ):
        assert text in found, text
