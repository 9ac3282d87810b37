"""Move modules to another package, with all imports of them: ``python -m tools.move_rooms OLD=NEW ...``.

OLD and NEW are dotted names of modules or packages, e.g. ``minitorch.sharding=minitorch_xla.sharding``. Imports inside
one top-level package are relative, all others absolute. Texts other than imports are left to the reader. This tool goes
when the rooms are where they belong.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("minitorch", "extras", "tests", "tools", "benchmarks", "fuzz")


def folder_of(top: str) -> Path:
    """Return the folder that holds a top-level package."""
    return ROOT if top == "minitorch" else ROOT / "extras"


def path_of(module: str) -> Path:
    """Return the path of a module, without the suffix of a file."""
    return folder_of(module.partition(".")[0]).joinpath(*module.split("."))


def module_of(path: Path) -> str:
    """Return the dotted name of a file."""
    base = ROOT / "extras" if path.is_relative_to(ROOT / "extras") else ROOT
    parts = path.relative_to(base).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def moved(module: str, table: dict[str, str]) -> str:
    """Return the new name of a module."""
    for old in sorted(table, key=len, reverse=True):
        if module == old or module.startswith(f"{old}."):
            return table[old] + module[len(old) :]
    return module


def written(target: str, here: str, is_package: bool) -> str:
    """Return how a file imports from a module: relatively within its own top-level package."""
    top = here.partition(".")[0]
    if target.partition(".")[0] != top or (top not in ("minitorch",) and not top.startswith("minitorch_")):
        return target
    package = here.split(".") if is_package else here.split(".")[:-1]
    parts = target.split(".")
    common = 0
    while common < min(len(package), len(parts)) and package[common] == parts[common]:
        common += 1
    return "." * (len(package) - common + 1) + ".".join(parts[common:])


def rewritten(source: str, old: str, is_package: bool, table: dict[str, str]) -> str:
    """Return a file's source with its imports changed; `old` is the file's module before the move."""
    here = moved(old, table)
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if (new := moved(alias.name, table)) != alias.name:
                    lines[node.lineno - 1] = lines[node.lineno - 1].replace(alias.name, new)
        if not isinstance(node, ast.ImportFrom):
            continue
        package = old.split(".") if is_package else old.split(".")[:-1]
        base = package[: len(package) + 1 - node.level] if node.level else []
        target = ".".join([*base, *([node.module] if node.module else [])])
        if target.partition(".")[0] not in ("minitorch",) and not target.startswith("minitorch_"):
            continue
        places = {moved(f"{target}.{alias.name}", table).rpartition(".")[0] for alias in node.names}
        renamed = [a.name for a in node.names if moved(f"{target}.{a.name}", table).rpartition(".")[2] != a.name]
        given = "." * node.level + (node.module or "")
        if len(places) > 1 or renamed:
            print(f"by hand: {here}:{node.lineno}: {ast.unparse(node)}")
            continue
        (place,) = places
        new = written(place, here, is_package) if node.level or old != here else place
        if new == given:
            continue
        line = lines[node.lineno - 1]
        assert f"from {given} import" in line, (here, node.lineno, line)
        lines[node.lineno - 1] = line.replace(f"from {given} import", f"from {new} import", 1)
    return "".join(lines)


def main() -> None:
    """Move what is named on the command line."""
    table = dict(word.split("=") for word in sys.argv[1:])
    files = [
        path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py*")) if path.suffix in (".py", ".pyi")
    ]
    texts = {}
    for path in files:
        source = path.read_text(encoding="utf-8")
        texts[path] = rewritten(source, module_of(path), path.stem == "__init__", table), source
    for path, (text, source) in texts.items():
        if text != source:
            path.write_text(text, encoding="utf-8")
    for old, new in table.items():
        before, after = path_of(old), path_of(new)
        if not before.exists():
            before, after = before.with_suffix(".py"), after.with_suffix(".py")
        after.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "-C", str(ROOT), "mv", str(before), str(after)], check=True)


if __name__ == "__main__":
    main()
