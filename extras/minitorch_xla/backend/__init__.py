"""The backend of XLA: the graph as a function of `jax.lax`, a rule per primitive, compiled once for its shapes.

XLA decides what is fused and where values lie; our own passes run before it, our kernels do not. Types are ours, 64-bit
ones among them, whatever JAX is configured to. Excess precision is switched off: a value that the graph rounds to 16
bits is rounded.

On the CPU, XLA takes denormal numbers of float32, float64 and bfloat16 for zeros in arithmetic, functions and
comparisons, with no option to have them; where numbers are moved or negated, and in float16, they are kept.

XLA raises no errors: whether an index is out of range is asked of the device before anything is given back
(`indices`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property, partial
from time import perf_counter_ns
from typing import Any, NoReturn

import jax
import numpy as np

from minitorch.backends.interpret import Interpreted, refusal
from minitorch.dtypes import BY_NUMPY
from minitorch.errors import TranslationError
from minitorch.graph import Graph
from minitorch.graph.values import siblings
from minitorch.interpreters import Watcher, current_watcher, span
from minitorch.ir import Node
from minitorch.primitives import Literal, constant
from minitorch.primitives.sources import LARGE

from . import arrays, elementwise, indices, partitions, windows
from .control import control
from .devices import device_named
from .hlo import Hlo, plain, read
from .partitions import OnDevice
from .whole import Whole, whole

Array = np.ndarray[Any, Any]

RULES = {**elementwise.RULES, **arrays.RULES, "shard": partitions.shard}
OPTIONS = {"xla_allow_excess_precision": False}
OWN_REFERENCES = 4  # to a value that only its tensor holds: the tensor's, the call's list, a local name, the asking


class Compiled:
    """A graph as a program of XLA; call it with one array per input.

    Args:
        graph: what it computes.
        updates: outputs that replace an input, by position, each with the position of the input.
        donated: positions of inputs that are unusable after a call.
        device: where it runs: ``"cpu"``, ``"cuda"``, ``"tpu"`` or one of several, ``"cuda:1"``; by default what JAX
            takes first.

    Attributes:
        compile_time: seconds that XLA compiled so far: a program of its own for each division of the inputs, and for
            calls that take the memory of some.

    Raises:
        DeviceError: for a device that JAX does not see (``MT203``).
    """

    def __init__(
        self,
        graph: Graph,
        updates: Mapping[int, int] | None = None,
        donated: Collection[int] = (),
        device: str | None = None,
    ) -> None:
        self.graph = graph
        self.compile_time = 0.0
        self._lifted = windows.lifted_windows(graph)
        self._there = nullcontext if device is None else partial(jax.default_device, device_named(device))
        self._interpreted: Interpreted | None = None
        self._weights = [node for node in self._lifted.nodes if _is_large(node)]
        given = tuple(sorted({*(updates or {}).values(), *donated}))
        self._checks = indices.checks_of(self._lifted)
        ahead = indices.Ahead(self._lifted, self._checks)
        self._ahead = ahead if self._checks and self._can_read(ahead, given) else None
        if self._ahead is not None:
            self._checks = []
        # If an index is out of range, what is updated gets its old value back, and what was donated else would be gone.
        self._given = tuple(sorted(set((updates or {}).values()))) if self._checks else given
        self._updated = tuple((updates or {}).values())
        self._kinds = [(node.shape, node.dtype) for node in graph.outputs]
        with jax.enable_x64(True), self._there():
            self._constants = [jax.device_put(node.params["value"].array) for node in self._weights]
        self._replaced = dict(updates or {})
        self._has_devices = jax.device_count() > 1
        self._compiled: set[Any] = set()
        self._runs: dict[tuple[Any, ...], tuple[Any, Any]] = {}  # by the division of the inputs
        self._run, self._run_and_take = self._divided((None,) * len(graph.inputs))

    def _divided(self, divided: tuple[Any, ...]) -> tuple[Any, Any]:
        """The program, and that which takes the memory of inputs; what replaces an input is divided as that was."""
        found = self._runs.get(divided)
        if found is None:
            options: dict[str, Any] = {"keep_unused": True, "compiler_options": OPTIONS}
            if any(divided):
                outputs: list[Any] = [None] * len(self._kinds)
                for place, where in self._replaced.items():
                    outputs[place] = divided[where]
                options["out_shardings"] = (outputs, None)
            taking = jax.jit(self._computed, donate_argnums=self._given, **options)
            found = self._runs[divided] = jax.jit(self._computed, **options), taking
        return found

    def _compile(self, run: Any, values: Sequence[Any]) -> None:
        """Have XLA compile a program ahead of its first call, and note the time."""
        partitions.require_one_mesh(self.graph, values)
        begin = perf_counter_ns()
        with span("compile", self.graph.name):
            run.lower(*values, *self._constants).compile()
        self.compile_time += (perf_counter_ns() - begin) / 1e9
        self._compiled.add(run)

    @cached_property
    def _whole(self) -> Whole:
        return whole(self.graph)

    @cached_property
    def specs(self) -> list[Any]:
        """The shapes and types of the program's inputs: those of the graph, and large constants."""
        described: Any = jax.ShapeDtypeStruct
        return [described(node.shape, node.dtype.numpy) for node in (*self.graph.inputs, *self._weights)]

    def _computed(self, *values: Any) -> tuple[list[Any], Any]:
        """The outputs, and whether an index is out of range; None if none is read."""
        graph = self._lifted
        known: dict[Node, Any] = dict(zip((*graph.inputs, *self._weights), values, strict=True))
        _compute(graph.nodes, known)
        outputs = [known[node] for node in graph.outputs]
        fault: Any = indices.out_of_range(self._checks, known) if self._checks else None
        for place, where in self._replaced.items() if self._checks else ():
            outputs[place] = jax.lax.select(fault, values[where], outputs[place])
        return outputs, fault

    @staticmethod
    def _can_read(ahead: indices.Ahead, given: Collection[int]) -> bool:
        """Whether NumPy may look at what the check reads: JAX takes no memory that NumPy has seen."""
        return ahead.is_cheap and not set(ahead.reads) & set(given) and jax.process_count() == 1

    def listing(self, graph: Graph, ours: dict[str, tuple[str, ...]], inputs: Sequence[Any] = ()) -> Hlo:
        """Line the program up with the nodes and kernels of our own.

        Args:
            graph: that it was compiled from.
            ours: names of our own kernels, by the user's line.
            inputs: of a call, for how they are divided among devices.
        """
        before, after = self.texts(inputs)
        return Hlo(graph, ours, before, plain(after), read(after))

    def texts(self, inputs: Sequence[Any] = ()) -> tuple[str, str]:
        """The program before and after XLA's passes, in its language HLO; compiled for this.

        Args:
            inputs: of a call, for how they are divided among devices.
        """
        divided = [partitions.shared_by(value) for value in inputs] or [None] * len(self.graph.inputs)
        described: Any = jax.ShapeDtypeStruct
        specs = [
            described(spec.shape, spec.dtype, sharding=sharding)
            for spec, sharding in zip(self.specs, [*divided, *[None] * len(self._weights)], strict=True)
        ]
        run, _ = self._divided(tuple(divided))
        with jax.enable_x64(True):
            lowered = run.lower(*specs)
            return lowered.as_text("hlo"), lowered.compile().as_text() or ""

    def moved(self, array: Array, division: Any = None) -> OnDevice | Array:
        """An array in the memory of the device; the same one in a program of several processes, where each has it.

        Args:
            division: how it was divided among several devices (`partitions.shared_by`), as it is again.
        """
        if partitions.is_shared(division):
            return partitions.placed(array, division)
        if jax.process_count() > 1:
            return array
        with jax.enable_x64(True), self._there():
            found = jax.device_put(array, may_alias=False)
        return OnDevice(found, array.shape, BY_NUMPY[array.dtype])

    def __call__(self, inputs: Sequence[Any], overwrite: bool = False) -> list[Array]:
        """Run the program, with values in the host's memory. The results are new arrays.

        Raises:
            IndexError: for an index out of range, as eager mode.
        """
        return [value.fetched if type(value) is OnDevice else value for value in self.on_device(inputs)]

    def on_device(self, inputs: Sequence[Any], overwrite: bool = False) -> list[Any]:
        """The same, with values that stay on the device. A watcher of values sees those of NumPy, which runs then.

        Args:
            inputs: arrays, and values on the device.
            overwrite: whether the memory of inputs that are updated or donated may be used for results, as far as
                nobody else holds it.
        """
        watcher = current_watcher()
        if watcher is not None and not watcher.times:
            self._interpreted = self._interpreted or Interpreted(self.graph)
            return self._interpreted([value.read() if type(value) is OnDevice else value for value in inputs])
        with partitions.DISPATCH:
            values, outputs, fault, taken = self._dispatched(inputs, overwrite, watcher)
        if fault is not None and fault:
            for place, where in self._replaced.items():
                values[where] = outputs[place]  # the memory may have been taken; the value is the same
            self._refuse(values)
        if any(type(value) is np.ndarray for value in values):
            for output in outputs:  # the caller may write to its arrays as soon as this returns
                output.block_until_ready()
        return [
            taken.get(place) or OnDevice(output, *kind)
            for place, (output, kind) in enumerate(zip(outputs, self._kinds, strict=True))
        ]

    def _dispatched(
        self, inputs: Sequence[Any], overwrite: bool, watcher: Watcher | None
    ) -> tuple[list[Any], list[Any], Any, dict[int, OnDevice]]:
        """Begin a run: what was given to it, its results, its fault, and by output the values that it replaced."""
        take = bool(overwrite and self._given) and all(
            type(value := inputs[place]) is OnDevice
            and not value.is_fetched
            and sys.getrefcount(value) <= OWN_REFERENCES
            for place in self._given
        )
        values = list(map(_given, inputs))
        has_arrays = np.ndarray in map(type, values)
        for place in self._updated if has_arrays else ():
            if type(values[place]) is np.ndarray:  # JAX may hold it for a while, and its tensor is to hold it alone
                values[place] = values[place].copy()
        run, run_and_take = self._run, self._run_and_take
        if self._has_devices:
            divided = tuple([partitions.shared_by(value) for value in inputs])
            if any(divided):  # values that are not have a division by XLA, now; next time their memory can be taken
                take = take and all(divided[place] is not None for place in self._given)
                run, run_and_take = self._divided(divided)
        if take:
            run = run_and_take
        with jax.enable_x64(True), self._there():
            if self._ahead is not None and self._ahead(values):
                self._refuse(values)
            if run not in self._compiled:
                self._compile(run, values)
            begin = perf_counter_ns()
            outputs, fault = run(*values, *self._constants)
            if watcher is not None:
                for output in outputs:
                    output.block_until_ready()
                watcher.ran(begin, "kernel", self._whole)
        taken = {}
        for place, where in self._replaced.items() if take else ():
            taken[place] = inputs[where]
            taken[place].array = outputs[place]  # another thread that was just about to read it finds the new value
        return values, outputs, fault, taken

    def _refuse(self, values: Sequence[Any]) -> NoReturn:
        """Raise the error of eager mode: NumPy runs the graph, and says which index is out of range, and where."""
        places = sorted({str(node.source) for node in indices.readers(self._lifted)})
        text = f"an index is out of bounds, recorded at {' or '.join(places)}"
        if all(partitions.is_here(value) for value in values):
            raise refusal(
                self.graph, values, f"{text}; run by NumPy, the graph has none such: XLA computes the index otherwise"
            )
        raise IndexError(text)


