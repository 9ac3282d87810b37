"""What XLA makes of a program, lined up with our own kernels by the user's lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import ArgumentError
from .recording import Program

if TYPE_CHECKING:
    from ...backends.xla.hlo import Hlo


def hlo_of(program: Program, name: str, inputs: Sequence[Any] = ()) -> Hlo:
    """The program of a backend that compiles by XLA.

    Args:
        program: compiled.
        name: of the function, for messages.
        inputs: the values of a call, if they may be divided among devices.

    Raises:
        ArgumentError: on another backend (``MT108``).
    """
    texts = getattr(program.compiled, "texts", None)
    if texts is None:
        raise ArgumentError(
            "MT108",
            f"{name} runs on the backend {program.backend!r}, which has no program of XLA's",
            fix="mt.jit(f, backend='xla').hlo(...)",
        )
    from ...backends.xla.hlo import Hlo, plain, read

    before, after = texts(inputs)
    ours = {str(source): names for source, names in program.ledger.by_source().items()}
    return Hlo(program.pipeline.graph, ours, before, plain(after), read(after))
