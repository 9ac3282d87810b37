"""The fork server: a Python in which everything is imported that student code needs, and which is copied by `fork`.

To start Python and import the engine takes a second, a copy of a process a hundredth of that. The copy is a new
submission, in namespaces of its own: nothing of an earlier one is left in it, since nothing but this server is copied.

It is the first process in bubblewrap's namespaces, and knows nothing that is secret. A request is one message on the
socket, with three descriptors: the channel for frames, the leash, and where the raw output goes (see `first`). When the
socket is closed the server ends, and with it everything that it has started.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass

from . import first, linux
from .channel import READY
from .shell import make_shell

DESCRIPTORS = 3


@dataclass(frozen=True)
class Options:
    """How submissions run.

    Attributes:
        name: by which the processes of a run are found.
        control: the number of the descriptor of the socket for requests.
        limits: resource limits by their names in the module `resource`.
        folders: what may be written to, and the options with which each is mounted in memory.
        uid: the user that student code becomes; None if it stays who it is.
        checks: the module of the checks, as cells know it; it is imported before the first request.
    """

    name: str
    control: int
    limits: dict[str, int]
    folders: dict[str, str]
    uid: int | None
    checks: str


def main() -> None:
    """Serve requests until the socket is closed."""
    options = Options(**json.loads(sys.argv[1]))
    linux.prctl(linux.PR_SET_DUMPABLE, 0)
    control = socket.socket(fileno=options.control)
    for name in ("numpy.random", options.checks):  # each copy needs the first, to draw other numbers than the others
        importlib.import_module(name)
    shell = make_shell(options.checks)
    assert threading.active_count() == 1, "a thread is not copied by fork"
    gc.collect()
    gc.freeze()  # or the collector would look at every object of each copy, and so copy every page
    control.send(READY)
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, 1, DESCRIPTORS)
        if not request:
            return
        if os.fork() == 0:
            control.close()
            first.begin(options, shell, *descriptors)  # does not return
        for each in descriptors:
            os.close(each)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:  # forget the children that have ended
                pass


if __name__ == "__main__":
    main()
