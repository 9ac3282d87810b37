"""The command line: ``python -m minitorch``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from . import inspect


def _primitives(options: argparse.Namespace) -> None:
    print(inspect.primitives_table())


# One row per command: what it does, and the function that does it.
COMMANDS: dict[str, tuple[str, Callable[[argparse.Namespace], None]]] = {
    "primitives": ("list the primitives, and count the public functions built on them", _primitives),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the result is the process's exit status."""
    parser = argparse.ArgumentParser(prog="python -m minitorch", description="A small tensor engine.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, (text, _) in COMMANDS.items():
        commands.add_parser(name, help=text, description=text)
    options = parser.parse_args(arguments)
    COMMANDS[options.command][1](options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
