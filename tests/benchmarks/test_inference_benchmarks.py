"""Models for inference: every way to run them is near the reference, and what is made of the figures is right."""

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.cases import deviation, distance
from benchmarks.inference import CASES, CONTENDERS, __main__, reasons, report
from benchmarks.inference.contenders import FROZEN, INT4_WEIGHTS, INT8, INT8_WEIGHTS, TABLE, UNFROZEN
from benchmarks.libraries import NumPy
from benchmarks.report import BEGIN, END
from benchmarks.run import Entry, Results, reference
from benchmarks.targets import Probe
from benchmarks.worker import EVERY_CASE, EVERYBODY

HERE = [row.name for row in TABLE if row.package in ("minitorch", "jax") and row.installed()]
RIVAL = "onnxruntime int8"
ALL_MODELS = (FROZEN, INT8)  # the others take seconds for the same


def test_names_are_told_apart_from_those_of_the_other_benchmarks():
    assert {case.name for case in CASES} <= EVERY_CASE.keys() and CONTENDERS.keys() <= EVERYBODY.keys()
    assert len({case.name for case in CASES}) == len(CASES) == 6
    assert all(EVERYBODY[row.name] is row for row in TABLE)


@pytest.mark.parametrize("name", HERE)
def test_every_way_is_near_the_reference(name, tmp_path, monkeypatch):
    monkeypatch.setenv("MINITORCH_CACHE_DIR", str(tmp_path))
    library = CONTENDERS[name].make()
    every = {case.group: case for case in CASES}
    names = list(every) if name in ALL_MODELS else ["MLP", "product"]
    for case in [every[each] for each in names]:
        inputs = case.make_inputs(case.tiny)
        (wanted,) = reference(case, inputs)
        found = library.numpy(case.prepare(library, inputs)())
        error = deviation(found, wanted) if library.tolerance else distance(found, wanted)
        assert error < (library.tolerance or 1e-5), case.name


def test_a_deviation_sees_shapes_and_what_is_not_a_number():
    right = np.array([3.0, 4.0])
    assert deviation(right, right) == 0
    assert deviation(right.reshape(2, 1), right) == np.inf
    assert deviation(np.array([3.0, np.inf]), right) == np.inf
    assert deviation(np.array([3.0, 4.5]), right) == pytest.approx(0.1)


def results_of(*, target="native", **seconds):
    """Results of every case: the times of contenders, in rounds."""
    names = {"jit": UNFROZEN, "float32": FROZEN, "int8": INT8, "weights": INT8_WEIGHTS, "int4": INT4_WEIGHTS}
    names["rival"] = RIVAL
    results = Results([names[key] for key in seconds], list(CASES), target=target)
    for case in CASES:
        for key, times in seconds.items():
            results.entries[case.name, names[key]] = Entry(dict(enumerate(times)))
    return results


def kept(results):
    return [bound.kept for bound in report.bounds(results)]


FAST = {"jit": [6.0], "float32": [6.0], "int8": [2.0], "weights": [5.0], "int4": [2.0], "rival": [2.0]}


def test_bounds_are_kept_and_missed():
    assert kept(results_of(**FAST)) == [True] * 5
    assert kept(results_of(**{**FAST, "rival": [1.9]})) == [False, True, True, True, True]
    assert kept(results_of(**{**FAST, "int8": [2.1], "rival": [3.0]})) == [True, False, True, True, True]
    assert kept(results_of(**{**FAST, "int4": [2.1]})) == [True, True, False, True, True]
    assert kept(results_of(**{**FAST, "jit": [5.7]})) == [True, True, True, False, True]
    assert kept(results_of(target="avx2", **{**FAST, "int8": [3.5], "rival": [4.0]})) == [True] * 5


def test_a_bound_that_was_not_measured_is_not_kept():
    assert kept(results_of(jit=[1.0])) == [False, False, False, False, True]


def test_ours_in_int8_is_the_faster_way_and_ratios_are_taken_within_a_turn():
    results = results_of(int8=[2.0, 2.8, 2.5], weights=[9.0, 9.0, 9.0], rival=[4.0, 5.6, 2.5])
    against, name = report.times_as_fast(results, CASES[0].name)
    assert (against.median, name) == (2.0, RIVAL)
    results.entries[CASES[0].name, INT8_WEIGHTS] = Entry({0: 1.0, 1: 1.4, 2: 1.2})
    assert report.times_as_fast(results, CASES[0].name)[0].median == 4.0


def test_a_stall_is_left_out_together_with_the_others_of_its_turn():
    results = results_of(int8=[2.0, 2.0, 3.1, 2.0], rival=[4.0, 8.0, 1.0, 4.0])
    assert report.seconds(results, CASES[0].name, INT8) == {0: 2.0, 1: 2.0, 3: 2.0}
    against, _ = report.times_as_fast(results, CASES[0].name)
    assert (against.low, against.median, against.high) == (2.0, 2.0, 2.0)  # of turns 0 and 3, where both were timed
    assert report.left_out([results]).endswith(f": {2 * len(CASES)} of {8 * len(CASES)}.")
    assert report.left_out([results_of(int8=[2.0, 2.9])]).endswith(f": 0 of {2 * len(CASES)}.")


