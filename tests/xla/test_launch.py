"""`minitorch.sharding.launch`: whatever ends a process, or the launcher, all processes end, and at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from minitorch_xla.sharding.launch import has_address, main, quiet

pytest.importorskip("jax")

ROOT = Path(__file__).parents[2]
HANGS = 120  # seconds after which a test gives up: JAX's barrier at the end of a process takes 300
# With other seconds of patience than the module's own.
PATIENT = "import sys; from minitorch.sharding import launch; launch.PATIENCE = {}; sys.exit(launch.main())"

together = pytest.mark.skipif(not has_address(), reason="the name of this machine has no address")


def launched(program, *arguments, processes=2, restarts=0, patience=5.0):
    """A launcher of two processes that has been started."""
    options = ["--processes", processes, "--devices", 1, "--restarts", restarts, program, *arguments]
    command = [sys.executable, "-c", PATIENT.format(patience), *map(str, options)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(launcher):
    """Its status, and the lines that it wrote."""
    try:
        out, errors = launcher.communicate(timeout=HANGS)
    finally:
        launcher.kill()
    return launcher.returncode, out.splitlines(), errors.splitlines()


def is_there(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


IN_COLLECTIVES = """
import os, sys, jax
import minitorch as mt

mt.sharding.use_virtual_devices(2)
mesh = mt.sharding.Mesh((2,), ("d",))
total = mt.jit(lambda x: x.sum(), backend="xla")
print("begins")
is_first = not os.path.exists(sys.argv[1])
for step in range(100_000 if is_first else 1):
    total(mt.sharding.shard(mt.ones(8), mesh, ("d",))).item()
    if is_first and jax.process_index() == 1:
        open(sys.argv[1], "w").close()
        raise ValueError("mine")
"""


@together
def test_after_an_exception_in_one_all_begin_again(tmp_path):
    (tmp_path / "train.py").write_text(IN_COLLECTIVES)
    status, lines, errors = ended(launched(tmp_path / "train.py", tmp_path / "flag", restarts=1))
    assert status == 0 and sorted(lines) == ["[0] begins"] * 2 + ["[1] begins"] * 2, errors
    assert "[1] ValueError: mine" in errors and not any("minitorch_xla/sharding" in line for line in errors)
    assert [line for line in errors if line.startswith("launch:")] == [
        "launch: a process ended with 1; all begin again, 1 restarts are left"
    ]


BESIDE = """
import subprocess, sys, time, jax

if jax.process_index() == 0:
    time.sleep(100_000)
print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100_000)"]).pid)
sys.exit(3)
"""


@together
def test_a_status_ends_processes_that_sleep_and_a_pipe_that_is_open_keeps_nobody(tmp_path):
    (tmp_path / "fails.py").write_text(BESIDE)
    status, lines, errors = ended(launched(tmp_path / "fails.py", patience=0.5))
    os.kill(int(lines[0].removeprefix("[1] ")), signal.SIGKILL)
    assert status == 3 and errors == ["launch: a process ended with 3; no restarts are left"]


DEAF = """
import os, signal, time

signal.signal(signal.SIGTERM, lambda *_: print("asked"))
print(os.getpid())
while True:
    time.sleep(1)
"""


@together
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_the_first_signal_asks_and_the_second_kills(tmp_path):
    (tmp_path / "deaf.py").write_text(DEAF)
    launcher = launched(tmp_path / "deaf.py", restarts=5, patience=100_000)
    processes = [int(launcher.stdout.readline().split()[1]) for _ in range(2)]
    launcher.send_signal(signal.SIGINT)
    assert sorted(launcher.stdout.readline() for _ in range(2)) == ["[0] asked\n", "[1] asked\n"]
    launcher.send_signal(signal.SIGTERM)
    status, lines, errors = ended(launcher)
    assert (status, lines) == (128 + signal.SIGINT, [])
    assert not [line for line in errors if line.startswith("launch: ")]  # one that is killed later misses the other
    assert not any(map(is_there, processes))


ALONE = """
import sys
for stream in (sys.stdout, sys.stderr):
    print("3\\n\\n12345\\n 0.5", file=stream)
sys.exit("one line")
"""


def test_each_line_is_shown_and_the_status_is_that_of_python(tmp_path):
    (tmp_path / "alone.py").write_text(ALONE)
    status, lines, errors = ended(launched(tmp_path / "alone.py", processes=1))
    assert status == 1 and lines == ["[0] 3", "[0] ", "[0] 12345", "[0]  0.5"]
    assert errors == [*lines, "[0] one line", "launch: a process ended with 1; no restarts are left"]


def test_messages_about_connections_are_left_out_and_no_other_lines():
    parts = (
        "[Gloo] Rank ",
        "1",
        " is connected to ",
        "3",
        " peer ranks. ",
        "Expected number of connected peer ranks is : ",
    )
    message = "".join(parts)
    mixed = [message * 2 + "3\n", "3\n", message + parts[0] + "\n", "".join(parts[1:]) + "33\n"]
    assert list(quiet(["1\n", message + "3\n", "2\n", *mixed, "\n", "[Gloo] fails\n"])) == [
        "1\n",
        "2\n",
        "\n",
        "[Gloo] fails\n",
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--processes 0", "0 is no whole number from 1 up"),
        ("--processes two", "two is no whole number"),
        ("--processes 1 --devices -1", "from 1 up"),
        ("--processes 1 --restarts -1", "-1 is no whole number from 0 up"),
        ("--processes 2", "there is no file"),
    ],
)
def test_what_it_is_asked_wrongly_is_said(options, words, tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        main([*options.split(), str(tmp_path / "nothing.py")])
    assert caught.value.code == 2 and words in capsys.readouterr().err
