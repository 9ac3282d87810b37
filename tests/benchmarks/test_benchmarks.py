"""The benchmarks' table is well-formed, all contenders compute the same, and what is made of the figures is right."""

import importlib
import json
import re
import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from benchmarks import by_hand, cases, compare, first, graders, grading, processor, report, targets, traffic, worker
from benchmarks.__main__ import README, main
from benchmarks.cases import CASES, GROUPS, block_loss, cnn_loss, distance, flat, in_float64, mlp_loss, rnn_loss
from benchmarks.contenders import BASELINE, CONTENDERS, TABLE
from benchmarks.libraries import EPS, HEADS, Minitorch, NumPy
from benchmarks.networks import __main__ as networks
from benchmarks.networks.table import NETWORKS
from benchmarks.run import ROOT, Entry, Results, reference
from minitorch.compiler.codegen.host import executable_targets
from minitorch.compiler.scheduling.contractions.gemm import recognise
from tests.grading import classes
from tests.support.records import read, write

HERE = [row.name for row in TABLE if row.package != "torch" and row.installed()]


def tiny(case):
    inputs = case.make_inputs(case.tiny)
    return inputs, reference(case, inputs)


def test_names_and_sizes_are_told_apart():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert {case.group for case in CASES} == set(GROUPS)
    assert len({row.name for row in TABLE}) == len(TABLE)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_makes_the_same_small_inputs_again_and_moves_bytes(case):
    inputs, expected = tiny(case)
    for array, again in zip(inputs, case.make_inputs(case.tiny), strict=True):
        assert array.dtype in (np.float32, np.int64)
        np.testing.assert_array_equal(array, again, strict=True)
    read, written = case.traffic(inputs, expected, case.tiny)
    assert read > 0 and written > 0
    assert all(array.dtype == np.float64 and np.isfinite(array).all() for array in expected)


def ledger_of(case):
    """What minitorch would run for a case of its full size; nothing is computed, and no code is made."""
    library = Minitorch()
    inputs = [library.array(np.zeros_like(each)) for each in case.make_inputs()]
    return mt.jit(lambda *arrays: case.program(library, *arrays), backend="loops").ledger(*inputs)


def counts(case):
    """Kernels, and the bytes that they read and write."""
    kernels = ledger_of(case).for_target("avx2").kernels
    return [len(kernels), sum(kernel.bytes_read + kernel.bytes_written for kernel in kernels)]


WHOLE = [case for case in CASES if not case.stateful]
PRODUCTS = [case for case in CASES if case.group in ("contractions", "convolutions", "attention")]


@pytest.mark.parametrize("case", WHOLE, ids=lambda case: case.name)
def test_a_case_of_full_size_has_as_many_kernels_and_bytes_as_are_recorded(case):
    """The record is written by `python -m tests.benchmarks.test_benchmarks`."""
    assert counts(case) == read("kernels")[case.name]


@pytest.mark.parametrize("case", PRODUCTS, ids=lambda case: case.name)
def test_products_are_computed_in_tiles_on_every_target(case):
    """A nest that is a contraction has the schedule of one, and so have its relatives in functions of all sizes."""
    ledger = ledger_of(case)
    for target in ("sse2", "avx2", "avx512"):
        for kernel in ledger.for_target(target).kernels:
            nests = zip(kernel.loops.nests, kernel.schedule.nests, strict=True) if kernel.loops else ()
            for nest, steps in nests:
                if nest.has_sums or recognise(nest):
                    assert "in_registers" in {step.name for step in steps}, (target, kernel.name)


@pytest.mark.parametrize("name", HERE)
def test_every_contender_agrees_with_the_reference(name, tmp_path, monkeypatch, sweep):
    """JAX, which compiles for a long time, in every third case."""
    monkeypatch.setenv("MINITORCH_CACHE_DIR", str(tmp_path))
    library = CONTENDERS[name].make()
    for case in CASES[:: 3 if name == "jax.jit" and not sweep else 1]:
        if library.supports(case.program):
            inputs, expected = tiny(case)
            results = [library.numpy(each) for each in flat(case.prepare(library, inputs)())]
            assert [each.dtype for each in results] == [np.float32] * len(expected), case.name
            for result, wanted in zip(results, expected, strict=True):
                assert distance(result, wanted) < 1e-5, case.name


