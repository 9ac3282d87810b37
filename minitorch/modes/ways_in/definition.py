"""Graph definition, the first of two phases: `Graph` is a context that records operations, `placeholder` an input.

Tensors made outside are the graph's variables: their values are read when it runs, and an in-place write to one is an
operation, which happens when it is fetched from a `Session`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ...dtypes import as_dtype, float32
from ...errors import FeedError, GraphError, TracingError
from ...graph import Graph as BaseGraph
from ...graph import topological_order
from ...interpreters import Captured, Handle, Staging, current_staging, interpreting, not_copied
from ...ir import Node, Spec, is_input_name
from ...nn import Module
from ...tensor import Tensor, with_value
from ...tree import flatten
from ..guards.surroundings import follows_training, names_in


@dataclass(frozen=True, eq=False)
class Write:
    """In-place write: the variable, its value before and after, and the write's place in the program."""

    variable: Captured
    before: Node
    after: Node
    position: int


@dataclass(frozen=True, eq=False)
class ModuleCall:
    """Call of a module while a graph was defined: its mode, its results, and its writes to its own buffers."""

    module: Module
    training: bool
    results: list[Node]
    writes: tuple[Write, ...]


# The modules whose calls depend on `training`, with the modes in which graphs have recorded them.
_defined: WeakKeyDictionary[Module, set[bool]] = WeakKeyDictionary()


class Update(Tensor):
    """Pending in-place write to a variable: fetch it to carry the write out and get the new value.

    As a tensor it stands for the new value, and can be used in further operations.

    Attributes:
        variable: the target of the write: a tensor from outside, or a view of one.
        write: the write to the tensor that owns the memory.
    """

    __slots__ = ("variable", "write")

    def __init__(self, variable: Tensor, node: Node, write: Write) -> None:
        self._hold(node)
        self.variable = variable
        self.write = write


class Operation:
    """In-place writes that are carried out together, such as a training step; fetching it gives None.

    Attributes:
        writes: the writes, in program order.
    """

    def __init__(self, writes: Iterable[Write]) -> None:
        self.writes = tuple(writes)

    def __repr__(self) -> str:
        return f"<operation that writes {len(self.writes)} variables>"


