"""The fuzzer calls every public function, finds what is planted, outlives its children, and writes files that run."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import minitorch as mt
from fuzz import api
from fuzz.campaign import Campaign, Group
from fuzz.child import Child, DiedError
from fuzz.generate import generate
from fuzz.judge import Finding, Reference, judge
from fuzz.outcome import run
from fuzz.program import Program, Ref, Statement
from fuzz.report import write
from fuzz.shrink import shrink
from fuzz.values import DTYPES, Input
from fuzz.worker import Question, answer
from minitorch.compiler.codegen import instructions
from minitorch.compiler.scheduling.rewrites import split
from minitorch.compiler.scheduling.schedules import choice
from tests.fuzz import fuzz_faults

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ("native",)


def test_every_public_function_is_called_with_every_type() -> None:
    callees: Counter[str] = Counter()
    types: Counter[str] = Counter()
    expected = {row.callee for row in api.functions()}
    for seed in range(8000):
        program = generate(seed)
        callees.update(program.callees)
        types.update(each.dtype for each in program.inputs)
        if expected <= set(callees) and set(types) == set(DTYPES):
            break
    assert expected - set(callees) == set()
    assert set(types) == set(DTYPES)


def test_what_is_left_out_is_there() -> None:
    public = {*mt.functional.FUNCTIONS, *mt.nn.functional.__all__, *dir(mt.Tensor)}
    assert {name for names in api.LEFT_OUT.values() for name in names} <= public
    assert not api.EAGER_BY_NATURE - public


def test_a_seed_is_a_program() -> None:
    once, again = [[(p.text, p.inputs) for p in map(generate, range(30))] for _ in range(2)]
    assert once == again
    assert len({generate(seed).text for seed in range(50)}) == 50


def campaign(target, programs, seed=0):
    found = Campaign(seed, target=target, machines=NATIVE)
    found.run(programs=programs)
    assert found.statistics.programs == programs
    return list(found.groups.values())


def test_random_programs_give_the_same_in_every_mode(sweep: bool) -> None:
    """A short campaign, the same every time; the long ones are `make fuzz`."""
    found = Campaign(seed=1)
    found.run(programs=96 if sweep else 48)
    assert {group.finding: group.program.text for group in found.groups.values()} == {}


@pytest.mark.parametrize("seed", range(300, 312))
def test_random_programs_give_the_same_on_xla(seed: int) -> None:
    pytest.importorskip("jax")
    found = answer(Question(seed=seed, modes=("xla",)))
    assert found.findings == [], found.program.text


def wrong(program: Program) -> bool:
    """Whether a program has other values compiled than eagerly."""
    return any(finding.kind == "value" for finding in answer(Question(program=program, modes=("jit",))).findings)


def small_one(program: Program, still_fails: Callable[[Program], bool]) -> Program:
    return shrink(program, still_fails, answer(Question(program=program.returning_all, modes=())).specs, seconds=600)


def test_a_planted_miscompile_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = {"{} - {}", "mt.sub", ".sub", "mt.subtract", ".subtract"}
    programs = [program for program in map(generate, range(1500)) if differences & set(program.callees)]
    with monkeypatch.context() as patch:
        patch.setitem(instructions.PRIMITIVES, "sub", instructions.PRIMITIVES["mul"])
        found = next(program for program in programs if wrong(program))
        assert len(small_one(found, wrong).body) == 1
    assert not wrong(found)


def test_the_death_of_a_child_is_a_finding_and_the_campaign_goes_on() -> None:
    groups = campaign(fuzz_faults.dies, 8)
    assert {group.finding.kind for group in groups} == {"crash"}
    assert all("SIGABRT" in group.finding.detail and len(group.program.body) == 1 for group in groups)


def test_a_child_that_does_not_answer_is_stopped() -> None:
    child = Child(fuzz_faults.hangs)
    with pytest.raises(DiedError, match="no answer within"):
        child.ask(0, 3.0)
    assert child.starts == 1
    child.close()


DIFFERENT = Program(
    (Input("x1", (2, 6), "float32", "whole", 3, "[..., ::2]", True), Input("x2", (), "bfloat16")),
    (Statement(("v1",), "mt.mul", (Ref("x1"), Ref("x2"))), Statement(("v2",), ".sum", (Ref("v1"),), {"dim": 0})),
    ("v2", "v1"),
    calls=2,
    backward=True,
    warm=True,
)


@pytest.mark.parametrize("mode", ["jit", "lazy", "eager"])
def test_a_finding_is_a_file_that_runs(tmp_path: Path, mode: str) -> None:
    path = write(tmp_path, Group(Finding("value", mode, "nothing"), DIFFERENT, 7, "native"))
    done = subprocess.run([sys.executable, str(path)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    eager, *others = done.stdout.replace(f"{mode},", "eager,").split("eager, call 0")[1:]
    assert all(other == eager for other in others)


def test_a_program_is_made_as_small_as_it_can_be() -> None:
    program = generate(next(seed for seed in range(1000) if ".t" in generate(seed).callees[2:]))
    small = small_one(program, lambda candidate: ".t" in candidate.callees)
    assert len(small.body) == 1 and len(small.inputs) == 1


def test_a_schedule_that_is_refused_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "SCHEDULES", (lambda *_: (split("no loop", 2, "a", "b"),),))
    choice.schedule_of.cache_clear()
    found = [each for seed in range(20) for each in answer(Question(seed, modes=("jit",))).findings]
    choice.schedule_of.cache_clear()
    assert found and all(each.detail.startswith("ScheduleWarning") for each in found)


def test_a_finding_that_is_taken_for_another_is_found_when_that_is_mended() -> None:
    """The seeds of what is not made small are kept, and run again each by itself."""
    found = Campaign(0, target=fuzz_faults.frequent_and_rare, machines=NATIVE)
    found.run(programs=400)
    alike = [seed for group in found.groups.values() for seed in group.alike]
    assert {group.finding.detail for group in found.groups.values()} == {"frequent"} and len(alike) > 4
    again = Campaign(0, target=fuzz_faults.rare, machines=NATIVE)
    again.only(alike)
    assert "rare" in {group.finding.detail for group in again.groups.values()}


def compared(program: Program, mode: str, planted: object = None) -> list[Finding]:
    """The judge's findings, if need be with another number in the place of the first result's first."""
    found = run(program, mode)
    if planted is not None:
        found.values[f"call 0, {program.results[0]}"].flat[0] = planted
    return judge(Reference(program, run(program, "eager")), mode, found)


@pytest.mark.parametrize("kind", ("whole", "special"))
def test_only_terms_that_overflow_excuse_nan(kind: str) -> None:
    a, b = Input("a", (1, 3), "float32", kind, 3), Input("b", (1, 3), "float32", kind, 4, ".T")
    with np.errstate(all="ignore"):
        terms = np.abs(a.memory.astype(np.float64) * b.memory)
    overflows = terms.sum(where=np.isfinite(terms)) > np.finfo(np.float32).max
    assert overflows == (kind == "special")
    program = Program((a, b), (Statement(("y",), "mt.matmul", (Ref("a"), Ref("b"))),), ("y",))
    assert compared(program, "jit") == []
    for number in (np.nan, np.inf, 1.0):
        assert bool(compared(program, "jit", number)) == (kind == "whole")


@pytest.mark.parametrize("name", (".mul", ".mul_"))
def test_a_sum_over_what_was_written_in_place_is_excused(name: str) -> None:
    """If it is not contiguous; otherwise a trace that runs node by node has the bits of eager mode."""
    x = Input("x", (8, 9, 10), "float32", "normal", 3, ".permute((2, 1, 0))")
    body = (Statement(("y",), name, (Ref("x"), 3.0)), Statement(("z",), "mt.sum", (Ref("y"),)))
    program = Program((x,), body, ("z",))
    assert compared(program, "interpret") == []
    total = run(program, "eager").values["call 0, z"]
    assert bool(compared(program, "interpret", np.nextafter(total, np.float32(np.inf)))) == (name == ".mul")
