"""`Needs`: the parts of the engine that an exercise works with, and what of them it has to do without."""

from __future__ import annotations

from dataclasses import dataclass

EVERYTHING = ("*",)  # the whole engine
COMPILES = ("llvmlite",)  # what the engine imports when it does
PACKAGES = ("ipywidgets", "matplotlib", "numpy")


@dataclass(frozen=True)
class Needs:
    """What an exercise needs.

    Attributes:
        engine: modules and packages of `minitorch`, named from there, e.g. ``"graph"``; what they import comes with
            them. By default it is the whole engine.
        without: what is withheld all the same: modules, or functions and methods (``"graph.build.topological_order"``).
        packages: installed packages that cells may import; what those require comes with them.
    """

    engine: tuple[str, ...] = EVERYTHING
    without: tuple[str, ...] = ()
    packages: tuple[str, ...] = PACKAGES

    @property
    def installed(self) -> tuple[str, ...]:
        """The packages, and what compiles if there is the whole engine."""
        return (*self.packages, *(COMPILES if self.engine == EVERYTHING else ()))

    def __or__(self, other: Needs) -> Needs:
        """What two sets of tasks need together."""
        both = {*self.engine, *other.engine}
        return Needs(
            EVERYTHING if both & {*EVERYTHING} else tuple(sorted(both)),
            tuple(sorted({*self.without, *other.without})),
            tuple(sorted({*self.packages, *other.packages})),
        )


EAGER = Needs(engine=("interpreters", "primitives", "tensor"))  # of tasks that work with numbers alone
GRAPHS = Needs(
    engine=("graph",),
    without=("graph.build.topological_order", "graph.cost", "graph.evaluation", "passes.patterns", "passes.rewrite"),
)  # of tasks that work with graphs, and do what is withheld
