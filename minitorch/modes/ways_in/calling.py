"""Dispatch of a jitted call: its trace is looked up by signature, or made, and its graph is run.

Inspection of the compiled code is in `minitorch.modes.ways_in.inspection`. To keep calls cheap, the most common kind of
call has a path of its own (`key_of_tensors`).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from ... import backends
from ...errors import ArgumentError, compose
from ...interpreters import is_grad_enabled, leaked
from ...interpreters.state import thread
from ...ir import Node, warn_user
from ...nn import Module
from ...nn.module import Stateful
from ...packages import load
from ...passes import Pass
from ...tensor import Tensor
from ..guards import surroundings
from ..guards.donation import Names as Donations
from ..guards.signature import Call, Signatures, key_of_tensors, plain
from ..tracing.explain import SignatureReport, difference
from ..tracing.options import PLAIN, Options, Policy, Request
from ..tracing.trace import trace
from ..tracing.traced import Traced

if TYPE_CHECKING:
    from ...compiler.scheduling.schedules.choice import Own
    from ..tracing.module_traces import Lent
    from .many_sizes import Given, ManySizes

# The parameters and the result of the function.
P = ParamSpec("P")
R = TypeVar("R")


class Calling(Generic[P, R]):
    """Function, its traces by signature, and the dispatch of calls.

    Attributes:
        function: the function itself.
        backend: runs its graphs.
        schedules: the user's own, by nest.
    """

    def __init__(
        self,
        function: Callable[P, R],
        backend: str,
        passes: Sequence[Pass] | None,
        static_argnames: str | Iterable[str],
        max_signatures: int,
        donate: Donations = (),
        check: bool | str | Path = False,
        schedules: Own | None = None,
        dynamic_shapes: Given | bool = False,
    ) -> None:
        backends.check(backend)
        if not callable(function):
            raise ArgumentError(
                "MT108", f"jit takes a function, not {type(function).__name__}", fix="mt.jit(f), not mt.jit(f(x))"
            )
        self.function = function
        self.backend = backend
        self.passes = passes
        self.max_signatures = max_signatures
        self.check = check
        self.schedules = schedules or {}
        self._policy: Policy = load("minitorch_checking.shadow").Shadow(check) if check else PLAIN
        self.static_argnames = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
        self.donate = donate if isinstance(donate, (str, int)) else tuple(donate)
        self._signatures = Signatures(
            function, self.static_argnames, self.donate, backends.has_device(backend) and not check
        )
        self._signature = self._signatures.of
        self._usual_length = self._signatures.usual_length
        self._traced: dict[Any, list[Traced] | Lent] = {}
        self._apart: dict[Any, Traced] = {}  # for one size where calls use a trace for many
        self._reports: list[SignatureReport] = []
        self._traces = 0
        self._warned = False
        self.dynamic_shapes = dynamic_shapes
        finds = dynamic_shapes is True and passes is None and not schedules
        self._sizes: ManySizes | None = None
        if not check and (finds or isinstance(dynamic_shapes, Mapping)):
            from .many_sizes import ManySizes

            given = dynamic_shapes if isinstance(dynamic_shapes, Mapping) else None
            self._sizes = ManySizes(given, surroundings.name(function))
        self._lock = threading.RLock()
        functools.update_wrapper(self, function, updated=())
        self.__name__ = surroundings.name(function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the compiled graph of this signature, tracing first if there is none."""
        call = thread.interpreter.call
        if call is not None:  # a recording, for example, or a profile
            result: R = call(self, args, kwargs)
            return result
        traced, found = self.find(args, kwargs)
        if traced is None:
            traced, found = self._traced_once(found), found.tensors
            traced.report.called = True
        traced.report.calls += 1
        result = traced(found)
        return result

    def find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Traced | None, Any]:
        """Return the trace of a call and the call's tensors; without a trace, None and the call taken apart."""
        usual = None
        if not kwargs and len(args) == self._usual_length:
            usual = key_of_tensors(args)
            for known in self._traced.get(usual, ()):
                if known.is_current(args):
                    return known, args
        call = self._signature(args, kwargs)
        if usual is not None and usual not in self._traced and call.key in self._traced:  # values on a device
            self._traced[usual] = self._traced[call.key]
        traced = self._known(call)
        return (None, call) if traced is None else (traced, call.tensors)

    def inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sequence[Tensor]:
        """Return the tensors that the compiled graph of a call reads; of one without a trace, the arguments."""
        call = self._signature(args, kwargs)
        traced = self._known(call)
        return traced.inputs(call.tensors) if traced else call.tensors

    def inlined(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Inline a call into another recording."""
        return self.function(*args, **kwargs)

    def _known(self, call: Call) -> Traced | None:
        for traced in self._traced.get(call.key, ()):
            if traced.is_current(call.tensors):
                return traced
        found = self._sizes.known(call) if self._sizes is not None else None
        if found is not None:
            self._remember(call, found)
        return found

    def _traced_once(self, call: Call) -> Traced:
        """Return the trace of a signature; of several threads that need it, one traces."""
        with self._lock:
            return self._known(call) or self._trace(call)

    # Tracing --------------------------------------------------------------------------------------------

    @property
    def _options(self) -> Options:
        """How traces are compiled."""
        return Options(self.backend, self.passes, self.schedules, self._policy)

    def _request(self, call: Call) -> Request:
        """Return a call as something to trace."""
        names, donated = self._signatures.leaf_names(call.structure), self._signatures.given_away(*call[:2])
        return Request(self.function, plain(call.leaves), call.structure, names, donated)

    def _trace(self, call: Call) -> Traced:
        for leaf in call.leaves:
            if isinstance(leaf, Tensor) and isinstance(leaf._value, Node):  # no compiled call has a key like its
                raise leaked(leaf)
        request = self._request(call)
        report = SignatureReport.of_call(request, is_grad_enabled())
        report.reason = self._reason(report, call)
        traced = self._made_for_sizes(request, report, call) or self._made(request, report)
        self._remember(call, traced)
        self._reports.append(report)
        self._traces += 1
        if len(self._reports) > self.max_signatures:
            self._make_room(report)
        return traced

    def _made_for_sizes(self, request: Request, report: SignatureReport, call: Call) -> Traced | None:
        """Return a trace for this call and others of its dynamic sizes; None without any, or if it needs its own."""
        symbols = self._sizes.symbols(call, request.names) if self._sizes is not None else {}
        if self._sizes is None or not symbols:
            return None
        try:
            traced = self._made(request._replace(symbols=symbols), report)
        except Exception:
            if self._sizes.given is not None:
                raise
            self._sizes.keep_apart(call)  # what a symbol cannot do, a number may
            return None
        if self._sizes.given is None:
            names = " and ".join(f"`{name}`" for name in symbols)
            report.reason += f"; lengths of {names} vary, so that this trace is for all of them"
        self._sizes.add(call, request.names, symbols, traced, report.guards)
        return traced

    def _of_one_size(self, call: Call) -> Traced:
        """Return a trace for the sizes of a call alone, to look into."""
        with self._lock:
            known = self._apart.get(call.key)
            if known is None or not known.is_current(call.tensors):
                request = self._request(call)
                report = SignatureReport.of_call(request, is_grad_enabled())
                known = self._apart[call.key] = self._made(request, report)
            return known

    def _remember(self, call: Call, traced: Traced) -> None:
        """Keep a trace for calls alike."""
        key = call.key
        if key not in self._traced:
            self._traced[key] = []
            if (module := next((leaf for leaf in plain(call.leaves) if isinstance(leaf, Module)), None)) is not None:
                from ..tracing.module_traces import Lent

                self._traced[key] = Lent(module, partial(self._forget, key))
        self._traced[key].append(traced)

    def _forget(self, key: Any, reports: Sequence[SignatureReport]) -> None:
        """Forget a signature whose module is gone."""
        self._traced.pop(key, None)
        self._apart.pop(key, None)
        if self._sizes is not None:
            self._sizes.forget(reports)
        self._reports = [each for each in self._reports if not any(each is gone for gone in reports)]

    def _made(self, request: Request, report: SignatureReport) -> Traced:
        """Return the trace of a call, made now."""
        return trace(request, self._options, report)

    def _reason(self, report: SignatureReport, call: Call) -> str:
        """Return the reason for tracing this call, as text."""
        if not self._reports:
            return "the first call"
        known = list(self._traced.get(call.key, ()))
        if not known:
            return difference(report, self._reports)
        nearest = min(reversed(known), key=lambda traced: len(traced.changed(call.tensors)))
        for watch in nearest.constants_changed():
            if isinstance(watch.owner, Stateful) and watch.owner.is_counted:
                continue  # an optimiser's parameters or state are others: seldom, and on purpose
            warn_user(
                compose(
                    "MT106",
                    f"`{watch.name}`, which {self.__name__} uses from outside, {watch.change()}",
                    why="it is a part of the compiled graph, so the function is traced again at every change",
                    fix=watch.remedy(),
                )
            )
        return "; ".join(nearest.changed(call.tensors)) or difference(report, self._reports)

    def _make_room(self, latest: SignatureReport) -> None:
        """Forget the least used signature, and warn once of too many."""
        if not self._warned:
            self._warned = True
            warn_user(
                compose(
                    "MT107",
                    f"{self.__name__} was traced for {len(self._reports)} signatures, and keeps {self.max_signatures}",
                    why=f"each is traced and compiled by itself; the latest because {latest.reason}",
                    fix="pass changing numbers as tensors, pad batches to one shape, or raise max_signatures=; "
                    f"{self.__name__}.explain() lists them all",
                )
            )
        victim = min((report for report in self._reports if report is not latest), key=lambda report: report.calls)
        self._reports.remove(victim)
        for key, variants in list(self._traced.items()):
            for traced in [traced for traced in variants if traced.report is victim]:
                variants.remove(traced)
                if self._sizes is not None:
                    self._sizes.forget([victim])
            if not list(variants):
                self._traced.pop(key, None)
