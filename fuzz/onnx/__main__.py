"""`python -m fuzz.onnx`: mutated ONNX models are read and run, or refused by name."""

from __future__ import annotations

import sys
from contextlib import suppress

from ..files import command
from .campaign import ENDS, campaign

MEMORY = 8 << 30
"""Bytes of addresses that the process may have: so an allocation that slips through is a finding, and not the end."""


def main() -> int:
    """Run a campaign."""
    with suppress(ImportError):  # not on Windows
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY if hard < 0 else min(MEMORY, hard), hard))
    return command("python -m fuzz.onnx", __doc__, campaign, ENDS)


if __name__ == "__main__":
    sys.exit(main())
