"""A processor that shows less than it has: counted is what a child process sees."""

import json
import os
import random
import signal
import subprocess
import sys

import pytest

from benchmarks import processor
from benchmarks.run import ROOT

needs_faults = pytest.mark.skipif(not processor.can_hide(), reason="cpuid cannot be made to fault here")

# A module that prints what cpuid shows to it, to a thread, and to NumPy, and its arguments; then does what these say.
SEER = """
import ctypes, json, os, sys, threading
from benchmarks import processor
seen = [sorted(processor.shown())]
thread = threading.Thread(target=lambda: seen.append(sorted(processor.shown())))
thread.start()
thread.join()
import numpy as np
features = np.show_config(mode="dicts")["SIMD Extensions"]
print(json.dumps([*seen, features.get("found", []), sys.argv[1:]]), flush=True)
if "crash" in sys.argv:
    ctypes.string_at(0)
if "fork" in sys.argv and os.fork() == 0:
    print(json.dumps(sorted(processor.shown())), flush=True)
if "exec" in sys.argv:
    os.execv(sys.executable, [sys.executable, "-m", "seer"])
"""

# Hides features, and prints what leaves say before and afterwards, and what is seen then. None of these leaves depends
# on the core that the process is on.
HIDER = """
import ctypes, json, sys
from benchmarks import processor
features = json.loads(sys.argv[1])
def answers():
    out, found = (ctypes.c_uint32 * 4)(), []
    for leaf, subleaf in [(0, 0), (4, 0), (4, 2), (7, 0), (7, 1), (0x80000000, 0), (0x80000002, 0), (0x80000003, 7)]:
        processor._cpuid()(leaf, subleaf, out)
        found.append([leaf, subleaf, *out])
    return found
before = answers()
processor.hide(features)
print(json.dumps([before, answers(), sorted(processor.shown())]))
"""


def python(folder, *arguments):
    """The lines that a process prints, and its status."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    done = subprocess.run(arguments, env=environment, cwd=folder, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode


@pytest.fixture
def see(tmp_path):
    (tmp_path / "seer.py").write_text(SEER)
    return lambda target, *arguments: python(tmp_path, *processor.command(target, "seer", *arguments))


def test_a_target_hides_what_it_does_not_have():
    assert not processor.hidden("native") and not processor.hidden("sse2")
    assert processor.hidden("vnni") == {"amx_tile", "amx_int8", "amx_bf16", "amx_fp16", "amx_complex"}
    assert processor.FEATURES.keys() - processor.hidden("avx2") == {"fma", "avx", "avx2"}


def test_every_feature_is_one_bit_of_its_own():
    assert len({*processor.FEATURES.values()}) == len(processor.FEATURES)
    found = processor.masks(processor.FEATURES)
    assert sum(bits.bit_count() for bits in found.values()) == len(processor.FEATURES)
    assert all(0 < bits < 1 << 32 for bits in found.values())


@needs_faults
@pytest.mark.parametrize("target", ["avx2", "vnni"])
def test_a_process_and_its_threads_see_what_is_left(see, target):
    ((alone, thread, libraries, arguments),), status = see(target, "these", "are kept")
    assert {*alone} == processor.shown() - processor.hidden(target) and thread == alone and not status
    assert arguments == ["these", "are kept"]
    assert target != "avx2" or not any("512" in name or "V4" in name for name in libraries)


@needs_faults
def test_a_fork_sees_as_little(see):
    lines, _ = see("avx2", "fork")
    assert sorted(map(len, lines)) == [3, 4]  # three features; and what the parent says
    assert min(lines, key=len) == max(lines, key=len)[0]


@needs_faults
def test_another_program_sees_everything(see):
    (before, after), _ = see("avx2", "exec")
    assert {*before[0]} < {*after[0]} == processor.shown()


@needs_faults
def test_any_other_fault_ends_the_process(see):
    lines, status = see("avx2", "crash")
    assert len(lines) == 1 and status == -signal.SIGSEGV


@needs_faults
@pytest.mark.parametrize("seed", range(3))
def test_exactly_the_features_that_are_named_are_hidden(tmp_path, seed):
    rng = random.Random(seed)
    features = [name for name in processor.FEATURES if rng.random() < 0.5]
    ((before, after, seen),), status = python(tmp_path, sys.executable, "-c", HIDER, json.dumps(features))
    assert not status and {*seen} == processor.shown() - {*features}
    masks = processor.masks(features)
    for row in before:
        leaf, subleaf, *registers = row
        for place, register in enumerate(processor.REGISTERS):
            registers[place] &= ~masks.get((leaf, subleaf, register), 0)
        row[2:] = registers
    assert after == before
