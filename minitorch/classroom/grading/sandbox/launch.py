"""The first program in the sandbox: takes away what bubblewrap cannot, then becomes the kernel.

It is run by its path and imports nothing of minitorch. Its one argument is JSON: ``limits`` (name of a resource,
value), ``uid`` (to become, or null) and ``kernel`` (the kernel's own arguments).
"""

from __future__ import annotations

import json
import os
import resource
import sys


def restrict(limits: dict[str, int], uid: int | None) -> None:
    """Set resource limits that cannot be raised again, and stop being root.

    The kernel does not hold root to a number of processes, so a grader that is root gives each submission a user of its
    own, which owns nothing.
    """
    for name, value in limits.items():
        resource.setrlimit(getattr(resource, name), (value, value))
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def main() -> None:
    """Restrict this process and run IPython's kernel in it."""
    options = json.loads(sys.argv[1])
    restrict(options["limits"], options["uid"])
    from ipykernel.kernelapp import IPKernelApp

    IPKernelApp.launch_instance(argv=options["kernel"])


if __name__ == "__main__":
    main()
