"""Interpreters: what happens when a primitive is applied. Eager computes it now, Staging writes it down.

`bind` is the one door: every operation of every mode passes through it. It asks the thread's current interpreter
for the result and, if a gradient may be asked for later, records the application on the tape; the tape is the same
for both interpreters, which is why `backward` can itself be recorded into a graph.

Which interpreter is current, and whether the tape records, belongs to the thread: two threads with different modes
do not disturb each other.
"""

from __future__ import annotations

import contextvars
import math
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from .dtypes import DType
from .errors import ShapeError, TracedValueError, TracingError
from .ir import INPUT, PRIMITIVES, Node, Primitive, Source, Spec, as_input_name, user_source
from .tensor import TapeEntry, Tensor, View, ghost, twin_of

NO_PARAMS: Mapping[str, Any] = MappingProxyType({})


class Interpreter(Protocol):
    """Says when an operation happens."""

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Apply a primitive to tensors."""
        ...

    def number(self, value: bool | int | float, dtype: DType) -> Tensor:
        """A constant of no dimensions."""
        ...

    def assign(self, tensor: Tensor, value: Tensor) -> Tensor | None:
        """Write a value of the same shape and type into a tensor; may return a handle that stands for the write."""
        ...


class Eager:
    """Computes each operation with NumPy as it is called. One instance per thread."""

    def __init__(self) -> None:
        # PyTorch is silent about overflow and 0/0, NumPy warns. The setting is made in a context of our own,
        # so that the user's NumPy stays as it was, at a tenth of the price of np.errstate per operation.
        context = contextvars.Context()
        context.run(np.seterr, all="ignore")
        self.run = context.run

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Evaluate now."""
        try:
            value = self.run(primitive.evaluate, *[tensor._value for tensor in inputs], **params)
        except Exception as error:
            raise _explain(error, primitive, inputs, params) from None
        if type(value) is not np.ndarray:
            value = np.asarray(value)
        elif not value.flags.c_contiguous and not primitive.is_view:
            # What is computed lies in order in every mode, so that a reshape of it is a view in all or in none.
            value = np.ascontiguousarray(value)
        return Tensor(value)

    def number(self, value: bool | int | float, dtype: DType) -> Tensor:
        """A constant of no dimensions; the shortest way there is, since every `x * 2` makes one."""
        return Tensor(self.run(np.array, value, dtype.numpy))

    def assign(self, tensor: Tensor, value: Tensor) -> None:
        """Write into the memory; views see it."""
        array = tensor._value
        if not isinstance(array, np.ndarray):
            raise leaked(tensor)
        if not array.flags.writeable:
            raise TracingError(
                "MT109",
                f"an in-place write to {tensor.spec}, whose memory cannot be written",
                why="it is an expanded view, in which elements share their place, or belongs to a read-only array",
                fix="write to a .clone() of it",
            )
        np.copyto(array, value._value)


def _explain(
    error: Exception, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]
) -> Exception:
    """What a user should read when an evaluation failed: NumPy's words are the last resort."""
    for tensor in inputs:
        if isinstance(tensor._value, Node):
            return leaked(tensor)
    try:
        if primitive.broadcasts:
            broadcast_shapes(inputs, primitive.name)
        primitive.infer(*[tensor.spec for tensor in inputs], **params)
    except (ValueError, TypeError) as better:
        return better
    return error


def leaked(tensor: Tensor) -> TracingError:
    """The error for a tensor of another recording."""
    node = tensor._value
    if isinstance(node.trace, Trace) and node.trace.is_definition:
        return TracingError(
            "MT104",
            f"{tensor.spec}, a part of a `with mt.Graph()` block, was used outside of it",
            where=f"it is {made_by(node)}",
            why="it stands for a value inside a graph that a Session runs, and has none by itself",
            fix="fetch it, session.run(y), and use the result; or compute with it inside the graph's `with` block",
        )
    thread = node.trace.thread if isinstance(node.trace, Trace) else None
    if thread is not None and thread is not threading.current_thread():
        return TracingError(
            "MT104",
            f"{tensor.spec}, a value of {node.trace.name}, was used in another thread",
            where=f"it is {made_by(node)}",
            why=f"the thread {thread.name!r} is recording it; a recording belongs to its thread, and others can "
            "neither add to it nor see what it has not computed yet",
            fix="use the result when the recording is over, or pass on a value that is computed (x.numpy(), if lazy)",
        )
    return TracingError(
        "MT104",
        f"a traced value {tensor.spec} was used after its trace ended",
        where=f"it is {made_by(node)}",
        why="it stands for a value inside a recorded graph, and was never computed; it got out through a variable, "
        "list or attribute that outlives the traced function",
        fix="return it from the traced function and use the result",
    )


