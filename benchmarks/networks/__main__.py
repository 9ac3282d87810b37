"""First and later calls of whole networks: minitorch beside JAX and PyTorch.

python -m benchmarks.networks                             the table
python -m benchmarks.networks --target native,avx2        once for each, all contenders restricted to it
python -m benchmarks.networks --check                     ends with 1 if minitorch misses its bounds

Every network runs in a process of its own, in turns, with empty caches on disk. Shown are the processor seconds of the
first call, user and system, of all threads, and the milliseconds of a later call, the median of some.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from .. import processor, targets
from ..run import QUIET, ROOT
from .table import NETWORKS

ROUNDS = 3
CALLS, SECONDS = 5, 2.0  # later calls: at least so many, and for so long
# Of jax.jit's processor time, and of the fastest other contender's time: the bounds that the project promises.
AT_MOST_OF_FIRST, AT_MOST_OF_LATER = 1.0, 1.0
CONTENDERS = ("minitorch", "jax", "torch")

Figures = dict[str, float]


def worker(contender: str, name: str) -> Figures:
    """Prepare a network and call it."""
    if contender == "minitorch":
        import minitorch as mt

        mt.as_torch(hide=True)
    versions: Any = importlib.import_module("benchmarks.networks." + ("in_jax" if contender == "jax" else "models"))
    network = NETWORKS[name]
    call = versions.prepared(network, network.sizes, network.shape)
    time.sleep(QUIET)
    wall, used = time.perf_counter(), time.process_time()
    versions.value(call())
    found = {"first": time.process_time() - used, "wall": time.perf_counter() - wall}
    times: list[float] = []
    versions.value(call())
    while len(times) < CALLS or sum(times) < SECONDS:
        wall = time.perf_counter()
        versions.value(call())
        times.append(time.perf_counter() - wall)
    return {**found, "later": statistics.median(times)}


def run_once(contender: str, name: str, target: str) -> Figures:
    """Return what a process of its own finds."""
    told = {key: text for key, text in os.environ.items() if key != "JAX_COMPILATION_CACHE_DIR"}
    with tempfile.TemporaryDirectory(prefix="minitorch-networks-") as folder:
        told |= {
            "MINITORCH_CACHE_DIR": folder,
            "JAX_ENABLE_COMPILATION_CACHE": "false",
            "JAX_PLATFORMS": "cpu",
            **targets.environment(target, [contender]),
        }
        command = processor.command(target, "benchmarks.networks", "--worker", contender, name)
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=told).stdout
    found: Figures = json.loads(output.splitlines()[-1])
    return found


def run(
    chosen: Sequence[str], rounds: int = ROUNDS, networks: str = "", contenders: Sequence[str] = CONTENDERS
) -> bool:
    """Print a table for each target, row by row; return whether minitorch keeps its bounds.

    Args:
        chosen: the targets.
        rounds: processes for each network and contender; shown are medians.
        networks: a regular expression for their names.
        contenders: those that take part if they are installed.
    """
    names = [name for name in NETWORKS if re.search(networks, name)]
    taking_part = [name for name in CONTENDERS if name in contenders and find_spec(name)]
    titles = "".join(f"{name:>11}" for name in taking_part)
    kept = True
    for target in chosen:
        print(f"{target:28}{'first call, processor s':>{len(titles)}}   {'later calls, ms':>{len(titles)}}")
        print(f"{'':28}{titles}   {titles}", flush=True)
        for name in names:
            first, later = measure(name, taking_part, rounds, target)
            slower = missed(first, later)
            kept = kept and not slower
            cells = ("".join(f"{each:>11.2f}" for each in row) for row in (first.values(), later.values()))
            print(f"{name:28}{'   '.join(cells)}{slower}", flush=True)
    return kept


def measure(name: str, contenders: Sequence[str], rounds: int, target: str) -> tuple[Figures, Figures]:
    """Return by contender the processor seconds of a network's first call, and the milliseconds of a later one."""
    rows: dict[str, list[Figures]] = {each: [] for each in contenders}
    for number in range(rounds):
        for each in contenders if number % 2 else contenders[::-1]:
            rows[each].append(run_once(each, name, target))
    first = {each: statistics.median(row["first"] for row in rows[each]) for each in contenders}
    return first, {each: 1e3 * statistics.median(row["later"] for row in rows[each]) for each in contenders}


def missed(first: Figures, later: Figures) -> str:
    """Return which bounds minitorch misses, and by how much; empty if it keeps them."""
    found = []
    ours = "minitorch"
    if "jax" in first and first[ours] > AT_MOST_OF_FIRST * first["jax"]:
        found.append(f"first {first[ours] / first['jax']:.2f} x jax")
    rivals = {name: each for name, each in later.items() if name != ours}
    fastest = min(rivals, key=rivals.__getitem__, default=ours)
    if later[ours] > AT_MOST_OF_LATER * later[fastest]:
        found.append(f"later {later[ours] / later[fastest]:.2f} x {fastest}")
    return f"  MISSED: {', '.join(found)}" if found else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark, or be one of its processes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.networks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--networks", metavar="REGEX", default="", help="only those whose name matches")
    parser.add_argument("--contenders", metavar="A,B", help=f"of {', '.join(CONTENDERS)}")
    parser.add_argument("--target", metavar="A,B", default=targets.NATIVE, type=targets.chosen, help="one run for each")
    parser.add_argument("--check", action="store_true", help="end with 1 if minitorch misses its bounds")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        print(json.dumps(worker(*options.worker)))
        return 0
    wanted = CONTENDERS if options.contenders is None else options.contenders.split(",")
    chosen = targets.chosen(options.target) if isinstance(options.target, str) else options.target
    kept = run(chosen, options.rounds, options.networks, wanted)
    return 0 if kept or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
