"""Where student code runs: bubblewrap's command line, and whether this machine can run it.

Inside there is the system, this Python with the packages that an exercise may import, and what that exercise needs of
`minitorch` (`image`), all read-only; three small folders in memory; no network; no other process. In particular there
is no gradebook, no solution, no test and no other student's work, because the folder of the course is not there, and
nothing that is written inside lies on a disk.

bubblewrap makes the namespaces and the view of the files, once for many submissions; each of these is a copy of the
first process inside (`inside.fork_server`), with namespaces, folders and limits of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ..limits import Limits
from . import packages
from .image import PROGRAMS, Contents

IMAGE = Path("/course/image.zip")  # where our own files are found inside
HOME = Path("/home/student")
MEMORY = (Path("/dev/shm"), Path("/tmp"), HOME)  # what student code may write to

# The system's own folders. On most distributions some of them are links into /usr, and stay so.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime")

# The least uid that no distribution gives to anything (after the containers' in systemd's UIDs-GIDs.md).
FIRST_UID = 1_879_048_192

SLOTS = 64  # for one run; another run has others, because a user's processes are counted together

UNSAFE = "--unsafe runs the students' code with your rights: it can read your files and change the gradebook"


@dataclass(frozen=True)
class Sandbox:
    """How to start a kernel: under bubblewrap, or (``safe=False``) as a plain process.

    ``slot`` tells submissions apart that run at the same time, in this run or in another one on the same machine;
    ``contents`` are those of the image.
    """

    limits: Limits
    slot: int = 0
    safe: bool = True
    contents: Contents = field(default_factory=Contents)

    @property
    def uid(self) -> int | None:
        """The user that student code becomes if the grader is root; None if it stays who it is, in a user namespace."""
        return spare_uid(self.slot) if self.safe and os.geteuid() == 0 else None

    @property
    def name(self) -> str:
        """What the machine is called inside, and by what the processes of a run are found."""
        return f"grading-{self.slot // SLOTS}-{self.slot % SLOTS}"

    def command(self, control: int, image: int) -> list[str]:
        """The command line of a fork server that takes requests from a socket, with an image to be read from a file.

        Args:
            control: the descriptor of the socket.
            image: the descriptor of the file; without a sandbox it is read by its path (see `surroundings`).
        """
        options = {
            "name": self.name,
            "control": control,
            "limits": self.resources(),
            "folders": {str(path): self._mounted() for path in MEMORY},
            "kept": [str(path) for path in interpreter() if is_in_memory(path)],
            "uid": self.uid,
            "checks": self.contents.checks,
            "caged": self.safe,
        }
        python = [sys.executable, "-P", "-m", f"{PROGRAMS}.fork_server", json.dumps(options)]
        return [*self.bubblewrap(image), *python] if self.safe else python

    def surroundings(self, image: str) -> dict[str, str]:
        """The environment variables of the command: none, so that nothing of the grader's can be read inside."""
        return {} if self.safe else {**environment(), **os.environ, "PYTHONPATH": image}

    def _mounted(self) -> str:
        limits = self.limits
        return f"size={limits.disk},nr_inodes={limits.files},mode=1777"

    def resources(self) -> dict[str, int]:
        """The resource limits of each process, by their names in the module `resource`."""
        limits = self.limits
        return {
            "RLIMIT_AS": 2 * limits.memory + (2 << 30),  # addresses: far more are reserved than are used
            "RLIMIT_CPU": int(limits.seconds * (os.cpu_count() or 1)) + 5,
            "RLIMIT_NPROC": limits.processes,
            "RLIMIT_FSIZE": limits.file,
            "RLIMIT_NOFILE": limits.descriptors,
            "RLIMIT_MSGQUEUE": 0,
            "RLIMIT_CORE": 0,
        }

    def bubblewrap(self, image: int | None = None) -> list[str]:
        """bubblewrap and its options; the command to run inside follows.

        The image is read from a descriptor. Without one it is a trial, and installed packages are as they are.
        """
        shown = [path for path in parents([*interpreter(), IMAGE, HOME]) if path not in MEMORY]
        return [
            shutil.which("bwrap") or "bwrap",
            *self.namespaces(),
            "--die-with-parent",
            "--new-session",
            "--as-pid-1",
            "--hostname",
            self.name,
            "--clearenv",
            *(part for name, value in environment().items() for part in ("--setenv", name, value)),
            *(part for path in shown if not is_in_memory(path) for part in open_folder(path)),
            *(part for path in SYSTEM for part in as_it_is(Path(path))),
            # To map /dev/zero takes memory that nobody counts; /dev/full reads the same and cannot be mapped.
            *("--proc", "/proc", "--dev", "/dev", "--dev-bind", "/dev/full", "/dev/zero"),
            *(part for path in MEMORY for part in memory_folder(path)),
            # Visible folders come after the empty ones, which would hide them: an environment may lie in /tmp.
            *(part for path in shown if is_in_memory(path) for part in open_folder(path)),
            *(part for path in interpreter() for part in ("--ro-bind", str(path.resolve()), str(path))),
            *(self._contents(image) if image is not None else ()),
            *("--remount-ro", "/", "--remount-ro", "/dev", "--chdir", str(HOME), "--"),
        ]

    def _contents(self, image: int) -> Iterable[str]:
        """Options for what depends on the exercise: the packages that it may import, and the image."""
        installed = [part for path in packages.folders() for part in self._installed(path)]
        return [*installed, "--perms", "0444", "--ro-bind-data", str(image), str(IMAGE)]

    def _installed(self, folder: Path) -> Iterable[str]:
        """Options that leave of a folder of installed packages those that the exercise may import."""
        places = [path for path in packages.shown(self.contents.needs.installed) if path.is_relative_to(folder)]
        return [
            *("--perms", "0755", "--size", str(1 << 20), "--tmpfs", str(folder)),
            *(part for path in places for part in ("--ro-bind", str(path.resolve()), str(path))),
            *("--remount-ro", str(folder)),
        ]

    def namespaces(self) -> list[str]:
        """Root needs no user namespace, and one would keep it from becoming another user.

        The rights are those that the fork server needs for the namespaces of each copy; student code has none.
        """
        user = ("user",) if self.uid is None else ()
        each = (*user, "ipc", "pid", "net", "uts", "cgroup-try")
        rights = ("CAP_SYS_ADMIN", "CAP_SETPCAP", *(("CAP_SETUID", "CAP_SETGID", "CAP_KILL") if not user else ()))
        return [
            *(f"--unshare-{name}" for name in each),
            *(["--disable-userns"] if user and knows("--disable-userns") else []),
            "--cap-drop",
            "ALL",
            *(x for r in rights for x in ("--cap-add", r)),
        ]


