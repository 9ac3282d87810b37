"""Opening files that are not trusted: regular ones, without waiting."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO


def regular(path: str | os.PathLike[str], follow_links: bool = True) -> BinaryIO:
    """A file, opened to be read: a named pipe, on which opening would wait, a device or a folder is none.

    Args:
        path: of the file.
        follow_links: whether its last part may be a link.

    Raises:
        OSError: if it cannot be opened, or is not a regular file.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags if follow_links else flags | getattr(os, "O_NOFOLLOW", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a file", os.fspath(path))
    return open(descriptor, "rb", buffering=0)
