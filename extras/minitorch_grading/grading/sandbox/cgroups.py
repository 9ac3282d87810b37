"""Control groups (version 2): the kernel counts the memory and the processes of a submission, wherever they hide.

They are used where this process may make groups below its own, as in a scope that systemd delegates:

    systemd-run --user --scope -p Delegate=yes minitorch grade submitted/

Elsewhere `usage` adds up what the processes use, four times a second. Source: the kernel's
Documentation/admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from ..incidents import Incident
from ..limits import MIB, Limits

OWN = "minitorch-grader"  # the group of the grader itself: a group with groups inside may hold no processes
CONTROLLERS = ("memory", "pids")
REMOVE_SECONDS = 2.0  # for the kernel to forget the processes of a group


def own_group(mounts: Path = Path("/proc/self/mounts"), membership: Path = Path("/proc/self/cgroup")) -> Path | None:
    """The folder of this process's group; None where there is no hierarchy of version 2."""
    try:
        path = next(line[3:] for line in membership.read_text().splitlines() if line.startswith("0::"))
        mount = next(line.split()[1] for line in mounts.read_text().splitlines() if line.split()[2] == "cgroup2")
    except (OSError, StopIteration, IndexError):
        return None
    return Path(mount + path)


def prepare(own: Path | None = None) -> Path | None:
    """Make it possible to have a group for each submission: the folder for them, or None if it is not allowed.

    The first process of a run calls this before there are others: all of them then stay in a group of the grader's own.
    """
    folder = own_group() if own is None else own
    if folder is None or folder.name == OWN:
        return folder and folder.parent
    try:
        if not set(CONTROLLERS) <= set((folder / "cgroup.controllers").read_text().split()):
            return None
        grader = folder / OWN
        grader.mkdir(exist_ok=True)
        (grader / "cgroup.procs").write_text(str(os.getpid()))
        try:
            (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in CONTROLLERS))
        except OSError:  # others are in the group as well, a shell for instance
            (folder / "cgroup.procs").write_text(str(os.getpid()))
            grader.rmdir()
            return None
    except OSError:  # it belongs to somebody else
        return None
    return folder


def group_for(name: str, process: int, limits: Limits, own: Path | None = None) -> Group | None:
    """A new group with a process in it, which has not started others yet; None where `prepare` has found none."""
    folder = own_group() if own is None else own
    if folder is None or folder.name != OWN:
        return None
    with contextlib.suppress(OSError):
        group = Group(folder.parent / name, limits)
        group.add(process)
        return group
    return None


class Group:
    """The group of one submission; its limits hold for all processes that begin in it, and for all of their memory.

    Raises:
        OSError: if it cannot be made.
    """

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self.limits = folder, limits
        self.folder.mkdir()
        try:
            for file, value in (("memory.max", limits.memory), ("memory.oom.group", 1), ("pids.max", limits.processes)):
                (self.folder / file).write_text(str(value))
            with contextlib.suppress(OSError):  # swap is not counted everywhere
                (self.folder / "memory.swap.max").write_text("0")
        except OSError:
            self.remove()
            raise

    def add(self, process: int) -> None:
        """Put a process into the group, before it starts others."""
        (self.folder / "cgroup.procs").write_text(str(process))

    def exceeded(self) -> Incident | None:
        """The limit that the kernel had to enforce by ending the submission, as an incident."""
        with contextlib.suppress(OSError):
            events = dict(line.split() for line in (self.folder / "memory.events").read_text().splitlines())
            if events.get("oom_kill", "0") != "0":
                return Incident("memory", f"more than {self.limits.memory // MIB} MiB")
        return None

    def remove(self) -> None:
        """Remove the group, when its processes have ended."""
        end = time.monotonic() + REMOVE_SECONDS
        while self.folder.exists() and time.monotonic() < end:
            with contextlib.suppress(OSError):
                return self.folder.rmdir()
            time.sleep(0.01)
