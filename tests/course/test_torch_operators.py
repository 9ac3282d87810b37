"""The record of PyTorch's operators is what the script counts, where that version of PyTorch is installed."""

from __future__ import annotations

import json

import pytest

from minitorch import course
from tools.operators import COMMAND, KINDS, RECORD, classified, full_name

torch = pytest.importorskip("torch")


def test_the_record_names_the_command_that_counts() -> None:
    assert json.loads(RECORD.read_text(encoding="utf-8"))["command"] == COMMAND


def test_the_record_is_what_is_counted() -> None:
    record, found = course.record("pytorch-operators"), classified()
    if record["torch"] != torch.__version__:
        pytest.skip(f"recorded with {record['torch']}")
    assert {kind: len(each) for kind, each in found.items()} == {
        kind: row["count"] for kind, row in record["kinds"].items()
    }
    assert found["fused by hand"] == record["fused"]


def test_every_overload_is_in_one_kind_that_fits_it() -> None:
    found = classified()
    every = [each for kind in found.values() for each in kind]
    assert len(every) == len(set(every))
    schemas = {full_name(each): each for each in torch._C._jit_get_all_schemas()}
    for kind, overloads in found.items():
        for overload in overloads:
            fits = KINDS["function" if kind == "variant" else kind][1]
            assert fits(overload.partition(".")[0], schemas[f"aten::{overload}"]), (kind, overload)
    assert "add_.Tensor" in found["in place"] and "add.out" in found["out="] and "lstm_cell" in found["fused by hand"]
    assert "leaky_relu" in found["function"] and "gelu_backward" in found["backward"]
