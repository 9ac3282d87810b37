"""``minitorch doctor``: a table of things to look at; each says what there is, and what to do if it is wrong."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

import numpy as np

import minitorch
from minitorch import __version__, get_num_threads, jit, ones
from minitorch.errors import CommandError

DRAWING_SECONDS = 60  # for Graphviz, the first time


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        about: what.
        state: ``"good"``, ``"note"`` (something does without) or ``"wrong"``.
        found: what there is.
        fix: what to do, if something is to be done.
    """

    about: str
    state: str
    found: str
    fix: str = ""


def _versions() -> Iterator[Finding]:
    llvmlite = metadata.version("llvmlite")
    yield Finding("minitorch", "good", f"{__version__} in {Path(minitorch.__file__).parent}")
    yield Finding("Python", "good", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield Finding("engine", "good", f"NumPy {np.__version__}, llvmlite {llvmlite}")


# The purpose of each extra, and the packages that show whether it is installed.
EXTRAS = {
    "course": ("notebooks and exercises", ("jupyterlab", "ipykernel", "nbgrader", "anywidget", "scikit-learn", "tqdm")),
    "viz": ("pictures of graphs, and plots", ("matplotlib", "pygraphviz")),
    "jax": ("the cells beside JAX", ("jax",)),
}
MODULES = {"scikit-learn": "sklearn"}  # where a package is imported by another name


def _extras() -> Iterator[Finding]:
    for extra, (purpose, packages) in EXTRAS.items():
        missing = [each for each in packages if util.find_spec(MODULES.get(each, each)) is None]
        fix = f"pip install {' '.join(missing)}" if missing else ""
        found = f"{', '.join(missing)} missing" if missing else "all there"
        yield Finding(f"extra {extra}", "note" if missing else "good", f"{found}, for {purpose}", fix)


def _compiler() -> Iterator[Finding]:
    from minitorch.compiler.codegen.host import host

    x = ones(1000)
    right = bool((jit(lambda x: x * 2 + 1)(x) == 3).all().item())
    found = "a kernel was compiled and gives the right numbers" if right else "a compiled kernel gives wrong numbers"
    if host().name != "native":
        found += f", with MINITORCH_TARGET={host().name}"
    yield Finding("compiler", "good" if right else "wrong", found, "" if right else "report it, with this table")


def _cache() -> Iterator[Finding]:
    from minitorch.compiler.runtime.cache import default_folder

    folder = default_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        fix = "set MINITORCH_CACHE_DIR to a folder of your own; until then every start compiles anew"
        yield Finding("cache", "note", f"{folder} cannot be written to ({error.strerror})", fix)
        return
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    yield Finding("cache", "good", f"{folder}, {size / 2**20:.1f} MB")


def _graphviz() -> Iterator[Finding]:
    fix = "pip install pygraphviz; until then graphs are shown as text"
    if util.find_spec("pygraphviz") is None:
        yield Finding("Graphviz", "note", "pygraphviz is not installed", fix)
        return
    # In a process of its own: Graphviz's libraries have much to say about fonts.
    program = "import pygraphviz; g = pygraphviz.AGraph('digraph { a -> b }'); print(g.draw(format='svg', prog='dot'))"
    tried = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=DRAWING_SECONDS)
    good = "<svg" in tried.stdout
    found = "lays out graphs" if good else f"draws nothing: {tried.stderr.strip()[-200:]}"
    yield Finding("Graphviz", "good" if good else "note", found, "" if good else fix)


def _kernel() -> Iterator[Finding]:
    if util.find_spec("jupyter_client") is None:
        yield Finding("kernel", "note", "Jupyter is not installed", "pip install jupyterlab")
        return
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    fix = f"{sys.executable} -m ipykernel install --sys-prefix"
    try:
        program = KernelSpecManager().get_kernel_spec("python3").argv[0]
    except NoSuchKernel:
        yield Finding("kernel", "wrong", "there is no kernel python3", fix)
        return
    own = shutil.which(program) or program
    if program in ("python", "python3") or os.path.realpath(own) == os.path.realpath(sys.executable):
        yield Finding("kernel", "good", "notebooks run with this Python")
    else:
        yield Finding("kernel", "wrong", f"notebooks run with another Python, {program}", fix)


