"""From the shell to the first compiled result, and how long unrolled loops take to compile: minitorch beside JAX.

python -m benchmarks.first            the table
python -m benchmarks.first --check    ends with 1 if minitorch misses its bounds

Every program runs in a process of its own, in turns, with empty caches on disk. Shown is processor time, user and
system, of all threads: other programs do not lengthen it much. *Start* is the whole process, from the interpreter on:
import, trace, compile, run. *Unrolled* is the first call of a loop of 40 steps, after another function was compiled.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 5
STEPS = 40
AT_MOST_OF_START, AT_MOST_OF_UNROLLED = 0.5, 1.0  # of JAX's processor time: the bounds that the project promises

Program = Callable[[Any], tuple[Callable[..., Any], list[Any]]]  # of a library: a function, its arguments' shapes


def add(lib: Any) -> tuple[Callable[..., Any], list[Any]]:
    return lambda x: x + 1, [(16,)]


def softmax(lib: Any) -> tuple[Callable[..., Any], list[Any]]:
    return lambda x: lib.softmax(x, -1), [(64, 64)]


def mlp_gradient(lib: Any) -> tuple[Callable[..., Any], list[Any]]:
    def loss(w1: Any, b1: Any, w2: Any, b2: Any, x: Any) -> Any:
        y = lib.log_softmax(lib.tanh(x @ w1 + b1) @ w2 + b2, -1)
        return (y * y).mean()

    return lib.value_and_grad(loss), [(64, 32), (32,), (32, 10), (10,), (8, 64)]


def _gru(lib: Any, w: Any, u: Any, b: Any, c: Any, x: Any) -> Any:
    """Cho and others, arXiv:1406.1078, in the form of PyTorch."""
    width = u.shape[0]
    state = x[0] * 0.0
    for number in range(STEPS):
        i, h = x[number] @ w + b, state @ u + c
        reset = lib.sigmoid(i[:, :width] + h[:, :width])
        update = lib.sigmoid(i[:, width : 2 * width] + h[:, width : 2 * width])
        new = lib.tanh(i[:, 2 * width :] + reset * h[:, 2 * width :])
        state = (1 - update) * new + update * state
    return state


def _recurrent(lib: Any, w: Any, u: Any, b: Any, x: Any) -> Any:
    state = x[0] * 0.0
    for number in range(STEPS):
        state = lib.tanh(x[number] @ w + state @ u + b)
    return state


def _shapes(gates: int, biases: int, batch: int, width: int) -> list[Any]:
    return [(width, gates * width)] * 2 + [(gates * width,)] * biases + [(STEPS, batch, width)]


def gru(batch: int, width: int) -> Program:
    """A gated network, unrolled."""
    return lambda lib: (lambda *args: _gru(lib, *args), _shapes(3, 2, batch, width))


def gru_gradient(batch: int, width: int) -> Program:
    """Its gradient."""

    def program(lib: Any) -> tuple[Callable[..., Any], list[Any]]:
        def loss(*args: Any) -> Any:
            state = _gru(lib, *args)
            return (state * state).mean()

        return lib.value_and_grad(loss), _shapes(3, 2, batch, width)

    return program


def recurrent(batch: int, width: int) -> Program:
    """A recurrent network, unrolled."""
    return lambda lib: (lambda *args: _recurrent(lib, *args), _shapes(1, 1, batch, width))


START: dict[str, Program] = {"x + 1": add, "softmax": softmax, "MLP, gradient": mlp_gradient}
UNROLLED: dict[str, Program] = {
    "RNN 32×64": recurrent(32, 64),
    "GRU 8×32": gru(8, 32),
    "GRU 32×64": gru(32, 64),
    "GRU 64×256": gru(64, 256),
    "GRU 32×64, gradient": gru_gradient(32, 64),
}


class Minitorch:
    """What the programs need of minitorch."""

    def __init__(self) -> None:
        import minitorch as mt

        self.tanh, self.sigmoid, self.softmax, self.log_softmax = mt.tanh, mt.sigmoid, mt.softmax, mt.log_softmax
        self.value_and_grad, self.compile, self.array = mt.value_and_grad, mt.jit, lambda shape: mt.ones(shape)
        self.wait = lambda result: result


class Jax:
    """What the programs need of JAX."""

    def __init__(self) -> None:
        import jax
        import jax.numpy as jnp

        self.tanh, self.sigmoid = jnp.tanh, jax.nn.sigmoid
        self.softmax, self.log_softmax = jax.nn.softmax, jax.nn.log_softmax
        self.value_and_grad, self.compile, self.array = jax.value_and_grad, jax.jit, jnp.ones
        self.wait = jax.block_until_ready


LIBRARIES: dict[str, Callable[[], Any]] = {"minitorch": Minitorch, "jax": Jax}


def worker(library: str, name: str) -> dict[str, float]:
    """Run one program for the first time; the processor time and the time of its first call."""
    lib = LIBRARIES[library]()
    if name in UNROLLED:
        lib.wait(lib.compile(lambda x: x + 1)(lib.array((16,))))
    function, shapes = {**START, **UNROLLED}[name](lib)
    arguments = [lib.array(shape) for shape in shapes]
    wall, used = time.perf_counter(), time.process_time()
    lib.wait(lib.compile(function)(*arguments))
    return {"first": time.process_time() - used, "wall": time.perf_counter() - wall}


def run_once(library: str, name: str) -> dict[str, float]:
    """A process: its whole processor time, and what it says of the first call."""
    with tempfile.TemporaryDirectory(prefix="minitorch-first-") as folder:
        environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment |= {
            "MINITORCH_CACHE_DIR": folder,
            "JAX_ENABLE_COMPILATION_CACHE": "false",
            "JAX_PLATFORMS": "cpu",
        }
        command = [sys.executable, "-m", "benchmarks.first", "--worker", library, name]
        before, begin = os.times(), time.perf_counter()
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)
        wall, after = time.perf_counter() - begin, os.times()
    used = after.children_user - before.children_user + after.children_system - before.children_system
    said: dict[str, float] = json.loads(output.stdout.splitlines()[-1])
    return {"start": used, "start wall": wall, **said}


def measure(names: list[str], libraries: list[str], rounds: int) -> dict[str, dict[str, list[dict[str, float]]]]:
    """By program and library, what `run_once` finds in each round; a round before them writes the bytecode."""
    for library in libraries:
        run_once(library, names[0])
    found: dict[str, dict[str, list[dict[str, float]]]] = {name: {each: [] for each in libraries} for name in names}
    for number in range(rounds):
        for name in names:
            for library in libraries if number % 2 else libraries[::-1]:
                found[name][library].append(run_once(library, name))
    return found


def report(found: dict[str, dict[str, list[dict[str, float]]]]) -> bool:
    """Print the table; whether minitorch keeps its bounds."""
    kept = True
    print(f"{'processor seconds':22}{'minitorch':>10}{'jax':>8}{'ratio':>8}   (time {'minitorch':>9}{'jax':>8})")
    for kind, programs, least in (("start", START, AT_MOST_OF_START), ("first", UNROLLED, AT_MOST_OF_UNROLLED)):
        for name in (name for name in programs if name in found):
            rows = found[name]
            values = {each: statistics.median(row[kind] for row in rows[each]) for each in rows}
            wall = "start wall" if kind == "start" else "wall"
            walls = {each: statistics.median(row[wall] for row in rows[each]) for each in rows}
            line = f"{name:22}{values['minitorch']:>10.2f}"
            if "jax" in rows:
                pairs = zip(rows["minitorch"], rows["jax"], strict=True)
                ratio = statistics.median(ours[kind] / theirs[kind] for ours, theirs in pairs)
                good = ratio <= least
                kept = kept and good
                line += f"{values['jax']:>8.2f}{ratio:>8.2f}   (time {walls['minitorch']:>9.2f}{walls['jax']:>8.2f})"
                line += "" if good else f" MISSED: at most {least} x jax"
            print(line)
    return kept


def main() -> int:
    """Run the benchmark, or be one of its processes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--programs", metavar="REGEX", default="", help="only those whose name matches")
    parser.add_argument("--check", action="store_true", help="end with 1 if minitorch misses its bounds")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(worker(*options.worker)))
        return 0
    from importlib.util import find_spec

    names = [name for name in (*START, *UNROLLED) if re.search(options.programs, name)]
    if not names:
        raise SystemExit(f"no program matches {options.programs!r}")
    kept = report(measure(names, [name for name in LIBRARIES if find_spec(name)], options.rounds))
    return 0 if kept or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
