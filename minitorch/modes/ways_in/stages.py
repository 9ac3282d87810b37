"""`f.stages`: every form of a program on its way to machine code, in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...drawable import Explorable
from ...passes import Run

if TYPE_CHECKING:
    from ...compiler.kernels.kernel import Kernel
    from ...compiler.kernels.ledger import Ledger
    from ..tracing.traced import Traced


@dataclass(frozen=True, repr=False)
class Stages(Run, Explorable):
    """Run of the passes, and the compiler's forms of the result: kernels, loops, LLVM, assembly.

    Iterating gives the passes; `texts` gives every form as text, by name.

    Attributes:
        traced: the trace.

    Example:
        >>> import minitorch as mt
        >>> f = mt.jit(lambda x: (x * 2 + 1).sum(1))
        >>> stages = f.stages(mt.ones(4, 8))
        >>> list(stages.texts)[0], list(stages.texts)[-4:]
        ('traced', ['kernels', 'loops', 'llvm', 'assembly'])
        >>> print(stages.loops)  # doctest: +ELLIPSIS
        import numpy as np
        ...
    """

    traced: Traced = field(kw_only=True, repr=False, compare=False)

    @property
    def lowering(self) -> Run:
        """The lowering passes, where the function's own backend does without them."""
        return self.traced.program.lowering

    @property
    def ledger(self) -> Ledger:
        """The kernels, and the reason for every edge."""
        return self.traced.program.ledger

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels in the order in which they run."""
        return self.ledger.kernels

    @property
    def loops(self) -> str:
        """The kernels as Python that runs."""
        return self._of_kernels("#", lambda kernel: kernel.source)

    @property
    def llvm(self) -> str:
        """The kernels as LLVM IR."""
        return self._of_kernels(";", lambda kernel: kernel.llvm)

    @property
    def assembly(self) -> str:
        """The kernels in the assembly language of this machine."""
        return self._of_kernels("#", lambda kernel: kernel.assembly)

    def _of_kernels(self, comment: str, text: Callable[[Kernel], str]) -> str:
        texts = [(kernel.name, text(kernel)) for kernel in self.kernels]
        if len(texts) == 1:
            return texts[0][1]
        return "\n".join(f"{comment} {name}\n{text or f'{comment} run by NumPy'}" for name, text in texts)

    @property
    def texts(self) -> dict[str, str]:
        """Every form: ``traced``, each pass by its name, then ``kernels``, ``loops``, ``llvm`` and ``assembly``."""
        forms = {"traced": str(self.initial)}
        for stage in (*self, *self.lowering):
            name, number = stage.name, 2
            while name in forms:
                name, number = f"{stage.name} {number}", number + 1
            forms[name] = str(stage.after)
        return forms | {
            "kernels": str(self.ledger), "loops": self.loops, "llvm": self.llvm, "assembly": self.assembly
        }  # fmt: skip
