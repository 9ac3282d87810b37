"""The first process of a submission: PID 1 of its namespace. It limits itself, starts the shell and watches the leash.

All processes of a submission end with this one, which student code can neither stop nor look into: from inside, signals
reach PID 1 of a namespace only where it has a handler, which it has for SIGCHLD alone, even if the user is the same; it
is not dumpable, and it has no descriptor that leads to the shell.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
from typing import TYPE_CHECKING, Any, NoReturn

from . import linux, seccomp

if TYPE_CHECKING:
    from .fork_server import Options

INTERRUPT = b"i"  # on the leash: interrupt the cell; the answer, when it is interrupted, is the same
STARTED = b"s"  # the answer to a request, of which the system says which process has sent it


def begin(options: Options, shell: Any, channel: int, leash: int, raw: int) -> NoReturn:
    """Become a submission. Called in a copy of the fork server."""
    status = 1
    try:
        linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWPID | linux.CLONE_NEWIPC | linux.CLONE_NEWNET)
        child = os.fork()  # the first process in the new namespace of process numbers
        if child == 0:
            _first(options, shell, channel, leash, raw)
        for each in (channel, leash, raw):
            os.close(each)
        os.waitpid(child, 0)
        status = 0
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(status)


def _first(options: Options, shell: Any, channel: int, leash: int, raw: int) -> NoReturn:
    try:
        root = _mount(options.folders)
        for name, value in options.limits.items():
            resource.setrlimit(getattr(resource, name), (value, value))
        connection = socket.socket(fileno=leash)
        connection.sendmsg([STARTED])
        if not connection.recv(1):  # the grader has seen who this is
            os._exit(0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # of a handler the kernel would not keep a signal from inside
        student = os.fork()
        if student == 0:
            connection.close()
            _student(options, shell, channel, raw, root)
        os.close(channel)
        os.close(raw)
        linux.keep_capabilities(*([linux.CAP_KILL] if options.uid is not None else []))
        _supervise(student, connection)
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(1)


def _mount(folders: dict[str, str]) -> int:
    """Empty folders in memory, terminals of its own, and a view of the processes of this namespace alone.

    Returns:
        A copy of all that is mounted, for student code to run in. It is there while this process has it open.
    """
    linux.mount("", "/", linux.MS_REC | linux.MS_PRIVATE)
    for path, options in folders.items():
        linux.mount("tmpfs", path, linux.MS_NOSUID | linux.MS_NODEV, options)
    linux.mount("devpts", "/dev/pts", linux.MS_NOSUID | linux.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    linux.mount("proc", "/proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    return linux.copied_tree()


def _supervise(student: int, leash: socket.socket) -> NoReturn:
    """Reap what ends, pass interrupts on, and end with the shell or with the leash."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        try:
            while ended := os.waitpid(-1, os.WNOHANG)[0]:
                if ended == student:
                    os._exit(0)
        except ChildProcessError:
            os._exit(0)
        sources: list[Any] = [leash, woken]
        ready, _, _ = select.select(sources, [], [])
        if woken in ready:
            os.read(woken, 4096)
        if leash in ready:
            if not leash.recv(1):
                os._exit(0)
            os.kill(student, signal.SIGINT)
            leash.send(INTERRUPT)


def _student(options: Options, shell: Any, channel: int, raw: int, root: int) -> NoReturn:
    """Give up all rights, and run cells."""
    null = os.open(os.devnull, os.O_RDONLY)
    for each, standard in ((null, 0), (raw, 1), (raw, 2)):
        os.dup2(each, standard)
    os.set_inheritable(channel, False)
    for each in (null, raw):
        os.close(each)
    os.fchdir(root)
    os.chroot(".")
    os.close(root)
    if options.uid is not None:
        os.setgroups([])
        os.setresgid(options.uid, options.uid, options.uid)
        os.setresuid(options.uid, options.uid, options.uid)
    linux.keep_capabilities()
    linux.prctl(linux.PR_SET_DUMPABLE, 1)
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.install()
    os.chdir(os.environ["HOME"])
    shell.serve(socket.socket(fileno=channel))
    os._exit(0)
