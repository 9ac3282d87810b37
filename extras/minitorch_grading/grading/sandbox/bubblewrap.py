"""Where student code runs: bubblewrap's command line, and whether this machine can run it.

Inside there is what `shown` names of the system and of this Python, and what the exercise needs of `minitorch`
(`image`), all read-only; three small folders in memory; no network; no other process. In particular there is no
gradebook, no solution, no test and no other student's work, because the folder of the course is not there, and nothing
that is written inside lies on a disk.

bubblewrap makes the namespaces and the view of the files, once for many submissions; each of these is a copy of the
first process inside (`inside.fork_server`), with namespaces, folders and limits of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ..limits import Limits
from . import shown
from .image import PROGRAMS, SETTINGS, Contents

IMAGE = shown.COURSE / "image.zip"  # where our own files are found inside
HOME = Path("/home/student")
EXECUTABLE = shown.PYTHON / "bin" / "python3"
MEMORY = (Path("/dev/shm"), Path("/tmp"), HOME)  # what student code may write to

# The least uid that no distribution gives to anything (after the containers' in systemd's UIDs-GIDs.md).
FIRST_UID = 1_879_048_192

SLOTS = 64  # for one run; another run has others, because a user's processes are counted together

SEARCH = """
import os
for folder, inner, names in os.walk("/"):
    inner[:] = [name for name in inner if os.path.join(folder, name) != "/proc"]
    for name in (*inner, *names):
        if name == "minitorch" or name.startswith("minitorch_") or name.endswith(".ipynb"):
            print(os.path.join(folder, name))
"""

UNSAFE = "--unsafe runs the students' code with your rights: it can read your files and change the gradebook"


@dataclass(frozen=True)
class Sandbox:
    """How to start a fork server under bubblewrap.

    ``slot`` tells submissions apart that run at the same time, in this run or in another one on the same machine;
    ``contents`` are those of the image.
    """

    limits: Limits
    slot: int = 0
    contents: Contents = field(default_factory=Contents)

    @property
    def uid(self) -> int | None:
        """The user that student code becomes if the grader is root; None if it stays who it is, in a user namespace."""
        return spare_uid(self.slot) if os.geteuid() == 0 else None

    @property
    def name(self) -> str:
        """What the machine is called inside, and by what the processes of a run are found."""
        return f"grading-{self.slot // SLOTS}-{self.slot % SLOTS}"

    def command(self, control: int, image: int) -> list[str]:
        """The command line of a fork server that takes requests from a socket, with an image to be read from a file.

        Args:
            control: the descriptor of the socket.
            image: the descriptor of the file.
        """
        mounted = f"size={self.limits.disk},nr_inodes={self.limits.files},mode=1777"
        options = {
            "name": self.name,
            "control": control,
            "limits": self.resources(),
            "folders": dict.fromkeys(map(str, MEMORY), mounted),
            "uid": self.uid,
            "checks": self.contents.checks,
        }
        program = ["-P", "-m", f"{PROGRAMS}.fork_server", json.dumps(options)]
        return [*self.bubblewrap(image), str(EXECUTABLE), *program]

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

    def places(self) -> dict[Path, Path]:
        """What is shown of this machine, by its place inside."""
        return {**shown.system(), **shown.python(), **shown.packages(self.contents.needs.installed)}

    def bubblewrap(self, image: int | None = None) -> list[str]:
        """bubblewrap and its options; the command to run inside follows.

        The image is read from a descriptor. Without one it is a trial.
        """
        places = self.places()
        folders = sorted({each for place in (*places, HOME) for each in place.parents if each != Path("/")})
        return [
            shutil.which("bwrap") or "bwrap",
            *self.namespaces(),
            *("--die-with-parent", "--new-session", "--as-pid-1", "--hostname", self.name, "--clearenv"),
            *(part for name, value in environment().items() for part in ("--setenv", name, value)),
            # For anyone to look into; bubblewrap closes those that it makes on the way.
            *(part for path in folders for part in ("--perms", "0755", "--dir", str(path))),
            *(part for place, path in places.items() for part in _show(path, place)),
            *(part for path in shown.emptied() for part in _memory(path, "0755")),
            # To map /dev/zero takes memory that nobody counts; /dev/full reads the same and cannot be mapped.
            *("--proc", "/proc", "--dev", "/dev", "--dev-bind", "/dev/full", "/dev/zero"),
            *(part for path in MEMORY for part in _memory(path, "1777")),
            *(() if image is None else ("--perms", "0444", "--ro-bind-data", str(image), str(IMAGE))),
            *(part for path in ("/", "/dev", *shown.emptied()) for part in ("--remount-ro", str(path))),
            *("--chdir", str(HOME), "--"),
        ]

    def namespaces(self) -> list[str]:
        """Root needs no user namespace, and one would keep it from becoming another user.

        The rights are those that the fork server needs for the namespaces of each copy; student code has none.
        """
        user = ("user",) if self.uid is None else ()
        each = (*user, "ipc", "pid", "net", "uts", "cgroup-try")
        rights = (
            "CAP_SYS_ADMIN",
            "CAP_SYS_CHROOT",
            "CAP_SETPCAP",
            *(("CAP_SETUID", "CAP_SETGID", "CAP_KILL") if not user else ()),
        )
        return [
            *(f"--unshare-{name}" for name in each),
            *(["--disable-userns"] if user and knows("--disable-userns") else []),
            *("--cap-drop", "ALL", *(x for r in rights for x in ("--cap-add", r))),
        ]


@cache
def knows(option: str) -> bool:
    """Whether this machine's bubblewrap has an option."""
    program = shutil.which("bwrap")
    return program is not None and option in subprocess.run([program, "--help"], capture_output=True, text=True).stdout


