"""System calls that Python has no function for: namespaces, mounts, capabilities, and what a process may still do.

Sources: the manual pages unshare(2), mount(2), open_tree(2), prctl(2) and capabilities(7).
"""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = 0x0002_0000, 0x0800_0000, 0x2000_0000, 0x4000_0000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = (1 << bit for bit in (1, 2, 3, 14, 18))
OPEN_TREE, OPEN_TREE_CLONE, AT_RECURSIVE = 428, 1, 0x8000  # the number of the call is that of every machine

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 1, 4, 24, 38, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAPABILITY_VERSION_3 = 0x2008_0522
CAP_KILL = 5
CAPABILITIES = 64  # the numbers below which all capabilities lie

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(status: int, what: str) -> None:
    if status:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Give this process namespaces of its own."""
    _checked(_libc.unshare(flags), "unshare")


def mount(kind: str, path: str, flags: int, options: str = "") -> None:
    """Mount a file system that has no device, such as ``"tmpfs"`` or ``"proc"``; ``""`` changes the flags alone."""
    name = kind.encode() or None
    _checked(_libc.mount(name, path.encode(), name, ctypes.c_ulong(flags), options.encode() or None), f"mount {path}")


def copied_tree() -> int:
    """A copy of all mounts, as a descriptor of its root.

    It belongs to no namespace, so that a process whose root it becomes finds no list of mounts in ``/proc``.
    """
    flags = OPEN_TREE_CLONE | AT_RECURSIVE | os.O_CLOEXEC
    descriptor: int = _libc.syscall(ctypes.c_long(OPEN_TREE), -100, b"/", ctypes.c_uint(flags))
    _checked(descriptor < 0, "open_tree")
    return descriptor


def prctl(option: int, value: int = 0, address: int = 0) -> None:
    """Change something about this process."""
    arguments = [ctypes.c_ulong(each) for each in (value, address, 0, 0)]
    _checked(_libc.prctl(option, *arguments), f"prctl {option}")


def keep_capabilities(*kept: int) -> None:
    """Drop all capabilities but these, for this process and all that it will start."""
    for number in range(CAPABILITIES):
        if number not in kept:
            try:
                prctl(PR_CAPBSET_DROP, number)
            except OSError:  # a number that this kernel does not know; or no right to drop from what cannot be used
                continue
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    mask = sum(1 << number for number in kept)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    low, high = mask & 0xFFFF_FFFF, mask >> 32
    sets = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)  # effective, permitted, inheritable; twice 32 bits
    _checked(_libc.capset(header, sets), "capset")
