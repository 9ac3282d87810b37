"""One cell while it runs in the sandbox, within limits; for the cell of a check, the dialogue with its judge.

Nothing that comes from inside is trusted: bytes are counted, each message is validated, of a cell's output only so much
is kept, and whatever is not said in time counts as not said.
"""

from __future__ import annotations

import os
import select
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..incidents import Incident
from .inside.channel import frame
from .outputs import length, merge, output_of
from .receiver import FloodError, TamperedError

if TYPE_CHECKING:
    from ..submission.alone import Process
    from ..submission.judging import Examination
    from .kernel import Kernel

POLL_SECONDS = 0.1  # between two looks at the clock
PATIENCE = 9  # times its limit that a cell may wait for a processor; raising it lets it hold a busy grader longer
GRACE_SECONDS = 2.0  # for a cell to end after it was interrupted

Message = dict[str, Any]


@dataclass
class Ran:
    """The result of one cell.

    Attributes:
        outputs: as a notebook keeps them.
        error: the output that is an error, if there is one.
        incident: what went wrong.
        alive: whether the next cell can run in the same process.
        changed: what a check found to be changed.
        tampered: what came that our own programs never send.
    """

    outputs: list[Message] = field(default_factory=list)
    error: Message | None = None
    incident: Incident | None = None
    alive: bool = True
    changed: list[str] = field(default_factory=list)
    tampered: str = ""


def execute(kernel: Kernel | Process, source: str, seconds: float, questions: Examination | None = None) -> Ran:
    """Run a cell. It is interrupted after `seconds`, and everything killed if that does not help.

    On a busy machine, the time for which it waits for a processor does not count.

    Args:
        kernel: where it runs.
        source: what is in the cell.
        seconds: how long it may run.
        questions: for the cell of a check, what it is asked.
    """
    return _Execution(kernel, questions).run(source, seconds)


class _Execution:
    """One cell while it runs."""

    def __init__(self, kernel: Kernel | Process, questions: Examination | None) -> None:
        self.kernel, self.limits, self.questions = kernel, kernel.limits, questions
        self.ran = Ran()
        self.size = 0  # characters of the outputs
        self.asked = False  # whether the check has begun to ask for cases
        self.is_waiting = False  # whether a case was given that is not answered yet
        self.end, self.interrupted, self.done = 0.0, False, False

    def run(self, source: str, seconds: float) -> Ran:
        kernel = self.kernel
        kernel.receiver.left = self.limits.received
        self.end = time.monotonic() + seconds
        kernel.cells += 1
        waited = kernel.waited()
        if not self._send({"check" if self.questions else "run": source, "id": kernel.cells}):
            return self._dead(Incident("kernel-died"))
        while True:
            ready, _, _ = select.select(kernel.sources, [], [], POLL_SECONDS)
            try:
                self._read(ready)
            except FloodError as error:
                return self._dead(Incident("output", str(error)))
            if self.done:
                self._read_raw()
                return self.ran
            if kernel.receiver.is_closed:
                return self._dead(kernel.incident or Incident("kernel-died"))
            if time.monotonic() > self.end + min(kernel.waited() - waited, PATIENCE * seconds):
                if self.interrupted:
                    return self._dead(None)
                self._stop(Incident("cell-time", f"more than {seconds:g} s"))

    def _dead(self, incident: Incident | None) -> Ran:
        """End everything. A limit that was reached before is the reason, whatever the end looks like."""
        self.ran.incident = self.ran.incident or incident
        self.ran.alive = False
        self.kernel.kill()
        self._read_raw()
        return self.ran

    def _stop(self, incident: Incident) -> None:
        """Interrupt the cell."""
        if not self.interrupted:
            self.ran.incident = self.ran.incident or incident
            self.interrupted, self.end = True, time.monotonic() + GRACE_SECONDS
            self.kernel.interrupt()

    def _send(self, message: object) -> bool:
        """Send a frame; False if it cannot be."""
        content = memoryview(frame(message))
        while content:
            _, ready, _ = select.select([], [self.kernel.channel], [], max(0.0, self.end - time.monotonic()))
            if not ready:
                return False
            try:
                content = content[self.kernel.channel.send(content) :]
            except BlockingIOError:
                continue
            except OSError:
                return False
        return True

    def _read(self, ready: list[Any]) -> None:
        if self.kernel.raw in ready:
            self._read_raw()
        if self.kernel.channel not in ready:
            return
        self.kernel.receiver.read()
        while not self.done:
            try:
                if (message := self.kernel.receiver.next()) is None:
                    return
                self._take(message)
            except TamperedError as error:
                self.ran.tampered = str(error)

    def _read_raw(self) -> None:
        """What was written to the descriptors of the process, by a program that it has started for instance."""
        for _ in range(64):
            try:
                part = os.read(self.kernel.raw, 1 << 16)
            except OSError:
                return
            if not part:  # nobody has it open any more; it would be ready to be read for ever
                self.kernel.sources = [self.kernel.channel]
                return
            self._keep({"output_type": "stream", "name": "stdout", "text": part.decode(errors="replace")})

    def _take(self, message: Message) -> None:
        if len(message) != 1:
            raise TamperedError("a message with several contents")
        ((kind, content),) = message.items()
        match kind:
            case "done":
                self._finish(content)
            case "task":
                self._ask(content)
            case "answer":
                self._answer(content)
            case _:
                self._keep(output_of(kind, content))

    def _finish(self, content: Any) -> None:
        match content:
            case {"id": self.kernel.cells, **more}:
                changed = more.get("changed")
                self.ran.changed = (
                    [each for each in changed if isinstance(each, str)] if isinstance(changed, list) else []
                )
                self.done = True
            case _:
                raise TamperedError("the end of another cell")

    def _ask(self, task: object) -> None:
        if self.questions is None or task != self.questions.task or self.asked:
            self._send({"case": None})
            raise TamperedError("a case was asked for where no check asks for one")
        self.asked = True
        self._next(None)

    def _answer(self, answer: object) -> None:
        if not self.is_waiting:
            self._send({"case": None})
            raise TamperedError("an answer to no question")
        self._next(answer)

    def _next(self, answer: object) -> None:
        """Give the next case. Judging the answer is not part of the cell's time."""
        assert self.questions is not None
        began = time.monotonic()
        case = self.questions.next(answer)
        self.end += time.monotonic() - began
        self.is_waiting = case is not None
        self._send({"case": case})

    def _keep(self, output: Message) -> None:
        self.size += length(output)
        if self.size > self.limits.output:
            self._stop(Incident("output", f"more than {self.limits.output // 1024} KiB"))
            return
        if output["output_type"] == "error":
            self.ran.error = output
        merge(self.ran.outputs, output)
