"""`Parameter`: a tensor that a module trains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..autograd import no_grad
from ..errors import TracingError
from ..interpreters import concrete, current_staging, interpreting
from ..ir import Node
from ..tensor import Tensor


@contextmanager
def concretely() -> Iterator[None]:
    """Compute at once and without a tape, also while a graph is being recorded.

    Use it for state made once that outlives every recording: parameters, and the state of optimisers. A graph that uses
    them has them as inputs, whose values are read when it runs.

    Raises:
        TracingError: in a function that is being traced, whose every call would have to make them anew (``MT105``).
    """
    staging = current_staging()
    if staging is not None and not (staging.defers or staging.is_definition):
        raise TracingError(
            "MT105",
            f"parameters or the state of an optimiser are made inside of {staging.trace.name}, which is being recorded",
            why="they would be made once, now, and shared by all runs of the graph, where the function makes new ones",
            fix="make modules and optimisers outside of the function, and use them in it",
        )
    with interpreting(None), no_grad():
        yield


class Parameter(Tensor):
    """Tensor that is listed among the parameters of the module it is assigned to; it requires a gradient.

    Args:
        data: the tensor whose memory it takes over.
        requires_grad: False for a parameter that is kept and saved, but not trained.

    Raises:
        TracedValueError: if `data` is a traced value: a parameter outlives the graph (``MT102``).

    Example:
        >>> import minitorch as mt
        >>> mt.nn.Parameter(mt.zeros(2))
        Parameter containing:
        tensor([0., 0.], requires_grad=True)
    """

    __slots__ = ("__dict__",)  # users put notes on parameters, such as a rate of their own

    def __init__(self, data: Tensor, requires_grad: bool = True) -> None:
        if not isinstance(data, Tensor):
            raise TypeError(f"a Parameter is made of a tensor, not of {type(data).__name__}: minitorch.tensor(...)")
        fix = "make parameters before the recording, or with minitorch.nn's modules"
        traced = isinstance(data._value, Node)
        self._hold(concrete(data, "nn.Parameter", fix=fix) if traced else data._value)
        self._view = data._view
        self.requires_grad_(requires_grad)

    def __reduce__(self) -> Any:
        """Return the parts of a copy: all but the gradient, as in PyTorch."""
        make, parts = super().__reduce__()
        return make, (*parts[:-2], None, parts[-1])

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"
