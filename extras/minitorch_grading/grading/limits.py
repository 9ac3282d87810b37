"""The limits of a submission: one frozen record, which the command line fills and everything else reads."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """The limits of one submission. Times are in seconds, sizes in bytes.

    >>> Limits(cell_seconds=5).cell_seconds
    5
    """

    cell_seconds: float = 60  # for one cell; then it is interrupted
    seconds: float = 300  # for all cells of a submission together, restarts included
    start_seconds: float = 60  # until a kernel must have answered for the first time
    memory: int = 2048 * MIB  # resident memory of all processes of a submission together
    processes: int = 128  # processes and threads of a submission
    # For each of the folders that a submission may write to; they live in memory and vanish with it.
    disk: int = 64 * MIB
    file: int = 32 * MIB  # for one file
    files: int = 4096  # number of files and folders in each of these folders
    descriptors: int = 1024  # open files, pipes and sockets, of one process and of all together
    output: int = 256 * 1024  # the most that is kept of a cell's output
    outputs: int = 4096 * 1024  # the most that is kept of all outputs of a submission together
    message: int = 8 * MIB  # one message of the kernel; a longer one is not kept
    received: int = 64 * MIB  # everything that a cell may send, whatever becomes of it
    notebook: int = 5 * MIB  # A submitted file; a larger one is not opened