def _notebooks() -> Iterator[Finding]:
    from .lab import course_folder

    try:
        folder = course_folder(Path.cwd())
    except CommandError as error:
        yield Finding("notebooks", "note", str(error), "git clone the course, and go into its folder")
        return
    count = len(list(folder.glob("notebooks/*.ipynb")))
    yield Finding("notebooks", "good", f"{count} in {folder / 'notebooks'}")


def _sandbox() -> Iterator[Finding]:
    from .grading.sandbox import bubblewrap as sandbox

    reason = sandbox.unavailable()
    if reason is None:
        yield Finding("sandbox", "good", "bubblewrap makes sandboxes, in which submissions are graded")
        yield from _limits()
    else:
        yield Finding("sandbox", "note", reason, f"{sandbox.remedy()}; only who grades needs it")


def _limits() -> Iterator[Finding]:
    """Of what keeps a submission to its limits, what this machine has."""
    from .grading.sandbox import cgroups
    from .grading.sandbox.bubblewrap import knows
    from .grading.sandbox.inside.seccomp import program

    if program() is None:
        yield Finding("system calls", "note", f"there is no filter for {platform.machine()}: memory can be hidden")
    else:
        more = "" if knows("--disable-userns") else " (bubblewrap 0.8 would deny user namespaces a second time)"
        yield Finding("system calls", "good", f"those that hide memory or make namespaces are refused{more}")
    if cgroups.prepare() is not None:
        yield Finding("control groups", "good", "the kernel counts memory and processes of each submission")
    else:
        how = "memory and processes of a submission are added up four times a second"
        fix = "with systemd: systemd-run --user --scope -p Delegate=yes minitorch grade ..."
        yield Finding("control groups", "note", how, fix)


def _formgrader() -> Iterator[Finding]:
    from .grading.course.config import lets_code_run

    root = Path.cwd()
    if not (root / "gradebook.db").exists() and not (root / "submitted").is_dir():
        return  # no course that is graded
    reason = lets_code_run(root)
    found = reason or "its Autograde button runs no student's code in this course"
    yield Finding("formgrader", "wrong" if reason else "good", found)


def _threads() -> Iterator[Finding]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield Finding("threads", "good", f"kernels use {get_num_threads()} of {cores} cores")
    chosen = os.environ.get("OPENBLAS_NUM_THREADS")
    if chosen is None and cores > 1:
        fix = "on a machine that is shared, set OPENBLAS_NUM_THREADS=1 before Python starts"
        yield Finding("NumPy's threads", "note", "as many as there are cores; they wait for each other busily", fix)
    else:
        yield Finding("NumPy's threads", "good", chosen or "one core")


EXAMINATIONS = (_versions, _extras, _compiler, _cache, _kernel, _notebooks, _graphviz, _sandbox, _formgrader, _threads)


def examine() -> list[Finding]:
    """Run all checks. A check that fails with an error counts as a fault, and the others run all the same."""
    found: list[Finding] = []
    for examination in EXAMINATIONS:
        try:
            found += examination()
        except Exception as error:  # the very thing that a doctor is for
            text = next(iter(str(error).splitlines()), type(error).__name__)
            fix = "install again: make setup, or pip install -r requirements.txt -e ."
            found.append(Finding(examination.__name__[1:], "wrong", text, fix))
    return found


MARKS = {"good": "✓", "note": "·", "wrong": "✗"}


def table(findings: Sequence[Finding]) -> str:
    """The findings for a terminal, and what it all means."""
    width = max(len(each.about) for each in findings)
    columns = min(shutil.get_terminal_size().columns, 120) - width - 6
    lines = []
    for each in findings:
        text = f"{each.found}{f'; {each.fix}' if each.fix else ''}"
        first, *more = textwrap.wrap(text, max(columns, 40)) or [""]
        lines.append(f"{MARKS[each.state]} {each.about:<{width}}  {first}")
        lines += [f"  {'':<{width}}  {line}" for line in more]
    wrong = sum(each.state == "wrong" for each in findings)
    lines.append(f"{wrong} thing{'s' * (wrong != 1)} to put right" if wrong else "all is well")
    return "\n".join(lines)
