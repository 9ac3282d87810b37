"""The command line: ``python -m minitorch``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from . import inspect
from .modes.shadow import reproduce
from .profiler import machine


def _primitives(options: argparse.Namespace) -> None:
    print(inspect.primitives_table())


def _cache(options: argparse.Namespace) -> None:
    from .compiler import cache  # loads LLVM

    cache.cache_command(options)


def _machine(options: argparse.Namespace) -> None:
    print(machine())


def _reproduce(options: argparse.Namespace) -> int:
    report = reproduce(options.folder)
    print(report)
    return int(not report.ok)


# One row per command: what it does, its positional arguments with their choices (none: anything), and the function that
# does it, which may return an exit status.
COMMANDS: dict[str, tuple[str, dict[str, tuple[str, ...]], Callable[[argparse.Namespace], int | None]]] = {
    "primitives": ("list the primitives, and count the public functions built on them", {}, _primitives),
    "reproduce": ("run what shadow mode wrote down, and compare again", {"folder": ()}, _reproduce),
    "cache": ("show or clear the compiled code kept on disk", {"action": ("info", "clear")}, _cache),
    "machine": ("measure what this machine can do, once, and show it", {}, _machine),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the result is the process's exit status."""
    parser = argparse.ArgumentParser(prog="python -m minitorch", description="A small tensor engine.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, (text, arguments_of, _) in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        for argument, choices in arguments_of.items():
            command.add_argument(argument, choices=choices or None)
    options = parser.parse_args(arguments)
    return COMMANDS[options.command][2](options) or 0


if __name__ == "__main__":
    sys.exit(main())