@pytest.mark.parametrize("case", [case for case in CASES if "gradient" in case.name], ids=lambda case: case.name)
def test_the_reference_gradients_are_finite_differences(case):
    library, inputs = NumPy(), in_float64(case.make_inputs(case.tiny))
    result = case.program(library, *inputs)
    if case.program.__name__ == "cross_entropy_and_gradient":
        gradients, variables = [result[1]], inputs[:1]

        def loss():
            return case.program(library, *inputs)[0]
    else:
        forward = partial(getattr(cases, case.program.__name__.removesuffix("_gradient")), library)
        *variables, cotangent = inputs
        gradients = result

        def loss():
            return (forward(*variables) * cotangent).sum()

    for variable, gradient in zip(variables, gradients, strict=True):
        found = np.empty_like(variable)
        for position in np.ndindex(variable.shape):
            value, sides = variable[position], []
            for step in (1e-6, -1e-6):
                variable[position] = value + step
                sides.append(loss())
            variable[position] = value
            found[position] = (sides[0] - sides[1]) / 2e-6
        np.testing.assert_allclose(gradient, found, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("case", [case for case in CASES if "training step" in case.name], ids=lambda case: case.name)
def test_the_steps_of_the_reference_go_down_finite_differences(case):
    inputs = in_float64(case.make_inputs(case.tiny))
    *parameters, x, target = (array.copy() for array in inputs)
    loss = {"MLP": mlp_loss, "CNN": cnn_loss, "tra": block_loss, "RNN": rnn_loss}[case.name[:3]]
    more = {"heads": HEADS, "eps": EPS} if loss is block_loss else {}
    value, gradients = getattr(by_hand, loss.__name__)(parameters, x, target, **more)
    np.testing.assert_allclose(value, loss(NumPy(), parameters, x, target))
    for parameter, gradient in zip(parameters, gradients, strict=True):
        direction = np.cos(np.arange(parameter.size)).reshape(parameter.shape)
        sides = []
        for step in (1e-6, -2e-6):
            parameter += step * direction
            sides.append(loss(NumPy(), parameters, x, target))
        parameter += 1e-6 * direction
        np.testing.assert_allclose((gradient * direction).sum(), (sides[0] - sides[1]) / 2e-6, rtol=1e-6, atol=1e-8)


def test_a_distance_sees_shapes_and_what_is_not_a_number():
    right = np.array([1.0, 2.0])
    assert distance(right, right) == 0
    assert distance(right.reshape(2, 1), right) == np.inf
    assert distance(np.array([1.0, np.nan]), right) == np.inf
    assert 0 < distance(np.array([1.0, 2.1]), right) < 0.1


def results_of(ours, theirs, first=(0.1, 0.2), target="native"):
    """Results of every case: the times by round of the fused backend and of the baseline."""
    results = Results(["llvm", BASELINE], list(CASES), target=target)
    for case in CASES:
        results.traffic[case.name] = 60, 40
        for name, seconds, call in (("llvm", ours, first[0]), (BASELINE, theirs, first[1])):
            results.entries[case.name, name] = Entry(dict(enumerate(seconds)), call, [call / 2])
    return results


def verdicts(results):
    return [bound.kept for bound in report.bounds(results, report.rows(results))]


def test_ratios_are_taken_within_a_round():
    # The second round was disturbed, for both. The ratio of the medians is 1.
    row = report.rows(results_of((1.0, 10.0, 3.0), (2.0, 20.0, 3.0)))[0]
    assert row.speedup == report.Ratio(2.0, 1.5, 2.0)


def test_the_table_says_who_is_the_fastest_and_by_how_much():
    results = results_of((1.0, 10.0), (2.0, 20.0))
    first, second = CASES[0].name, CASES[1].name
    results.contenders.append("torch")
    results.entries[first, "torch"] = Entry({0: 0.5, 1: 5.0})
    results.entries[second, "torch"] = Entry({0: 3.0, 1: 30.0})
    rows = report.rows(results)
    assert [(row.fastest, row.ahead) for row in rows[:2]] == [("torch", report.Ratio(2.0, 2.0, 2.0)), ("llvm", None)]
    table = report.table_text(results, rows).splitlines()
    assert [line.split("  ")[-1].strip() for line in table if f"  {first} " in line] == ["torch 2.00"]
    summary = report.summary_text(results, rows)
    assert (
        f"llvm is the fastest in {len(CASES) - 1} of {len(CASES)} cases, and level with the fastest in 0 more"
        in summary
    )


def test_bounds_are_kept_and_missed():
    assert verdicts(results_of((1.0,), (3.0,))) == [True] * 6
    assert verdicts(results_of((1.0,), (1.5,))) == [False, True, True, True, True, True]
    assert verdicts(results_of((1.0,), (0.97,))) == [False, False, True, True, True, True]
    assert verdicts(results_of((1.0,), (0.9,), first=(0.3, 0.2))) == [False, False, False, False, True, True]


def test_one_slow_case_is_named_and_a_wrong_one_is_not_timed():
    results = results_of((1.0,), (4.0,))
    slow, wrong, streaming = CASES[0].name, CASES[1].name, CASES[2].name
    product = next(case.name for case in CASES if case.group == "convolutions")
    results.contenders += ["numpy", "torch"]
    results.entries[slow, "llvm"] = Entry({0: 5.0}, 0.1)
    results.entries[wrong, "llvm"] = Entry(failed="wrong by 1.0e+00")
    results.traffic[streaming] = cases.LARGE, 0
    results.entries[streaming, worker.COPY] = Entry({0: 0.5})
    results.entries[product, "numpy"] = Entry({0: 0.5})
    results.entries[product, "torch"] = Entry({0: 0.975})
    rows = report.rows(results)
    bounds = report.bounds(results, rows)
    assert [bound.kept for bound in bounds] == [True, False, False, True, False, False]
    assert bounds[1].missed_by == (f"{slow}: 0.80 of {BASELINE}", f"{product}: 0.97 of torch")
    assert bounds[2].missed_by == (f"{product}: 0.50 of numpy",)
    assert bounds[4].missed_by == (f"{streaming}: 0.50 of its traffic",)
    assert "failed" in report.table_text(results, rows)
    summary = report.summary_text(results, rows)
    assert f"not timed: llvm in {wrong}" in summary
    assert summary.endswith(
        f"4 of {len(CASES)} cases are losses: {'; '.join(sorted({slow, wrong, streaming, product}))}"
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (2e-7, "0.20 us"), (3.14159e-6, "3.14 us"), (0.0234, "23.4 ms"), (0.345, "345 ms"), (1.5, "1.50 s")],
)
def test_durations_have_three_digits(seconds, text):
    assert report.duration(seconds) == text


