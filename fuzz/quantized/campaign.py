"""A campaign: the programs of many seeds, in child processes, one for each target that the machine can execute."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..child import Child, DiedError, closing
from .generate import generate
from .graphs import Program
from .laws import Finding, judge
from .shrink import shrink

SECONDS = 300.0  # for one program, in all modes


def answer(seed: int) -> list[tuple[Finding, str]]:
    """What is wrong with the program of a seed, and the smallest program that still is; in a child."""
    program = generate(seed)
    found = []
    for finding in judge(program):

        def fails(candidate: Program, mode: str = finding.mode) -> bool:
            return mode in {each.mode for each in judge(candidate, [mode])}

        found.append((finding, str(shrink(program, fails))))
    return found


def campaign(seeds: Iterable[int], seconds: float, targets: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    """Findings, as the count of runs so far, target and text; at the end one without text."""
    with tempfile.TemporaryDirectory(prefix="minitorch-fuzz-") as folder:
        one = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
        children = {
            name: Child(answer, {**one, "MINITORCH_TARGET": name, "MINITORCH_CACHE_DIR": str(Path(folder, name))})
            for name in targets
        }
        with closing(list(children.values())):
            end, done = time.monotonic() + seconds, 0
            for seed in seeds:
                if time.monotonic() > end:
                    break
                for name, child in children.items():
                    done += 1
                    try:
                        for finding, small in child.ask(seed, SECONDS):
                            yield done, name, f"{finding}\n{small}"
                    except DiedError as death:
                        yield done, name, f"seed {seed}: {death}"
            yield done, "", ""
