"""The shell: IPython without Jupyter's kernel, which runs cells that come as frames and sends back what they show.

Requests are ``{"run": source}`` and ``{"check": source}``, with a number each; the second renews the checks before.
They end with ``{"done": ...}`` and that number. In between come ``{"stream": [name, text]}``, ``{"shown": data}``,
``{"result": data}`` and ``{"error": [name, value, traceback]}``. A check asks for cases with ``{"task": name}`` and
sends ``{"answer": ...}`` for each that comes (see `minitorch.classroom.harness`).

One connection takes the place of five sockets, a signing key and a folder that both sides write to.
"""

from __future__ import annotations

import base64
import builtins
import getpass
import io
import os
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import groupby
from operator import itemgetter
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from .channel import SHOWN, ClosedError, frame, receive
from .renewing import Renewal

FLUSH_SECONDS = 0.05  # the longest that text waits; raising it makes fewer frames, and loses more if a process dies
FLUSH_SIZE = 16_384  # characters
LONGEST = 4_000_000  # characters of an output; of a cell's outputs a grader keeps far less


@contextmanager
def uninterrupted() -> Iterator[None]:
    """No interrupt comes in here: it would leave half a frame."""
    if not hasattr(signal, "pthread_sigmask"):  # on Windows, where nothing interrupts a cell
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Outbox:
    """Sends frames; text is collected first, because a program may print one character at a time."""

    def __init__(self) -> None:
        self.connection: socket.socket | None = None
        self.owner = 0  # the process whose connection it is; its children must not write to it
        self._lock = threading.RLock()
        self._pieces: deque[tuple[str, str]] = deque()  # appending is atomic: no lock, and nothing to be interrupted
        self._size, self._since = 0, 0.0

    def send(self, message: object) -> None:
        """Send what was printed so far, and a message."""
        with uninterrupted(), self._lock:
            self._flush()
            self._send(message)

    def print(self, name: str, text: str) -> None:
        """Take a piece of text of a stream."""
        if os.getpid() != self.owner:
            os.write(1, text.encode(errors="replace"))
            return
        self._pieces.append((name, text))
        self._size += len(text)
        if self._size > FLUSH_SIZE or time.monotonic() - self._since > FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Send what was printed so far."""
        if os.getpid() == self.owner:
            with uninterrupted(), self._lock:
                self._flush()

    def _flush(self) -> None:
        self._size, self._since = 0, time.monotonic()
        pieces = [self._pieces.popleft() for _ in range(len(self._pieces))]
        for name, group in groupby(pieces, key=itemgetter(0)):
            text = "".join(piece for _, piece in group)
            for begin in range(0, len(text), 16 * FLUSH_SIZE):
                self._send({"stream": [name, text[begin : begin + 16 * FLUSH_SIZE]]})

    def _send(self, message: object) -> None:
        assert self.connection is not None
        self.connection.sendall(frame(message))


class Stream(io.TextIOBase):
    """Standard output, or standard error, of student code."""

    encoding = "utf-8"

    def __init__(self, outbox: Outbox, name: str, number: int) -> None:
        self._outbox, self._name, self._number = outbox, name, number

    def write(self, text: str) -> int:
        """Print."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._outbox.print(self._name, text)
        return len(text)

    def flush(self) -> None:
        """See that it is on its way."""
        self._outbox.flush()

    def writable(self) -> bool:
        """It is."""
        return True

    def fileno(self) -> int:
        """The descriptor beside it, for programs that student code starts."""
        return self._number


def _forms(data: dict[str, Any]) -> dict[str, Any]:
    """The forms of an output that are sent; bytes of a picture as base64, as notebooks have them."""
    found = {}
    for form in SHOWN:
        if isinstance(value := data.get(form), bytes):
            value = base64.b64encode(value).decode()
        if isinstance(value, str):
            found[form] = value
    if any(len(value) > LONGEST for value in found.values()):
        return {"text/plain": f"(an output of more than {LONGEST / 1e6:g} MB was left out)"}
    return found