def test_the_command_measures_prints_and_writes(tmp_path, capsys):
    arguments = ["--cases", "gelu 1e2", "--contenders", "numpy,interpret", "--quick", "--output", str(tmp_path)]
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert "gelu 1e2" in printed.out and "us" in printed.out
    # No terminal: no bar, and a line for each case at most.
    assert "\r" not in printed.err and len(printed.err.splitlines()) <= 2
    written = json.loads((tmp_path / "results.json").read_text())
    entry = written["targets"]["native"]["cases"]["gelu 1e2"]["contenders"]["interpret"]
    assert entry["median"] > 0 and entry["first"] > 0 and entry["error"] < 1e-6 and not entry["failed"]


PACKAGES = ["minitorch", "numpy", "jax", "torch"]


def test_a_target_is_told_to_every_contender_that_cannot_be_shown_less(monkeypatch):
    monkeypatch.setattr(processor, "can_hide", lambda: False)
    told = targets.environment("avx2", PACKAGES)
    assert told["MINITORCH_TARGET"] == "avx2" and told["ATEN_CPU_CAPABILITY"] == "avx2"
    assert targets.environment("native", PACKAGES) == {}
    assert set(targets.environment("sse2", ["minitorch", "numpy"])) == {"MINITORCH_TARGET"}
    assert not targets.is_comparable("sse2") and targets.is_comparable("avx2")
    assert processor.command("avx2", "this") == [sys.executable, "-m", "this"]


