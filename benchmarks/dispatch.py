"""What one operation costs before any arithmetic: an addition of 16 numbers, and a jitted function of ten of them.

Every contender runs in a process of its own, in turns; shown are the medians over the rounds, and the medians of the
ratios to NumPy within a round. Times are in microseconds per call.

    python -m benchmarks.dispatch            the table
    python -m benchmarks.dispatch --check    ends with 1 if minitorch misses its bounds
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import statistics
import subprocess
import sys
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 7
ELEMENTS = 16

# The bounds that the project promises: eager add against NumPy's, and a jitted call of ten nodes beyond its kernels.
AT_MOST_TIMES_NUMPY = 8.0
AT_MOST_JIT_OVERHEAD_US = 20.0


def microseconds(call: Callable[[], Any]) -> float:
    """The time of one call, of many in a row, the fastest of five rows."""
    timer = timeit.Timer(call)
    number, _ = timer.autorange()
    number = max(1, number // 4)
    return min(timer.repeat(5, number)) / number * 1e6


def ten(x: Any, y: Any) -> Any:
    """Ten operations, each waiting for the one before."""
    for _ in range(5):
        x = x * y
        x = x + y
    return x


def numpy_cases() -> dict[str, float]:
    """NumPy has no jit; its ten operations are the kernels that the others run."""
    import numpy as np

    x, y = np.full(ELEMENTS, 0.5, np.float32), np.full(ELEMENTS, 0.25, np.float32)
    return {"add": microseconds(lambda: x + y), "ten": microseconds(lambda: ten(x, y))}


def minitorch_cases() -> dict[str, float]:
    """Eager, and jit on the interpret backend; the executable alone is what the call adds to."""
    import minitorch as mt

    x, y = mt.full((ELEMENTS,), 0.5), mt.full((ELEMENTS,), 0.25)
    compiled = mt.jit(ten, backend="interpret")
    compiled(x, y)
    execute = mt.backends.get("interpret")(compiled.stages(x, y).graph)
    arrays = [x.numpy(), y.numpy()]
    whole, kernels = microseconds(lambda: compiled(x, y)), microseconds(lambda: execute(arrays))
    return {
        "add": microseconds(lambda: x + y),
        "ten": microseconds(lambda: ten(x, y)),
        "jit ten": whole,
        "jit overhead": whole - kernels,
    }


def jax_cases() -> dict[str, float]:
    """JAX on the CPU, waiting for each result."""
    import jax
    import jax.numpy as jnp

    x, y = jnp.full(ELEMENTS, 0.5, jnp.float32), jnp.full(ELEMENTS, 0.25, jnp.float32)
    compiled = jax.jit(ten)
    return {
        "add": microseconds(lambda: (x + y).block_until_ready()),
        "ten": microseconds(lambda: ten(x, y).block_until_ready()),
        "jit ten": microseconds(lambda: compiled(x, y).block_until_ready()),
    }


def torch_cases() -> dict[str, float]:
    """PyTorch, eager."""
    import torch

    torch.set_num_threads(1)
    x, y = torch.full((ELEMENTS,), 0.5), torch.full((ELEMENTS,), 0.25)
    return {"add": microseconds(lambda: x + y), "ten": microseconds(lambda: ten(x, y))}


CONTENDERS: dict[str, Callable[[], dict[str, float]]] = {
    "numpy": numpy_cases,
    "minitorch": minitorch_cases,
    "jax": jax_cases,
    "torch": torch_cases,
}


def measure(rounds: int) -> dict[str, list[dict[str, float]]]:
    """The figures of every installed contender, round by round."""
    names = [name for name in CONTENDERS if importlib.util.find_spec(name)]
    results: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            command = [sys.executable, "-m", "benchmarks.dispatch", "--worker", name]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout
            results[name].append(json.loads(output.splitlines()[-1]))
    return results


def report(results: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Print the table; return the medians of the figures, and of "add" relative to each other contender's."""
    medians = {
        name: {case: statistics.median(row[case] for row in rows) for case in rows[0]} for name, rows in results.items()
    }
    print(f"{platform.machine()}, Python {platform.python_version()}, {len(results['numpy'])} rounds; us per call")
    print(f"{'':12}{'add':>8}{'x numpy':>9}{'ten':>8}{'jit ten':>9}")
    for name, row in medians.items():
        pairs = zip(results[name], results["numpy"], strict=True)
        ratio = statistics.median(mine["add"] / numpy["add"] for mine, numpy in pairs)
        medians[name]["x numpy"] = ratio
        jitted = f"{row['jit ten']:9.2f}" if "jit ten" in row else f"{'-':>9}"
        print(f"{name:12}{row['add']:8.2f}{ratio:9.2f}{row['ten']:8.2f}{jitted}")
    print(f"a jitted call adds {medians['minitorch']['jit overhead']:.2f} us to the kernels of its ten nodes")
    return medians


def run(rounds: int) -> bool:
    """Measure and print; whether minitorch keeps its bounds."""
    medians = report(measure(rounds))
    ours = medians["minitorch"]
    good = ours["x numpy"] <= AT_MOST_TIMES_NUMPY and ours["jit overhead"] <= AT_MOST_JIT_OVERHEAD_US
    return good and ("jax" not in medians or ours["add"] < medians["jax"]["add"])


def main() -> int:
    """Run the benchmark, or be one of its workers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--check", action="store_true", help="end with 1 if minitorch misses its bounds")
    parser.add_argument("--worker", choices=CONTENDERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(CONTENDERS[options.worker]()))
        return 0
    good = run(options.rounds)
    return 0 if good or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
