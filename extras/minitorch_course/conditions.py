"""`settings`: the same conditions for every contender in a notebook, and the machine that numbers were measured on."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from minitorch import __version__
from minitorch.backends import clear_caches, set_num_threads
from minitorch_inspect.plots.theme import use_in_notebook

PACKAGES = ("numpy", "jax", "torch")  # whose versions are told, if they are installed
XLA = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


@dataclass(frozen=True)
class Settings:
    """The conditions of a notebook.

    Attributes:
        threads: how many each contender may use; None if they were left alone.
        limited: the contenders for which that holds.
        machine: system and processor.
        versions: of Python and of packages, by name.
    """

    threads: int | None
    limited: tuple[str, ...]
    machine: str
    versions: dict[str, str]

    def __repr__(self) -> str:
        told = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        lines = [told, self.machine]
        if self.threads is not None:
            lines.append(f"threads: {self.threads} for {', '.join(self.limited)}")
        return "\n".join(lines)


_folders: list[tempfile.TemporaryDirectory[str]] = []  # removed when Python ends


def settings(threads: int | None = 1, fresh: bool = True) -> Settings:
    """Give every contender the same number of threads, and let compilation start from nothing.

    Call it at the top of a notebook, before JAX is imported: JAX reads its number of threads when it starts.

    Args:
        threads: how many NumPy, minitorch and JAX may use; None leaves them alone. JAX knows one or all.
        fresh: keep compiled code in an empty folder, so that a first call compiles, however often the notebook has run.

    Returns:
        Settings: the conditions, and the machine; shown as the result of a cell.

    Raises:
        ValueError: for less than one thread.

    Example:
        >>> from minitorch import course
        >>> course.settings(threads=1).threads
        1
    """
    if threads is not None and threads < 1:
        raise ValueError(f"threads is {threads}: a program has at least one")
    use_in_notebook()
    limited: list[str] = []
    if threads is not None:
        limited = [name for name, holds in _limit(threads).items() if holds]
    if fresh:
        forget_compiled()
    return Settings(threads, tuple(limited), _machine(), _versions())


def forget_compiled() -> None:
    """Let the next first call compile, also if the same code was compiled before, in this process or another one.

    Example:
        >>> from minitorch import course
        >>> course.forget_compiled()
    """
    _folders.append(tempfile.TemporaryDirectory(prefix="minitorch-notebook-"))
    os.environ["MINITORCH_CACHE_DIR"] = _folders[-1].name
    clear_caches()


def _limit(threads: int) -> dict[str, bool]:
    """Limit the contenders; for each, whether that holds."""
    set_num_threads(threads)
    found = {"minitorch": True, "NumPy": _limit_numpy(threads)}
    if version_of("jax"):
        if threads == 1 and "jax" not in sys.modules:
            flags = os.environ.get("XLA_FLAGS", "")
            os.environ["XLA_FLAGS"] = flags if XLA in flags else f"{flags} {XLA}".strip()
        found["JAX"] = XLA in os.environ.get("XLA_FLAGS", "") and threads == 1
    return found


def _limit_numpy(threads: int) -> bool:
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return False
    threadpool_limits(threads)
    return True


def _machine() -> str:
    name = platform.processor() or platform.machine()
    if sys.platform == "linux":
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), name)
    return f"{platform.system()} on {name}, {os.cpu_count()} cores"


def _versions() -> dict[str, str]:
    found = {"minitorch": __version__, "Python": platform.python_version()}
    return found | {name: number for name in PACKAGES if (number := version_of(name))}


def version_of(package: str) -> str:
    """The version of an installed package; empty if it is not installed.

    Example:
        >>> version_of("no such package")
        ''
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
