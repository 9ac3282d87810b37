"""One kernel in a sandbox: start it, run a cell within limits, end it and all that it has started.

Nothing that the kernel sends is trusted: messages have a greatest size, of a cell's output only so much is kept, and
whatever is not said in time counts as not said.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import zmq
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.connect import write_connection_file

from ..incidents import Incident
from .bubblewrap import Sandbox
from .watch import Watch

POLL_SECONDS = 0.1
CLOSED_SECONDS = 0.5  # in which a kernel that has closed its connection because it died is seen to be dead
GRACE_SECONDS = 2.0  # for a cell to end after it was interrupted, and for its last messages to come

SHOWN = ("text/plain", "image/png", "image/jpeg")
OURS = tuple(f"application/vnd.minitorch.{name}+json" for name in ("answers", "guard"))  # data for the grader

Message = dict[str, Any]

LONGEST_FOLDER = 75  # bytes of the name of a folder in which the sockets of a kernel may lie

FOLDERS: set[Path] = set()  # those of kernels that run, for whoever has to end at once


@dataclass
class Ran:
    """The result of one cell: outputs as a notebook keeps them, the error if there was one, and the incident."""

    outputs: list[Message] = field(default_factory=list)
    error: Message | None = None
    incident: Incident | None = None
    alive: bool = True


class Kernel:
    """A running kernel; a context manager, at whose end nothing of it is left."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.limits = sandbox.limits
        self.folder = Path(tempfile.mkdtemp(prefix="mt-", dir=_temporary())).resolve()
        FOLDERS.add(self.folder)

    def __enter__(self) -> Self:
        shared = self.folder / "k"
        shared.mkdir()
        transport = "tcp" if os.name == "nt" else "ipc"
        address = "127.0.0.1" if transport == "tcp" else str(shared / "s")
        name = str(shared / "kernel.json")
        write_connection_file(name, transport=transport, ip=address, key=os.urandom(32).hex().encode())
        uid = self.sandbox.uid
        if uid is not None:
            for path in (shared, Path(name)):
                os.chown(path, uid, uid)
        self.complaints = self.folder / "stderr"  # may grow to `limits.file`, as any file
        with self.complaints.open("wb") as complaints:
            self.process = subprocess.Popen(
                self.sandbox.command(shared, Path(name)),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                start_new_session=True,
            )
        self.context = zmq.Context()
        # Defaults of the sockets made from here on: what is longer is not read, what is more is dropped by the sender.
        self.context.setsockopt(zmq.MAXMSGSIZE, self.limits.message)
        self.context.setsockopt(zmq.RCVHWM, 32)
        self.context.setsockopt(zmq.LINGER, 0)
        self.client = BlockingKernelClient(connection_file=name, context=self.context)
        self.client.load_connection_file()
        self.watch = Watch(self.process.pid, shared, self.limits)
        try:
            self._begin(shared, uid)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _begin(self, shared: Path, uid: int | None) -> None:
        self.client.start_channels(stdin=False)
        end = time.monotonic() + self.limits.start_seconds
        while True:
            try:
                self.client.wait_for_ready(timeout=1)
                break
            except RuntimeError as error:
                if self.process.poll() is not None or time.monotonic() > end:
                    said = self.complaints.read_bytes()[-2000:].decode(errors="replace").strip()
                    raise KernelError(f"the kernel did not start: {said or 'it did not answer'}") from error
        if uid is not None:  # all sockets exist: from now on nothing can be added to the folder
            os.chown(shared, 0, 0)
            os.chmod(shared, 0o711)
        # A message that is too long closes the connection: nothing else tells of it.
        self.closed = self.client.iopub_channel.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self.watch.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()
        self.watch.stop()
        with contextlib.suppress(Exception):  # half-open channels of a kernel that was killed
            self.client.iopub_channel.socket.disable_monitor()
            self.client.stop_channels()
        self.context.destroy(linger=0)
        shutil.rmtree(self.folder, ignore_errors=True)
        FOLDERS.discard(self.folder)

    @property
    def is_alive(self) -> bool:
        """Whether it still runs, and was not found to use too much."""
        return self.process.poll() is None and self.watch.incident is None

    def kill(self) -> None:
        """End the kernel and all processes that it has started."""
        if self.sandbox.safe:
            self.process.kill()  # the first process inside dies with bubblewrap, and all others with it
        elif os.name == "nt":
            self.process.kill()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def leftovers(self) -> list[str]:
        """Names of the processes that student code has started and that still run."""
        return self.watch.others()

    def execute(self, code: str, seconds: float) -> Ran:
        """Run `code` as a cell. It is interrupted after `seconds`, and the kernel killed if that does not help."""
        ran = Ran()
        request = self.client.execute(code, allow_stdin=False, stop_on_error=False)
        end = time.monotonic() + seconds
        size, interrupted, replied, closed = 0, False, None, None
        while True:
            now = time.monotonic()
            if self.watch.incident is not None or self.process.poll() is not None:
                self.kill()
                ran.incident = self.watch.incident or ran.incident or Incident("kernel-died")
                ran.alive = False
                return ran
            if now > end and not interrupted:
                ran.incident = ran.incident or Incident("cell-time", f"more than {seconds:g} s")
                self._interrupt()
                interrupted, end = True, now + GRACE_SECONDS
            elif now > end:
                self.kill()
                ran.alive = False
                return ran
            closed = closed or (now if self._was_closed() else None)
            if closed and now > closed + CLOSED_SECONDS and not interrupted:
                ran.incident = Incident("output", "a single message was too long")
                self._interrupt()
                interrupted, end = True, now + GRACE_SECONDS
            message = self._next(request)
            if message is None:
                replied = replied or self._reply(request)
                if replied and now > replied + GRACE_SECONDS:  # that it is idle got lost among too much output
                    ran.incident = ran.incident or Incident("output", "more than could be read")
                    return ran
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content.get("execution_state") == "idle":
                return ran
            output = as_output(kind, content)
            if output is None:
                continue
            size += length(content)
            if size > self.limits.output:
                if not interrupted:
                    ran.incident = ran.incident or Incident("output", f"more than {self.limits.output // 1024} KiB")
                    self._interrupt()
                    interrupted, end = True, now + GRACE_SECONDS
                continue
            if kind == "error":
                ran.error = output
            merge(ran.outputs, output)

    def _interrupt(self) -> None:
        message = self.client.session.msg("interrupt_request", {})
        self.client.control_channel.send(message)

    def _next(self, request: str) -> Message | None:
        try:
            message: Message = self.client.get_iopub_msg(timeout=POLL_SECONDS)
        except queue.Empty:
            return None
        except Exception:  # not a message: a wrong signature, say, because student code wrote to the socket
            return None
        return message if message.get("parent_header", {}).get("msg_id") == request else self._ignored()

    def _ignored(self) -> Message:
        return {"msg_type": "", "content": {}}

    def _was_closed(self) -> bool:
        """Whether the connection for output was closed since this was asked last; it opens again by itself."""
        found = False
        while self.closed.poll(0):
            self.closed.recv_multipart()
            found = True
        return found

    def _reply(self, request: str) -> float | None:
        """When the kernel has said that the cell is done, if it has."""
        with contextlib.suppress(Exception):
            while True:
                message = self.client.get_shell_msg(timeout=0)
                if message["parent_header"].get("msg_id") == request:
                    return time.monotonic()
        return None


