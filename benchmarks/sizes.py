"""Twenty batch sizes: one trace for all of them beside a trace for each.

python -m benchmarks.sizes                        the table
python -m benchmarks.sizes --target native,avx2   once for each

The two run in processes of their own, in turns, with empty caches on disk. Shown are compilations, the processor
seconds of all first calls together, and the time of a later call as a share of the specialised one's: the median and
the largest of the sizes, each of these the least of the rounds' medians.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import Any

from . import processor, targets
from .run import ROOT

SIZES = tuple(range(7, 160, 8))  # no multiples of a vector
ROUNDS, CALLS = 3, 40
WAYS = ("one trace", "each size")
Case = Callable[[Any, Any], tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]]


def inference(mt: Any, nn: Any) -> tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]:
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)).eval()
    return lambda x: model(x).softmax(1), lambda n: (mt.randn(n, 784),)


def training(mt: Any, nn: Any) -> tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]:
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = mt.optim.Adam(model.parameters(), lr=1e-3)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, lambda n: (mt.randn(n, 784), mt.randint(0, 10, (n,)))


def transformer(mt: Any, nn: Any) -> tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]:
    layer = nn.TransformerEncoderLayer(64, 4, 256, 0.0, batch_first=True).eval()
    return layer, lambda n: (mt.randn(n, 16, 64),)


def images(mt: Any, nn: Any) -> tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]:
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1024, 10))
    return model.eval(), lambda n: (mt.randn(n, 3, 16, 16),)


CASES: dict[str, Case] = {each.__name__: each for each in (inference, training, transformer, images)}


def worker(way: str, name: str) -> dict[str, Any]:
    """Call a function with every size, and then each again and again."""
    import minitorch as mt
    from minitorch import nn

    mt.manual_seed(0)
    f, arguments = CASES[name](mt, nn)
    axes = {each: {0: "n"} for each in (("x", "y") if name == "training" else ("x",))}
    if name in ("transformer", "images"):
        f = (lambda model: lambda x: model(x))(f)
    jitted = mt.jit(f, dynamic_shapes=axes if way == WAYS[0] else False)
    given = [arguments(n) for n in SIZES]
    grads = mt.enable_grad() if name == "training" else mt.no_grad()
    with grads:
        begin = time.process_time()
        for each in given:
            jitted(*each)
        first = time.process_time() - begin
        programs = [report.program.compiled for report in jitted.explain().signatures if report.program]
        compilations = sum(getattr(each, "compilations", 1) for each in programs)
        later = []
        for each in given:
            times = []
            for _ in range(CALLS):
                begin = time.perf_counter()
                jitted(*each)
                times.append(time.perf_counter() - begin)
            later.append(statistics.median(times))
    return {"compilations": compilations, "first": first, "later": later}


def run_once(way: str, name: str, target: str) -> dict[str, Any]:
    """Return what a process of its own finds."""
    with tempfile.TemporaryDirectory(prefix="minitorch-sizes-") as folder:
        told = os.environ | {"MINITORCH_CACHE_DIR": folder} | targets.environment(target, ["minitorch"])
        command = processor.command(target, "benchmarks.sizes", "--worker", way, name)
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=told).stdout
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sizes", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--target", default="native", help="native, avx2, or both with a comma")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(worker(*options.worker)))
        return
    for target in options.target.split(","):
        print(f"{target}: {len(SIZES)} sizes from {SIZES[0]} to {SIZES[-1]}")
        print(f"{'':<14}{'compilations':>14}{'first calls, CPU s':>22}{'a later call, share of the specialised':>42}")
        for name in CASES:
            found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
            for _ in range(ROUNDS):
                for way in WAYS:
                    found[way].append(run_once(way, name, target))
            one, each = (list(map(min, *(run["later"] for run in found[way]))) for way in WAYS)
            ratios = [ours / theirs for ours, theirs in zip(one, each, strict=True)]
            firsts = [min(run["first"] for run in found[way]) for way in WAYS]
            counts = [found[way][0]["compilations"] for way in WAYS]
            print(
                f"{name:<14}{counts[0]:>8} / {counts[1]:<4}{firsts[0]:>14.2f} / {firsts[1]:<6.2f}"
                f"{statistics.median(ratios):>26.2f}, at most {max(ratios):.2f}"
            )


if __name__ == "__main__":
    main()