# Called with each value as it is computed: the primitive, its operands, the value, and the line that asked for it.
Observer = Callable[[Primitive, Sequence["np.ndarray[Any, Any]"], "np.ndarray[Any, Any]", Source | None], None]


class Observed(Eager):
    """Eager, telling an observer about every value."""

    def __init__(self, eager: Eager, observer: Observer) -> None:
        self.run = eager.run
        self.observer = observer

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Evaluate now, and tell."""
        output = super().bind(primitive, inputs, params)
        self.observer(primitive, [tensor._value for tensor in inputs], output._value, user_source())
        return output


class _ThreadState(threading.local):
    """What belongs to one thread: its interpreter, whether the tape records, and who watches the values."""

    def __init__(self) -> None:
        self.eager = Eager()
        self.interpreter: Interpreter = self.eager
        self.grad_enabled = True
        self.observer: Observer | None = None


_state = _ThreadState()


def current() -> Interpreter:
    """The interpreter of this thread."""
    return _state.interpreter


def current_staging() -> Staging | None:
    """The recording that is under way in this thread, if there is one."""
    interpreter = _state.interpreter
    return interpreter if isinstance(interpreter, Staging) else None


@contextmanager
def interpreting(interpreter: Interpreter | None) -> Iterator[None]:
    """Make an interpreter current for a `with` block; None stands for the thread's eager one."""
    state = _state
    previous = state.interpreter
    state.interpreter = interpreter or state.eager
    if not isinstance(interpreter, Staging):
        try:
            yield
        finally:
            state.interpreter = previous
        return
    thread = interpreter.trace.thread
    interpreter.trace.thread = threading.current_thread()
    try:
        yield
    finally:
        state.interpreter = previous
        interpreter.trace.thread = thread


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Tell an observer about every value that this thread computes, in eager mode and in graphs."""
    state = _state
    previous = state.observer, state.eager, state.interpreter
    state.observer = observer
    state.eager = Observed(previous[1], observer)
    if state.interpreter is previous[1]:
        state.interpreter = state.eager
    try:
        yield
    finally:
        state.observer, state.eager, state.interpreter = previous


def current_observer() -> Observer | None:
    """Who watches the values that this thread computes."""
    return _state.observer


def run_silently(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function with NumPy's floating-point warnings off, in this thread's own context."""
    return _state.eager.run(function, *args)


def is_grad_enabled() -> bool:
    """Whether operations are being recorded for `backward` in this thread."""
    return _state.grad_enabled


def set_grad_enabled(enabled: bool) -> bool:
    """Switch recording for `backward` on or off in this thread; returns what it was."""
    previous = _state.grad_enabled
    _state.grad_enabled = enabled
    return previous


def bind(primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any] = NO_PARAMS) -> Tensor:
    """Apply a primitive to tensors: compute or record it, and put it on the tape if a gradient may be asked for."""
    state = _state
    needs_gradient = False
    if state.grad_enabled and primitive.gradient is not None:
        for tensor in inputs:
            if tensor._requires_grad:
                needs_gradient = True
                if primitive.broadcasts:
                    inputs = _expand_operands(inputs, primitive.name, recorded_only=True)
                break
    output = state.interpreter.bind(primitive, inputs, params)
    if primitive.is_view:
        base = inputs[0]
        staging = state.interpreter
        if isinstance(staging, Staging):
            if primitive.name != "reshape" or _reshapes_in_place(_layout(base), params["shape"]):
                output._view = View(base, primitive, params, staging.node_of(base._root))
        elif primitive.name != "reshape" or _shares_memory(base._value, output._value):
            output._view = View(base, primitive, params, None)
    if needs_gradient and output.dtype.is_floating_point:
        saved = twin(output) if primitive.saves_output else ghost(output)  # not `output`, which would make a cycle
        output._requires_grad = saved._requires_grad = True
        output._entry = TapeEntry(primitive, inputs, params, saved)
    return output


