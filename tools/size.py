"""Count the packages' lines of code by room, and what should not grow: ``python -m tools.size``.

Lines are those with code: blanks, comments and docstrings do not count. The figures stand in `docs/architecture.md`, in
the column *lines* of the rooms and in the table of other counts. Tests hold the package to them.

    --lower     write into the page what is smaller now
    --against REV       lines of another commit beside today's
"""

from __future__ import annotations

import argparse
import ast
import functools
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("minitorch", "extras")  # the engine, and the packages beside it
PAGE = ROOT / "docs" / "architecture.md"
ROOM = re.compile(r"^\| `([a-z_/]+?)(?:\.py|/)` \| +([\d,]+) \|", re.MULTILINE)
COUNT = re.compile(r"^\| ([^`|]*[a-z][^|]*) \| +([\d,]+) \|$", re.MULTILINE)

CORE = (
    "ir",
    "dtypes",
    "errors",
    "tree",
    "tensor",
    "methods",
    "drawable",
    "packages",
    "polynomials",
    "sizes",
    "named",
    "primitives",
    "interpreters",
    "autograd",
    "graph",
)
FOREIGN = re.compile(
    r"autocast|on_?device|(?-i:\bLength\b|know_length|without_lengths)|quanti[sz]|shard|onnx|rehears|donat|calibrat",
    re.I,
)
NAMES = 3  # a collection of so many names of primitives is a fact about them; of fewer, a pattern


@functools.cache
def code_lines(source: str) -> int:
    """Return the number of lines that hold code.

    Example:
        >>> code_lines('"A docstring."\\n\\n# A comment.\\nx = [\\n    1,\\n]\\n')
        3
    """
    ignored = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {line for token in tokens if token.type not in ignored for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                lines -= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(lines)


def stated(page: str) -> dict[str, int]:
    """Return the lines that the page states, by room."""
    return {room: int(lines.replace(",", "")) for room, lines in ROOM.findall(page)}


def sources(revision: str | None = None) -> Iterator[tuple[str, str]]:
    """Yield path, as rooms are named, and text of each file of all packages; of a commit, if one is given."""
    if revision is None:
        for folder in FOLDERS:
            for path in sorted((ROOT / folder).rglob("*.py")):
                if path.parent.name != ".ipynb_checkpoints":  # JupyterLab's copies
                    yield path.relative_to(ROOT / folder).as_posix(), path.read_text(encoding="utf-8")
        return
    for name in _git("ls-tree", "-r", "--name-only", revision, *FOLDERS).splitlines():
        if name.endswith(".py"):
            yield name.partition("/")[2], _git("show", f"{revision}:{name}")


def _git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True).stdout


def by_room(files: Iterable[tuple[str, str]], rooms: Iterable[str]) -> Counter[str]:
    """Return the lines of code of each room, its inner rooms included; under the empty name those of all files."""
    known, found = set(rooms), Counter[str]()
    for name, source in files:
        lines = code_lines(source)
        parts = name.removesuffix(".py").split("/")
        found[""] += lines
        for depth in range(1, len(parts) + 1):
            if (room := "/".join(parts[:depth])) in known:
                found[room] += lines
    return found


def loaded(program: str) -> int:
    """Return how many files of the package a program loads."""
    count = "sum(name.startswith('minitorch') for name in sys.modules)"
    code = f"import sys, minitorch as mt\n{program}\nprint({count})"
    output = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return int(output)


def foreign_words() -> int:
    """Return how often the core names what other packages are for."""
    return sum(
        len(FOREIGN.findall(source)) for name, source in sources() if name.removesuffix(".py").split("/")[0] in CORE
    )


def collections_of_names() -> Iterator[tuple[str, int]]:
    """Yield file and line of each collection of primitives' names outside their declarations, exercises apart."""
    from minitorch.ir import LOWERED, PRIMITIVES

    names = {*PRIMITIVES, *LOWERED}
    for file, source in sources():
        if file.startswith(("primitives/", "minitorch_grading/", "minitorch_course/")):
            continue
        for node in ast.walk(ast.parse(source)):
            items = node.elts if isinstance(node, (ast.Set, ast.Tuple, ast.List)) else getattr(node, "keys", [])
            texts = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
            if (
                len(texts) >= NAMES
                and len(texts) == len(items)
                and sum(text in names for text in texts) > len(texts) / 2
            ):
                yield file, getattr(node, "lineno", 0)


COUNTS: dict[str, Callable[[], int]] = {
    "lines of code in all packages": lambda: sum(code_lines(source) for _, source in sources()),
    "lines of code in the core": lambda: sum(
        code_lines(source) for name, source in sources() if name.removesuffix(".py").split("/")[0] in CORE
    ),
    "files that `import minitorch` loads": lambda: loaded(""),
    "files that a first `jit` of `x + 1` loads": lambda: loaded("mt.jit(lambda x: x + 1)(mt.ones(3))"),
    "words of other packages in the core": foreign_words,
    "collections of primitives' names outside their declarations": lambda: len(list(collections_of_names())),
}


def counts_stated(page: str) -> dict[str, int]:
    """Return the other counts that the page states."""
    return {what: int(number.replace(",", "")) for what, number in COUNT.findall(page) if what in COUNTS}


def lowered(page: str, found: dict[str, int]) -> str:
    """Return the page with the smaller of each figure that it states and the present one."""

    def row(match: re.Match[str]) -> str:
        before = int(match[2].replace(",", ""))
        now = f"{min(found.get(match[1], before), before):,}"
        start, end = match.start(2) - match.start(), match.end(2) - match.start()
        return match[0][:start] + now.rjust(end - start) + match[0][end:]

    return COUNT.sub(row, ROOM.sub(row, page))


def main() -> None:
    """Print the table, or lower the page's figures."""
    parser = argparse.ArgumentParser(prog="python -m tools.size", description="Lines of code by room.")
    parser.add_argument("--lower", action="store_true", help="write into docs/architecture.md what is smaller now")
    parser.add_argument("--against", metavar="REV", help="the lines of another commit beside today's")
    options = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    rooms = stated(page)
    now = by_room(sources(), rooms)
    if options.lower:
        found = {**now, **{what: count() for what, count in COUNTS.items()}}
        PAGE.write_text(lowered(page, found), encoding="utf-8")
        return
    before = by_room(sources(options.against), rooms) if options.against else Counter[str]()
    for room in [*rooms, ""]:
        change = f"{now[room] - before[room]:+8,}" if options.against else ""
        print(f"{now[room]:8,}{change}  {room or 'all packages'}")
    for what, count in list(COUNTS.items())[2:]:
        print(f"{count():8,}  {what.replace('`', '')}")


if __name__ == "__main__":
    main()