@cache
def knows(option: str) -> bool:
    """Whether this machine's bubblewrap has an option."""
    program = shutil.which("bwrap")
    return program is not None and option in subprocess.run([program, "--help"], capture_output=True, text=True).stdout


def environment() -> dict[str, str]:
    """All environment variables inside."""
    return {
        "HOME": str(HOME),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(IMAGE),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }


def interpreter() -> list[Path]:
    """The folders that this Python is made of, outermost first and none inside another or in the system's.

    An environment inside a checkout is among them, the checkout is not.
    """
    found: list[Path] = []
    for path in sorted({Path(sys.base_prefix), Path(sys.prefix), Path(sys.executable).resolve().parent.parent}):
        if not any(path.is_relative_to(outer) for outer in [*map(Path, SYSTEM), *found]):
            found.append(path)
    return found


def as_it_is(path: Path) -> Iterable[str]:
    """Options that show `path` as it is outside: a link as a link, the rest read-only, nothing if there is none."""
    if path.is_symlink() and path.is_dir():
        return ("--symlink", os.readlink(path), str(path))
    return ("--ro-bind-try", str(path.resolve()), str(path))


def parents(paths: Iterable[Path]) -> list[Path]:
    """The folders above `paths`, outermost first, but for the root."""
    return sorted({Path("/etc"), *(parent for path in paths for parent in path.parents if parent != Path("/"))})


def open_folder(path: Path) -> Iterable[str]:
    """Options for a folder that anyone may look into; bubblewrap closes those that it makes on the way."""
    return ("--perms", "0755", "--dir", str(path))


def memory_folder(path: Path) -> Iterable[str]:
    """Options for an empty folder in memory; each submission gets one of its own in its place."""
    return ("--perms", "1777", "--size", str(1 << 20), "--tmpfs", str(path))


def is_in_memory(path: Path) -> bool:
    """Whether a folder is inside one of these."""
    return any(path.is_relative_to(each) for each in MEMORY)


def spare_uid(slot: int) -> int | None:
    """A user that owns nothing, another one for each slot; None where this root has no users to give away.

    In a container without privileges root may be mapped to few users: then the last of them are taken, and runs that go
    on at the same time share them.
    """
    ranges = [[int(number) for number in line.split()] for line in Path("/proc/self/uid_map").read_text().splitlines()]
    first, _, count = max(ranges)
    if first + count > FIRST_UID + slot:
        return FIRST_UID + slot
    slot %= SLOTS
    return first + count - 2 - slot if count > slot + 2 else None


def exposed(course: Path) -> Path | None:
    """The folder shown inside that `course` lies in, or None: then student code cannot see the course."""
    shown = [*map(Path, SYSTEM), *interpreter()]
    return next((path for path in shown if course.resolve().is_relative_to(path.resolve())), None)


def remedy() -> str:
    """The advice for a system without a sandbox."""
    if sys.platform != "linux":
        return "grade on Linux, in a virtual machine for instance"
    if shutil.which("bwrap") is None:
        return "apt-get install bubblewrap"
    return "allow user namespaces (kernel.unprivileged_userns_clone, AppArmor), or grade in a virtual machine"


@cache
def unavailable() -> str | None:
    """Why there can be no sandbox on this machine, in a sentence; None if there can. It is tried out."""
    if sys.platform != "linux":
        return f"the sandbox needs Linux, and this is {sys.platform}"
    program = shutil.which("bwrap")
    if program is None:
        return "the sandbox needs bubblewrap, which is not installed"
    if not knows("--size"):
        return "the sandbox needs bubblewrap 0.7 or newer"
    trial = Sandbox(Limits())
    command = [*trial.bubblewrap(), sys.executable, "-c", "print('inside')"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={})
    if done.stdout.strip() != "inside":
        return f"bubblewrap does not work here: {done.stderr.strip() or 'no reason given'}"
    return None
