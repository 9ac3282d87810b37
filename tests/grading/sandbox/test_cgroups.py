"""Control groups: which folder is used, and what is written there. A folder of plain files takes the kernel's place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from minitorch_grading.grading.limits import MIB, Limits
from minitorch_grading.grading.sandbox import cgroups

LIMITS = Limits(memory=100 * MIB, processes=7)


@pytest.fixture
def scope(tmp_path: Path) -> Path:
    """The group of a scope that was delegated, with this process alone in it."""
    for name, content in (
        ("cgroup.controllers", "cpu memory pids"),
        ("cgroup.procs", f"{os.getpid()}\n"),
        ("cgroup.subtree_control", ""),
    ):
        (tmp_path / name).write_text(content)
    return tmp_path


def test_the_own_group_is_found_where_the_hierarchy_of_version_2_is_mounted(tmp_path: Path) -> None:
    mounts, membership = tmp_path / "mounts", tmp_path / "membership"
    mounts.write_text("tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n")
    membership.write_text("4:memory:/x\n0::/user.slice/run-1.scope\n")
    assert cgroups.own_group(mounts, membership) == Path("/sys/fs/cgroup/unified/user.slice/run-1.scope")
    membership.write_text("4:memory:/x\n")
    assert cgroups.own_group(mounts, membership) is None


def test_the_grader_moves_to_a_group_of_its_own_and_shares_out_the_controllers(scope: Path) -> None:
    assert cgroups.prepare(scope) == scope
    assert (scope / cgroups.OWN / "cgroup.procs").read_text() == str(os.getpid())
    assert (scope / "cgroup.subtree_control").read_text() == "+memory +pids"
    assert cgroups.prepare(scope / cgroups.OWN) == scope, "whoever is there already knows the folder"


def test_without_the_controllers_there_are_no_groups(scope: Path) -> None:
    (scope / "cgroup.controllers").write_text("hugetlb")
    assert cgroups.prepare(scope) is None
    assert not (scope / cgroups.OWN).exists()
    assert cgroups.group_for("grading-1-0-99", 99, LIMITS, scope) is None


def test_a_submission_has_limits_before_it_begins_and_its_end_has_a_name(scope: Path) -> None:
    cgroups.prepare(scope)
    group = cgroups.group_for("grading-1-0-99", 99, LIMITS, scope / cgroups.OWN)
    assert group is not None
    written = {path.name: path.read_text() for path in group.folder.iterdir()}
    assert written == {
        "memory.max": str(100 * MIB),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": "7",
        "cgroup.procs": "99",
    }
    assert group.exceeded() is None
    (group.folder / "memory.events").write_text("low 0\nmax 9\noom 1\noom_kill 1\n")
    incident = group.exceeded()
    assert incident is not None and str(incident).startswith("memory: ") and "100 MiB" in str(incident)


def test_a_group_that_is_there_already_is_not_taken(scope: Path) -> None:
    cgroups.prepare(scope)
    assert cgroups.group_for("grading-1-0-99", 99, LIMITS, scope / cgroups.OWN) is not None
    assert cgroups.group_for("grading-1-0-99", 99, LIMITS, scope / cgroups.OWN) is None
