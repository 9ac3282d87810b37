"""Runs notebooks in fresh kernels: on all cores, on one core, and beside processes that keep all cores busy.

    python -m tests.notebook_runs                     every notebook under every condition, and the seconds of each
    python -m tests.notebook_runs 04 07 --on busy     two notebooks under one of them
    python -m tests.notebook_runs --on idle --record  how much output each has, for `tools/minutes.py`

A machine in a classroom is not idle. The run fails if a cell fails or writes to stderr, or if a notebook takes longer
than two minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from tools import minutes
from tools.clone import NOTEBOOKS

SECONDS = 120  # for a notebook, with whatever else the machine is doing


@contextlib.contextmanager
def idle() -> Iterator[None]:
    """As the machine is."""
    yield


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """A kernel that starts now has one core, as with ``taskset``; where the system has no affinity, nothing changes."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """Beside one process for each core that computes without end."""
    with contextlib.ExitStack() as stack:
        for _ in range(os.cpu_count() or 1):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(process.kill)
        yield


CONDITIONS: dict[str, Callable[[], contextlib.AbstractContextManager[None]]] = {
    "idle": idle,
    "one core": one_core,
    "busy": busy,
}


def environment(folder: Path) -> dict[str, str]:
    """What a kernel sees: nothing of this user's configuration, history and accelerators."""
    import matplotlib.font_manager  # noqa: F401  builds its cache, once per machine, and warns while it does

    return {
        **{name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"},
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_CONFIG_DIR": str(folder / "jupyter"),
        "JAX_PLATFORMS": "cpu",  # JAX warns of a GPU that it was not installed for
    }


def code_cells(notebook):
    """The code cells with their position among all cells, from 1, as a reader counts them."""
    return [(number, cell) for number, cell in enumerate(notebook.cells, 1) if cell.cell_type == "code"]


def complaints(notebook) -> Iterator[str]:
    """What the executed notebook has written to stderr, one entry a cell."""
    for number, cell in code_cells(notebook):
        text = "".join(output.text for output in cell.outputs if output.get("name") == "stderr")
        if text:
            yield f"cell {number} wrote to stderr:\n\n{cell.source}\n\n{text}"


def execute(notebook, folder: Path, environment: dict[str, str]) -> str | None:
    """Run all cells, in place, in a fresh kernel of this interpreter; return what stopped it, or None."""
    # With no folder to search, jupyter_client's own "python3" is left, which is always sys.executable.
    kernel = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=KernelSpecManager(kernel_dirs=[]))
    client = NotebookClient(
        notebook,
        km=kernel,
        timeout=SECONDS,
        resources={"metadata": {"path": str(folder)}},
        extra_arguments=["--log-level=ERROR"],  # the kernel warns that its sockets on this machine are not encrypted
    )
    try:
        client.execute(cleanup_kc=True, env=environment)
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        reached = max((number for number, cell in code_cells(notebook) if cell.execution_count), default=1)
        text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))  # no colours
        return f"{type(error).__name__} in cell {reached}\n{text}"
    return None


def outputs(notebook) -> list[tuple[int, int]]:
    """The lines of output and the pictures that everybody sees, and those of optional sections."""
    found = minutes.of_cells(notebook.cells)[:2]
    return [(counts.outputs, counts.pictures) for counts in found]


def ran(path: Path, condition: str, environment: dict[str, str], last: str = ""):
    """Run a notebook under a condition; return what stopped it or what it wrote to stderr, or None, and its outputs.

    Args:
        path: the notebook.
        condition: a key of `CONDITIONS`.
        environment: of the kernel.
        last: a cell that is run at the end, whose outputs do not count.
    """
    notebook = nbformat.read(path, as_version=4)
    if last:
        notebook.cells.append(nbformat.v4.new_code_cell(last))
    with CONDITIONS[condition]():
        stopped = execute(notebook, NOTEBOOKS, environment)
    problem = stopped or "\n\n".join(complaints(notebook)) or None
    del notebook.cells[len(notebook.cells) - bool(last) :]
    return problem, outputs(notebook)


def main() -> int:
    """Run what is asked for; the exit status is 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="*", metavar="NN", help="the notebooks' numbers; all if none is given")
    parser.add_argument("--on", nargs="+", choices=list(CONDITIONS), default=list(CONDITIONS))
    parser.add_argument("--record", action="store_true", help="write down how much output there is")
    options = parser.parse_args()
    paths = sorted(NOTEBOOKS.glob("*.ipynb"))
    paths = [path for path in paths if not options.numbers or path.name[:2] in options.numbers]
    failed, recorded = [], json.loads(minutes.RECORD.read_text(encoding="utf-8"))
    print(f"{'seconds':28}" + "".join(f"{condition:>10}" for condition in options.on))
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            print(f"{path.stem:28}", end="", flush=True)
            for condition in options.on:
                start = time.perf_counter()
                problem, recorded[path.stem] = ran(path, condition, environment(Path(folder)))
                took = time.perf_counter() - start
                if problem or took > SECONDS:
                    failed.append(f"{path.name}, {condition}: {problem or f'{took:.0f} seconds'}")
                print(f"{took:>9.0f}{'!' if problem or took > SECONDS else ' '}", end="", flush=True)
            print()
    print(*failed, sep="\n\n")
    if options.record and not failed:
        lines = (f"{json.dumps(name)}: {json.dumps(recorded[name])}" for name in sorted(recorded))
        minutes.RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
