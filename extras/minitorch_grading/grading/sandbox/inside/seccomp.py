"""A seccomp filter: system calls that student code cannot make.

Some would hide memory where nobody counts it (`memfd_create`, System V segments), some would make namespaces or
mounts, some reach into other processes, and some have a history of holes and no use here. A call that is refused fails
with EPERM, so the program goes on. `clone3` fails with ENOSYS: its flags lie in memory, where a filter cannot look, and
every C library then uses `clone`, whose flags are in a register.

Some calls are refused by their arguments. Pages that are shared and belong to no file stay when no process maps them
any more (`MADV_DONTNEED`), and memory is counted by what is mapped. What waits in a socket is counted nowhere: so its
buffers keep the system's size, and there are no sockets on which many others, closed by now, can have left something
(datagrams, and connections that were not accepted). A thread with a table of descriptors of its own would open files
that are not seen in its process.

The filter is a program for the classic BPF machine (the kernel's Documentation/userspace-api/seccomp_filter.rst).
"""

from __future__ import annotations

import ctypes
import platform
import re
import struct
from errno import ENOSYS, EPERM
from typing import NamedTuple

from .linux import PR_SET_NO_NEW_PRIVS, prctl

PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2

# Instructions: load a word of the call's description, compare it, mask it, return a verdict.
LOAD, EQUAL, AT_LEAST, AND, RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
NUMBER, ARCHITECTURE, FIRST, SECOND, THIRD, FOURTH = 0, 4, 16, 24, 32, 40  # offsets; of an argument its lower half
ALLOW, REFUSE, KILL = 0x7FFF_0000, 0x0005_0000, 0x8000_0000

NAMESPACES = 0x7E02_0080  # all CLONE_NEW* flags, CLONE_NEWTIME among them
X32 = 0x4000_0000  # numbers of a second way to call the same kernel
INTERNET, INTERNET_6 = 2, 10  # families of sockets; to try them says that there is no network
STREAM, KIND = 1, 0xF  # of a socket; the other bits of its type are options
OF_SOCKET, BUFFERS = 1, (7, 8, 32, 33)  # SOL_SOCKET; SO_SNDBUF, SO_RCVBUF, and the same with FORCE
SHARED, ANONYMOUS = 0x01, 0x20  # of mmap
THREAD, FILES = 0x0001_0000, 0x0000_0400  # CLONE_*
OWN_TABLE = 2  # CLOSE_RANGE_UNSHARE

# Calls by what they would do or reach, each with its numbers on x86-64 and on 64-bit ARM (the kernel's tables).
CALLS = """
memory that belongs to no process:
    memfd_create 319 279, memfd_secret 447 447, shmget 29 194, msgget 68 186, semget 64 190, mq_open 240 180
namespaces and mounts:
    unshare 272 97, setns 308 268, mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, open_tree 428 428,
    move_mount 429 429, fsopen 430 430, fsmount 432 432, mount_setattr 442 442
other processes:
    ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, process_madvise 440 440, pidfd_getfd 438 438,
    kcmp 312 272, setpriority 141 140, sched_setscheduler 144 119, sched_setparam 142 118, sched_setattr 314 274
memory that waits in sockets:
    listen 50 201
large and little used parts of the kernel:
    add_key 248 217, request_key 249 218, keyctl 250 219, bpf 321 280, perf_event_open 298 241, userfaultfd 323 282,
    io_uring_setup 425 425, io_uring_enter 426 426, io_uring_register 427 427, vmsplice 278 75, fanotify_init 300 262,
    name_to_handle_at 303 264, open_by_handle_at 304 265, quotactl 179 60, acct 163 89, swapon 167 224, reboot 169 142,
    init_module 175 105, finit_module 313 273, delete_module 176 106, kexec_load 246 104, syslog 103 116,
    personality 135 92
"""
REFUSED = {name: (int(intel), int(arm)) for name, intel, arm in re.findall(r"(\w+) (\d+) (\d+)", CALLS)}
CLONE3 = (435, 435)

