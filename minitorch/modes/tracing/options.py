"""Ingredients of a trace: the call, the compilation of its graphs, and the policy of other packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ...backends import Executable
from ...graph import Graph
from ...passes import Pass
from ...tree import Structure
from ..guards import surroundings
from ..guards.leaks import warn_of_leaks
from ..guards.observed import Observed

if TYPE_CHECKING:
    from ...compiler.scheduling.schedules.choice import Own
    from .call_staging import CallStaging
    from .program import Program
    from .recording import Recorded
    from .traced import Traced


class Request(NamedTuple):
    """Call to trace.

    Attributes:
        function: the function called.
        leaves, structure: the arguments ``(args, kwargs)``, taken apart.
        names: a name for each leaf.
        donated: the places of the tensors whose memory may be used for the results, with the names of the arguments.
        symbols: of the dimensions whose length may be another one in later calls, by the names of the arguments.
    """

    function: Callable[..., Any]
    leaves: list[Any]
    structure: Structure
    names: list[str]
    donated: Mapping[int, str] = MappingProxyType({})
    symbols: Mapping[str, Mapping[int, str]] = MappingProxyType({})

    @property
    def name(self) -> str:
        """The name of the function in messages."""
        return surroundings.name(self.function)


class Policy:
    """Hooks into tracing for packages beside the engine; the traces of an ordinary `jit` have none.

    Attributes:
        is_frozen: whether tensors from outside become constants, so that those among the results are copies.
        sees_libraries: whether a trace depends on the state of library modules, such as that of
            ``random``.
    """

    is_frozen = False
    sees_libraries = True

    def executable(self, program: Program) -> Executable:
        """Return the object that runs a program."""
        return program.compiled

    def accept(self, request: Request, recorded: Recorded, staging: CallStaging, around: Observed) -> None:
        """Accept or refuse the function's side effects; warn of those that later calls do not repeat."""
        recorded.leaked = warn_of_leaks(staging.made, request.name)
        recorded.changed = around.settle(request.name, warn=not recorded.leaked)

    def finish(self, request: Request, recorded: Recorded, traced: Traced) -> None:
        """Add to a finished trace."""


PLAIN = Policy()


@dataclass(frozen=True)
class Options:
    """Compilation options of a function's traces.

    Attributes:
        backend: runs the graphs.
        passes: all passes, in order; by default those of the backend.
        own: the user's own schedules, for backends that have schedules.
        policy: of a package beside the engine.
    """

    backend: str
    passes: Sequence[Pass] | None = None
    own: Own | None = None
    policy: Policy = PLAIN

    def unwatched(self, graph: Graph) -> Program:
        """Compile a graph of callbacks: without the policy, and without schedules."""
        from .program import Program

        return Program(graph, Options(self.backend, self.passes))