def environment() -> dict[str, str]:
    """All environment variables inside."""
    places = {
        "HOME": str(HOME),
        "LD_LIBRARY_PATH": str(shown.PYTHON / "lib"),
        "PATH": f"{EXECUTABLE.parent}:/usr/bin:/bin",
    }
    return {**places, "PYTHONPATH": str(IMAGE), "PYTHONUSERBASE": str(shown.COURSE), "LANG": "C.UTF-8", **SETTINGS}


def _show(path: Path, place: Path) -> Iterable[str]:
    """Options that show a file or folder, read-only; a link as a link, if what it leads to is there as well."""
    if path.is_symlink() and (path == place or "/" not in os.readlink(path)):
        return ("--symlink", os.readlink(path), str(place))
    return ("--ro-bind", str(path.resolve()), str(place))


def _memory(path: Path, rights: str) -> Iterable[str]:
    """Options for an empty folder in memory; of those for writing each submission gets one of its own in its place."""
    return ("--perms", rights, "--size", str(1 << 20), "--tmpfs", str(path))


def spare_uid(slot: int) -> int | None:
    """A user that owns nothing, another one for each slot; None where this root has no users to give away.

    In a container without privileges root may be mapped to few users: then the last of them are taken, and runs that go
    on at the same time share them.
    """
    first, _, count = max([*map(int, line.split())] for line in Path("/proc/self/uid_map").read_text().splitlines())
    if first + count > FIRST_UID + slot:
        return FIRST_UID + slot
    slot %= SLOTS
    return first + count - 2 - slot if count > slot + 2 else None


def exposed(folder: Path) -> Path | None:
    """The shown folder that `folder` lies in, or None: then student code cannot see it."""
    paths = Sandbox(Limits()).places().values()
    return next((path for path in paths if folder.resolve().is_relative_to(path.resolve())), None)


def copies(exercises: Collection[str]) -> str | None:
    """Where student code would find a whole `minitorch` or a notebook of an exercise, in a sentence; None if nowhere.

    Both would hold solutions. They are looked for from inside, in all that is shown.
    """
    for place in _found_inside():
        if place.stem in exercises or place.suffix != ".ipynb":
            places = Sandbox(Limits()).places().items()
            path = next((path / place.relative_to(top) for top, path in places if place.is_relative_to(top)), place)
            return f"student code can read {path}: move it to a folder that is not this Python's or the system's"
    return None


@cache
def _found_inside() -> tuple[Path, ...]:
    """The packages of minitorch and the notebooks that can be seen inside."""
    done = _trial(SEARCH)
    done.check_returncode()
    return tuple(map(Path, done.stdout.splitlines()))


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
    done = _trial("print('inside')")
    if done.stdout.strip() != "inside":
        return f"bubblewrap does not work here: {done.stderr.strip() or 'no reason given'}"
    return None


def _trial(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program inside that does nothing but print."""
    command = [*Sandbox(Limits()).bubblewrap(), str(EXECUTABLE), "-IS", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={})
