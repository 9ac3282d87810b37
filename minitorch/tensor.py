"""`Tensor`, the one object that users hold, and its state: its value, its view, its place on the tape.

A tensor's value is an `ndarray` (eager), a graph `Node` (while a program is being recorded), `Remote` (in a
backend's memory, and not yet read by Python), or `Batched` (within `func.vmap`); nothing else differs.
Operators and methods (`+`, `.sum()`, `.reshape()`) are compositions of primitives and live in `minitorch.functional`,
which installs them in the base class, `TensorMethods`; this file computes nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Self

import numpy as np

from .dtypes import BY_NUMPY, DType, float32
from .errors import AutogradError
from .ir import PRIMITIVES, Node, Primitive, Shape, Spec
from .methods import TensorMethods


class Remote:
    """A value outside NumPy's arrays, which is fetched when it is read; a backend has its own subclass.

    NumPy does not accept it: an operation of eager mode on one fails, and is repeated on the fetched array. Its `dtype`
    is a `DType` and not NumPy's, so no signature of arrays is equal to one that contains such a value.

    Attributes:
        home: its place and layout, as described by its backend; a tensor whose value was fetched keeps it.
    """

    __slots__ = ("__weakref__", "_fetched", "dtype", "shape")

    flags = SimpleNamespace(c_contiguous=True, writeable=True)
    home: Any = None

    def __init__(self, shape: Shape, dtype: DType) -> None:
        self.shape = shape
        self.dtype = dtype
        self._fetched: np.ndarray[Any, Any] | None = None

    def copy(self) -> np.ndarray[Any, Any]:
        """Return the value as an array that owns its memory."""
        raise NotImplementedError

    @property
    def fetched(self) -> np.ndarray[Any, Any]:
        """The value as an array, copied once; all sharers of the value share it."""
        self._fetched = self.read()
        return self._fetched

    def read(self) -> np.ndarray[Any, Any]:
        """Return the value as an array for reading, without fetching it for good."""
        return self.copy() if self._fetched is None else self._fetched

    @property
    def is_fetched(self) -> bool:
        """Whether it was fetched: its array may have been written to since."""
        return self._fetched is not None

    def __array__(self, *_: Any, **__: Any) -> np.ndarray[Any, Any]:
        raise TypeError("a value that lies elsewhere is not an array: ask for what is `fetched`")


class Batched:
    """A value for each of several examples, as one tensor: the value of a tensor within `func.vmap`.

    Attributes:
        tensor: the values of all examples, of the interpreter below: the first dimension counts the examples, or has
            the length 1, where they share one value.
        layer: the interpreter that knows of that dimension; programs on top of it do not see it.
    """

    __slots__ = ("layer", "tensor")

    def __init__(self, tensor: Tensor, layer: Any) -> None:
        self.tensor = tensor
        self.layer = layer

    @property
    def shape(self) -> Shape:
        """The shape of one example."""
        return self.tensor.shape[1:]

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.tensor.dtype

    def __array__(self, *_: Any, **__: Any) -> np.ndarray[Any, Any]:
        raise TypeError("the values of several examples are not one array")


TensorValue = np.ndarray[Any, Any] | Node | Spec | Remote | Batched


class Tensor(TensorMethods):
    """An n-dimensional array with PyTorch's names and semantics. Make one with `minitorch.tensor`.

    The class itself makes float32 of data, as in PyTorch, or of sizes: ``Tensor([1, 2])``, ``Tensor(2, 3)``.

    Attributes:
        shape: a tuple of ints, known without computing anything.
        dtype: the element type.
        requires_grad: whether `backward` reaches this tensor.
        grad: the gradient that `backward` accumulated here (leaves only), or None.

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.shape, x.dtype, (x + 1).sum().item()
        ((2, 2), minitorch.float32, 14.0)
    """

    __slots__ = (
        "__weakref__", "_entry", "_grad", "_home", "_hooks", "_layout", "_origin", "_past", "_requires_grad",
        "_value", "_version", "_view",
    )  # fmt: skip

    # NumPy must leave `array + tensor` to `Tensor`.
    __array_priority__ = 1000

    _value: Any  # np.ndarray | Node; a Spec where only shape and type were kept (see TapeEntry)
    _requires_grad: bool
    _grad: Tensor | None
    _entry: TapeEntry | None
    _view: View | None
    _version: int
    _hooks: list[Any]  # unset until `register_hook` is called on a leaf
    _home: Any  # set when the value was fetched: the `home` of the `Remote`
    _origin: Tensor  # set by `share`: the tensor whose value this is
    _past: list[tuple[int, bool, TapeEntry | None]]  # set by recorded writes: histories, up to which version
    _layout: Any  # of a trace's stand-in for an argument: the argument's layout (`interpreters.views`)

    def __new__(cls, *data: Any, **_: Any) -> Self:
        """Return a view of a tensor that is given, else a tensor without a value yet."""
        if cls is not Tensor or len(data) != 1 or not isinstance(data[0], Tensor):
            return object.__new__(cls)
        if data[0].dtype is not float32:
            raise TypeError(f"Tensor(x) takes float32, and x is {data[0].spec}: minitorch.tensor(x), or x.float()")
        view: Any = PRIMITIVES["reshape"](data[0], shape=data[0].shape)
        return view  # type: ignore[no-any-return]

    def __init__(self, *data: Any) -> None:
        if all(type(each) is int for each in data):
            self._hold(np.zeros(data or 0, np.float32))
            return
        (given,) = data
        if isinstance(given, Tensor):
            return  # `__new__` has made it
        self._hold(np.zeros(given, np.float32) if type(given).__name__ == "Size" else np.array(given, np.float32))

    def _hold(self, value: TensorValue, requires_grad: bool = False) -> None:
        """Begin with a value, and no history."""
        self._value = value
        self._requires_grad = requires_grad
        self._grad = None
        self._entry = None
        self._view = None
        self._version = 0

    # Metadata, known without computing ----------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        """The length of each dimension."""
        shape: Shape = self._value.shape
        return shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        dtype = self._value.dtype
        return dtype if type(dtype) is DType else BY_NUMPY[dtype]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._value.shape)

    @property
    def spec(self) -> Spec:
        """Shape and element type together."""
        return Spec(self.shape, self.dtype)

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self._value.shape)

    def numel(self) -> int:
        """Return the number of elements."""
        return self.spec.size

    def element_size(self) -> int:
        """Return the bytes per element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.spec.nbytes

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the length of one dimension."""
        return self.shape if dim is None else self.shape[dim]

    def is_floating_point(self) -> bool:
        """Return whether the element type is one of the floats."""
        return self.dtype.is_floating_point

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-dimensional tensor")
        return self.shape[0]

    # The tape -------------------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        """Whether `backward` reaches this tensor; can be set on leaves of a float type."""
        return up_to_date(self)._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Ask for a gradient (or stop asking), and return the tensor itself.

        Raises:
            AutogradError: on a tensor of integers, or on the result of recorded operations (``MT405``).
        """
        if requires_grad and not self.dtype.is_floating_point:
            raise AutogradError(
                "MT405",
                f"a tensor of {self.dtype.name} cannot require a gradient",
                why="derivatives exist for float types only",
                fix="convert it first: x.float()",
            )
        if not requires_grad and not self.is_leaf:
            raise AutogradError(
                "MT405",
                "requires_grad can be switched off on leaves only",
                why="this tensor is the result of recorded operations",
                fix="use x.detach() for a tensor that shares the value and has no history",
            )
        self._requires_grad = bool(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor is not the result of a recorded operation."""
        return up_to_date(self)._entry is None

    @property
    def grad_fn(self) -> TapeEntry | None:
        """The tape's entry that produced the tensor, or None."""
        return up_to_date(self)._entry

    @property
    def _root(self) -> Tensor:
        """The tensor that owns the memory: itself, or the base of the view."""
        return self if self._view is None else self._view.root

    __hash__ = object.__hash__


_new = object.__new__


def with_value(value: TensorValue, requires_grad: bool = False) -> Tensor:
    """Return a tensor with a value."""
    tensor = _new(Tensor)
    tensor._value = value
    tensor._requires_grad = requires_grad
    tensor._grad = None
    tensor._entry = None
    tensor._view = None
    tensor._version = 0
    return tensor


class View:
    """A tensor's view of another one's memory: `primitive` (a movement) applied to `base`.

    Eager needs only `root`, whose version counts the writes: NumPy's views share memory by themselves. A trace has no
    memory to share, so it keeps the recipe: `stamp` is the root's node when the view was made, and a view whose root
    was written since is made again (see `Staging.node_of`). `layout` is an array with the view's strides, made when
    the trace first checks whether the view can be reshaped in place.

    A view made while the tape records has an `owner`: the tensor whose history it shares, which a recorded write to
    either changes. `seen` is the owner's entry when the view's own was made (see `up_to_date`). The result of a
    hand-written `Function` that is a view of its argument `is_foreign`: its history is its own, so neither is written.
    """

    __slots__ = ("base", "is_detached", "is_foreign", "layout", "owner", "params", "primitive", "root", "seen", "stamp")

    def __init__(
        self, base: Tensor, primitive: Primitive, params: Mapping[str, Any], stamp: object, records: bool = False
    ) -> None:
        self.base = base
        self.root = base._root
        self.primitive = primitive
        self.params = params
        self.stamp = stamp
        self.layout: np.ndarray[Any, Any] | None = None
        self.is_detached = self.is_foreign = False
        self.owner: Tensor | None = None
        self.seen: TapeEntry | None = None
        if records:
            known = None if base._view is None else base._view.owner
            self.owner = base if known is None else known
            self.seen = self.owner._entry

    def again(self) -> View:
        """Return the same recipe for another tensor, which is updated separately and has a history of its own."""
        other = View(self.base, self.primitive, self.params, self.stamp)
        other.layout = self.layout
        return other


_serial = itertools.count()


def next_serial() -> int:
    """Return a number that is larger than those of all entries so far, and smaller than those of all later ones."""
    return next(_serial)


class TapeEntry:
    """One recorded operation: its primitive, its inputs, and the values that its gradient reads.

    Inputs and output that the gradient does not read are kept as *ghosts*: tensors whose value is only a `Spec`, so
    that the tape holds no unneeded memory. Entries point to the entries they depend on and never back, so
    dropping the last tensor frees the whole tape at once, without the garbage collector.

    Attributes:
        primitive: the operation.
        inputs: its inputs (values, or ghosts).
        output: its output (a value, or a ghost).
        serial: position in the program; an entry's inputs always have smaller ones.
        versions: the saved inputs' versions when they were saved, to notice a later overwrite.
        output_version: likewise for the output, if it is saved.
        hooks: functions called with the gradient of the output, if any were registered.
        retain: called with that gradient after the hooks, to keep it.
        recompute: restores the values that the entry has dropped, if any (see `minitorch.autograd.recompute`).
    """

    __slots__ = (
        "hooks", "inputs", "output", "output_version", "params", "primitive", "recompute", "retain", "serial",
        "versions",
    )  # fmt: skip

    def __init__(
        self,
        primitive: Primitive,
        inputs: tuple[Tensor, ...],
        params: Mapping[str, Any],
        saved_output: Tensor,
    ) -> None:
        self.primitive = primitive
        self.params = params
        self.serial = next(_serial)
        self.hooks: list[Callable[[Tensor], Tensor | None]] | None = None
        self.retain: Callable[[Tensor], None] | None = None
        self.recompute: Callable[[], None] | None = None
        self.inputs: tuple[Tensor, ...] | None = tuple(
            [tensor if index in primitive.saves else ghost(tensor) for index, tensor in enumerate(inputs)]
        )
        self.versions = tuple([tensor._root._version for tensor in inputs])
        self.output = saved_output
        self.output_version = saved_output._root._version

    def __repr__(self) -> str:
        return f"<gradient of {self.primitive.name}>"


def needs_gradient(tensor: Tensor) -> bool:
    """Return whether a tensor requires a gradient, of this program or, within `func.vmap`, of one below."""
    return tensor._requires_grad or (isinstance(tensor._value, Batched) and needs_gradient(tensor._value.tensor))


def up_to_date(tensor: Tensor) -> Tensor:
    """Return a tensor, with a new history if it is a view of what a recorded write has changed."""
    view = tensor._view
    if view is not None and view.owner is not None and view.owner._entry is not view.seen:
        if view.is_foreign:
            raise AutogradError(
                "MT401",
                f"{tensor.spec}, the result of a Function, is a view of an argument that was written since",
                why="its history is that of the Function, which does not know of the write",
                fix="return a copy from forward: x.clone()",
            )
        base = up_to_date(view.base)
        entry = TapeEntry(view.primitive, (base,), view.params, ghost(tensor)) if base._requires_grad else None
        renew(tensor, entry, view.root._version - 1)
        view.seen = view.owner._entry
    return tensor


def renew(tensor: Tensor, entry: TapeEntry | None, version: int) -> None:
    """Give a tensor another history; what saved it up to a version belongs to the one before."""
    if not hasattr(tensor, "_past"):
        tensor._past = []
    tensor._past.append((version, tensor._requires_grad, tensor._entry))
    if tensor._entry is not None and entry is not None:  # `retain_grad` is of the present value
        entry.retain, tensor._entry.retain = tensor._entry.retain, None
    tensor._requires_grad, tensor._entry = entry is not None, entry


def as_of(tensor: Tensor, version: int) -> tuple[bool, TapeEntry | None]:
    """Return whether a tensor required a gradient at a version of its memory, and its entry."""
    past = (history for until, *history in getattr(tensor, "_past", ()) if version <= until)
    needs, entry = next(past, (tensor._requires_grad, tensor._entry))
    return needs, entry


def fetched(tensor: Tensor) -> Any:
    """Return the value of a tensor; a remote one becomes an array."""
    value = tensor._value
    if isinstance(value, Remote):
        tensor._home = value.home
        value = tensor._value = value.fetched
    return value


def readable(tensor: Tensor) -> Any:
    """Return the value of a tensor to be read now; a remote one stays remote."""
    value = tensor._value
    return value.read() if isinstance(value, Remote) else value


def note_write(tensor: Tensor) -> None:
    """Count an in-place write, so that `backward` notices an overwritten value."""
    root = tensor if tensor._view is None else tensor._view.root
    root._version += 1
    if root._entry is not None and root._entry.inputs is not None:
        root._entry.output._version += 1  # the tape's own twin of it


def forget_writes(tensor: Tensor, version: int) -> None:
    """Restore an earlier version: the writes since were recorded, and not carried out."""
    if tensor._entry is not None and tensor._entry.inputs is not None:
        tensor._entry.output._version -= tensor._version - version
    tensor._version = version


def share(tensor: Tensor) -> Tensor:
    """Return another tensor with the same value and no history; to be used at once, not kept."""
    twin = twin_of(tensor)
    twin._origin = tensor  # a recording treats it as that tensor
    return twin


def twin_of(tensor: Tensor) -> Tensor:
    """Return another tensor with the same value and no history, which does not keep the tensor alive."""
    twin = with_value(tensor._value)
    if tensor._view is not None:
        twin._view = tensor._view.again()
    return twin


def ghost(tensor: Tensor) -> Tensor:
    """Return a tensor with the history, shape and type of another one, but not its value.

    A leaf that needs a gradient is its own ghost: `backward` has to find it.
    """
    if tensor._entry is None and tensor._requires_grad:
        return tensor
    shade = with_value(Spec(tensor.shape, tensor.dtype))
    shade._requires_grad = tensor._requires_grad
    shade._entry = tensor._entry
    return shade