ALL_BITS = 0xFFFF_FFFF


class Test(NamedTuple):
    """Whether some bits of an argument are one of these values; or, if not `among`, none of them."""

    argument: int
    bits: int
    values: tuple[int, ...]
    among: bool = True


# Calls that are refused if all tests hold, by name, with their numbers.
BY_ARGUMENTS: list[tuple[str, tuple[int, int], list[Test]]] = [
    ("clone", (56, 220), [Test(FIRST, NAMESPACES, (0,), among=False)]),
    ("clone", (56, 220), [Test(FIRST, THREAD | FILES, (THREAD,))]),
    ("close_range", (436, 436), [Test(THIRD, OWN_TABLE, (OWN_TABLE,))]),
    ("prlimit64", (302, 261), [Test(FIRST, ALL_BITS, (0,), among=False)]),
    ("mmap", (9, 222), [Test(FOURTH, SHARED | ANONYMOUS, (SHARED | ANONYMOUS,))]),
    ("socket", (41, 198), [Test(FIRST, ALL_BITS, (INTERNET, INTERNET_6), among=False)]),
    ("socketpair", (53, 199), [Test(SECOND, KIND, (STREAM,), among=False)]),
    ("setsockopt", (54, 208), [Test(SECOND, ALL_BITS, (OF_SOCKET,)), Test(THIRD, ALL_BITS, BUFFERS)]),
]

MACHINES = {"x86_64": (0, 0xC000_003E), "aarch64": (1, 0xC000_00B7)}  # the column above, and AUDIT_ARCH_*


class Instruction(NamedTuple):
    """One instruction; the jumps are counted from the next one."""

    code: int
    value: int
    if_true: int = 0
    if_false: int = 0

    def packed(self) -> bytes:
        """As the kernel reads it."""
        return struct.pack("HBBI", self.code, self.if_true, self.if_false, self.value)


def program(machine: str = platform.machine()) -> list[Instruction] | None:
    """The filter for a kind of machine; None for one whose numbers are not known."""
    if machine not in MACHINES:
        return None
    column, architecture = MACHINES[machine]
    no = Instruction(RETURN, REFUSE | EPERM)
    numbers = sorted(row[column] for row in REFUSED.values())
    return [
        Instruction(LOAD, ARCHITECTURE),
        Instruction(EQUAL, architecture, if_true=1),
        Instruction(RETURN, KILL),  # a 32-bit program, whose calls have other numbers
        Instruction(LOAD, NUMBER),
        Instruction(AT_LEAST, X32, if_false=1),
        no,
        *(each for number in numbers for each in (Instruction(EQUAL, number, if_false=1), no)),
        Instruction(EQUAL, CLONE3[column], if_false=1),
        Instruction(RETURN, REFUSE | ENOSYS),
        *(each for _, call, tests in BY_ARGUMENTS for each in _refused(call[column], tests)),
        Instruction(RETURN, ALLOW),
    ]


def _refused(number: int, tests: list[Test]) -> list[Instruction]:
    """Refuse one call if all tests hold."""
    found = [Instruction(RETURN, REFUSE | EPERM)]
    for test in reversed(tests):
        over = len(found)
        compared = []
        for left in range(len(test.values) - 1, -1, -1):  # the values that follow
            hit, miss = (left, 0 if left else over) if test.among else (left + over, 0)
            compared.append(Instruction(EQUAL, test.values[-1 - left], if_true=hit, if_false=miss))
        found = [Instruction(LOAD, test.argument), Instruction(AND, test.bits), *compared, *found]
    return [Instruction(EQUAL, number, if_false=len(found)), *found, Instruction(LOAD, NUMBER)]


def install() -> bool:
    """Filter the calls of this process and of all that it starts; False on a machine for which there is no filter."""
    instructions = program()
    if instructions is None:
        return False
    content = ctypes.create_string_buffer(b"".join(each.packed() for each in instructions))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))

    description = Program(len(instructions), ctypes.addressof(content))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(description))
    return True
