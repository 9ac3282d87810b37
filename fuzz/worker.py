"""What a child process does: make programs and run them, and say what differs.

It is told one seed, or one program, at a time, so that its death can be laid to that one.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .program import Program


@dataclass(frozen=True)
class Question:
    """What a child is asked.

    Attributes:
        seed: of the program, if there is no `program`.
        program: the program itself.
        modes: how to run it; by default, some ways that the seed decides on.
        only_make: make the program and do not run it.
    """

    seed: int = 0
    program: Program | None = None
    modes: tuple[str, ...] | None = None
    only_make: bool = False


@dataclass(frozen=True)
class Answer:
    """What a child says.

    Attributes:
        program: that was run.
        findings: differences between eager mode and the other ways.
        modes: the ways that it was run in.
        skipped: why it was not compared.
        types: how many arguments there are of each type.
        specs: shape and type of each value that is returned, by name.
    """

    program: Program
    findings: list[Any] = field(default_factory=list)
    modes: tuple[str, ...] = ()
    skipped: str = ""
    refused: bool = False
    specs: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)

    @property
    def types(self) -> Counter[str]:
        """How many arguments there are of each type."""
        return Counter(each.dtype for each in self.program.inputs)


def answer(question: Question) -> Answer:
    """Make a program, or take the one that is given, run it, and compare."""
    import minitorch as mt

    from .generate import generate
    from .judge import Finding, Reference, judge
    from .noise import Defined
    from .outcome import run

    mt.set_num_threads(2 if question.seed % 8 == 0 else 1)
    program = question.program or generate(question.seed)
    if question.only_make:
        return Answer(program)
    expected = run(program, "eager", Defined())
    if expected.skipped:
        return Answer(program, skipped=expected.skipped)
    modes = ways(question.seed, program) if question.modes is None else allowed(question.modes, program)
    if expected.error is not None and expected.error.raw:
        error = expected.error
        return Answer(
            program, [Finding("raw error", "eager", f"{error.kind}: {error.message}", error.place)], ("eager",)
        )
    reference = Reference(program, expected)
    findings: list[Finding] = []
    for mode in modes:
        findings += judge(reference, mode, run(program, mode))
    specs = {
        name.removeprefix("call 0, "): (np.shape(value), expected.dtypes[name])
        for name, value in expected.values.items()
        if name.startswith("call 0, ") and isinstance(value, np.ndarray)
    }
    return Answer(program, findings, modes, refused=expected.error is not None, specs=specs)


def ways(seed: int, program: Program) -> tuple[str, ...]:
    """The ways that a seed decides on: one that compiles, and others that cost little."""
    dice = random.Random(f"ways {seed}")
    compiled = ["jit"] * 6 + ["sizes", "sizes", "lazy", "lazy", "session", "loops", "passes", "interpret", "xla"]
    chosen = [dice.choice(compiled)]
    chosen += [
        mode for mode, share in (("interpret", 0.5), ("torch", 0.9)) if mode not in chosen and dice.random() < share
    ]
    return allowed(tuple(chosen), program)


def allowed(modes: tuple[str, ...], program: Program) -> tuple[str, ...]:
    """Those of some ways in which a program can be run and compared."""
    from .departures import undefined
    from .outcome import torch_is_installed

    fits = {
        "torch": torch_is_installed() and not draws(program) and not undefined(program) and known_to_torch(program),
        "session": not program.setup
        and not program.backward
        and not any(each.view or each.view_of or each.requires_grad for each in program.inputs),
        "loops": sum(np.prod(each.shape) for each in program.inputs) <= 200 and not program.setup,
    }
    return tuple(mode for mode in modes if fits.get(mode, True))


def draws(program: Program) -> bool:
    """Whether a program draws random numbers, which are not PyTorch's."""
    from . import api

    called = {callee.split(".")[-1] for callee in program.callees}
    return bool(called & api.RANDOM) or any("Dropout" in line for line in program.setup)


def known_to_torch(program: Program) -> bool:
    """Whether PyTorch has all the functions that are called."""
    import torch

    spaces = {"mt": torch, "F": torch.nn.functional, "": torch.Tensor}
    for space, name in re.findall(r"\b(mt|F|)\.(\w+)", "\n".join([*program.setup, *program.callees])):
        if not hasattr(spaces[space], name):
            return False
    return True