def test_where_cpuid_shows_less_only_other_programs_are_told(monkeypatch):
    monkeypatch.setattr(processor, "can_hide", lambda: True)
    assert targets.environment("avx2", PACKAGES).keys() == {"MINITORCH_TARGET", "TORCHINDUCTOR_CPP_MARCH"}
    assert targets.environment("vnni", PACKAGES) == targets.environment("native", PACKAGES) == {}
    assert processor.command("avx2", "this", "1")[2:] == ["benchmarks.processor", "avx2", "this", "1"]
    assert processor.command("native", "this")[2:] == processor.command("sse2", "this")[2:] == ["this"]


def test_a_contender_is_restricted_if_no_number_format_is_faster_than_the_target():
    peaks = {"float32": 100e9, "int8": 200e9}
    rates = [{"float32": 105e9}, {"float32": 200e9}, {"float32": 90e9, "int8": 300e9}, {"int8": 210e9}]
    probes = [targets.Probe("llvm", "avx2", {}, "", (), each, peaks) for each in rates]
    assert [probe.obeyed for probe in probes] == [True, False, False, True]
    assert [str(probe).endswith("NOT RESTRICTED") for probe in probes] == [False, True, True, False]
    assert "cpuid shows it amx_int8, too" in str(targets.Probe("a", "vnni", {}, "", ("amx_int8",), {}, peaks))


def test_flags_that_are_set_already_are_kept(monkeypatch):
    monkeypatch.setattr(processor, "can_hide", lambda: False)
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=somewhere")
    assert targets.environment("avx2", ["jax"])["XLA_FLAGS"].split()[0] == "--xla_dump_to=somewhere"


def test_the_readme_holds_a_table_of_all_targets():
    both = [results_of((1.0,), (times,), target=target) for target, times in (("native", 2.0), ("avx2", 0.5))]
    table = report.markdown({results.target: (results, report.rows(results)) for results in both})
    lines = table.splitlines()
    assert lines[0] == "| float32 | minitorch, native | as fast as | minitorch, avx2 | as fast as |"
    assert len(lines) == 2 + len(CASES)
    assert all(line.endswith(f"| 1.00 s | 2.00 × {BASELINE} | 1.00 s | 0.50 × {BASELINE} |") for line in lines[2:])
    page = f"before\n{report.BEGIN}\nold\n{report.END}\nafter"
    assert report.saved(page, table) == f"before\n{report.BEGIN}\n{table}\n{report.END}\nafter"
    assert report.BEGIN in README.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="there is no"):
        report.saved("a page", table)


@pytest.mark.parametrize(("read", "written"), [(6400, 6400), (128 * 100, 64), (64, 128 * 100), (0, 640), (640, 0)])
def test_traffic_is_read_and_written_whichever_is_more(read, written):
    move: Any
    for move in traffic.movers(read, written):
        source, target, *_ = move.memory
        source[:], target[:] = 3, 5
        move()
        lines = target[:written].reshape(-1, traffic.LINE)
        assert ((lines == 3) | (lines == 0)).all()
        assert (target[written:] == 5).all()
        if read == written:
            assert (lines == 3).all()


@pytest.mark.skipif("sse2" not in executable_targets(), reason="this processor is no x86-64")
def test_a_target_that_others_cannot_be_restricted_to_is_minitorchs_alone(tmp_path):
    arguments = ["--cases", "gelu 1e2", "--contenders", "numpy,llvm", "--quick", "--output", str(tmp_path)]
    assert main([*arguments, "--target", "sse2"]) == 0
    (written,) = json.loads((tmp_path / "results.json").read_text())["targets"].values()
    timed = written["cases"]["gelu 1e2"]["contenders"]
    assert timed["llvm"]["median"] > 0 and "numpy" not in timed
    (restriction,) = written["restrictions"]
    assert restriction["says"] == "vectors of 16 bytes" and restriction["rates"]["float32"] > 0


