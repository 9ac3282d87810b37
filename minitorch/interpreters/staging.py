"""`Staging`, the interpreter that records each operation as a node, and computes nothing."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..dtypes import PYTHON_NUMBERS, DType
from ..errors import ShapeError, TracedValueError, TracingError
from ..ir import INPUT, PRIMITIVES, Node, Primitive, Source, Spec, as_input_name, as_stored, user_source
from ..tensor import Tensor, View, next_serial, with_value
from .broadcasting import expand_operands, operands_text
from .eager import check_writeable
from .provenance import Trace, leaked, made_by
from .state import Handle
from .views import may_share, memory_owner

if TYPE_CHECKING:
    from .watching import Watcher


def not_copied(what: str) -> TypeError:
    """Return the error for a copy or a pickle of a part of a recording."""
    return TypeError(
        f"{what} cannot be copied or pickled: it belongs to tensors that have no values yet; copy what is computed, or "
        "record it again; mt.Session(graph).freeze(fetches) gives a program that can be pickled"
    )


class Captured:
    """A concrete tensor that a recording uses: an input of its graph.

    Attributes:
        tensor: the tensor itself; its value is read when the graph runs.
        input: the graph's input that stands for it.
        node: its value at this point of the program (another node than `input` once it was written in place).
        version: its version when it was captured.
    """

    __slots__ = ("input", "node", "tensor", "version")

    def __init__(self, tensor: Tensor, node: Node) -> None:
        self.tensor = tensor
        self.version = tensor._version
        self.input = node
        self.node = node

    def __reduce__(self) -> Any:
        raise not_copied("an operation of a recording")


class Span(NamedTuple):
    """A part of a recording: a range of nodes, and the tape entries made meanwhile.

    Attributes:
        what: the module that was called; of a gradient rule, the serial number of the entry whose rule it is.
        begin, end: positions in `Staging.nodes`.
        first, last: serial numbers of the tape.
    """

    what: Any
    begin: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Callback:
    """A function to be called with values when a recorded program runs.

    Attributes:
        function: takes one array per node.
        nodes: the values.
    """

    function: Callable[[list[np.ndarray[Any, Any]]], None]
    nodes: tuple[Node, ...]


class Staging:
    """The interpreter that records each operation as a node, and computes nothing.

    Concrete tensors used on the way become inputs of the graph (`captured`): their values are read when the graph
    runs. In-place writes to them change `Captured.node`, and are written back after each run.

    Args:
        name: of the recorded program, for messages (e.g. the function's name).
        names: names for tensors that may be captured, by `id` (e.g. parameters of a module).
    """

    # The advice of the error for a value that does not exist yet.
    remedy = "return it from the traced function, and use the result of the call; mt.debug.print shows it at every call"

    watcher: Watcher | None = None
    mapped: Any = None
    operands: Callable[..., Any] | None = None
    has_loops = True  # whether loops and branches are nodes; in place of them, their repetitions can be recorded
    few = 3  # steps of a recurrent layer that are written one after another: more of them are a loop
    keeps_values = False  # whether captured tensors become constants: of a frozen function

    def __init__(self, name: str, names: dict[int, str] | None = None) -> None:
        self.trace = Trace(name, self.is_definition, self.defers)
        self.nodes: list[Node] = []
        self.captured: dict[int, Captured] = {}
        self.memory: dict[int, list[Captured]] = {}  # captured tensors, by the id of the memory's owner
        self.renewed: dict[int, tuple[Tensor, Node, Node]] = {}  # views from outside: root's value, view's node
        self.arguments: dict[int, Tensor] = {}  # the arguments, by id of their stand-in
        self.grads: dict[int, tuple[Tensor, Tensor | None]] = {}
        self.guards: list[tuple[Tensor, Tensor | None]] = []  # gradients that the program has looked at
        self.grad_owners: dict[int, Tensor] = {}
        self.names = {} if names is None else names
        self.taken_names: set[str] = set()
        self.made: list[weakref.ref[Tensor]] = []
        self.exchanged: set[int] = set()  # tensors with memory of their own since an assignment to `data`, by id
        self.callbacks: list[Callback] = []
        self.calls: list[Span] = []  # of modules, each after those inside of it
        self.rules: list[Span] = []  # of gradients
        self.aliases: dict[Node, Node] = {}  # of tensors from outside of these: the nodes that they stand for
        self.regions = 0  # how many bodies of loops and branches are being recorded, one inside of the other
        self.states: dict[Any, Any] = {}  # of objects, as the program has them; they go with it (see `require_settled`)

    def __reduce__(self) -> Any:
        raise not_copied(self.trace.name)

    @property
    def recording(self) -> Staging:
        """The recording itself."""
        return self

    # Inputs ---------------------------------------------------------------------------------------------

    def input(self, spec: Spec, name: str, source: Source | None = None) -> Node:
        """Add an input to the graph; its name is made unique and fit for a listing."""
        name = as_input_name(name)
        unique, count = name, 1
        while unique in self.taken_names:
            count += 1
            unique = f"{name}_{count}"
        self.taken_names.add(unique)
        return Node(INPUT, (), {"name": unique}, spec, source or user_source(), self.trace)

    def name_of(self, tensor: Tensor) -> str:
        """Return the name of a concrete tensor in messages and listings."""
        known = self.captured.get(id(tensor))
        if known is not None:
            return str(known.input.params["name"])
        if isinstance(tensor._value, Node) and tensor._value.primitive is INPUT:
            return str(tensor._value.params["name"])
        return self.names.get(id(tensor), f"captured{len(self.captured)}")

    def capture(self, tensor: Tensor) -> Captured:
        """Return the input that stands for a concrete tensor.

        Raises:
            TracingError: if it shares memory with one that was written (``MT109``).
        """
        tensor = getattr(tensor, "_origin", tensor)
        known = self.captured.get(id(tensor))
        if known is None:
            known = Captured(tensor, self.input(tensor.spec, self.name_of(tensor)))
            for other in self._neighbours(tensor):
                if other.node is not other.input and other.node not in self.aliases:
                    raise self.aliased(other, known)
            self.captured[id(tensor)] = known
            self.memory.setdefault(memory_owner(tensor._value), []).append(known)
        return known

    def _neighbours(self, tensor: Tensor) -> Iterator[Captured]:
        """Yield the captured tensors that share memory with a tensor and are no views of the same root."""
        for other in self.memory.get(memory_owner(tensor._value), ()):
            if other.tensor._root is not tensor._root and may_share(other.tensor._value, tensor._value):
                yield other

    def aliased(self, written: Captured, other: Captured) -> TracingError:
        """Return the error for a write to one of two tensors over one memory."""
        names = [f"`{item.input.params['name']}` ({item.tensor.spec})" for item in (written, other)]
        return TracingError(
            "MT109",
            f"an in-place write to {names[0]}, which shares its memory with {names[1]}, used in {self.trace.name} too",
            where=str(user_source()),
            why="both were made from one NumPy array, and a graph has values and no memory: it cannot show a write to "
            "one tensor in another one",
            fix="make one tensor and take views of it, x[...], or use a .clone() of one of them",
        )

    def node_of(self, tensor: Tensor) -> Node:
        """Return the node of a tensor's value at this point of the program."""
        view = tensor._view
        value = tensor._value
        if not isinstance(value, Node):
            if view is not None and self._written(view.root) and _is_of(tensor, view):
                self._require_memory(view.root)
                return self._view_again(tensor)
            return self.capture(tensor).node
        if value.trace is not self.trace:
            raise leaked(tensor)
        if view is not None and view.stamp is not self._root_node(view.root):
            return self._view_again(tensor)
        return value

    def _written(self, root: Tensor) -> bool:
        known = self.captured.get(id(root))
        return known is not None and known.node is not known.input

    def _root_node(self, root: Tensor) -> Node:
        return root._value if isinstance(root._value, Node) else self.capture(root).node

    def _view_again(self, tensor: Tensor) -> Node:
        """Recompute a view whose root was written in place since: apply its movements to the root's present value.

        The views on the way are renewed too, so that each view is made again only once after a write.
        """
        root = self._root_node(tensor._root)
        stale: list[tuple[Tensor, View]] = []
        node = None
        while (view := tensor._view) is not None and (node := self._up_to_date(tensor, view, root)) is None:
            stale.append((tensor, view))
            tensor = view.base
        node = node or root
        for each, view in reversed(stale):
            node = self._append(view.primitive, (node,), view.params)
            if isinstance(each._value, Node):
                each._value, view.stamp = node, root
            else:
                self.renewed[id(each)] = each, root, node
        return node

    def _up_to_date(self, tensor: Tensor, view: View, root: Node) -> Node | None:
        """Return the node of a view that shows the root's present value, or None."""
        if isinstance(tensor._value, Node):
            return tensor._value if view.stamp is root else None
        _, stamp, node = self.renewed.get(id(tensor), (None, None, None))
        return node if stamp is root else None

    # Operations -----------------------------------------------------------------------------------------

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Write the operation down."""
        if primitive.broadcasts:
            inputs = expand_operands(inputs, primitive.name)
        nodes = tuple([self.node_of(tensor) for tensor in inputs])
        try:
            return self.tensor_of(self._append(primitive, nodes, params))
        except ShapeError as error:
            error.locate(operands_text(inputs) or str(user_source()))
            raise

    def tensor_of(self, node: Node) -> Tensor:
        """Return a new tensor for a node of this recording."""
        output = with_value(node)
        self.made.append(weakref.ref(output))
        return output

    def _append(self, primitive: Primitive, nodes: tuple[Node, ...], params: Mapping[str, Any]) -> Node:
        spec = primitive.infer(*[node.spec for node in nodes], **params)
        node = Node(primitive, nodes, as_stored(params, spec), spec, user_source(), self.trace)
        self.nodes.append(node)
        return node

    def number(self, value: bool | int | float, dtype: DType) -> Tensor:
        """Return a constant of no dimensions as a node; a traced number given as an option becomes its own node."""
        given: Any = value
        if isinstance(given, Tensor):
            return PRIMITIVES["cast"](PRIMITIVES["reshape"](given, shape=()) if given.shape else given, dtype=dtype)
        if not isinstance(value, PYTHON_NUMBERS):
            raise TypeError(f"a number is needed here, not {type(value).__name__}")
        return PRIMITIVES["constant"](value=value, shape=(), dtype=dtype)

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record a call of a compiled function as a part of this recording."""
        return function.inlined(args, kwargs)

    def called(self, module: Any, run: Callable[[], Any]) -> Any:
        """Call a module, and note which nodes are its own; pictures fold them into one box."""
        begin, first = len(self.nodes), next_serial()
        result = run()
        self.calls.append(Span(module, begin, len(self.nodes), first, next_serial()))
        return result

    # In-place writes ------------------------------------------------------------------------------------

    def written(self, tensor: Tensor) -> Tensor:
        """Return the target of an in-place write to a tensor: the tensor itself, or the one it stands for."""
        if tensor._view is not None and not _is_of(tensor, tensor._view):
            tensor._view = None
        return tensor

    def assign(self, tensor: Tensor, value: Tensor) -> Handle | None:
        """Give a tensor a new value of the same shape and type, as an in-place operation does."""
        node = self.node_of(value)
        if isinstance(tensor._value, Node):
            if tensor._value.trace is not self.trace:
                raise leaked(tensor)
            tensor._value = node
        else:
            self.write_to(tensor, node)
        return None

    def set_value(self, tensor: Tensor, node: Node) -> None:
        """Give a tensor the value that an in-place write, noted before, has for the rest of the recording."""
        if isinstance(tensor._value, Node):
            tensor._value = node
        else:
            self.capture(tensor).node = node

    def exchange(self, tensor: Tensor) -> None:
        """Give a tensor memory of its own, before it is written: views that were made here keep their values."""
        for reference in self.made:
            view = reference()
            if view is not None and view._view is not None and view._root is tensor._root:
                view._value, view._view = self.node_of(view), None
        self.exchanged.add(id(tensor._root))

    def _require_memory(self, root: Tensor) -> None:
        """Refuse to read a view from outside of a tensor that was given other memory here."""
        if id(root) in self.exchanged:
            name = self.name_of(root)
            raise TracingError(
                "MT109",
                f"a view of `{name}` that was made before {self.trace.name} is read after `{name}.data = ...` in it",
                where=str(user_source()),
                why="the view keeps the earlier memory, and a graph has values and no memory",
                fix=f"make the view in the function, before the assignment, or write in place: {name}.data.copy_(...)",
            )

    def write_to(self, tensor: Tensor, node: Node) -> Captured:
        """Give a concrete tensor a new value.

        Raises:
            TracingError: if its memory cannot be written, or is another tensor's too (``MT109``).
        """
        check_writeable(tensor._value, tensor)
        captured = self.capture(tensor)
        if (
            captured.node is captured.input or captured.node in self.aliases
        ):  # others are checked when they are captured
            for other in self._neighbours(tensor):
                raise self.aliased(captured, other)
        captured.node = node
        return captured

    # Whether a value that is needed can be computed on the spot (lazy) or not (jit, Session).
    defers = False

    # Whether this defines the graph of a Session: its values live in the graph for good, and are fetched.
    is_definition = False

    # Values -----------------------------------------------------------------------------------------------

    def concrete(self, tensor: Tensor, what: str, code: str = "MT102", fix: str | None = None) -> np.ndarray[Any, Any]:
        """Return the value of a tensor, for `bool(x)`, `x.item()`, `x.numpy()` and so on: unknown while recording.

        Raises:
            TracedValueError: always here; a deferring recording overrides this and computes what is pending.
        """
        node = self.node_of(tensor)
        raise TracedValueError(
            code,
            f"{what} needs the value of a traced {node.spec}, {made_by(node)}",
            where=str(user_source()),
            why=f"{self.trace.name} is being recorded into a graph, which runs later, with other values each time; "
            "there is no value now",
            fix=fix or f"leave it a tensor, which arithmetic takes like a number; to see it, {self.remedy}",
        )

    # Gradients stored on tensors outside ----------------------------------------------------------------

    def grad_of(self, tensor: Tensor) -> Tensor | None:
        """Return ``tensor.grad`` at this point of the program; reading it makes the trace depend on it."""
        known = self.grads.get(id(tensor))
        if known is not None:
            return known[1]
        outside = self.arguments.get(id(tensor), tensor)
        grad = outside._grad
        if not isinstance(outside._value, Node):
            self.guards.append((tensor, grad))
            self.grads[id(tensor)] = (tensor, grad)
            if grad is not None:
                self.grad_owners[id(grad)] = tensor
                self.names.setdefault(id(grad), f"{self.name_of(tensor)}.grad")
        return grad

    def set_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        """Assign ``tensor.grad``; for a tensor from outside, note the assignment and carry it out after each run."""
        if isinstance(tensor._value, Node) and id(tensor) not in self.arguments:
            tensor._grad = grad
        else:
            self.grads[id(tensor)] = (tensor, grad)

    # Callbacks --------------------------------------------------------------------------------------------

    def callback(self, function: Callable[[list[np.ndarray[Any, Any]]], None], tensors: Sequence[Tensor]) -> None:
        """Have a function called with the values of tensors whenever the recorded program runs."""
        self.callbacks.append(Callback(function, tuple([self.node_of(tensor) for tensor in tensors])))


def _is_of(tensor: Tensor, view: View) -> bool:
    """Return whether a view is still of its root's memory, for which an assignment to ``root.data`` gave another."""
    mine, theirs = tensor._value, view.root._value
    known = type(mine) is type(theirs) is np.ndarray
    return not known or not tensor._value.size or may_share(mine, theirs)
