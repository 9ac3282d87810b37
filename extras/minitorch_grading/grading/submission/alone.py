"""A submission in a plain process, without a sandbox: for students, who check their own work on their own machine.

It has the image of the exercise, the shell and the packages of a graded submission, on every system that has Python, so
that a check and a grade say the same. It keeps nobody from anything.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from ..incidents import Incident
from ..limits import Limits
from ..sandbox import shown
from ..sandbox.image import PROGRAMS, SETTINGS, Contents, image
from ..sandbox.inside.channel import READY
from ..sandbox.receiver import Receiver
from ..sandbox.server import StartError
from ..sandbox.usage import waited


class Process:
    """A running process; it is used as `sandbox.kernel.Kernel` is.

    Args:
        contents: what is in the image.
        limits: of which those of time and of outputs hold.
        folder: with the image, and a folder to run in.
    """

    raw = -1  # what its programs write to their own standard output is not read
    incident: Incident | None = None

    def __init__(self, contents: Contents, limits: Limits, folder: Path) -> None:
        self.limits, self.cells = limits, 0
        token = secrets.token_hex()
        modules = {place.name.partition(".")[0] for place in shown.packages(contents.needs.installed)}
        options: dict[str, Any] = {"token": token, "checks": contents.checks, "shown": sorted(modules)}
        options["folders"] = sorted({sysconfig.get_path(name) for name in ("purelib", "platlib")})
        with (folder / "errors").open("wb") as errors, socket.create_server(("127.0.0.1", 0)) as server:
            options["port"] = server.getsockname()[1]
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", f"{PROGRAMS}.alone", json.dumps(options)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd=folder / "home",
                env={**os.environ, **SETTINGS, "MPLBACKEND": "agg", "PYTHONPATH": str(folder / "image.zip")},
                start_new_session=True,
            )
            try:
                self.channel = self._met(server, token)
            except BaseException as error:
                self._end()
                said = (folder / "errors").read_text(errors="replace").strip().splitlines()
                if isinstance(error, OSError):
                    raise StartError(said[-1] if said else "Python did not start in time") from None
                raise
        self.receiver = Receiver(self.channel, limits.message, limits.received)
        self.sources: list[Any] = [self.channel]

    def _met(self, server: socket.socket, token: str) -> socket.socket:
        """The connection to the process, when it has imported everything."""
        end = time.monotonic() + self.limits.start_seconds
        server.settimeout(0.1)
        while self.process.poll() is None and time.monotonic() < end:
            with suppress(TimeoutError):
                channel, _ = server.accept()
                channel.settimeout(self.limits.start_seconds)
                said = b""
                while len(said) < len(token) + len(READY) and (part := channel.recv(1024)):
                    said += part
                if said == token.encode() + READY:
                    return channel
                channel.close()
        raise TimeoutError

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def waited(self) -> float:
        """Return the seconds for which cells waited for a processor so far."""
        return waited(f"/proc/{self.process.pid}")

    def interrupt(self) -> None:
        """Interrupt the cell that runs; on Windows it cannot be, and everything is killed a little later."""
        if os.name == "posix":
            self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """End it, and all that it has started."""
        self._end()

    def _end(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL) if os.name == "posix" else self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End it, and the connection."""
        self._end()
        self.channel.close()

    def leftovers(self) -> list[str]:
        """Nothing: whoever checks their own work may leave processes running."""
        return []


@contextmanager
def processes(contents: Contents, limits: Limits) -> Iterator[Callable[[], Process]]:
    """A function that starts a process for an exercise, as often as one is needed."""
    with tempfile.TemporaryDirectory(prefix="minitorch-check-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "home").mkdir()
        (folder / "image.zip").write_bytes(image(contents, str(folder / "image.zip")))
        yield partial(Process, contents, limits, folder)
