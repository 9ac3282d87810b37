"""Frames of JSON over a socket, between the grader and the process that runs student code.

A frame is four bytes, its length in network order, and so many bytes of JSON in UTF-8. The side that runs student code
can send anything, so the other side limits what it reads (`receiver.Receiver`), and believes nothing.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

HEADER = struct.Struct("!I")
READY = b"ready"  # what the fork server says when it has imported everything
SHOWN = ("text/plain", "image/png")  # forms of an output that a grader reads


class ClosedError(ConnectionError):
    """The other side has closed the socket."""


def frame(message: object) -> bytes:
    """The bytes of a message.

    Example:
        >>> frame({"run": "1 + 1"})
        b'\\x00\\x00\\x00\\x10{"run": "1 + 1"}'
    """
    content = json.dumps(message).encode()
    return HEADER.pack(len(content)) + content


def receive(connection: socket.socket) -> Any:
    """The next message; waits for it.

    Raises:
        ClosedError: if there will be none.
    """
    return json.loads(_exactly(connection, HEADER.unpack(_exactly(connection, HEADER.size))[0]))


def _exactly(connection: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        part = connection.recv(min(size - len(found), 1 << 20))
        if not part:
            raise ClosedError("the grader has closed the connection")
        found += part
    return bytes(found)
