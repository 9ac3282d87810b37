"""Ways to take memory unseen, and to leave something to the next submission."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.grading import classes

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

PROCESSES = """
import os, time
for _ in range(88):
    if os.fork() == 0:
        grow()
        while True: time.sleep(1)
time.sleep(50)
"""

# Half of the pages of a range can be written to, so that each is a mapping, of which the kernel keeps a record.
MAPPINGS = (
    """
import ctypes
libc = ctypes.CDLL(None)
libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 4]
start = libc.mmap(None, 60_000 << 12, 0, 0x22, -1, 0)
for page in range(0, 60_000, 2): libc.mprotect(ctypes.c_void_p(start + (page << 12)), ctypes.c_size_t(4096), 3)
def grow(): pass
"""
    + PROCESSES
)

# One page in two megabytes is read: it is everybody's page of zeros, and has a page table of its own.
PAGE_TABLES = (
    """
import mmap
def grow():
    global kept
    kept = [b"x" * (3 << 20)]  # which alone is not too much
    try:
        while True:
            kept.append(mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ))
            for place in range(0, 64 << 20, 2 << 20): kept[-1][place]
    except OSError: pass
"""
    + PROCESSES
)

SIGNALS = """
import os, signal, time
for number in range(1, 65):
    try: os.kill(1, number)
    except PermissionError: pass
time.sleep(0.5)
print("alive")
"""

MOUNTS = """
for name in ("mountinfo", "mounts", "mountstats"):
    print(name, open(f"/proc/self/{name}").read())
