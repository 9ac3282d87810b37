"""Frozen programs on disk: a folder with a manifest, graphs as text, and their constants as safetensors.

    program.json                     names, the structure of arguments and results, a checksum for each file
    graph-<checksum>.txt             a listing for each signature (`minitorch.graph.text`)
    constants-<checksum>.safetensors the arrays of all graphs, which share them

Nothing in it can be executed. The files of one version have names of their own, and the manifest, which says which they
are, is replaced last, in one step (`publishing`): at any time the folder holds a complete program, old or new. Who
reads an old manifest while its files go reads the new one. Reading trusts nothing: sizes come before contents, and
graphs and arrays have to fit.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from minitorch.errors import CheckpointError, FrozenError, ParseError
from minitorch.graph import Graph
from minitorch.graph.build import input_node, literal
from minitorch.graph.values import is_splat
from minitorch.ir import Node, Spec
from minitorch.primitives import Literal, constant
from minitorch_checkpoints import publishing, safetensors

Array = np.ndarray[Any, Any]

FORMAT, VERSION = "minitorch frozen program", 1
MANIFEST = "program.json"
MOST_MANIFEST, MOST_GRAPH = 1 << 24, 1 << 28  # bytes; larger files are refused before they are read
CONSTANT = "constant."  # what the names of constants begin with
_FILE = re.compile(r"(graph|constants)-[0-9a-f]{16}\.(txt|safetensors)")


@dataclass(frozen=True)
class Stored:
    """One signature of a program.

    Attributes:
        graph: with its constants.
        layout: what else is known of it, as JSON has it.
    """

    graph: Graph
    layout: Mapping[str, Any]


def save(folder: str | os.PathLike[str], about: Mapping[str, Any], signatures: Iterable[Stored]) -> None:
    """Write a program; one that the folder holds already is replaced, in one step.

    Args:
        folder: made if it is not there.
        about: what is known of the program, as JSON has it.
        signatures: its graphs.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    names: dict[Literal, str] = {}
    rows, files = [], []
    for each in signatures:
        text = str(_apart(each.graph, names)).encode()
        files.append((_named("graph", text, "txt"), text))
        rows.append({"graph": _entry(*files[-1]), **each.layout})
    constants = safetensors.encode({name: found.array for found, name in names.items()})
    files.append((_named("constants", constants, "safetensors"), constants))
    manifest = {"format": FORMAT, "version": VERSION, **about, "constants": _entry(*files[-1]), "signatures": rows}
    files.append((MANIFEST, json.dumps(manifest | {"checksum": _checksum(manifest)}, indent=1).encode()))
    kept = {name for name, _ in files}
    with publishing.beside(place, lambda name: name == MANIFEST or bool(_FILE.fullmatch(name))) as new:
        for name, content in files:
            publishing.write(new / name, [content])
            publishing.publish(new / name, place)
        for old in place.iterdir():
            if _FILE.fullmatch(old.name) and old.name not in kept and (old.is_symlink() or old.is_file()):
                old.unlink()


def load(folder: str | os.PathLike[str]) -> tuple[dict[str, Any], list[Stored]]:
    """Read a program: what is known of it, and its graphs.

    Raises:
        FrozenError: naming the file, and the rule that it breaks (``MT114``).
    """
    place = Path(folder)
    while True:
        written = _read(place, MANIFEST, MOST_MANIFEST)
        try:
            about = _manifest(place, written)
            rows = about.pop("signatures")
            graphs = [(_graph(place, row.pop("graph", None)), row) for row in rows]
            arrays = _constants(place, about.pop("constants", None), [graph for graph, _ in graphs])
            return about, [Stored(_together(graph, arrays), row) for graph, row in graphs]
        except FrozenError:
            if _read(place, MANIFEST, MOST_MANIFEST) == written:
                raise
            # It was replaced meanwhile, and what it names has gone.


def refuse(folder: str | os.PathLike[str], what: str, error: Exception | None = None) -> NoReturn:
    """Raise the error for a folder that does not hold a program in order."""
    raise FrozenError(
        "MT114",
        f"{os.fspath(folder)} does not hold a frozen program in order: {what}",
        why="a program is only run if its graphs and constants are those that were saved, and fit",
        fix="save it again, frozen.save(folder), or copy the whole folder again",
    ) from error


# Writing ----------------------------------------------------------------------------------------------------------


def _named(kind: str, content: bytes, suffix: str) -> str:
    return f"{kind}-{hashlib.sha256(content).hexdigest()[:16]}.{suffix}"


def _entry(name: str, content: bytes) -> dict[str, str]:
    return {"file": name, "sha256": hashlib.sha256(content).hexdigest()}


