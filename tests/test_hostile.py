"""Ways to take memory unseen, and to leave something to the next submission."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import classes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Linux")

REFUSED = """
import errno
def refused(call, *arguments, **options):
    try:
        print("possible", call(*arguments, **options))
    except OSError as error:
        print(errno.errorcode[error.errno])
"""

SHARED_PAGES = (
    REFUSED
    + """
import mmap
refused(mmap.mmap, -1, 4096)
zeros = open("/dev/zero", "rb+")
refused(mmap.mmap, zeros.fileno(), 4096)
print(len(zeros.read(5)))
print(len(mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)))
"""
)

SOCKETS = (
    REFUSED
    + """
import socket
one, other = socket.socketpair()
for option in (socket.SO_SNDBUF, socket.SO_RCVBUF, 32, 33):
    refused(one.setsockopt, socket.SOL_SOCKET, option, 1 << 20)
one.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
refused(socket.socketpair, socket.AF_UNIX, socket.SOCK_DGRAM)
refused(socket.socket, socket.AF_UNIX, socket.SOCK_STREAM)
refused(socket.socket().listen)
refused(socket.socket().connect, ("127.0.0.1", 9))
"""
)

THREAD = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.clone.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
stack = ctypes.create_string_buffer(1 << 16)
top = (ctypes.addressof(stack) + (1 << 16)) & ~15
print(libc.clone(ctypes.cast(libc.pause, ctypes.c_void_p), top, 0x50B00, None), ctypes.get_errno())
print(libc.syscall(436, 100, 200, 2), libc.syscall(436, 100, 200, 0))
"""

GROW = "kept = []\nfor _ in range(40): kept.append(b'x' * (40 << 20)); time.sleep(0.1)\n"

LEADER_GONE = f"""
import ctypes, os, threading, time
def grow():
    {GROW.replace(chr(10), chr(10) + "    ")}
    os._exit(0)
if os.fork() == 0:
    threading.Thread(target=grow).start()
    ctypes.CDLL(None).syscall(60, 0)  # exit, of this thread alone
os.wait()
"""

HIDDEN = f"""
import ctypes, time
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
{GROW}
"""

CELLS: dict[str, str] = {
    "a-terminals": "import os\ntry: os.chmod('/dev/pts/ptmx', 0)\nexcept PermissionError: pass",
    "b-terminals": "import os\nprint(oct(os.stat('/dev/pts/ptmx').st_mode), len(os.openpty()))",
    "shared-pages": SHARED_PAGES,
    "sockets": SOCKETS,
    "thread": THREAD,
    "leader-gone": LEADER_GONE,
    "hidden": HIDDEN,
    "asks-before": "print(checks.eager.unbroadcast(print))",
    "asks-again": "print(checks.eager.unbroadcast(first), checks.eager.observe(print))",
}
LAST = ("asks-again",)  # after all checks; the others come before


SHOWN = {
    "b-terminals": "0o20666 2",
    "shared-pages": "EPERM ENODEV 5 4096",
    "sockets": "EPERM EPERM EPERM EPERM EPERM EPERM EPERM ENETUNREACH",
    "thread": "-1 1 -1 0",
    "asks-before": "None",
    "asks-again": "None None",
}


@pytest.fixture(scope="module")
def graded() -> Iterator[Any]:
    """What became of each cell: the report's row, and the words that it printed."""
    classes.needs_bubblewrap()
    with tempfile.TemporaryDirectory(prefix="minitorch-unseen-") as folder:  # where others may not look
        root = classes.course(Path(folder))
        for name, source in CELLS.items():
            cells = classes.sample(classes.RIGHT, classes.RIGHT)
            cells.insert(len(cells) if name in LAST else 1, classes.added(source))
            classes.hand_in(root, name, classes.notebook(cells))
        rows = classes.grade(root, *("--workers", "1", "--memory", "600"))
        yield rows, {name: printed(root, name) for name in CELLS}


def printed(root: Path, name: str) -> str:
    path = root / "autograded" / name / classes.EXERCISE / f"{classes.EXERCISE}.ipynb"
    code = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    outputs = code[-1 if name in LAST else 1]["outputs"]
    return " ".join(word for output in outputs for word in output.get("text", "").split())


@pytest.mark.parametrize("name", CELLS)
def test_the_tasks_keep_their_points(name: str, graded: Any) -> None:
    assert classes.points(graded[0][name]) == {"first": 30, "second": 30}


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_counted_nowhere_cannot_be_had(name: str, graded: Any) -> None:
    assert graded[1][name] == SHOWN[name]


@pytest.mark.parametrize("name", ["asks-before", "asks-again"])
def test_to_call_a_check_in_a_cell_of_ones_own_is_no_incident(name: str, graded: Any) -> None:
    assert graded[0][name]["incidents"] == []


@pytest.mark.parametrize("name", ["leader-gone", "hidden"])
def test_memory_is_seen_of_a_process_that_tells_nothing(name: str, graded: Any) -> None:
    assert "memory" in classes.kinds(graded[0][name])


def test_closed_output_does_not_keep_the_grader_busy() -> None:
    from minitorch.classroom.grading.limits import Limits
    from minitorch.classroom.grading.sandbox.bubblewrap import Sandbox
    from minitorch.classroom.grading.sandbox.execution import execute
    from minitorch.classroom.grading.sandbox.kernel import Kernel
    from minitorch.classroom.grading.sandbox.server import ForkServer

    classes.needs_bubblewrap()
    with ForkServer(Sandbox(Limits())) as server:
        server.wait()
        with Kernel(server) as kernel:
            execute(kernel, "import os, time; os.close(1); os.close(2)", 10)
            began = time.process_time()
            execute(kernel, "time.sleep(2)", 10)
            assert time.process_time() - began < 1