def test_unknown_contenders_and_cases_are_refused():
    with pytest.raises(SystemExit, match="there is no contender 'fast'"):
        main(["--contenders", "fast"])
    with pytest.raises(SystemExit, match="no target 'avx1024' here"):
        main(["--target", "avx1024"])
    with pytest.raises(SystemExit, match="no case matches"):
        main(["--cases", "nothing of the kind"])


def test_a_worker_of_an_older_checkout_loads_no_package_of_this_one():
    loaded = "import sys, benchmarks.worker; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, check=True, capture_output=True, text=True)
    assert [name for name in done.stdout.split() if name.startswith("minitorch")] == ["minitorch"]


def test_two_checkouts_are_compared_case_by_case(capsys):
    same = str(ROOT)
    assert compare.main([same, same, "--cases", "gelu 1e2", "--quick"]) == 0
    printed = capsys.readouterr().out
    assert "gelu 1e2" in printed and "other kernels or bytes: 0" in printed


def test_what_is_slower_or_has_other_kernels_is_named():
    pairs = [
        compare.Pair(
            "same", ({0: 1.0, 1: 2.0}, {0: 1.0, 1: 2.0}), ({"kernels": 1, "bytes": 8}, {"kernels": 1, "bytes": 8})
        ),
        compare.Pair("slower", ({0: 1.0, 1: 2.0}, {0: 1.1, 1: 2.2})),
        compare.Pair("other", ({0: 1.0}, {0: 1.0}), ({"kernels": 1, "bytes": 8}, {"kernels": 2, "bytes": 8})),
        compare.Pair("wrong", failed=["", "it ended"]),
    ]
    text, kept = compare.verdict(pairs)
    assert not kept
    assert text.splitlines()[2:] == [
        "below 0.97: 1", "  slower 0.91", "other kernels or bytes: 1", "  other: kernels 1 -> 2", "failed: wrong",
    ]  # fmt: skip
    assert compare.verdict(pairs[:1])[1]


def test_what_is_no_checkout_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="neither a folder with a checkout nor a commit"):
        compare.place("no such commit", tmp_path / "before")


@pytest.mark.parametrize("name", [*first.START, "RNN 32×64"])
def test_programs_of_first_calls_compute_the_same_in_every_library(name, monkeypatch, tmp_path):
    monkeypatch.setenv("MINITORCH_CACHE_DIR", str(tmp_path))
    pytest.importorskip("jax")
    results = []
    for library in (first.Minitorch(), first.Jax()):
        function, shapes = {**first.START, **first.UNROLLED}[name](library)
        value = library.compile(function)(*[library.array(shape) / 8 for shape in shapes])
        results.append(np.asarray(value[0] if isinstance(value, tuple) else value))
    ours, theirs = results
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


LONG = {"ResNet-18", "EfficientNet-B0"}  # to compile; their inference is compared, and training of other networks


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", [name for name in NETWORKS if name not in LONG])
def test_networks_compute_the_same_in_every_library(name, monkeypatch, tmp_path):
    monkeypatch.setenv("MINITORCH_CACHE_DIR", str(tmp_path))
    pytest.importorskip("jax")
    from benchmarks.networks import in_jax

    with mt.as_torch(hide=True):
        models = importlib.import_module("benchmarks.networks.models")
    row, results = NETWORKS[name], []
    for versions in (models, in_jax):
        call = versions.prepared(row, *row.tiny)
        results.append(np.stack([versions.value(call()) for _ in range(2)]))
    ours, theirs = results
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6 * np.abs(ours).max())


def test_a_network_that_is_slower_is_named():
    assert networks.missed({"minitorch": 1.0, "jax": 1.0}, {"minitorch": 1.0, "jax": 2.0, "torch": 1.0}) == ""
    found = networks.missed({"minitorch": 3.0, "jax": 2.0}, {"minitorch": 3.0, "jax": 3.0, "torch": 2.0})
    assert found == "  MISSED: first 1.50 x jax, later 1.50 x torch"


def test_a_first_call_that_takes_more_than_its_share_is_named(capsys):
    def rows(start):
        return [{"start": start, "start wall": 1.0, "first": start, "wall": 1.0}]

    found = {name: {"minitorch": rows(0.6), "jax": rows(1.0)} for name in ("softmax", "GRU 32×64")}
    assert not first.report(found)
    missed = [line.split("  ")[0] for line in capsys.readouterr().out.splitlines() if "MISSED" in line]
    assert missed == ["softmax"]  # at most half for a whole process, at most as long for an unrolled loop


