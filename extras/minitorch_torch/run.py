"""Run a PyTorch script unchanged on minitorch, and say which names it needs and minitorch has not.

    python -m minitorch.run program.py --epochs 3

`import torch` gives minitorch in that process. After the program, or where it stopped, a page lists the names of
`torch` in it, and in the files beside it that it has imported, which are missing, each with the lines and what is there
instead.
"""

from __future__ import annotations

import ast
import importlib
import runpy
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import minitorch
from minitorch_torch.absent import reason_for
from minitorch_torch.standing_in import TORCH, as_torch


def _resolved(name: str) -> str:
    """Return the shortest beginning of a dotted name of `torch` that minitorch lacks; empty if it has all of it."""
    parts, owner = name.split(".")[1:], minitorch
    for count, part in enumerate(parts, 1):
        found: Any = getattr(owner, part, None)
        if found is None and not hasattr(owner, part):
            try:
                found = importlib.import_module(".".join(["minitorch", *parts[:count]]))
            except ImportError:
                return ".".join(parts[:count])
        if not isinstance(found, ModuleType):
            return ""
        owner = found
    return ""


def names_in(source: str) -> Iterator[tuple[str, int]]:
    """Yield the dotted names of `torch` in a program, with the line of each.

    Example:
        >>> list(names_in("from torch import nn\\nmodel = nn.Linear(2, 3)"))
        [('torch.nn', 1), ('torch.nn.Linear', 2)]
    """
    tree, known = ast.parse(source), dict[str, str]()
    nodes = sorted((node for node in ast.walk(tree) if hasattr(node, "lineno")), key=lambda node: node.lineno)
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == TORCH:
                    known[alias.asname or TORCH] = alias.name if alias.asname else TORCH
                    yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] == TORCH:
            for alias in node.names:
                known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield f"{node.module}.{alias.name}", node.lineno
    for node in nodes:
        parts, at = list[str](), node
        while isinstance(at, ast.Attribute):
            parts, at = [at.attr, *parts], at.value
        if parts and isinstance(at, ast.Name) and at.id in known:
            yield ".".join([known[at.id], *parts]), node.lineno


def missing(paths: Sequence[Path]) -> dict[str, list[str]]:
    """Return the names of `torch` in some programs that minitorch lacks, with the places where they stand."""
    found: dict[str, list[str]] = {}
    for path in paths:
        for name, line in names_in(path.read_text(encoding="utf-8")):
            lacking = _resolved(name)
            place = f"{path.name}:{line}"
            if lacking and place not in found.setdefault(lacking, []):
                found[lacking].append(place)
    return found


def page(paths: Sequence[Path]) -> str:
    """Return the page of what is missing; empty if nothing is."""
    rows = sorted(missing(paths).items())
    lines = [f"minitorch has not {len(rows)} of the names of torch in this program:"] if rows else []
    for name, places in rows:
        reason = reason_for(name)
        lines.append(f"  torch.{name}  ({', '.join(places[:5])}{', ...' if len(places) > 5 else ''})")
        lines += [f"      {reason}"] if reason else []
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Run a program with its arguments; return 1 if it failed."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments else 2
    program, failed = Path(arguments[0]).resolve(), False
    sys.argv, sys.path[0] = list(arguments), str(program.parent)
    as_torch(hide=True)
    try:
        runpy.run_path(str(program), run_name="__main__")
    except Exception:
        traceback.print_exc()
        failed = True
    files = [Path(file) for module in list(sys.modules.values()) if (file := getattr(module, "__file__", None))]
    beside = [file for file in files if file.suffix == ".py" and file.parent == program.parent]
    print(page(list(dict.fromkeys([program, *beside]))), file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