def number(value: bool | int | float, dtype: DType) -> Tensor:
    """A constant of no dimensions."""
    return _state.interpreter.number(value, dtype)


def memory_owner(array: np.ndarray[Any, Any]) -> int:
    """The same number for arrays that may share memory: the id of the object that owns it."""
    owner: Any = array
    while True:
        lender = owner.base if isinstance(owner, np.ndarray) else owner.obj if isinstance(owner, memoryview) else None
        if lender is None:
            return id(owner)
        owner = lender


def _shares_memory(base: np.ndarray[Any, Any], result: np.ndarray[Any, Any]) -> bool:
    """Whether a movement gave a view. A reshape is a copy where no strides could make it a view."""
    return result.base is base or (base.base is not None and result.base is base.base)


def _reshapes_in_place(memory: np.ndarray[Any, Any], shape: tuple[int, ...]) -> bool:
    """The same for a value that is not there yet."""
    try:
        np.reshape(memory, shape, copy=False)
    except ValueError:
        return False
    return True


def _layout(tensor: Tensor) -> np.ndarray[Any, Any]:
    """An array that lies in memory as a recorded tensor would; its elements are not there, and nobody reads them.

    Each view keeps its own, so that a long chain of them is gone through once.
    """
    missing: list[View] = []
    while isinstance(tensor._value, Node) and (view := tensor._view) is not None and view.layout is None:
        missing.append(view)
        tensor = view.base
    if isinstance(tensor._value, Node):
        known = tensor._view.layout if tensor._view is not None else None
        memory = _layout_in_order(tensor.shape) if known is None else known
    else:
        memory = tensor._value
    for view in reversed(missing):
        memory = view.layout = view.primitive.evaluate(memory, **view.params)
    return memory


