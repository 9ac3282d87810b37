"""``minitorch lab``: JupyterLab at the first notebook of the course. `make lab` is this, after the set-up."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import minitorch
from minitorch.errors import CommandError

FIRST = Path("notebooks", "00-start-here.ipynb")


def course_folder(here: Path) -> Path:
    """The folder of the course: the present one or one above it, or that which this package was installed from.

    Raises:
        CommandError: if none of them has the notebooks.
    """
    for folder in (here, *here.parents, Path(minitorch.__file__).parents[1]):
        if (folder / FIRST).is_file():
            return folder
    raise CommandError(f"there is no {FIRST.as_posix()} here: run it in a clone of the course")


def has_display(system: str, environment: Mapping[str, str]) -> bool:
    """Whether a browser that is started now could be seen.

    Example:
        >>> has_display("linux", {}), has_display("linux", {"DISPLAY": ":0"}), has_display("win32", {})
        (False, True, True)
    """
    if system == "win32":
        return True
    if system == "darwin":
        return not environment.get("SSH_CONNECTION")
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def command(folder: Path, port: int | None, browser: bool, as_root: bool, options: Sequence[str]) -> list[str]:
    """How JupyterLab is started.

    Example:
        >>> command(Path("/course"), 8899, False, False, ["--ip=0.0.0.0"])[-4:]
        ['--ServerApp.port=8899', '--ServerApp.port_retries=0', '--no-browser', '--ip=0.0.0.0']
    """
    # default_url puts the notebook into the printed address, too.
    line = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}", "--log-level=WARN"]
    line.append(f"--LabApp.default_url=/lab/tree/{FIRST.as_posix()}")
    if port is not None:
        line += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    return [*line, *["--allow-root"] * as_root, *["--no-browser"] * (not browser), *options]


def run(port: int | None, no_browser: bool, options: Sequence[str]) -> int:
    """Start JupyterLab, and stay until it ends.

    Raises:
        CommandError: without notebooks or without JupyterLab.
    """
    folder = course_folder(Path.cwd())
    if find_spec("jupyterlab") is None:
        raise CommandError("JupyterLab is not installed: pip install jupyterlab")
    browser = not no_browser and has_display(sys.platform, os.environ)
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0
    line = command(folder, port, browser, as_root, options)
    # So that `!python` in a cell and a terminal in the browser find the same Python.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return start(line, {**os.environ, "PATH": path})


def start(line: list[str], environment: Mapping[str, str]) -> int:
    """Become another program, so that signals reach it; on Windows, which has no such thing, wait for it."""
    if os.name == "posix":
        os.execve(line[0], line, environment)
    return subprocess.call(line, env=environment)
