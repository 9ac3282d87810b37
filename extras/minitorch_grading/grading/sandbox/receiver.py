"""Reading frames from a process that may send anything: no more bytes than agreed, and no message of another form."""

from __future__ import annotations

import json
import socket
from typing import Any

from .inside.channel import HEADER

PART = 1 << 18  # bytes that are read at a time


class TamperedError(ValueError):
    """Bytes that our own programs never send."""


class FloodError(Exception):
    """More bytes than our own programs send, in one frame or in all."""


class Receiver:
    """The receiving end of a socket that does not block.

    Args:
        connection: where frames come from.
        longest: most bytes of a frame.
        most: most bytes of all frames together.
    """

    def __init__(self, connection: socket.socket, longest: int, most: int) -> None:
        self.connection, self.longest, self.left = connection, longest, most
        self.is_closed = False
        self._pending = bytearray()
        connection.setblocking(False)

    def read(self) -> None:
        """Read what has come.

        Raises:
            FloodError: if more bytes came than may.
        """
        try:
            part = self.connection.recv(PART)
        except BlockingIOError:
            return
        except ConnectionError:
            part = b""
        self.is_closed = not part
        self.left -= len(part)
        if self.left < 0:
            raise FloodError("more than can be read")
        self._pending += part

    def next(self) -> dict[str, Any] | None:
        """The next message that was read; None if no whole one is there.

        Raises:
            TamperedError: for a frame that is no JSON object; the next call goes on after it.
            FloodError: for a frame that is longer than it may be.
        """
        if len(self._pending) < HEADER.size:
            return None
        end = HEADER.size + HEADER.unpack_from(self._pending)[0]
        if end - HEADER.size > self.longest:
            raise FloodError("a single message was too long")
        if len(self._pending) < end:
            return None
        content = bytes(self._pending[HEADER.size : end])
        del self._pending[:end]
        try:
            message = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise TamperedError(f"a frame that is no JSON ({type(error).__name__})") from None
        if type(message) is not dict:
            raise TamperedError("a frame that is no object")
        return message