class GraphStaging(Staging):
    """Recording of a graph under definition."""

    is_definition = True
    remedy = "fetch it: mt.Session(graph).run(tensor, feed_dict={...}) gives a tensor with a value"

    def __init__(self, names: dict[int, str]) -> None:
        super().__init__("this `with mt.Graph()` block", names)
        self.placeholders: list[Node] = []
        self._handles: dict[int, tuple[Tensor, Node]] = {}  # by the id of the result of `placeholder`
        self.writes: list[Write] = []
        self.module_calls: list[ModuleCall] = []
        self._variables: dict[tuple[int, str], tuple[Module, Tensor]] = {}  # tensors of modules that were replaced

    def placeholder(self, spec: Spec, name: str) -> Tensor:
        """Return a new placeholder."""
        node = self.input(spec, name)
        tensor = with_value(node)
        self.placeholders.append(node)
        self._handles[id(tensor)] = tensor, node
        return tensor

    def placeholder_of(self, key: object) -> Node | None:
        """Return the placeholder behind a tensor, even if it was written to since, or now holds another value."""
        node = self._handles[id(key)][1] if id(key) in self._handles else getattr(key, "_value", None)
        return next((known for known in self.placeholders if known is node), None)

    def written(self, tensor: Tensor) -> Tensor:
        """Redirect a write to an update to its variable."""
        return tensor.variable if isinstance(tensor, Update) else tensor

    def assign(self, tensor: Tensor, value: Tensor) -> Handle | None:
        """Note the write; the returned handle carries it out when it is fetched."""
        if isinstance(tensor._value, Node):
            return super().assign(tensor, value)
        before, after = self.capture(tensor).node, self.node_of(value)
        write = Write(self.write_to(tensor, after), before, after, len(self.writes))
        self.writes.append(write)
        return lambda variable, node: Update(variable, node, write)

    def renew(self, tensor: Tensor) -> None:
        """Update a view after writes to the computed value that it views.

        A view of a variable stays: the fetches decide whether the variable is written.
        """
        if tensor._view is not None and isinstance(tensor._view.root._value, Node):
            self.node_of(tensor)

    def one_operation(self, run: Callable[[], Any]) -> Operation:
        """Return all in-place writes of a function as one operation."""
        before = len(self.writes)
        run()
        return Operation(self.writes[before:])

    def called(self, module: Module, run: Callable[[], Any]) -> Any:
        """Call a module, and note its mode and its writes to its buffers."""
        if follows_training(module):
            _defined.setdefault(module, set()).add(module.training)
        before, own = len(self.writes), {id(buffer) for buffer in module.buffers(recurse=False)}
        held = {name: value for name, value in vars(module).items() if isinstance(value, Tensor)}
        result = run()
        own |= {id(variable) for variable in self._assigned(module, held)}
        writes = tuple([item for item in self.writes[before:] if id(item.variable.tensor) in own])
        leaves = [leaf for leaf in flatten(result)[0] if isinstance(leaf, Tensor)]
        self.module_calls.append(ModuleCall(module, module.training, [self.node_of(leaf) for leaf in leaves], writes))
        return result

    def _assigned(self, module: Module, before: Mapping[str, Tensor]) -> Iterator[Tensor]:
        """Note the tensors that a call assigned to attributes of its module, as writes; return those they replace."""
        for name, old in before.items():
            new = vars(module).get(name)
            if new is old or not isinstance(new, Tensor) or not isinstance(new._value, Node):
                continue
            _, variable = self._variables.setdefault((id(module), name), (module, old))
            if new.spec != variable.spec:
                raise TracingError(
                    "MT105",
                    f"a {type(module).__name__} assigns a {new.spec} to `{name}`, which was a {variable.spec}",
                    why="the attributes of modules are variables of the graph, which keep their shape and type",
                    fix="assign a tensor of the same shape and type, or return it",
                )
            captured = self.capture(variable)
            self.writes.append(Write(captured, captured.node, self.node_of(new), len(self.writes)))
            yield variable

    def restore(self) -> None:
        """Give the modules their own tensors back, which are the variables of the graph."""
        for (_, name), (module, variable) in self._variables.items():
            setattr(module, name, variable)

    def training_step(self, loss: Tensor, run: Callable[[], Any]) -> Operation:
        """Return the in-place writes of an optimiser, and those of the modules that the loss was computed with."""
        needed = set(topological_order([self.node_of(loss)]))
        update = self.one_operation(run)
        calls = [call for call in self.module_calls if call.writes and not needed.isdisjoint(call.results)]
        return Operation([*(item for call in calls for item in call.writes), *update.writes])