def _temporary() -> str:
    """The folder for temporary files, or ``/tmp`` if its name is too long for that of a socket, which has 100 bytes."""
    chosen = tempfile.gettempdir()
    return "/tmp" if len(os.fsencode(os.path.realpath(chosen))) > LONGEST_FOLDER and os.path.isdir("/tmp") else chosen


class KernelError(Exception):
    """A kernel that did not start: a fault of this machine, never of a submission."""


def as_output(kind: str, content: Message) -> Message | None:
    """The output that a notebook would keep of a message, or None if it is no output."""
    match kind:
        case "stream":
            return {"output_type": kind, "name": content.get("name", "stdout"), "text": str(content.get("text", ""))}
        case "display_data":
            return {"output_type": kind, "data": harmless(content.get("data")), "metadata": {}}
        case "execute_result":
            return {"output_type": kind, "data": harmless(content.get("data")), "metadata": {}, "execution_count": None}
        case "error":
            text = [str(line) for line in content.get("traceback", [])]
            return {
                "output_type": kind,
                "ename": str(content.get("ename", "")),
                "evalue": str(content.get("evalue", "")),
                "traceback": text,
            }
    return None


def harmless(data: Any) -> Message:
    """The forms of an output that can be shown to an instructor: HTML and SVG may hold programs."""
    given = data if isinstance(data, dict) else {}
    shown = {form: given[form] for form in SHOWN if isinstance(given.get(form), str)}
    return shown | {form: given[form] for form in OURS if form in given}


def length(content: Any) -> int:
    """About how many characters there are in plain data."""
    match content:
        case dict():
            return sum(len(str(key)) + length(value) for key, value in content.items())
        case list():
            return sum(map(length, content)) + len(content)
        case _:
            return len(str(content))


def merge(outputs: list[Message], output: Message) -> None:
    """Append an output, or its text to the last one if both are of one stream."""
    if output["output_type"] == "stream" and outputs and outputs[-1].get("name") == output["name"]:
        outputs[-1]["text"] += output["text"]
    else:
        outputs.append(output)
