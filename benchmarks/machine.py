"""What the figures were measured on: processor, cores, caches, memory, system."""

from __future__ import annotations

import os
import platform
import subprocess
from contextlib import suppress
from pathlib import Path


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    if platform.system() == "Darwin":
        with suppress(OSError, subprocess.CalledProcessError):
            return subprocess.check_output(["sysctl", "-n", "machdep.cpu.brand_string"], text=True).strip()
    return platform.processor() or platform.machine()


def _caches() -> dict[str, str]:
    """The caches that the first core sees: ``{"L1d": "48K", ...}``, where the system tells."""
    found = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        with suppress(OSError):
            level, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
            if kind != "Instruction":
                found[f"L{level}" + ("d" if kind == "Data" else "")] = size
    return found


def _memory() -> int:
    with suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 0


def describe() -> dict[str, object]:
    """The machine, as far as it can be found out."""
    return {
        "processor": _processor(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "caches": _caches(),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def sentence(machine: dict[str, object], copied: float | None) -> str:
    """The machine in a line."""
    caches = machine["caches"]
    assert isinstance(caches, dict)
    parts = [
        f"{machine['processor']}, {machine['cores']} cores",
        ", ".join(f"{name} {size}" for name, size in caches.items()),
        f"a copy moves {copied / 1e9:.0f} GB/s" if copied else "",
        f"Python {machine['python']}",
    ]
    return "; ".join(part for part in parts if part)
