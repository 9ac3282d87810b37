"""How far a run is: a bar on a terminal; in a file, a line when the next case begins."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm


@contextmanager
def progress(steps: int) -> Iterator[Callable[[str, str], None]]:
    """What is called before each of so many steps, with the name of a case and of what is measured."""
    if sys.stderr.isatty():
        with tqdm(total=steps, leave=False, dynamic_ncols=True, bar_format="{percentage:3.0f}% {bar} {desc}") as bar:

            def advance(case: str, what: str) -> None:
                bar.set_description_str(f"{f'{case}: {what}':45}", refresh=False)
                bar.update()

            yield advance
        return
    done, last = 0, ""

    def note(case: str, what: str) -> None:
        nonlocal done, last
        if case != last:
            print(f"{100 * done // steps:3}% {case}", file=sys.stderr, flush=True)
        done, last = done + 1, case

    yield note