def test_how_everybody_was_held_to_a_target_is_said_once():
    probe = Probe(INT8, "avx2", {}, "", (), {"int8": 1e9}, {"int8": 2e9})
    both = [results_of(target="avx2", **FAST) for _ in range(2)]
    for results in both:
        results.probes = [probe]
    parts = report.texts(both)
    assert len(parts) == 3 and parts[0].startswith("Held to avx2:\n\n    int8 ") and "int8 1 of 2" in parts[0]
    assert report.texts([results_of(**FAST)]) == [report.text(results_of(**FAST))]


def test_a_missed_case_is_named_with_what_it_is_behind_and_a_wrong_one_is_not_timed():
    results = results_of(**FAST)
    slow, wrong = CASES[1].name, CASES[2].name
    results.entries[slow, RIVAL] = Entry({0: 1.0}, form="dynamic")
    results.entries[wrong, FROZEN] = Entry(failed="wrong by 1.0e+00")
    text = report.text(results)
    assert (
        "**MISSED**: int8 at least as fast as the fastest of the others: 0.50 at the least\n"
        f"  - {slow}: 0.50 of {RIVAL}" in text
    )
    assert f"**MISSED**: every case of ours is right\n  - {wrong}: {FROZEN} wrong by 1.0e+00" in text
    assert f"- not timed: {FROZEN}, {wrong}: wrong by 1.0e+00" in text and "| failed |" in text
    assert f"| int8 as fast as | 1.00 × {RIVAL} | 0.50 × {RIVAL} |" in text


def test_a_counted_reason_stands_under_the_case_that_misses_a_bound():
    block = CASES[4]
    results = results_of(target="vnni", **{**FAST, "int8": [2.1], "rival": [3.0]})
    lines = report.verdicts(results).splitlines()
    place = lines.index(f"  - {block.name}: 2.86 of {FROZEN}")
    assert "8.4 of 109.1 million multiply-adds" in lines[place + 1] and "at most 3.25 times" in lines[place + 1]
    assert sum("million" in line for line in lines) == 1  # under no other case, and no other bound
    assert reasons.reasons("native", "int8 at least 3.0 x our float32 where arithmetic bounds", block) == []
    assert reasons.at_most(3, 1, 3) == 2 and reasons.at_most(1, 0, 4) == 4


def test_the_multiply_adds_of_a_block_are_those_of_its_program():
    block = CASES[4]
    products = []

    class Counting(NumPy):
        def inference(self, model, parameters, x):
            return super().inference(model, [each.view(Counted) for each in parameters], x.view(Counted))

        def attention(self, q, k, v, causal):
            products.append(2 * q.size * k.shape[-2])  # each element of q meets each key, and of v likewise
            return super().attention(np.asarray(q), np.asarray(k), np.asarray(v), causal).view(Counted)

    class Counted(np.ndarray):
        def __matmul__(self, other):
            products.append(self.size * other.shape[-1])
            return (np.asarray(self) @ np.asarray(other)).view(Counted)

    block.prepare(Counting(), block.make_inputs(block.tiny))()
    assert sum(products) == sum(reasons.block_products(replace(block, shape=block.tiny)))


def test_what_memory_bounds_need_not_be_three_times_as_fast():
    bounded = [case.name for case in CASES if not report.arithmetic_bounds(case)]
    assert bounded == [CASES[0].name, CASES[-1].name]


def test_the_command_measures_prints_and_writes(tmp_path, capsys):
    arguments = [
        "--cases",
        "MLP.*batch 1$",
        "--contenders",
        f"{UNFROZEN},{FROZEN}",
        "--quick",
        "--cores",
        "1",
        "--output",
        str(tmp_path),
    ]
    assert __main__.main([*arguments, "--remark", "It was a test."]) == 0
    printed = capsys.readouterr().out
    assert "| all instructions, 1 core | MLP 784-1024-1024-10, batch 1 |" in printed and "It was a test." in printed
    assert "**MISSED**: int8 at least as fast as the fastest of the others\n" in printed
    (written,) = json.loads((tmp_path / "results.inference.json").read_text())
    assert written["cores"] == 1 and {row["contender"] for row in written["entries"]} == {UNFROZEN, FROZEN}
    assert all(row["seconds"].keys() == {"0", "1", "2"} and not row["failed"] for row in written["entries"])
    assert all(time > 0 for row in written["entries"] for time in row["seconds"].values())
    with pytest.raises(SystemExit, match="there is no contender 'fast'"):
        __main__.main(["--contenders", "fast"])


def test_the_page_holds_the_tables():
    before, begin, rest = __main__.PAGE.read_text(encoding="utf-8").partition(BEGIN)
    assert before and begin and END in rest