# --- grading -----------------------------------------------------------------------------------------------------


def graded(ours, theirs, alone=1.0, again=1.0):
    """Figures of an exercise that took so many seconds; two workers take a twentieth longer."""
    found = grading.Found(whole={"1 worker": 60.0}, again=[(again, 0.5)], shares={"all else": 1.0}, size=120)
    seconds = (alone, ours, ours + 0.05, theirs)
    for kind in graders.KINDS:
        for name, time in zip(graders.CONTENDERS, seconds, strict=True):
            found.steps[name, "01-eager", kind] = [(time, time), (99.0, 99.0), (0.0, 0.0)]
    return found


def test_a_submission_is_the_distance_between_two_that_are_done():
    steps = [(5.0, 9.0), (6.0, 10.0), (7.0, 11.0), (7.5, 11.5), (9.5, 12.0), (11.5, 12.5)]
    alone = graders.Timed.of(0.0, steps, 3, 1)
    assert alone.each == {"blank": (1.0, 1.0), "right": (4.5 / 3, 1.5 / 3)} and alone.start == 4.0
    pairs = graders.Timed.of(0.0, steps, 3, 2)
    assert pairs.each == {"blank": (2.0, 1.0), "right": (2.5, 0.5)}


def test_bounds_of_grading_are_kept_and_missed():
    assert not grading.missed(graded(1.2, 2.7))
    assert {line.split(":")[0].split(", ", 2)[2] for line in grading.missed(graded(1.28, 2.7))} == {grading.TWO}
    assert len(grading.missed(graded(1.5, 9.0))) == 4
    slow = grading.missed(graded(1.2, 2.3, again=2.5))
    assert len(slow) == 5 and "as fast as nbgrader" in slow[0] and slow[-1] == "a rerun: 2.50 s, at most 2.0 s"


def test_the_tables_of_grading_stand_in_its_page():
    table = grading.markdown(graded(1.2, 2.7), {"processor": "P", "cores": 2, "python": "3"}, "how").splitlines()
    row = "1.00 (1.00) | 1.20 (1.20) | 1.25 (1.25) | 0.20 (0.20), 0.25 (0.25) | 2.70 (2.70) | 2.3 × / 2.2 × as fast |"
    assert [line for line in table if "eager" in line] == [f"| 01-eager, {kind} | {row}" for kind in graders.KINDS]
    assert "| 1 worker | 120 | 60 s |" in table
    page = grading.PAGE.read_text(encoding="utf-8")
    assert report.BEGIN in page and all(f"| {name}, " in page for name in graders.EXERCISES)


def test_processor_time_of_what_was_killed_counts():
    used = graders.Used()
    before = used.look()
    work = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ntime.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", work], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        used.look()
        process.kill()
    assert used.look() - before > 0.29


def test_others_can_do_what_we_hand_out():
    pytest.importorskip("nbgrader", reason="it is measured beside nbgrader")
    found = grading.by(grading.RIVAL, "01-eager", 2)
    assert all(used > 0 for step in found.values() for used in step)


def test_the_command_grades_a_class_and_grades_it_again(capsys, monkeypatch):
    classes.needs_bubblewrap()
    monkeypatch.setattr(grading, "PLACES", grading.PLACES[:1])
    monkeypatch.setattr(grading, "RERUNS", 1)
    assert grading.main(["--rounds", "0", "--class", "2", "--exercises", "01"]) == 0
    table = capsys.readouterr().out
    assert "| 2 right submissions |" in table and "| the same command again |" in table
    # The bounds that a busy machine misses are printed after the table.
    (said,) = [line for line in table.splitlines() if line.startswith("Of the time of a rerun: ")]
    shares = [int(number) for number in re.findall(r"(-?\d+)%", said)]
    assert len(shares) == len(grading.PARTS) + 1 and min(shares) >= 0 and 95 < sum(shares) < 105


if __name__ == "__main__":
    write("kernels", {case.name: counts(case) for case in WHOLE})
