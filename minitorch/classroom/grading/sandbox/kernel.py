"""One submission in the sandbox: start it, watch it, end it and all that it has started."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
from contextlib import suppress
from typing import Any, Self

from ..incidents import Incident
from . import usage
from .groups import Group, group_for
from .inside.first import INTERRUPT, STARTED
from .receiver import Receiver
from .server import ForkServer, StartError

END_SECONDS = 2.0  # for all of its processes to end
CREDENTIALS = struct.Struct("3i")  # process, user, group (the manual page unix(7))


class Kernel:
    """A running submission; a context manager, at whose end nothing of it is left.

    Attributes:
        channel: the socket for frames, which `receiver` reads.
        raw: the descriptor from which comes what its programs write to their own standard output.
        sources: those of both from which something can still come.
        cells: how many cells it was given.
    """

    def __init__(self, server: ForkServer) -> None:
        self.sandbox = server.sandbox
        self.limits = server.sandbox.limits
        ours, theirs = socket.socketpair()
        self._leash, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if self.sandbox.safe:
            self._leash.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.raw, raw = os.pipe()
        os.set_blocking(self.raw, False)
        self.channel = ours
        self.sources: list[Any] = [ours, self.raw]
        self._handle: int | None = None
        self._watch: usage.Watch | None = None
        self._group: Group | None = None
        self._open = True
        self.cells = 0
        try:
            with theirs, its:
                server.copy(theirs, its, raw)
            os.close(raw)
            self._meet()
        except BaseException:
            self.close()
            raise
        self.receiver = Receiver(ours, self.limits.message, self.limits.received)

    def _meet(self) -> None:
        """Learn which process it is, by what the system says of the sender."""
        self._leash.settimeout(self.limits.start_seconds)
        try:
            said, about, _, _ = self._leash.recvmsg(32, socket.CMSG_SPACE(CREDENTIALS.size))
        except (TimeoutError, ConnectionError):
            said, about = b"", []
        if not said.startswith(STARTED):
            raise StartError("a copy of the sandbox's first process did not start")
        self.pid = int(said.removeprefix(STARTED))
        if self.sandbox.safe:
            self.pid = CREDENTIALS.unpack(about[0][2])[0]
            self._handle = os.pidfd_open(self.pid)
            self._group = group_for(f"{self.sandbox.name}-{self.pid}", self.pid, self.limits)
            self._watch = usage.Watch(self.pid, self.limits, self._end)
            self._watch.start()
        self._leash.send(b"g")

    @property
    def incident(self) -> Incident | None:
        """The limit that it has exceeded, all cells taken together."""
        found = self._watch.incident if self._watch else None
        return found or (self._group.exceeded() if self._group else None)

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        ended = self._handle is not None and select.select([self._handle], [], [], 0)[0]
        return self._open and self.incident is None and not ended

    def _end(self) -> None:
        if self._handle is not None:
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)  # with the first of a namespace all others end

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it, and give back what it has taken here. It is called once."""
        self.kill()
        for each in (self.channel, self._leash):
            each.close()
        os.close(self.raw)
        if self._handle is not None:
            os.close(self._handle)

    def kill(self) -> None:
        """End all of its processes; when this returns they have ended."""
        if not self._open:
            return
        self._open = False
        if self._watch is not None:
            self._watch.stop()
            self._watch.join()
        if self._handle is not None:
            with suppress(ProcessLookupError):
                self._end()
            select.select([self._handle], [], [], END_SECONDS)
        self._leash.close()
        if self._group is not None:
            self._group.remove()

    def leftovers(self) -> list[str]:
        """Names of the processes that student code has started and that still run."""
        return usage.names(self.pid) if self.sandbox.safe else []

    def interrupt(self) -> None:
        """Interrupt the cell that runs."""
        with suppress(OSError):
            self._leash.send(INTERRUPT)
