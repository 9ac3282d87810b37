"""What profiling costs: training steps of an MLP, profiled and not, in turns.

python -m benchmarks.overhead            the table
python -m benchmarks.overhead --check    ends with 1 if profiling costs more than it may
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import minitorch as mt
from minitorch.nn import functional as F

SECONDS = 3.0  # for each mode
AT_MOST = 0.05  # the bound that the project promises
MODES: tuple[str | None, ...] = (None, "interpret", "llvm")
BATCH, SIZES = 256, (784, 512, 256, 10)


def make_step(backend: str | None) -> Callable[[Any, Any], Any]:
    """A network with two hidden layers, and one step of Adam."""
    layers: list[Any] = []
    for inputs, outputs in pairwise(SIZES):
        layers += [mt.nn.Linear(inputs, outputs), mt.nn.ReLU()]
    model = mt.nn.Sequential(*layers[:-1])
    optimizer = mt.optim.Adam(model.parameters(), 1e-3)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return mt.jit(step, backend=backend) if backend else step


def measure(backend: str | None, seconds: float) -> tuple[float, float, int]:
    """The median time of a step, the median of the ratios of profiled steps to the ones beside them, less 1, and how
    many operations, nodes or kernels were noted in a step.
    """
    step = make_step(backend)
    x, y = mt.randn(BATCH, SIZES[0]), mt.arange(BATCH) % SIZES[-1]

    def timed() -> float:
        begin = time.perf_counter()
        step(x, y)
        return time.perf_counter() - begin

    def profiled() -> float:
        with mt.profile():
            return timed()

    timed(), profiled()
    with mt.profile() as p:
        step(x, y)
    pairs: list[tuple[float, float]] = []
    end = time.perf_counter() + seconds
    while len(pairs) < 5 or time.perf_counter() < end:
        first = len(pairs) % 2 == 0  # each as often first as second
        plain, watched = (timed(), profiled()) if first else reversed((profiled(), timed()))
        pairs.append((plain, watched))
    typical = statistics.median(plain for plain, _ in pairs)
    return typical, statistics.median(watched / plain for plain, watched in pairs) - 1, p.calls


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="end with 1 if profiling costs more than it may")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each mode")
    options = parser.parse_args()
    good = True
    for backend in MODES:
        typical, overhead, calls = measure(backend, options.seconds)
        good = good and overhead <= AT_MOST
        each = f"{typical * overhead / calls * 1e6:.1f} us for each of {calls} runs of an operation or kernel"
        print(f"{backend or 'eager':<10}{typical * 1e3:>9.3f} ms a step, {overhead:+.1%} when profiled: {each}")
    return 0 if good or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
