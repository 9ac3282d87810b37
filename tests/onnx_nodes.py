"""ONNX's tests of operators (`onnx.backend.test`, generated in memory): how many pass, and why others do not.

    python -m tests.onnx_nodes               the rate, and what fails by operator
    python -m tests.onnx_nodes resize        the failing tests whose names have this word, with messages

A test counts as *ordinary* unless a line of `EXCLUDED` says why it cannot be one.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

# Tests that are not counted: a pattern in the message of the refusal, or in the name of the test, and the reason.
EXCLUDED: dict[str, str] = {
    r"elements of type (uint16|uint64)": "there is no such element type here, as in most of PyTorch's functions",
    r"elements of type float(8|4)": "there are no floats of 8 and 4 bits here",
    r"elements of type u?int[24]\b": "there are no integers of 4 and 2 bits here, but packed weights",
    r"elements of type string": "tensors here hold numbers",
    r"ai\.onnx\.ml\.": "another domain: classical machine learning",
    r"ai\.onnx\.preview\.": "another domain: operators on trial",
    r"^test_bernoulli": "the numbers of NumPy's generator are compared, which no other one has",
    r"^test_training_dropout(_default)?(_mask)?$": "the numbers of NumPy's generator are compared",
    r"^test_loop16_seq_none": "the recorded result is not of the declared type; the runner cannot compare it",
}

# Ordinary tests that fail, by a pattern in the message or the name, and the reason.
FAILING: dict[str, str] = {
    r"\b(GridSample|RoiAlign|DeformConv|Col2Im|MaxUnpool)\b": "no interpolation but along axes, no unpooling",
    r"^test_resize_downsample_scales_(linear|cubic)_align_corners": "lengths are rounded first, as in onnxruntime",
    r"^test_dynamicquantizelinear_expanded": "the reciprocal of a scale: another integer beside a tie",
    r"\b(DFT|STFT|MelWeightMatrix)\b": "no complex numbers, and no spectra",
    r"\b(LinearAttention|CausalConvWithState|RotaryEmbedding)\b": "operators of opset 23 to 27 without a row",
    r"\b(NonMaxSuppression|TfIdfVectorizer|ImageDecoder)\b": "no function to build it of",
    r"^test_attention_4d_causal_fp16": "scores are rounded to 16 bits in another order: 1 in 100 is off by one unit",
    r"peepholes": "the recurrences here have no peepholes",
}


@dataclass(frozen=True)
class Outcome:
    """What became of a test: whether it passed, and otherwise the message."""

    name: str
    passed: bool
    message: str = ""

    def reason(self, table: dict[str, str]) -> str | None:
        """The first line of a table that speaks of it."""
        texts = (self.name, self.message)
        return next((why for pattern, why in table.items() if any(re.search(pattern, each) for each in texts)), None)


def cases() -> list[Any]:
    """All tests of nodes."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(collect_testcases(None))


def array_of(value: Any) -> Any:
    """A value of a test as arrays."""
    import onnx
    from onnx import numpy_helper

    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    return value


def outcome(case: Any) -> Outcome:
    """Run one test, as ONNX's own runner compares."""
    from onnx.backend.test.runner import Runner

    from minitorch_onnx import backend as onnx_backend

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            prepared = onnx_backend.prepare(case.model)
            for inputs, wanted in case.data_sets:
                found = prepared.run([array_of(each) for each in inputs])
                Runner.assert_similar_outputs([array_of(each) for each in wanted], found, case.rtol, case.atol)
    except Exception as error:  # whatever it is, the test has failed
        return Outcome(case.name, False, f"{type(error).__name__}: {error}")
    return Outcome(case.name, True)


def main(words: list[str]) -> None:
    """Print the rate, and what fails."""
    found = [outcome(case) for case in cases() if not words or any(word in case.name for word in words)]
    excluded = [each for each in found if not each.passed and each.reason(EXCLUDED)]
    failed = [each for each in found if not each.passed and not each.reason(EXCLUDED)]
    if words:
        for each in failed:
            print(f"{each.name}: {each.message}\n")
    for title, rows, table in (("not counted", excluded, EXCLUDED), ("fail", failed, FAILING)):
        print(f"{title}: {len(rows)}")
        for reason, count in Counter(each.reason(table) for each in rows).most_common():
            print(f"  {count:4}  {reason or 'unknown: see python -m tests.onnx_nodes test_'}")
    passed, ordinary = sum(each.passed for each in found), len(found) - len(excluded)
    print(f"pass: {passed} of {ordinary} ordinary tests ({passed / max(ordinary, 1):.1%}), of {len(found)} in all")


if __name__ == "__main__":
    main(sys.argv[1:])
