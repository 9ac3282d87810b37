"""The fork server as its owner sees it: a bubblewrap of which each submission gets a copy of the first process."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from contextlib import ExitStack

from .bubblewrap import IMAGE, Sandbox
from .image import image
from .inside.channel import READY


class StartError(Exception):
    """A process that did not start: a fault of this machine, never of a submission."""


class ForkServer(ExitStack):
    """A running fork server; a context manager, at whose end nothing of it is left."""

    def __init__(self, sandbox: Sandbox) -> None:
        super().__init__()
        self.sandbox = sandbox
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ready = False
        # These have no names, so nothing is left of them.
        self._complaints = self.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        packed = self.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        packed.write(image(sandbox.contents, str(IMAGE)))
        packed.seek(0)
        with theirs:
            self.process = subprocess.Popen(
                sandbox.command(theirs.fileno(), packed.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._complaints,
                pass_fds=[theirs.fileno(), packed.fileno()],
                env={},  # nothing of the grader's can be read inside
                start_new_session=True,
            )
        for end in (self.process.wait, self.process.kill, self.control.close):
            self.callback(end)

    def wait(self) -> None:
        """Wait until it has imported everything.

        Raises:
            StartError: if it ends before, or takes too long.
        """
        self.control.settimeout(self.sandbox.limits.start_seconds)
        try:
            self._ready = self._ready or self.control.recv(len(READY)) == READY
        except (TimeoutError, ConnectionError) as error:
            raise StartError(f"the sandbox did not start: {self.complaint() or 'it did not answer'}") from error
        if not self._ready:
            raise StartError(f"the sandbox did not start: {self.complaint() or 'it ended'}")
        self.control.settimeout(None)

    def complaint(self) -> str:
        """The end of what it has written to standard error."""
        size = self._complaints.seek(0, os.SEEK_END)
        self._complaints.seek(max(0, size - 2000))
        return self._complaints.read().decode(errors="replace").strip()

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def copy(self, channel: socket.socket, leash: socket.socket, raw: int) -> None:
        """Ask for a new submission with these descriptors, of which it gets copies."""
        try:
            socket.send_fds(self.control, [b"n"], [channel.fileno(), leash.fileno(), raw])
        except OSError as error:
            raise StartError(f"the sandbox has ended: {self.complaint() or error}") from None
