"""Why a gradebook cannot be used, and what to do: it may hold points that persons gave and that are nowhere else."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from minitorch.errors import CommandError

from ..journal.history import History

PERMISSION = (errno.EACCES, errno.EPERM, errno.EROFS)
FULL = (errno.ENOSPC, errno.EDQUOT)
SMALL = 1 << 20  # bytes; where fewer are free, an error of the disk is that it is full


def unusable(path: Path, error: BaseException) -> CommandError:
    """Return the error that tells apart a gradebook that is locked, not writable, on a full disk, damaged, or none.

    Args:
        path: the gradebook.
        error: of the system, of SQLite, or of SQLAlchemy with one of these inside.
    """
    cause = getattr(error, "orig", None) or error
    kind = str(getattr(cause, "sqlite_errorname", "")).removeprefix("SQLITE_").partition("_")[0]  # sqlite.org/rescode
    why = next(iter(str(cause).splitlines()), type(cause).__name__)
    if kind in ("CORRUPT", "NOTADB"):
        return CommandError(
            f"{path} is damaged ({_check(path) or why}): put back a copy, if there is one. {_lost(path)}"
        )
    if kind in ("BUSY", "LOCKED"):
        what = f"is locked, since {holder(path)} is writing to it: wait or end that, and type the same command again"
    elif isinstance(cause, OSError):
        what = f"cannot be used: {said(cause)}"
    elif kind == "FULL" or (kind == "IOERR" and _is_full(path)):
        what = f"cannot be written: {said(OSError(errno.ENOSPC, why))}"
    elif kind in ("READONLY", "PERM", "AUTH", "CANTOPEN"):
        what = f"cannot be used: {said(OSError(errno.EACCES, why))}{_owner(path)}"
    elif kind == "ERROR":
        what = f"has not the tables of this nbgrader ({why}): `nbgrader db upgrade` updates those of an older one"
    else:
        what = f"cannot be used ({why})"
    return CommandError(f"{path} {what}; nothing in it was changed")


def said(error: OSError) -> str:
    """Return what was wrong, where that is known, and what to do.

    Example:
        >>> said(OSError(28, "No space left on device"))
        'No space left on device (make room on the disk, and type the same command again)'
    """
    where = f"{error.filename}: " if error.filename else ""
    remedy = {
        **dict.fromkeys(FULL, "make room on the disk, and type the same command again"),
        **dict.fromkeys(PERMISSION, "the file and its folder have to be yours to write, on a disk that can be written"),
    }.get(error.errno or 0, "type the same command again, once that is mended")
    return f"{where}{error.strerror or error} ({remedy})"


def holder(path: Path) -> str:
    """The programs that have a file open, with their numbers, as far as this user may see them.

    Example:
        >>> holder(Path("no such file"))
        'another program'
    """
    import psutil

    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if any(Path(each.path) == path.resolve() for each in process.open_files()):
                found.append(f"{process.name()} (process {process.pid})")
    return " or ".join(found) or "another program"


def _is_full(path: Path) -> bool:
    with suppress(OSError):
        return shutil.disk_usage(path.parent).free < SMALL
    return False


def _owner(path: Path) -> str:
    with suppress(OSError, KeyError):
        return f"; {path.name} belongs to {path.owner()} with the mode {path.stat().st_mode & 0o777:03o}"
    return ""


def _check(path: Path) -> str:
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
        found = [str(row[0]) for row in database.execute("PRAGMA integrity_check(3)")]
        return "; ".join(" ".join(each.split()) for each in found if each != "ok")
    return ""


def check_empty(path: Path) -> None:
    """See that an empty gradebook is a new one.

    Raises:
        CommandError: if persons gave points before; another program has emptied it.
    """
    if _by_hand(path):
        raise CommandError(
            f"{path} is damaged (it is empty): put back a copy, if there is one, or remove it. {_lost(path)}"
        )


def _by_hand(path: Path) -> int:
    """How many points persons gave, as far as the history knows."""
    history = History(path.with_name("history.jsonl"))
    return sum(mark.is_by_hand for marks in history.marks.values() for mark in marks.values())


def _lost(path: Path) -> str:
    """What would be lost with a gradebook."""
    return (
        "A new one would have the points of the checks again, and none of those that persons gave: "
        f"history.jsonl knows of {_by_hand(path)}. `sqlite3 {path.name} .recover` reads what can still be read"
    )
