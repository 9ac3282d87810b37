"""The programs of notebook 15 compute the same in every stack, their record is whole, and listings line up."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import course
from minitorch_course import aligning
from minitorch_course.libraries import pytorch
from minitorch_course.libraries.programs import FUNCTIONS, PROGRAMS, STACKS, ours, with_jax
from minitorch_course.libraries.records import record
from minitorch_course.libraries.stacks import Row, as_data
from tools.stacks import COMMAND

FEW = [each for each in PROGRAMS.values() if "batch 1" in each.name or each.shapes == ((1000,),)]


@pytest.mark.parametrize("program", FEW, ids=lambda each: each.name)
def test_a_program_computes_the_same_in_jax(program: Any) -> None:
    pytest.importorskip("jax")
    expected = ours(program, jit=False).result()
    for prepared in (ours(program), with_jax(program)):
        np.testing.assert_allclose(prepared.result(), expected, rtol=1e-4, atol=1e-5)


def test_the_record_has_every_program_in_every_stack() -> None:
    kept = record("stacks")
    found = course.stacks()
    assert kept["command"] == COMMAND and kept["where"].startswith("torch ")
    assert found.programs == list(PROGRAMS) and found.stacks == list(STACKS)
    assert len(found.rows) == len(PROGRAMS) * len(STACKS)
    assert as_data(found.rows) == kept["rows"]
    assert all((row.again is None) == (row.program not in {each.name for each in FUNCTIONS}) for row in found.rows)


@pytest.mark.parametrize("program", FUNCTIONS, ids=lambda each: each.name)
def test_what_is_recorded_of_us_is_what_is_counted(program: Any) -> None:
    for stack, jit in (("ours, eager", False), ("ours, jit", True)):
        row = course.stacks()[program.name, stack]
        assert ours(program, jit=jit).count() == (row.kernels, row.bytes)


def test_rows_are_measured_here_and_shown() -> None:
    found = course.stacks_here("gelu, 1,000", without=["torch.compile", "jax.jit"], rounds=1)
    assert found["gelu, 1,000", "ours, jit"].bytes == 8000 and found.gain("gelu, 1,000", "ours, jit", "ours, jit") == 1
    assert "ours, eager" in repr(found) and "<th colspan='5'" in found._repr_html_()  # no column without a number
    assert "<th colspan='6'" in course.stacks()._repr_html_()
    with pytest.raises(ValueError, match="there is no program 'gelu', but 'gelu, 8 million'"):
        course.stacks_here("gelu")


def test_listings_line_up_by_the_lines_of_the_function() -> None:
    jax = pytest.importorskip("jax")

    def halved(lib: Any, x: Any) -> Any:
        y = lib.tanh(x)
        y = y / 2.0
        return y * x

    x = jax.numpy.ones(3)
    lowered = jax.jit(partial(halved, jax.numpy)).lower(x)
    stack = f'File "{__file__}", line {halved.__code__.co_firstlineno + 1}, in halved\n    y = lib.tanh(x)'
    node = SimpleNamespace(op="call_function", target=np.tanh, stack_trace=stack)
    table = course.aligned(
        halved,
        ours=mt.jit(partial(halved, mt)).graph(mt.ones(3)),
        jaxpr=jax.make_jaxpr(partial(halved, jax.numpy))(x).pretty_print(source_info=True),
        StableHLO=lowered.as_text(debug_info=True),
        HLO=lowered.compile().as_text(),
        FX=SimpleNamespace(nodes=[node, SimpleNamespace(op="output", target="output", stack_trace=None)]),
    )
    assert table["ours"] == table["jaxpr"] == ["tanh", "div", "mul"] and table["FX"] == ["tanh"]
    assert [each for each in table["StableHLO"] if each != "broadcast_in_dim"] == ["tanh", "divide", "multiply"]
    assert "tanh" in table["HLO"]
    assert [row[0].strip() for row in table.rows()] == ["y = lib.tanh(x)", "y = y / 2.0", "return y * x"]
    assert ">y = lib.tanh(x)</td>" in table._repr_html_()


def test_a_location_without_a_line_belongs_to_no_line() -> None:
    text = '%0 = stablehlo.add %a, %b : tensor<f32> loc(#loc1)\n#loc1 = loc("jit"(#loc2))\n#loc2 = loc(unknown)\n'
    assert aligning.operations(text) == [(0, "add")]


def test_without_a_compiler_for_cpp_the_record_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def loops(torch: Any) -> None:
        raise pytorch.NoCompilerError

    kept = tmp_path / "torch.json"
    kept.write_text(json.dumps({"where": "torch 1", "functions": {"loops": {"output": ["for"], "value": 1}}}))
    monkeypatch.setattr(pytorch, "RECORD", kept)
    monkeypatch.setattr(pytorch, "version_of", lambda package: "0.0")
    monkeypatch.setattr(pytorch, "import_module", lambda name: pytorch)
    assert course.with_torch(loops) == 1
    assert "── A compiler for C++ is not installed; recorded with torch 1 ──\nfor" in capsys.readouterr().out


def test_a_row_is_plain_data() -> None:
    row = Row("a", "b", 1, 2, 0.123456, 1.0)
    assert as_data([row]) == [asdict(row) | {"seconds": 0.123}]
