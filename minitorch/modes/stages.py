"""Every form that a program takes on its way to machine code, in order."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..passes import Run

if TYPE_CHECKING:
    from ..compiler.kernel import Kernel
    from ..compiler.schedule import Schedule


@dataclass(frozen=True)
class Stages(Run):
    """A run of the passes, and what the fusing compiler makes of its graph: kernels, loops, LLVM, assembly.

    Iterating gives the passes; `texts` gives every form as text, by name.

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

    @cached_property
    def ledger(self) -> Schedule:
        """The kernels, and why each edge was fused or was not."""
        from ..compiler.schedule import schedule  # loads LLVM

        return schedule(self.graph)

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

    def explore(self, fused: bool = True) -> Any:
        """A slider over the passes, then over the kernels, for notebooks.

        What survives a pass keeps its place. What a pass added, removed or rewrote is coloured and has an outline of its
        own; resting on a node shows its details. At the last positions nodes stand in the kernels that compute them,
        beside the loops of the kernel that is selected.

        Args:
            fused: whether to go on to the kernels.

        Returns:
            A widget: a notebook shows it, and it asks for nothing from any network.

        Raises:
            ModuleNotFoundError: without anywidget or pygraphviz; the message names the extra to install.

        Example:
            >>> import minitorch as mt
            >>> f = mt.jit(lambda x: (x * 1 + 2).sum(1))
            >>> widget = f.stages(mt.ones(4, 8)).explore()
            >>> [position["title"] for position in widget.data["positions"]]
            ['traced', 'algebra', 'kernels', 'k0_reduce_sum']
        """
        # Pictures stand below everything that they show, so they are not imported from here.
        return importlib.import_module("minitorch.inspect.explore").explore(self, fused)

    def _of_kernels(self, comment: str, text: Callable[[Kernel], str]) -> str:
        texts = [(kernel.name, text(kernel)) for kernel in self.kernels]
        if len(texts) == 1:
            return texts[0][1]
        return "\n".join(f"{comment} {name}\n{text or f'{comment} run by NumPy'}" for name, text in texts)

    @property
    def texts(self) -> dict[str, str]:
        """Every form: ``traced``, each pass by its name, then ``kernels``, ``loops``, ``llvm`` and ``assembly``."""
        forms = {"traced": str(self.initial)}
        for stage in self:
            name, number = stage.name, 2
            while name in forms:
                name, number = f"{stage.name} {number}", number + 1
            forms[name] = str(stage.after)
        return forms | {
            "kernels": str(self.ledger), "loops": self.loops, "llvm": self.llvm, "assembly": self.assembly
        }  # fmt: skip
