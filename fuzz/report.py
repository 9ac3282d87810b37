"""What is written down: a file for each finding, which runs by itself, and a table of what was run."""

from __future__ import annotations

import hashlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from . import api
from .campaign import Group, Statistics
from .modes import MODES, TORCH
from .outcome import copied
from .program import Program
from .training import fill


def file_of(group: Group) -> str:
    """A program that shows the difference, as Python."""
    finding, program = group.finding, group.program
    mode = finding.mode if finding.mode in (*MODES, TORCH) else "jit"
    lines = [f"{finding.kind} in {finding.mode}: {finding.detail}"]
    lines += [f"place: {finding.place}"] if finding.place else []
    lines += [f"seed {group.seed}, target {group.target}"]
    lines += [f"{target}: {verdict}" for target, verdict in group.verdicts.items()]
    heading = "\n".join(lines).replace('"""', "'''").replace("\\", "/")
    parts = [
        f'"""{heading}\n"""',
        "import os",
        f'os.environ.setdefault("MINITORCH_TARGET", {group.target!r})',
        "import numpy as np\nimport minitorch as mt\nimport minitorch.nn.functional as F",
    ]
    text = "\n".join(each.literal() for each in program.inputs)
    parts += ["from fuzz.values import values"] if "values(" in text else []
    parts += [unannotated(fill)] if program.setup else []
    parts += [program.text, arguments_text(program), PLAIN, "def eager(program):\n    return program"]
    if mode == TORCH:
        parts += ["import torch", "runs = {'eager': (mt, F, eager), 'torch': (torch, torch.nn.functional, eager)}"]
    else:
        parts += [unannotated(MODES[mode])] if mode != "eager" else []
        parts += [f"runs = {{'eager': (mt, F, eager), {mode!r}: (mt, F, {mode})}}"]
    backward = ["        backward(library, results)"] if program.backward else []
    parts += [BACKWARD] if program.backward else []
    parts += [unannotated(copied)] if program.warm else []
    parts += [
        "\n".join(
            [
                "for name, (library, functional, way) in runs.items():",
                "    mt.manual_seed(0)",
                "    arguments = make_arguments(library)",
                "    program, state = make(library, functional)",
                "    called = way(program)",
                *(["    called(*[copied(each) for each in arguments])"] if program.warm else []),
                f"    for call in range({program.calls}):",
                "        try:",
                "            results = called(*arguments)",
                "        except Exception as error:",
                "            print(f'{name}: {type(error).__name__}: {error}')",
                "            break",
                *backward,
                "        print(f'{name}, call {call}:', *map(plain, results), sep='\\n  ')",
                "    print(f'{name}, afterwards:', *arguments, *state(), sep='\\n  ')",
                "    for argument in arguments:",
                "        if argument.requires_grad:",
                "            print(f'{name}, gradient:', argument.grad)",
            ]
        )
    ]
    return "\n\n".join(parts) + "\n"


PLAIN = """def plain(value):
    return value.detach() if hasattr(value, "detach") else value"""

BACKWARD = """def backward(library, results):
    results = [y for y in results if getattr(y, "requires_grad", False)]
    terms = [(y * (library.arange(y.numel()).reshape(y.shape) % 5 - 2).to(y.dtype)).sum() for y in results]
    if terms:
        sum(terms[1:], terms[0]).backward()"""


def unannotated(function: Callable[..., Any]) -> str:
    """The source of a function, without its annotations."""
    return re.sub(r"(: | -> )(Callable\[\.\.\., Any\]|Any)", "", inspect.getsource(function)) + "\n"


def arguments_text(program: Program) -> str:
    """The function that makes the arguments."""
    lines = [f"{each.name} = {each.text(each.literal())}" for each in program.inputs]
    names = "".join(f"{each.name}, " for each in program.inputs)
    return "def make_arguments(mt):\n" + textwrap.indent("\n".join([*lines, f"return ({names})"]), "    ")


def write(folder: Path, group: Group) -> Path:
    """Write a finding's file."""
    folder.mkdir(parents=True, exist_ok=True)
    text = file_of(group)
    name = f"{group.finding.kind}-{group.finding.mode}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.py"
    path = folder / name.replace(" ", "-")
    path.write_text(text, encoding="utf-8")
    return path


def write_alike(folder: Path, groups: Iterable[Group]) -> Path | None:
    """Write the seeds that were put with a finding and not made small; a line for each finding, as options."""
    lines = [
        f"{group.finding.kind} in {group.finding.mode}, seed {group.seed}: --only {' '.join(map(str, group.alike))}\n"
        for group in groups
        if group.alike
    ]
    path = folder / "alike.txt"
    if lines:
        path.write_text("".join(lines), encoding="utf-8")
    return path if lines else None


def table(statistics: Statistics) -> str:
    """What was run: how much of it, in which ways, and which functions."""
    each = statistics
    rate = each.programs / each.seconds if each.seconds else 0
    known = {row.callee for row in api.functions()}
    called = {callee: count for callee, count in each.callees.items() if callee in known}
    never = sorted(known - set(each.callees))
    lines = [
        f"{each.programs} programs in {each.seconds:.0f} s, {rate:.1f} a second; {each.refused} end with a refusal, "
        f"{sum(each.skipped.values())} were not compared ({_listed(each.skipped)})",
        f"modes: {_listed(each.modes)}",
        f"targets: {_listed(each.targets)}",
        f"types: {_listed(each.types)}",
        f"calls: {len(called)} of {len(known)} public functions, methods and operators; "
        f"the median one {sorted(called.values())[len(called) // 2] if called else 0} times",
    ]
    return "\n".join([*lines, f"never called: {', '.join(never)}"] if never else lines)


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda row: -row[1]))
