"""The shell in a plain process, without a sandbox: how students run the checks of a notebook on their own machine.

It finds the same image and the same packages as a graded submission, and nothing is kept from it by force.
"""

from __future__ import annotations

import importlib
import json
import socket
import sys
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

from .channel import READY
from .shell import make_shell


class Hidden:
    """A finder in front of all others: installed modules that are not there when work is graded are not found."""

    def __init__(self, shown: list[str], folders: list[str]) -> None:
        self._shown, self._folders = {*shown}, tuple(folders)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Nothing, so that the other finders go on.

        Raises:
            ModuleNotFoundError: for a module that is hidden.
        """
        if path is None and name not in self._shown:
            spec = PathFinder.find_spec(name)
            places = [spec.origin or "", *(spec.submodule_search_locations or ())] if spec is not None else []
            if any(place.startswith(self._folders) for place in places):
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def main() -> None:
    """Run cells until the connection is closed."""
    options = json.loads(sys.argv[1])
    connection = socket.create_connection(("127.0.0.1", options["port"]))
    connection.sendall(options["token"].encode())
    sys.meta_path.insert(0, Hidden(options["shown"], options["folders"]))
    for name in ("numpy.random", options["checks"]):
        importlib.import_module(name)
    shell = make_shell(options["checks"])
    connection.sendall(READY)
    shell.serve(connection)


if __name__ == "__main__":
    main()
