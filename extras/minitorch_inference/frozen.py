"""`freeze`: a function for evaluation, whose weights are constants of its graph.

    model.eval() ──► freeze ──► Graph with constants ──► FREEZING ──► what hangs on constants alone is there already
                                      │
                                      └── the values that the weights had then; later changes are noticed, not followed

The machinery is that of `jit`: one trace per signature, made when the signature is first met. All traces share the
same constants (`constants`), and the same types: those of the autocast that was on when the
function was frozen. Neither `autocast` nor `no_grad` around a call is a part of its signature. TensorFlow 1 has
freezing as ``convert_variables_to_constants``, PyTorch as ``torch.jit.freeze``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from minitorch import backends
from minitorch.errors import ArgumentError
from minitorch.interpreters import (
    Handler,
    current_staging,
    interpreting,
    set_grad_enabled,
    set_handler,
)
from minitorch.modes.guards.signature import Call, Signatures
from minitorch.modes.tracing.explain import SignatureReport, counted
from minitorch.modes.tracing.options import Request
from minitorch.modes.tracing.traced import Traced
from minitorch.modes.ways_in.calling import P, R
from minitorch.modes.ways_in.inspection import Inspectable
from minitorch.modes.ways_in.jit import MAX_SIGNATURES, Jitted
from minitorch.passes import DEFAULT, INTEGER_PRODUCTS, Pass
from minitorch.tensor import Tensor, with_value
from minitorch.tree import flatten, unflatten
from minitorch_amp.autocast_mode import Autocast, Casting, current_autocast
from minitorch_inference.beforehand import Beforehand, Frozenness

from .constants import Constants
from .pipeline import FOLDING, FREEZING


def passes_for(backend: str) -> tuple[Pass, ...]:
    """All passes of a frozen graph on its way to a backend."""
    lowering = backends.passes_for(backend)[len(DEFAULT) :]
    at = lowering.index(INTEGER_PRODUCTS) + 1 if INTEGER_PRODUCTS in lowering else 0
    again = (FOLDING,) if at else ()  # sums over weights are constants, too
    return (*FREEZING, *lowering[:at], *again, *lowering[at:])


Modes = tuple[bool, Handler | None]
"""Whether gradients are recorded, and the handler."""


def _switch(modes: Modes) -> Modes:
    """Switch the modes of this thread; returns what they were."""
    grad_enabled, handler = modes
    return set_grad_enabled(grad_enabled), set_handler(handler)


class _Evaluated(Signatures):
    """Signatures of calls whose modes are decided: no argument needs a gradient, and autocast is that of freezing."""

    modes: Modes = False, None

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """The signature of a call, and what its arguments contain."""
        leaves, structure = flatten((args, kwargs))
        if any(isinstance(leaf, Tensor) and leaf._requires_grad for leaf in leaves):
            known: dict[int, Tensor] = {}  # a tensor that is given twice stays one input
            for place, leaf in enumerate(leaves):
                if isinstance(leaf, Tensor):
                    leaves[place] = known.setdefault(id(leaf), with_value(leaf._value))
            args, kwargs = unflatten(structure, leaves)
        before = _switch(self.modes)
        try:
            return super().of(args, kwargs)
        finally:
            _switch(before)


class Frozen(Inspectable[P, R]):
    """A function whose weights are constants. Made by `freeze`; call it like the function.

    Attributes:
        function: the function itself.
        backend: what runs its graphs.
        autocast: the mode of mixed precision that it was frozen in.
        handler: of that mode.
    """

    def __init__(
        self,
        function: Callable[P, R],
        backend: str,
        autocast: Autocast | None = None,
        static_argnames: tuple[str, ...] = (),
    ) -> None:
        super().__init__(function, backend, passes_for(backend), static_argnames, MAX_SIGNATURES)
        self._policy = self._constants = Constants(self.__name__)
        self.autocast = autocast
        self.handler = None if autocast is None else Casting(autocast)
        self._modes: Modes = False, self.handler
        self._signatures = _Evaluated(function, self.static_argnames, ())
        self._signatures.modes = self._modes
        self._signature = self._signatures.of

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the compiled graph of this signature, tracing first if there is none. The result requires no gradient.

        Raises:
            TracingError: for a new signature after the weights have changed (``MT113``).
        """
        self._constants.look()
        before = _switch(self._modes)
        try:
            return super().__call__(*args, **kwargs)
        finally:
            _switch(before)

    def _traced_once(self, call: Call) -> Traced:
        before = _switch(self._modes)
        try:
            return super()._traced_once(call)
        finally:
            _switch(before)

    def _made(self, request: Request, report: SignatureReport) -> Traced:
        if self._reports:
            self._constants.refuse_if_changed(str(report))
        return super()._made(request, report)

    def traced(self, *args: Any, **kwargs: Any) -> Traced:
        """The trace for these arguments, made now if there was none; by itself, also while something is recorded."""
        if current_staging() is None:
            return super().traced(*args, **kwargs)
        leaves, structure = flatten((args, kwargs))
        empty: dict[int, Tensor] = {}  # a trace is for any values, and recorded ones are not known yet
        for place, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor):
                made = empty.setdefault(id(leaf), with_value(np.empty(leaf.shape, leaf.dtype.numpy)))
                leaves[place] = made
        args, kwargs = unflatten(structure, leaves)
        with interpreting(None):
            return super().traced(*args, **kwargs)

    def inlined(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tensors = {id(leaf): leaf for leaf in flatten((args, kwargs))[0] if isinstance(leaf, Tensor)}
        traced = self.traced(*args, **kwargs)
        before = _switch(self._modes)
        try:
            return traced.replayed(list(tensors.values()))
        finally:
            _switch(before)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Frozen[P, R]:
        """Itself: a frozen function does not change."""
        return self

    __copy__ = __deepcopy__

    def __reduce__(self) -> Any:
        """Pickles have the function, the options and the constants, and trace anew.

        Raises:
            TypeError: if the weights have changed since: the function would be traced with others.
        """
        if self.is_changed:
            raise TypeError(
                f"{self.__name__} cannot be pickled, since {self._constants.changed} after it was frozen: "
                "frozen.save(folder) keeps its graphs, and mt.load_frozen reads them"
            )
        return _again, (self.function, self.backend, self.autocast, self.static_argnames, self._constants.known)

    @property
    def is_changed(self) -> bool:
        """Whether the function, or a tensor that it uses, has changed since."""
        self._constants.look()
        return bool(self._constants.changed)

    def value_of(self, tensor: Tensor) -> np.ndarray[Any, Any]:
        """The constant for a tensor that the function uses."""
        return self._constants.value_of(tensor)

    def explain(self) -> Frozenness:  # type: ignore[override]
        """The work that is done beforehand, by source line: the bytes and operations saved per call, and the memory.

        Example:
            >>> import minitorch as mt
            >>> weight = mt.randn(100, 100)
            >>> frozen = mt.freeze(lambda x: x @ weight.exp(), mt.ones(2, 100))
            >>> [signature] = frozen.explain().signatures
            >>> signature.operations, signature.bytes, signature.flops, signature.constant_bytes
            (1, 80000, 10000, 40000)
        """
        signatures = [(report, self._beforehand(report)) for report in self._reports]
        return Frozenness(self.__name__, self.backend, signatures, self._frozen_bytes(), self.autocast)

    def _frozen_bytes(self) -> int:
        return self._constants.nbytes

    def _beforehand(self, report: SignatureReport) -> Beforehand:
        assert report.program is not None
        return Beforehand.of(report.program)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write all signatures to a folder: graphs as text, constants as safetensors. `load_frozen` reads it.

        A program that the folder holds already is replaced in one step.

        Raises:
            ArgumentError: for arguments or results that JSON does not have, or that are not contiguous (``MT108``).
        """
        from .files import layouts, origins, programs
        from .files.saving import stored

        traces = [traced for variants in self._traced.values() for traced in variants]
        count = len(FREEZING) if self.passes == passes_for(self.backend) else 0
        about = layouts.head(self.__name__, self._signatures.parameters)
        about |= origins.head(self.autocast, self._frozen_bytes())
        rows = [
            stored(self.__name__, each, each.program.pipeline.stages[:count], self._beforehand(each.report))
            for each in traces
        ]
        programs.save(folder, about, rows)

    def __repr__(self) -> str:
        return f"<frozen {self.__name__} on backend {self.backend!r}, {counted(len(self._reports), 'signature')}>"


def _again(function: Any, backend: str, autocast: Autocast | None, names: tuple[str, ...], known: Any) -> Any:
    """A frozen function with these constants."""
    frozen = Frozen[Any, Any](function, backend, autocast, names)
    for item in known:
        frozen._constants.keep(*item)
    return frozen


def freeze(function: Callable[P, R], *example: Any, backend: str = backends.DEFAULT, **kwargs: Any) -> Frozen[P, R]:
    """Freeze a model or a function for evaluation: the tensors that it uses from outside become constants.

    The function is traced with the example. All parameters, buffers and other tensors from outside are copied, and
    what hangs on them alone (folded scales, roots of variances, the packed operands of products) is computed once, not
    in every call.

    Args:
        function: a module, a function that calls modules, or what `jit` made of one. It has results and no effects: it
            neither writes in place to what it is given or to what is outside, nor draws random numbers. Modules that
            behave otherwise in training have to be in evaluation mode.
        example: arguments of a call, whose shapes and types count.
        backend: what runs the graph.
        kwargs: further arguments of the call.

    Returns:
        A `Frozen`, which is called like the function. Its results require no gradient, and gradients do not flow
        through it; tensors from outside among its results are copies. A call of other shapes, such as another batch
        size, is traced when it first comes, with the same constants and types: the autocast in which `freeze` is called
        is a part of the frozen function, and the one around a later call is ignored. If the weights are changed later,
        the next call warns once (``MT113``), and it goes on with the old ones; a new signature is an error then. A
        write through NumPy, ``w.numpy()[...] = 0``, is not noticed.
        A frozen function frozen again is itself.

    Raises:
        TracingError: for a function that cannot be frozen, such as a model in training (``MT112``).

    Example:
        >>> import minitorch as mt
        >>> model = mt.nn.Sequential(mt.nn.Linear(4, 8), mt.nn.ReLU(), mt.nn.Linear(8, 2)).eval()
        >>> frozen = mt.freeze(model, mt.ones(1, 4))
        >>> frozen(mt.ones(1, 4)).requires_grad, frozen(mt.ones(64, 4)).shape
        (False, (64, 2))
        >>> mt.freeze(frozen) is frozen
        True
    """
    frozen: Frozen[P, R]
    if isinstance(function, Frozen):
        frozen = function
    elif isinstance(function, Jitted):
        frozen = Frozen(function.function, backend, current_autocast(), function.static_argnames)
    elif callable(function):
        frozen = Frozen(function, backend, current_autocast())
    else:
        raise ArgumentError(
            "MT108",
            f"freeze takes a model or a function, not {type(function).__name__}",
            fix="mt.freeze(f, x), not mt.freeze(f(x))",
        )
    if example or kwargs or frozen is not function:
        frozen.traced(*example, **kwargs)
    return frozen