def _compute(nodes: Sequence[Node], known: dict[Node, Any]) -> None:
    """Add the values of nodes, in order, to those that are known."""
    together = siblings(nodes)
    for node in nodes:
        if node in known:
            continue
        operands = [known[operand] for operand in node.inputs]
        if node in together:
            with jax.named_scope(str(node.source or node.primitive.name)):
                results = control(node, operands, _compute)
            known |= {each: results[each.params["result"]] for each in together[node]}
        else:
            rule = _rule(node)
            with jax.named_scope(str(node.source or node.primitive.name)):
                if node.primitive.name in indices.FIRST:
                    known[node] = indices.applied(rule, node, operands)
                else:
                    known[node] = rule(*operands, **node.params)


def _rule(node: Node) -> Callable[..., Any]:
    rule = RULES.get(node.primitive.name) or windows.RULES.get(node.primitive.name)
    if rule is None:
        raise TranslationError(
            "MT802",
            f"{node.primitive.name} has no rule for XLA",
            where=str(node.source) if node.source else None,
            why="the primitive has no row in `minitorch.backends.xla`",
            fix="compile with another backend",
        )
    return rule


def _given(value: Any) -> Any:
    """A value for a call. One that was fetched is that array, which may have been written to since."""
    if type(value) is not OnDevice:
        return value
    return value.fetched if value.is_fetched else value.array


def _is_large(node: Node) -> bool:
    return node.primitive is constant and isinstance(node.params["value"], Literal) and node.spec.nbytes >= LARGE


def compile(
    graph: Graph,
    updates: Mapping[int, int] | None = None,
    donated: Collection[int] = (),
    device: str | None = None,
) -> Compiled:
    """The backend's interface: a graph that XLA runs."""
    return Compiled(graph, updates, donated, device)