class StdinNotImplementedError(NotImplementedError):
    """A cell has asked for input. Jupyter's kernel has an error of the same name."""


class Shell(InteractiveShell):
    """IPython's shell, with a connection in place of a terminal."""

    outbox: Any = None
    renewal: Any = None

    def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
        lines = self.InteractiveTB.stb2text(stb).splitlines() if not isinstance(stb, list) else stb
        name, text = str(getattr(etype, "__name__", etype)), ""
        with suppress(Exception):
            text = str(evalue)
        self.outbox.send({"error": [name[:200], text[:5000], [str(line)[:5000] for line in lines][-60:]]})

    def ask_exit(self) -> None:
        """``exit()`` in a cell ends the process, as in Jupyter's kernel."""
        self.outbox.flush()
        os._exit(0)

    def init_io(self) -> None:
        """Nothing: `serve` connects the streams."""

    def enable_gui(self, gui: Any = None) -> None:
        """There is none."""

    def serve(self, connection: socket.socket) -> None:
        """Run cells until the connection is closed."""
        self.outbox.connection, self.outbox.owner = connection, os.getpid()
        sys.stdout, sys.stderr = Stream(self.outbox, "stdout", 1), Stream(self.outbox, "stderr", 2)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if numpy := sys.modules.get("numpy"):
            numpy.random.seed()  # or random numbers would be the same in all copies of one process
        while True:
            try:
                with uninterrupted():
                    request = receive(connection)
            except ClosedError:
                return
            if "id" in request:  # not the rest of a dialogue that student code has made up
                self.outbox.send({"done": self._answer(request)})

    def _answer(self, request: dict[str, str]) -> dict[str, Any]:
        told: dict[str, Any] = {"id": request["id"]}
        if "check" in request:
            with suppress(Exception):  # then the checks are those that there are
                told["changed"] = self.renewal.renew(self._ask)
        source = request.get("check") or request.get("run") or ""
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.run_cell(source, store_history=False)  # type: ignore[no-untyped-call]
        except KeyboardInterrupt:  # it came when the cell had ended
            pass
        except BaseException as error:  # IPython's own, on a source that it cannot take
            self.outbox.send({"error": [type(error).__name__, str(error)[:5000], []]})
        finally:
            with suppress(KeyboardInterrupt):
                signal.signal(signal.SIGINT, signal.SIG_IGN)
        if "check" in request:
            with suppress(Exception):
                self.renewal.rest()
        return told

    def _ask(self, message: object) -> Any:
        """Send something to the grader, and wait for its answer."""
        with uninterrupted():
            self.outbox.send(message)
            return receive(self.outbox.connection)


def make_shell(checks: str) -> Any:
    """A shell that is ready to be copied; `checks` is the name of their module."""
    config = Config(HistoryManager={"enabled": False}, InteractiveShell={"colors": "NoColor"})
    shell: Any = Shell.instance(config=config)
    shell.outbox = outbox = Outbox()
    shell.displayhook.write_format_data = lambda data, *_: outbox.send({"result": _forms(data)})
    shell.displayhook.write_output_prompt = shell.displayhook.log_output = lambda *_: None
    shell.display_pub.publish = lambda data, *_, **__: outbox.send({"shown": _forms(data)})
    shell.display_pub.clear_output = lambda *_, **__: None  # nothing is taken back
    ours, theirs = socket.socketpair()
    with ours, theirs:
        outbox.connection, outbox.owner = ours, os.getpid()
        for source in ("1", "0 / 0", "display(1)", "print(1)"):  # what these import need not be imported in each copy
            shell.run_cell(source, store_history=False)
    shell.user_ns.pop("_", None)
    shell.renewal = Renewal(shell, checks)

    def refuse(*_: object, **__: object) -> str:
        __tracebackhide__ = True
        raise StdinNotImplementedError("nobody is there to answer: a notebook that is graded cannot ask for input")

    builtins.input = getpass.getpass = refuse
    return shell
