"""A campaign: programs by the thousand, in child processes for each target; what is found is made small and told."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from minitorch.compiler.codegen.host import executable_targets

from .child import Child, DiedError
from .judge import Finding
from .modes import COMPILED, MODES, TORCH
from .program import Program
from .shrink import shrink
from .worker import Answer, Question, answer

PROGRAM_SECONDS = 60.0  # after which a child hangs
CHUNK = 16  # programs in a row for one child
SPACING = 1_000_000  # between the seeds of two campaigns
TOLD_EVERY = 60.0  # seconds between two words on how far it is
SHRINKING = 0.25  # at most this share of the time
ALL_MODES = (*(mode for mode in MODES if mode != "eager"), TORCH)


@dataclass
class Group:
    """Findings that are probably one: alike in kind, place, and the functions of the smallest program.

    Attributes:
        alike: the seeds of programs that were taken for the same finding and not made small. Another one may hide among
            them: when the first is mended, they are to be run again.
    """

    finding: Finding
    program: Program
    seed: int
    target: str
    alike: list[int] = field(default_factory=list)
    verdicts: dict[str, str] = field(default_factory=dict)  # in every mode, for every target


@dataclass
class Statistics:
    """What was run."""

    programs: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    seconds: float = 0.0
    modes: Counter[str] = field(default_factory=Counter)
    targets: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    callees: Counter[str] = field(default_factory=Counter)


def targets() -> tuple[str, ...]:
    """The targets that are worth a child: all that the machine can execute; the native one is among them."""
    known = executable_targets()
    return known[1:] or known


class Campaign:
    """A run over the programs of consecutive seeds.

    Args:
        seed: of the campaign; program i has the seed ``seed * SPACING + i``.
        jobs: how many children work at a time.
        target: the function that children run, which answers a `Question`.
        say: called with each new group.
        tell: called once in a while with the statistics so far.
        machines: the targets to compile for; see `targets`.
    """

    def __init__(
        self,
        seed: int,
        jobs: int = 1,
        target: Callable[[Question], Answer] = answer,
        say: Callable[[Group], None] = lambda group: None,
        tell: Callable[[Statistics], None] = lambda statistics: None,
        machines: tuple[str, ...] = (),
    ) -> None:
        self.seed, self.jobs, self.target, self.say, self.tell = seed, jobs, target, say, tell
        self.machines = machines or targets()
        self.statistics = Statistics()
        self.groups: dict[tuple[object, ...], Group] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._next = 0
        self._shrunk = 0.0  # seconds

    def run(self, seconds: float = float("inf"), programs: int | None = None) -> None:
        """Run until the time is over, so many programs are done, or it is interrupted."""
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="minitorch-fuzz-") as folder:
            threads = [
                threading.Thread(target=self._work, args=(start, start + seconds, programs, Path(folder) / str(job)))
                for job in range(self.jobs)
            ]
            for each in threads:
                each.start()
            try:
                self._wait(threads, start)
            except KeyboardInterrupt:
                self._stopped.set()
                for each in threads:
                    each.join()
        self.statistics.seconds = time.monotonic() - start

    def _wait(self, threads: list[threading.Thread], start: float) -> None:
        """Until all threads are done, telling how far they are."""
        for each in threads:
            while each.is_alive():
                each.join(TOLD_EVERY)
                self.statistics.seconds = time.monotonic() - start
                if each.is_alive():
                    self.tell(self.statistics)

    def only(self, seeds: Sequence[int]) -> None:
        """Run the programs of some seeds, each by itself and for every target."""
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="minitorch-fuzz-") as folder:
            children = {name: self._child(name, Path(folder)) for name in self.machines}
            for seed in seeds:
                found, self.groups = self.groups, {}
                for name in self.machines:
                    self._examine(children, name, seed, start)
                self.groups = found | self.groups
            for each in children.values():
                each.close()
        self.statistics.seconds = time.monotonic() - start

    def _work(self, start: float, end: float, programs: int | None, folder: Path) -> None:
        children = {name: self._child(name, folder) for name in self.machines}
        try:
            while time.monotonic() < end and not self._stopped.is_set():
                with self._lock:
                    first, self._next = self._next, self._next + CHUNK
                name = self.machines[first // CHUNK % len(children)]
                for number in range(first, first + CHUNK):
                    if (
                        (programs is not None and number >= programs)
                        or time.monotonic() > end
                        or self._stopped.is_set()
                    ):
                        break
                    self._examine(children, name, self.seed * SPACING + number, start)
                if programs is not None and first + CHUNK >= programs:
                    return
        finally:
            for each in children.values():
                each.close()

    def _child(self, name: str, folder: Path) -> Child:
        threads = {f"{library}_NUM_THREADS": "1" for library in ("OPENBLAS", "OMP", "MKL")}
        folder.mkdir(exist_ok=True)
        return Child(self.target, {**threads, "MINITORCH_TARGET": name, "MINITORCH_CACHE_DIR": str(folder / name)})

    def _examine(self, children: dict[str, Child], name: str, seed: int, start: float) -> None:
        """Ask about the program of a seed."""
        child = children[name]
        said = ask(child, Question(seed))
        if isinstance(said, Finding) and said.kind == "hang":
            said = ask(child, Question(seed))  # a busy machine is no finding
        if isinstance(said, Finding):
            made = ask(child, Question(seed, only_make=True))
            said = Answer(made.program if isinstance(made, Answer) else Program((), (), ()), [said])
        with self._lock:
            self._count(said, name)
        for finding in said.findings:
            self._note(children, name, seed, said, finding, start)

    def _count(self, said: Answer, name: str) -> None:
        counts = self.statistics
        counts.programs += 1
        if said.skipped:
            counts.skipped[said.skipped] += 1
            return
        counts.refused += said.refused
        counts.targets[name] += 1
        counts.modes.update(["eager", *said.modes])
        counts.types.update(said.types)
        counts.callees.update(said.program.callees)

    def _note(
        self, children: dict[str, Child], name: str, seed: int, said: Answer, finding: Finding, start: float
    ) -> None:
        """Make a program small, put it with those that are like it, and run it in every mode for every target."""
        with self._lock:
            known = self._group_of(finding, said.program)
            if known is not None and (len(known.alike) >= 2 or finding.place):
                known.alike.append(seed)
                return
            busy = self._shrunk > SHRINKING * (time.monotonic() - start) * self.jobs + 20
        child, program, began = children[name], said.program, time.monotonic()
        if not busy:
            modes = {"eager": (), "child": None}.get(finding.mode, (finding.mode,))

            def still_fails(candidate: Program) -> bool:
                again = ask(child, Question(seed, candidate, modes))
                found = [again] if isinstance(again, Finding) else again.findings
                return any(each.key == finding.key for each in found)

            all_values = ask(child, Question(program=program.returning_all, modes=()))
            program = shrink(program, still_fails, all_values.specs if isinstance(all_values, Answer) else {})
            again = ask(child, Question(seed, program, modes))
            for each in [again] if isinstance(again, Finding) else again.findings:
                finding = each if each.key == finding.key else finding
        group = Group(finding, program, seed, name)
        with self._lock:
            self._shrunk += time.monotonic() - began
            key = self._key(finding, program)
            if key in self.groups:
                self.groups[key].alike.append(seed)
                return
            self.groups[key] = group
        group.verdicts = {
            target: verdict(ask(each, Question(seed, program, ALL_MODES))) for target, each in children.items()
        }
        self.say(group)

    def _key(self, finding: Finding, program: Program) -> tuple[object, ...]:
        if finding.place:
            return finding.kind, finding.place
        return finding.kind, kind_of(finding.mode), tuple(sorted(set(program.callees)))

    def _group_of(self, finding: Finding, program: Program) -> Group | None:
        """A group that a program most likely belongs to: the same kind, with all functions of the small program."""
        if finding.place:
            return self.groups.get((finding.kind, finding.place))
        called = set(program.callees)
        for group in self.groups.values():
            alike = group.finding.kind == finding.kind and kind_of(group.finding.mode) == kind_of(finding.mode)
            if alike and not group.finding.place and called.issuperset(group.program.callees):
                return group
        return None


def kind_of(mode: str) -> str:
    """Modes that fail alike: all that compile."""
    return "compiled" if mode in COMPILED else mode


def ask(child: Child, question: Question) -> Answer | Finding:
    """An answer, or the finding that there is none."""
    try:
        said: Answer = child.ask(question, PROGRAM_SECONDS)
        return said
    except DiedError as death:
        kind = "hang" if "within" in str(death) else "crash"
        return Finding(kind, "child", str(death))


def verdict(said: Answer | Finding) -> str:
    """What every mode does with a program, in a line."""
    if isinstance(said, Finding):
        return f"{said.kind}: {said.detail}"
    wrong = {finding.mode: finding.kind for finding in said.findings}
    return ", ".join(f"{mode}: {wrong.get(mode, 'as eager')}" for mode in said.modes) or "eager alone"


def usable_jobs() -> int:
    """How many children at a time: as many as there are cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