def _layout_in_order(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """What is computed lies in order: the last dimension next to each other, and so on."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return np.lib.stride_tricks.as_strided(_ONE_BYTE, shape, strides, writeable=False)


_ONE_BYTE = np.zeros(1, np.int8)


def twin(tensor: Tensor) -> Tensor:
    """Another tensor with the same value and no history, known to the recording under way."""
    other = twin_of(tensor)
    staging = current_staging()
    if staging is not None:
        staging.made.append(weakref.ref(other))
    return other


def _call(primitive: Primitive, *inputs: Tensor, **params: Any) -> Tensor:
    return bind(primitive, inputs, params)


Primitive.__call__ = _call  # type: ignore[method-assign, assignment]


def _expand_operands(inputs: tuple[Tensor, ...], name: str, recorded_only: bool = False) -> tuple[Tensor, ...]:
    """Make broadcasting explicit: operands of an elementwise primitive, expanded to their common shape.

    NumPy broadcasts by itself, so eager needs an explicit `expand` only where a gradient has to be summed back
    (`recorded_only`). This is the only place where broadcasting happens, and the gradient of `expand` is the
    only place where it is undone.
    """
    shapes = [tensor.shape for tensor in inputs]
    if shapes.count(shapes[0]) == len(shapes):
        return inputs
    shape = broadcast_shapes(inputs, name)
    return tuple(
        tensor if tensor.shape == shape or (recorded_only and not tensor._requires_grad) else _expanded(tensor, shape)
        for tensor in inputs
    )


def _expanded(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A tensor broadcast to a shape; a recorded number becomes a number of that shape, which needs no expand."""
    node = tensor._value
    if isinstance(node, Node) and node.primitive is PRIMITIVES["constant"] and not node.shape:
        value = node.params["value"]
        if isinstance(value, (bool, int, float)):  # and no literal, which is an array of its own shape
            return node.primitive(**{**node.params, "shape": shape})
    return PRIMITIVES["expand"](tensor, shape=shape)


def broadcast_shapes(tensors: tuple[Tensor, ...], name: str = "") -> tuple[int, ...]:
    """The common shape of tensors by NumPy's broadcasting rule; `name` is the operation's, for the error.

    Raises:
        ShapeError: naming every operand and, in a graph, the line that made it (``MT201``).
    """
    shape: list[int] = []
    for axis in range(max(tensor.ndim for tensor in tensors), 0, -1):
        lengths = {tensor.shape[-axis] for tensor in tensors if tensor.ndim >= axis} - {1}
        if len(lengths) > 1:
            raise ShapeError(
                "MT201",
                (f"{name}: " if name else "")
                + " and ".join(str(tensor.spec) for tensor in tensors)
                + " do not broadcast together",
                where=_operands_text(tensors),
                why=f"dimension {-axis} has lengths {' and '.join(map(str, sorted(lengths)))}: "
                "they must be equal, or one of them 1",
                fix="reshape, unsqueeze or transpose one of them",
            )
        shape.append(lengths.pop() if lengths else 1)
    return tuple(shape)


def _operands_text(tensors: tuple[Tensor, ...]) -> str | None:
    """Where each operand of a failed operation comes from; None in eager, where the traceback says it."""
    rows = []
    for tensor in tensors:
        node = tensor._value
        if isinstance(node, Node):
            rows.append(f"{node.spec} is {made_by(node)}")
        elif (staging := current_staging()) is not None:
            rows.append(f"{tensor.spec} is `{staging.name_of(tensor)}`, from outside")
    if not rows:
        return None
    return f"{user_source()}; " + "; ".join(rows)


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


class Trace:
    """The token of one recording: its nodes carry it, so that a node that got out can be recognised.

    Attributes:
        name: what is recorded.
        is_definition: whether it defines the graph of a Session.
        thread: the thread that records it now; None when nobody does.
    """

    __slots__ = ("__weakref__", "is_definition", "name", "thread")

    def __init__(self, name: str, is_definition: bool = False) -> None:
        self.name = name
        self.is_definition = is_definition
        self.thread: threading.Thread | None = None


class Staging:
    """Writes each operation down as a node, and computes nothing.

    Concrete tensors that are met on the way become inputs of the graph (`captured`): their values are read when the
    graph runs. In-place writes to them change `Captured.node`, and are written back by whoever runs the graph.

    Args:
        name: what is recorded, for messages (e.g. the function's name).
        names: names for tensors that may be captured, by `id` (e.g. parameters of a module).
    """

    # What to do where a value is asked for that there is not.
    remedy = "return it from the traced function, and use the result of the call"

    def __init__(self, name: str, names: Mapping[int, str] | None = None) -> None:
        self.trace = Trace(name, self.is_definition)
        self.nodes: list[Node] = []
        self.captured: dict[int, Captured] = {}
        self.memory: dict[int, list[Captured]] = {}  # what was captured, by the id of who owns the memory
        self.renewed: dict[int, tuple[Tensor, Node, Node]] = {}  # views from outside: of which root's value, as what
        self.arguments: dict[int, Tensor] = {}  # by id of the stand-in: what the trace was called with
        self.grads: dict[int, tuple[Tensor, Tensor | None]] = {}
        self.guards: list[tuple[Tensor, Spec | None]] = []
        self.grad_owners: dict[int, Tensor] = {}
        self.names = dict(names or {})
        self.taken_names: set[str] = set()
        self.made: list[weakref.ref[Tensor]] = []

    # Inputs ---------------------------------------------------------------------------------------------

    def input(self, spec: Spec, name: str, source: Source | None = None) -> Node:
        """A new input of the graph; the name is made one that a listing can show, and unique."""
        name = as_input_name(name)
        unique, count = name, 1
        while unique in self.taken_names:
            count += 1
            unique = f"{name}_{count}"
        self.taken_names.add(unique)
        return Node(INPUT, (), {"name": unique}, spec, source or user_source(), self.trace)

    def name_of(self, tensor: Tensor) -> str:
        """A name for a concrete tensor in messages and listings."""
        known = self.captured.get(id(tensor))
        if known is not None:
            return str(known.input.params["name"])
        if isinstance(tensor._value, Node) and tensor._value.primitive is INPUT:
            return str(tensor._value.params["name"])
        return self.names.get(id(tensor), f"captured{len(self.captured)}")

    def capture(self, tensor: Tensor) -> Captured:
        """The input that stands for a concrete tensor.

        Raises:
            TracingError: if it shares memory with one that was written (``MT109``).
        """
        tensor = getattr(tensor, "_origin", tensor)
        known = self.captured.get(id(tensor))
        if known is None:
            known = Captured(tensor, self.input(tensor.spec, self.name_of(tensor)))
            for other in self._neighbours(tensor):
                if other.node is not other.input:
                    raise self.aliased(other, known)
            self.captured[id(tensor)] = known
            self.memory.setdefault(memory_owner(tensor._value), []).append(known)
        return known

    def _neighbours(self, tensor: Tensor) -> Iterator[Captured]:
        """The captured tensors that are no views of the same tensor and yet share memory with it."""
        for other in self.memory.get(memory_owner(tensor._value), ()):
            if other.tensor._root is not tensor._root and np.may_share_memory(other.tensor._value, tensor._value):
                yield other

    def aliased(self, written: Captured, other: Captured) -> TracingError:
        """The error for a write to one of two tensors over one memory."""
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
        """The node that stands for a tensor at this point of the program."""
        view = tensor._view
        value = tensor._value
        if not isinstance(value, Node):
            if view is not None and self._written(view.root):
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
        """A view whose root was written in place since: apply its movements to the root's present value.

        The views on the way are renewed with it, so that after a write each view is made again once.
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
        """The node of a view that shows the root's present value, if there is one."""
        if isinstance(tensor._value, Node):
            return tensor._value if view.stamp is root else None
        _, stamp, node = self.renewed.get(id(tensor), (None, None, None))
        return node if stamp is root else None

    # Operations -----------------------------------------------------------------------------------------

    def bind(self, primitive: Primitive, inputs: tuple[Tensor, ...], params: Mapping[str, Any]) -> Tensor:
        """Write the operation down."""
        if primitive.broadcasts:
            inputs = _expand_operands(inputs, primitive.name)
        nodes = tuple([self.node_of(tensor) for tensor in inputs])
        try:
            output = Tensor(self._append(primitive, nodes, params))
        except ShapeError as error:
            error.locate(_operands_text(inputs) or str(user_source()))
            raise
        self.made.append(weakref.ref(output))
        return output

    def _append(self, primitive: Primitive, nodes: tuple[Node, ...], params: Mapping[str, Any]) -> Node:
        spec = primitive.infer(*[node.spec for node in nodes], **params)
        node = Node(primitive, nodes, params, spec, user_source(), self.trace)
        self.nodes.append(node)
        return node

    def number(self, value: bool | int | float, dtype: DType) -> Tensor:
        """A constant of no dimensions, as a node."""
        return PRIMITIVES["constant"](value=value, shape=(), dtype=dtype)

    # In-place writes ------------------------------------------------------------------------------------

    def written(self, tensor: Tensor) -> Tensor:
        """What an in-place write to a tensor writes to: the tensor, unless it only stands for another one."""
        return tensor

    def assign(self, tensor: Tensor, value: Tensor) -> Tensor | None:
        """Give a tensor a new value of the same shape and type, as an in-place operation does."""
        node = self.node_of(value)
        if isinstance(tensor._value, Node):
            if tensor._value.trace is not self.trace:
                raise leaked(tensor)
            tensor._value = node
        else:
            self.write_to(tensor, node)
        return None

    def write_to(self, tensor: Tensor, node: Node) -> Captured:
        """Give a concrete tensor a new value."""
        captured = self.capture(tensor)
        if captured.node is captured.input:  # others are checked when they are captured
            for other in self._neighbours(tensor):
                raise self.aliased(captured, other)
        captured.node = node
        return captured

    def one_operation(self, run: Callable[[], Any]) -> Any:
        """Make a function's in-place writes one operation, for recordings whose operations are run one by one."""
        return run()

    # Whether a value that is needed can be computed on the spot (lazy) or not (jit, Session).
    defers = False

    # Whether this defines the graph of a Session: its values live in the graph for good, and are fetched.
    is_definition = False

    # Values -----------------------------------------------------------------------------------------------

    def concrete(self, tensor: Tensor, what: str, code: str = "MT102", fix: str | None = None) -> np.ndarray[Any, Any]:
        """The value of a tensor, for `bool(x)`, `x.item()`, `x.numpy()` and the like: not known while recording.

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
            fix=fix or self.remedy,
        )

    # Gradients stored on tensors outside ----------------------------------------------------------------

    def grad_of(self, tensor: Tensor) -> Tensor | None:
        """What ``tensor.grad`` is at this point of the program; reading it makes the trace depend on it."""
        known = self.grads.get(id(tensor))
        if known is not None:
            return known[1]
        outside = self.arguments.get(id(tensor), tensor)
        grad = outside._grad
        if not isinstance(outside._value, Node):
            self.guards.append((tensor, None if grad is None else grad.spec))
            self.grads[id(tensor)] = (tensor, grad)
            if grad is not None:
                self.grad_owners[id(grad)] = tensor
                self.names.setdefault(id(grad), f"{self.name_of(tensor)}.grad")
        return grad

    def set_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        """Assign ``tensor.grad``; for a tensor from outside it is noted, and whoever runs the graph carries it out."""
        if isinstance(tensor._value, Node) and id(tensor) not in self.arguments:
            tensor._grad = grad
        else:
            self.grads[id(tensor)] = (tensor, grad)


def concrete(tensor: Tensor, what: str, code: str = "MT102", fix: str | None = None) -> np.ndarray[Any, Any]:
    """The array that a tensor holds; `what` names the operation that needs it, for the error if there is none.

    Raises:
        TracedValueError: while a graph is recorded that runs later (``MT101``, ``MT102`` or ``MT103``).
        TracingError: for a value of an ended trace (``MT104``).
    """
    staging = current_staging()
    if staging is not None:
        return staging.concrete(tensor, what, code, fix)
    value = tensor._value
    if isinstance(value, np.ndarray):
        return value
    raise leaked(tensor)


def origins(node: Node) -> list[Node]:
    """The inputs of the graph that a node depends on, in the order in which they are found."""
    seen, found, pending = {id(node)}, [], [node]
    while pending:
        at = pending.pop()
        if at.primitive is INPUT:
            found.append(at)
        for operand in reversed(at.inputs):
            if id(operand) not in seen:
                seen.add(id(operand))
                pending.append(operand)
    return found


def made_by(node: Node) -> str:
    """What a node is, for messages: ``the input `x` ``, or ``made by mul at train.py:3 from `x`, `w` ``."""
    if node.primitive is INPUT:
        return f"the input `{node.params['name']}`, given at {node.source}"
    made = f"made by {node.primitive.name} at {node.source}"
    return f"{made} from {origins_text(node)}" if origins(node) else made


def origins_text(node: Node, most: int = 3) -> str:
    """The inputs that a node depends on, in words."""
    names = [f"`{origin.params['name']}`" for origin in origins(node)]
    if not names:
        return "no input (it is made inside the graph)"
    shown = ", ".join(names[:most])
    return shown + (f" and {len(names) - most} more inputs" if len(names) > most else "")


def one_operation(run: Callable[[], Any]) -> Any:
    """Call a function; while a Session's graph is defined, all its in-place writes become one operation to fetch."""
    staging = current_staging()
    return run() if staging is None else staging.one_operation(run)


def staging_or_error(what: str) -> Staging:
    """The recording under way, for functions that make sense inside one only."""
    staging = current_staging()
    if staging is None:
        raise TracingError(
            "MT110",
            f"{what} outside of a graph",
            why="it describes an input of a graph that is being defined",
            fix="call it inside `with mt.Graph() as g:`",
        )
    return staging