"""

# A comment, an output, an error, the name of a process: all of them come onto a page.
STEERING = """
import subprocess, sys
print("\\x1b[31mred\\x1b[0m \\x1b[2J \\x1b]0;title\\x07 \\x9b \\x00 \\u202eabc \\u2066 \\u061c")  # \u202e\x1b[2J
subprocess.Popen(["\\x1b[2J\\u202esleep", "100"], executable="/bin/sleep")
open("\\x1b[2J\\u202e")
"""

# 256 million pixels in 31 KB; then what browsers know by its content for a picture of another kind.
PICTURES = """
import base64, struct, zlib
from IPython.display import display
def chunk(name, content): return struct.pack("!I", len(content)) + name + content + bytes(4)
def picture(size):
    header = chunk(b"IHDR", struct.pack("!IIBBBBB", size, size, 1, 0, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(bytes((size // 8 + 1) * size)))
    return b"\\x89PNG\\r\\n\\x1a\\n" + header + pixels + chunk(b"IEND", b"")
for content in (picture(16_000), picture(16), b"GIF89a" + bytes([255] * 20), *[picture(2_500)] * 3):
    display({"image/png": base64.b64encode(content).decode()}, raw=True)
"""

CELLS: dict[str, str] = {
    "a-terminals": "import os\ntry: os.chmod('/dev/pts/ptmx', 0)\nexcept PermissionError: pass",
    "b-terminals": "import os\nprint(oct(os.stat('/dev/pts/ptmx').st_mode), len(os.openpty()))",
    "shared-pages": SHARED_PAGES,
    "sockets": SOCKETS,
    "thread": THREAD,
    "leader-gone": LEADER_GONE,
    "hidden": HIDDEN,
    "mappings": MAPPINGS,
    "page-tables": PAGE_TABLES,
    "signals": SIGNALS,
    "mounts": MOUNTS,
    "steering": STEERING,
    "pictures": PICTURES,
    "calls-a-check-before": "print(checks.eager.unbroadcast(print))",
    "calls-a-check-again": "print(checks.eager.unbroadcast(first), checks.eager.observe(print))",
}
LAST = ("calls-a-check-again",)  # after all checks; the others come before

TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}  # kinds of characters (UAX #9)

SHOWN = {
    "b-terminals": "0o20666 2",
    "shared-pages": "EPERM ENODEV 5 4096",
    "sockets": "EPERM EPERM EPERM EPERM EPERM EPERM EPERM ENETUNREACH",
    "thread": "-1 1 -1 0",
    "signals": "alive",
    "mounts": "mountinfo mounts mountstats",
    "calls-a-check-before": "None",
    "calls-a-check-again": "None None",
}


@pytest.fixture(scope="module")
def graded() -> Iterator[Any]:
    """What became of each cell: the report's row, and the words that it printed."""
    classes.needs_bubblewrap()
    with tempfile.TemporaryDirectory(prefix="minitorch-unseen-") as folder:  # where others may not look
        root = classes.course(Path(folder))
        for name, source in CELLS.items():
            cells = classes.sample(classes.RIGHT, classes.RIGHT)
            cells.append({"cell_type": "markdown", "metadata": {}, "source": "turned \u202e and \x1b[2J cleared"})
            cells.insert(len(cells) if name in LAST else 1, classes.added(source))
            classes.hand_in(root, name, classes.notebook(cells))
        rows = classes.grade(root, *("--workers", "1", "--memory", "600"))
        pages = {name: root / "feedback" / name / classes.EXERCISE / f"{classes.EXERCISE}.html" for name in CELLS}
        yield rows, {name: printed(root, name) for name in CELLS}, {name: pages[name].read_text() for name in CELLS}


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


@pytest.mark.parametrize("name", ["calls-a-check-before", "calls-a-check-again"])
def test_to_call_a_check_in_a_cell_of_ones_own_is_no_incident(name: str, graded: Any) -> None:
    assert graded[0][name]["incidents"] == []


@pytest.mark.parametrize("name", ["leader-gone", "hidden", "mappings", "page-tables"])
def test_memory_is_seen_of_a_process_that_tells_nothing_and_of_the_kernel(name: str, graded: Any) -> None:
    assert "memory" in classes.kinds(graded[0][name])


@pytest.mark.parametrize("name", ["mounts", "signals", "terminals"])
def test_to_try_it_is_no_incident(name: str, graded: Any) -> None:
    assert not [row["incidents"] for student, row in graded[0].items() if name in student and row["incidents"]]


@pytest.mark.parametrize("name", CELLS)
def test_nothing_that_steers_a_browser_or_a_terminal_comes_out(name: str, graded: Any) -> None:
    row = graded[0][name]
    words = [each["reason"] for each in row["graded"]] + [str(each["detail"]) for each in row["incidents"]]
    for text in (graded[2][name], *words):
        assert not TURNING & {unicodedata.bidirectional(each) for each in text}
        assert not {each for each in text if unicodedata.category(each) == "Cc"} - {"\n", "\t"}
    assert r"turned \u202e and \x1b[2J cleared" in graded[2][name]


def test_what_steers_is_written_out(graded: Any) -> None:
    assert classes.kinds(graded[0]["steering"]) == ["outside", "background"]
    assert r"red \x1b[2J \x1b]0;title\x07 \x9b \x00 \u202eabc \u2066 \u061c" in graded[2]["steering"]


def test_a_page_shows_no_picture_that_is_too_large_for_a_browser(graded: Any) -> None:
    said = re.findall(r"[(](a picture .*?)[),]", graded[2]["pictures"])
    assert said == ["a picture of 256 million pixels", "a picture that is no PNG"]
    assert graded[2]["pictures"].count("<img") == 2, "pictures count as what they become"
    assert "output" in classes.kinds(graded[0]["pictures"])


@pytest.fixture
def kernel() -> Iterator[Any]:
    """A running submission without an exercise."""
    from minitorch_grading.grading.limits import Limits
    from minitorch_grading.grading.sandbox.bubblewrap import Sandbox
    from minitorch_grading.grading.sandbox.kernel import Kernel
    from minitorch_grading.grading.sandbox.server import ForkServer

    classes.needs_bubblewrap()
    with ForkServer(Sandbox(Limits())) as server:
        server.wait()
        with closing(Kernel(server)) as kernel:
            yield kernel


def test_closed_output_does_not_keep_the_grader_busy(kernel: Any) -> None:
    from minitorch_grading.grading.sandbox.execution import execute

    execute(kernel, "import os, time; os.close(1); os.close(2)", 10)
    began = time.process_time()
    execute(kernel, "time.sleep(2)", 10)
    assert time.process_time() - began < 1


def test_an_interrupt_ends_no_cell_but_its_own(kernel: Any) -> None:
    from minitorch_grading.grading.sandbox.execution import execute

    os.kill(kernel.pid, signal.SIGSTOP)  # the process that passes interrupts on, as slow as on a busy machine
    timer = threading.Timer(0.3, os.kill, (kernel.pid, signal.SIGCONT))
    timer.start()
    flood = execute(kernel, "print('x' * 300_000)", 10)  # it ends by itself before the interrupt comes
    after = execute(kernel, "import time; time.sleep(0.6); print('kept')", 10)
    timer.join()
    assert flood.incident and flood.incident.kind == "output"
    assert (after.incident, after.error, after.outputs[0]["text"]) == (None, None, "kept\n")


def test_time_that_other_programs_take_is_not_the_cells(kernel: Any) -> None:
    from minitorch_grading.grading.sandbox.execution import execute

    busy = "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    work = "import time\nbegin = time.process_time()\nwhile time.process_time() - begin < 0.7: pass\nprint('done')"
    others = [subprocess.Popen([sys.executable, "-c", f"{busy}while True: pass"]) for _ in range(3)]
    try:
        ran = execute(kernel, busy + work, 1)
        assert (ran.incident, ran.outputs[0]["text"]) == (None, "done\n")
        assert execute(kernel, "time.sleep(5)", 1).incident is not None  # which waits for nothing
    finally:
        for other in others:
            other.kill()
            other.wait()
