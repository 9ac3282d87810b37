"""The commands of the classroom, as `minitorch.__main__` calls them: from options to an exit status."""

from __future__ import annotations

import json
from argparse import Namespace


def check(options: Namespace) -> int:
    """``minitorch check``: the points and the reason for each task of some exercises."""
    from .check import check_notebook, notebooks, table

    found = [check_notebook(path, options.time) for path in notebooks(options.paths)]
    print(json.dumps([each.to_json() for each in found], indent=2) if options.json else "\n\n".join(map(table, found)))
    return int(not all(each.is_complete for each in found))