class Graph(BaseGraph):
    """Graph of operations, to be defined in a `with` block and run by a `Session`.

    Printing it gives the listing; `Graph.parse` reads one. See `minitorch.graph.Graph` for its methods.

    Example:
        >>> import minitorch as mt
        >>> with mt.Graph() as g:
        ...     x = mt.placeholder((3,), mt.float32, name="x")
        ...     y = (x * x).sum()
        >>> mt.Session(g).run(y, feed_dict={x: [1.0, 2.0, 3.0]}).item()
        14.0
    """

    # Open for recording, so it compares like a list: by its present content, and without a hash.
    __hash__ = None  # type: ignore[assignment]

    @property
    def _named_key(self) -> Any:
        return self.key(names=True)  # nodes may have been added since

    def __init__(
        self,
        inputs: Sequence[Node] = (),
        outputs: Sequence[Node] = (),
        nodes: Sequence[Node] | None = None,
        name: str = "graph",
        verify: bool = True,
    ) -> None:
        super().__init__(inputs, outputs, nodes, name=name, verify=verify)
        self._staging: GraphStaging | None = None
        self._entered: list[Any] = []

    def __reduce__(self) -> Any:
        if self._staging is not None:
            raise not_copied("a graph that was defined in a `with` block")
        return super().__reduce__()

    def __enter__(self) -> Graph:
        if current_staging() is not None:
            raise TracingError(
                "MT110",
                "a graph defined inside another recording",
                why="only one program can be written down at a time",
                fix="define it outside of the jitted function, lazy block or other graph",
            )
        if self._staging is None:
            if self.nodes or self.inputs:
                raise TracingError(
                    "MT110",
                    "operations cannot be added to a finished graph",
                    why="graphs are never changed; only one made by `mt.Graph()` is open for recording",
                    fix="start with `with mt.Graph() as g:`",
                )
            frame = sys._getframe(1)
            self._staging = GraphStaging(names_in({**frame.f_globals, **frame.f_locals}))
        context = interpreting(self._staging)
        context.__enter__()
        self._entered.append(context)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._entered.pop().__exit__(*exception)
        if self._staging is not None:
            self._staging.restore()
        self._refresh()

    def _refresh(self) -> None:
        """Take over the operations recorded so far."""
        if self._staging is not None:
            self.inputs = (
                *self._staging.placeholders,
                *(item.input for item in self._staging.captured.values()),
            )
            self.nodes = tuple(self._staging.nodes)

    def __str__(self) -> str:
        self._refresh()
        return super().__str__()

    def key(self, names: bool = False) -> Hashable:
        """Return a key, equal for graphs that compute the same thing in the same way, as recorded so far."""
        self._refresh()
        return super().key(names)

    def other_mode(self) -> Module | None:
        """Return a module called by the definition, and now in a mode in which no graph recorded it."""
        for call in self._staging.module_calls if self._staging is not None else ():
            module = call.module
            if module.training is not call.training and module.training not in _defined.get(module, (module.training,)):
                return module
        return None

    @property
    def recording(self) -> GraphStaging | None:
        """The recording; None of a graph that was not defined in a `with` block."""
        self._refresh()
        return self._staging

    @property
    def variables(self) -> dict[str, Tensor]:
        """The tensors from outside that the graph reads or writes, by the names of their inputs."""
        captured = self._staging.captured.values() if self._staging is not None else ()
        return {str(item.input.params["name"]): item.tensor for item in captured}


def placeholder(shape: Sequence[int] | int, dtype: Any = float32, name: str | None = None) -> Tensor:
    """Return an input of the graph that is being defined; `Session.run` gives it a value.

    In the graph it is contiguous, whatever the memory layout of the fed array: views are those of a contiguous tensor.
    An in-place write to it changes nothing outside: the fed array is the value before all writes.

    Args:
        shape: every length is a known number.
        dtype: the element type.
        name: for listings, messages and `feed_dict`: letters, digits, `_` and `.`; a number is added if it is taken.

    Raises:
        TracingError: outside of ``with mt.Graph()`` (``MT110``).
        FeedError: for a shape with unknown lengths (``MT302``).
        GraphError: for a name that a listing cannot show (``MT601``).

    Example:
        >>> import minitorch as mt
        >>> with mt.Graph() as g:
        ...     x = mt.placeholder((2, 3), name="x")
        >>> x.shape, x.dtype
        ((2, 3), minitorch.float32)
    """
    staging = current_staging()
    if not isinstance(staging, GraphStaging):
        outside = staging is None
        raise TracingError(
            "MT110",
            f"a placeholder {'outside of a graph' if outside else 'while a function is traced or deferred'}",
            why="it describes an input of a graph that is being defined"
            if outside
            else "the inputs of a traced function are its arguments",
            fix="call it inside `with mt.Graph() as g:`",
        )
    lengths: tuple[Any, ...] = (shape,) if isinstance(shape, int) else tuple(shape)
    for length in lengths:
        if isinstance(length, bool) or not isinstance(length, (int, np.integer)) or length < 0:
            raise FeedError(
                "MT302",
                f"a placeholder of shape {lengths}",
                why="every length has to be known when the graph is defined: shapes are checked before anything runs",
                fix="make one graph per shape, e.g. one for each batch size",
            )
    if name is not None and not is_input_name(name):
        raise GraphError(
            "MT601",
            f"a placeholder named {name!r}",
            why="a name stands in listings, so it is made of letters, digits, `_` and `.`, and is neither a number nor "
            "one of inf, nan, true, false, return, graph",
            fix="choose another name, such as 'x', 'x_1' or 'layer.weight'",
        )
    spec = Spec(tuple(int(length) for length in lengths), as_dtype(dtype))
    return staging.placeholder(spec, name or "placeholder")
