"""Campaigns over mutated files: which files a loader opens, the memory that it takes, and how each seed ends.

`fuzz.checkpoints` and `fuzz.onnx` share this. Each makes files from a seed, hands them to a loader, and judges.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import threading
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from typing import Any

SPACING = 1_000_000  # of the seeds of two campaigns
PROGRESS = 5_000  # files after which the counts are printed

Files = dict[str, bytes]


class Watch:
    """What a block of the thread that made this does: the files that it opens, and the bytes that it holds at most.

    Attributes:
        paths: of opened files, as Python's audit events name them.
        peak: bytes of Python and NumPy.
    """

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.peak = 0
        self._is_on = False
        self._thread = threading.get_ident()
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._is_on or event != "open" or threading.get_ident() != self._thread:
            return
        if isinstance(arguments[0], str | bytes | os.PathLike):
            self.paths.append(os.fsdecode(arguments[0]))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch a block; `paths` and `peak` are of this block alone."""
        self.paths.clear()
        tracemalloc.start()
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False
            self.peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()

    def outside(self, folder: Path) -> str | None:
        """The first file that was opened outside of a folder, links followed; Python's own code is none."""
        places = (path for path in self.paths if not path.endswith((".py", ".pyc")))
        return next((path for path in places if not Path(os.path.realpath(path)).is_relative_to(folder)), None)


def put(folder: Path, files: Files) -> None:
    """Make these the files of a folder."""
    for path in folder.iterdir():
        path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def command(
    program: str,
    text: str | None,
    campaign: Callable[[Iterator[int]], Iterable[tuple[int, str]]],
    ends: tuple[str, ...],
) -> int:
    """Run a campaign from the command line, and print its findings; the exit status is 1 if there are some.

    Args:
        program: the command.
        text: its description.
        campaign: how each seed ends: one of `ends`, or a finding.
        ends: the ends of files that are no findings.
    """
    parser = argparse.ArgumentParser(prog=program, description=text)
    parser.add_argument("--files", type=int, default=100_000, help="stop after so many")
    parser.add_argument("--seed", type=int, help="of the campaign; a random one by default")
    parser.add_argument("--only", type=int, nargs="+", metavar="SEED", help="the files of these seeds, and no others")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else secrets.randbelow(SPACING)
    print(f"SEED={seed}", flush=True)
    counted = Counter(dict.fromkeys([*ends, "findings"], 0))
    files = len(options.only) if options.only else options.files
    for each, result in campaign(iter(options.only or islice(count(seed * SPACING), files))):
        counted[result if result in ends else "findings"] += 1
        if result not in ends:
            print(f"seed {each}: {result}", flush=True)
        if counted.total() % PROGRESS == 0 or counted.total() == files:
            print(", ".join(f"{number} {name}" for name, number in counted.items()), flush=True)
    return 1 if counted["findings"] else 0
