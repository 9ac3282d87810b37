"""Says in one sentence what to install when this Python cannot run the project; silent when it can.

`tools/setup.sh` runs it with whatever `python3` is, so it keeps to what Python 2 understands too.
"""

import sys

OLDEST = (3, 11)


def find_problem(version, missing, system, machine):
    """Return a sentence, or None.

    `version` is (major, minor), `missing` lists modules that cannot be imported, `system` is `sys.platform`,
    `machine` is `platform.machine()`.
    """
    if version < OLDEST:
        return (
            "minitorch needs Python {}.{} or later, and this is Python {}.{}: install a newer one and name "
            "it, for example `make lab PYTHON=python3.13`."
        ).format(*(OLDEST + version))
    if missing:
        return (
            "This Python has no {}, which `python3 -m venv` needs: install it, on Debian and Ubuntu with "
            "`apt-get install python3-venv`."
        ).format(" and no ".join(missing))
    if system == "darwin" and machine == "x86_64":
        return (
            "minitorch compiles with llvmlite, which is no longer built for Intel Macs: on Apple silicon "
            "install a Python for arm64, on an Intel Mac run the project in a Linux container."
        )
    return None


def find_missing(modules):
    """Return those of `modules` that cannot be imported."""
    missing = []
    for module in modules:
        try:
            __import__(module)
        except ImportError:
            missing.append(module)
    return missing


if __name__ == "__main__":
    import platform

    missing = find_missing(["venv", "ensurepip"])
    sys.exit(find_problem(sys.version_info[:2], missing, sys.platform, platform.machine()))
