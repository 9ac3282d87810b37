"""`python -m fuzz.quantized`: random programs in Q/DQ form, in every mode and for every target of this machine."""

from __future__ import annotations

import argparse
import secrets
import sys
from itertools import count, islice

from minitorch.compiler.codegen.host import executable_targets

from .campaign import campaign
from .laws import MODES

SPACING = 1_000_000  # of the seeds of two campaigns


def main() -> int:
    """Run a campaign; the exit status is 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.quantized", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long")
    parser.add_argument("--programs", type=int, help="stop after so many programs")
    parser.add_argument("--seed", type=int, help="of the campaign; a random one by default")
    parser.add_argument(
        "--only", type=int, nargs="+", metavar="SEED", help="the programs of these seeds, and no others"
    )
    parser.add_argument("--targets", nargs="+", choices=executable_targets(), default=executable_targets())
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else secrets.randbelow(SPACING)
    print(f"SEED={seed}, modes: {', '.join(MODES)}, targets: {', '.join(options.targets)}", flush=True)
    seeds = options.only or islice(count(seed * SPACING), options.programs)
    findings = 0
    for done, target, text in campaign(seeds, options.minutes * 60, options.targets):
        if text:
            findings += 1
            print(f"{target}: {text}", flush=True)
        else:
            print(f"{done} programs and targets, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
