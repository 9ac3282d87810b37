"""One submission in the sandbox: start it, watch it, end it and all that it has started."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

from ..incidents import Incident
from . import usage
from .cgroups import Group, group_for
from .inside.first import INTERRUPT, STARTED
from .receiver import Receiver
from .server import ForkServer, StartError

END_SECONDS = 2.0  # for all of its processes to end
CREDENTIALS = struct.Struct("3i")  # process, user, group (the manual page unix(7))


class Kernel:
    """A running submission; when it is closed nothing of it is left.

    Attributes:
        channel: the socket for frames, which `receiver` reads.
        raw: the descriptor from which comes what its programs write to their own standard output.
        sources: those of both from which something can still come.
        cells: how many cells it was given.
    """

    def __init__(self, server: ForkServer) -> None:
        self.sandbox = server.sandbox
        self.limits = server.sandbox.limits
        self._open, self.cells = True, 0
        with ExitStack() as stack:
            self.channel, theirs = socket.socketpair()
            self._leash, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._leash.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            self.raw, raw = os.pipe()
            os.set_blocking(self.raw, False)
            for close in (self.channel.close, self._leash.close, partial(os.close, self.raw)):
                stack.callback(close)
            with theirs, its, os.fdopen(raw, "wb"):
                server.copy(theirs, its, raw)
            self.pid = self._met()
            self._handle = os.pidfd_open(self.pid)
            stack.callback(os.close, self._handle)
            self._group: Group | None = group_for(f"{self.sandbox.name}-{self.pid}", self.pid, self.limits)
            if self._group is not None:
                stack.callback(self._group.remove)
            self._leash.send(b"g")
            self._watch = usage.Watch(self.pid, self.limits, self._end)
            self._watch.start()
            self._stack = stack.pop_all()
        self.sources: list[Any] = [self.channel, self.raw]
        self.receiver = Receiver(self.channel, self.limits.message, self.limits.received)

    def _met(self) -> int:
        """Learn which process it is, by what the system says of the sender."""
        self._leash.settimeout(self.limits.start_seconds)
        try:
            said, about, _, _ = self._leash.recvmsg(32, socket.CMSG_SPACE(CREDENTIALS.size))
        except (TimeoutError, ConnectionError):
            said, about = b"", []
        if said != STARTED:
            raise StartError("a copy of the sandbox's first process did not start")
        number: int = CREDENTIALS.unpack(about[0][2])[0]
        return number

    @property
    def incident(self) -> Incident | None:
        """The limit that it has exceeded, all cells taken together."""
        return self._watch.incident or (self._group.exceeded() if self._group else None)

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        ended = self._open and select.select([self._handle], [], [], 0)[0]
        return self._open and self.incident is None and not ended

    def _end(self) -> None:
        signal.pidfd_send_signal(self._handle, signal.SIGKILL)  # with the first of a namespace all others end

    def close(self) -> None:
        """End it, and give back what it has taken here. It is called once."""
        self.kill()
        self._stack.close()

    def kill(self) -> None:
        """End all of its processes; when this returns they have ended."""
        if not self._open:
            return
        self._open = False
        self._watch.stop()
        self._watch.join()
        with suppress(ProcessLookupError):
            self._end()
        select.select([self._handle], [], [], END_SECONDS)
        self._leash.close()

    def waited(self) -> float:
        """Return the seconds for which cells waited for a processor so far."""
        shell = min(usage.processes(self.pid), key=lambda folder: int(folder.rpartition("/")[2]), default="")
        return usage.waited(shell)

    def leftovers(self) -> list[str]:
        """Names of the processes that student code has started and that still run."""
        return usage.names(self.pid)

    def interrupt(self) -> None:
        """Interrupt the cell that runs.

        Return when the interrupt is pending: one that came later would end the next cell, if this one ends by itself.
        """
        with suppress(OSError):
            self._leash.send(INTERRUPT)
            self._leash.recv(1)