def _checksum(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _apart(graph: Graph, names: dict[Literal, str]) -> Graph:
    """A graph with inputs in place of its array constants, which come behind the others; equal ones share a name.

    An argument that has the name of a constant gets another one.
    """
    found: dict[str, Node] = {}
    replaced: dict[Node, Node] = {}
    own = list(graph.inputs)
    taken = {str(node.params["name"]) for node in own}
    for place, node in enumerate(own):
        name = str(node.params["name"])
        if name.startswith(CONSTANT):
            while name in taken:
                name = f"argument.{name}"
            taken.add(name)
            own[place] = replaced[node] = input_node(name, node.spec, node.source)
    for node in graph.nodes:
        if node.primitive is constant and not is_splat(node):
            name = names.setdefault(node.params["value"], f"{CONSTANT}{len(names)}")
            replaced[node] = found.setdefault(name, input_node(name, node.spec, node.source))
    after = graph.substitute(replaced)
    return Graph((*own, *found.values()), after.outputs, after.nodes, graph.name)


# Reading ----------------------------------------------------------------------------------------------------------


def _read(place: Path, name: str, most: int) -> bytes:
    path = place / name
    try:
        if path.is_symlink() or not path.is_file():
            refuse(place, f"there is no file {name}")
        if path.stat().st_size > most:
            refuse(place, f"{name} has {path.stat().st_size} bytes, and {most} are the most")
        return path.read_bytes()
    except OSError as error:
        refuse(place, f"{name} cannot be read: {error}", error)


def _manifest(place: Path, written: bytes) -> dict[str, Any]:
    try:
        found = json.loads(written.decode())
    except (ValueError, RecursionError) as error:
        refuse(place, f"{MANIFEST} is no JSON: {error}", error)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        refuse(place, f"{MANIFEST} does not say that it is a {FORMAT}")
    if found.get("version") != VERSION:
        refuse(place, f"it is of version {found.get('version')!r}, and this is read: {VERSION}")
    if found.pop("checksum", None) != _checksum(found):
        refuse(place, f"{MANIFEST} is not as it was saved: its checksum is another one")
    rows = found.get("signatures")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        refuse(place, f"{MANIFEST} names no signatures")
    return found


def _content(place: Path, entry: Any, most: int) -> tuple[str, bytes]:
    """The name of a file of the manifest, and its bytes."""
    if not isinstance(entry, dict) or not isinstance(entry.get("file"), str) or not _FILE.fullmatch(entry["file"]):
        refuse(place, f"{MANIFEST} names {entry!r:.60} where a file is wanted")
    content = _read(place, entry["file"], most)
    if hashlib.sha256(content).hexdigest() != entry.get("sha256"):
        refuse(place, f"{entry['file']} is not as it was saved: its checksum is another one")
    return entry["file"], content


def _graph(place: Path, entry: Any) -> Graph:
    name, content = _content(place, entry, MOST_GRAPH)
    try:
        return Graph.parse(content.decode())
    except (ParseError, UnicodeDecodeError) as error:
        refuse(place, f"{name} is no listing of a graph: {error}", error)


def _constants(place: Path, entry: Any, graphs: Iterable[Graph]) -> dict[str, Array]:
    """The arrays of all graphs, which are those that the graphs ask for, no more and no less."""
    wanted: dict[str, Spec] = {}
    for graph in graphs:
        for node in graph.inputs:
            name = str(node.params["name"])
            if name.startswith(CONSTANT) and wanted.setdefault(name, node.spec) != node.spec:
                refuse(place, f"{name} is {wanted[name]} in one graph and {node.spec} in another")
    size = sum(spec.nbytes for spec in wanted.values())
    name, content = _content(place, entry, size + safetensors.MOST_HEADER + 8)
    try:
        arrays, _ = safetensors.decode(content, place / name)
    except CheckpointError as error:
        refuse(place, error.what, error)
    for missing in wanted.keys() - arrays.keys():
        refuse(place, f"{name} has no {missing}, which a graph reads")
    for surplus in arrays.keys() - wanted.keys():
        refuse(place, f"{name} has {surplus}, which no graph reads")
    for each, array in arrays.items():
        if (array.shape, array.dtype) != (wanted[each].shape, wanted[each].dtype.numpy):
            refuse(place, f"{each} is {array.dtype}{list(array.shape)} in {name}, and {wanted[each]} in a graph")
    return arrays


def _together(graph: Graph, arrays: Mapping[str, Array]) -> Graph:
    """A graph with its constants in place."""
    names = {node: str(node.params["name"]) for node in graph.inputs}
    found = {node: literal(arrays[name], source=node.source) for node, name in names.items() if name in arrays}
    return graph.substitute(found)
