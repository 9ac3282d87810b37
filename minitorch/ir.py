"""The nodes of the graph IR: `Spec`, `Primitive`, `Source` and `Node`.

A `Primitive` is an operation; the rows are in `minitorch.primitives`. A `Node` is the application of a primitive to
other nodes. It is immutable, and holds no data: `spec` (shape and element type) is known without executing anything.
`Graph`, with its listing, verifier and rewriting, is in `minitorch.graph`.
"""

from __future__ import annotations

import functools
import math
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

from .dtypes import PYTHON_NUMBERS, DType, stored
from .errors import TracingWarning
from .named import by_name
from .packages import ENGINE, PACKAGES

if TYPE_CHECKING:
    from .tensor import Tensor

Shape = tuple[int, ...]

MOST = 2**60
"""Elements of an array, a length of 0 taken for 1: of 8 bytes each, as many as an address space of 2**63 bytes has."""


@dataclass(frozen=True, slots=True)
class Spec:
    """Shape and element type: the facts known of a value before it is computed.

    Example:
        >>> from minitorch.dtypes import float32
        >>> print(Spec((32, 10), float32), Spec((32, 10), float32).nbytes)
        f32[32,10] 1280
    """

    shape: Shape
    dtype: DType

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of a dense array of this kind."""
        return self.size * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype.short}[{','.join(map(str, self.shape))}]"


_NAME = re.compile(r"[\w.]+")
_NO_LETTERS = re.compile(r"[^\w.]+")
# Numbers and the words of the listing cannot name an input.
_NOT_A_NAME = re.compile(r"[0-9]+\.?[0-9]*([eE][+-]?[0-9]+)?|\.[0-9]+|inf|nan|true|false|return|graph")


def is_input_name(text: object) -> bool:
    """Return whether a text can name an input of a graph: letters, digits, `_` and `.`, and no number."""
    return isinstance(text, str) and bool(_NAME.fullmatch(text)) and not _NOT_A_NAME.fullmatch(text)


def as_input_name(text: str) -> str:
    """Return the nearest text that can name an input of a graph.

    Example:
        >>> as_input_name("x"), as_input_name("nan"), as_input_name("my x"), as_input_name("")
        ('x', 'nan_', 'my_x', '_')
    """
    name = _NO_LETTERS.sub("_", text)
    return name if is_input_name(name) else f"{name}_"


# A gradient rule: (cotangent, output, *inputs, **params) -> the cotangent of one input.
GradientRule = Callable[..., "Tensor"]


@dataclass(frozen=True, eq=False)
class Primitive:
    """An operation that is not composed of others: the unit of every interpreter, pass and backend.

    A primitive is callable on tensors: ``exp(x)`` computes, records or defers, as the current interpreter says.

    Attributes:
        name: as in graph listings.
        kind: the family, e.g. ``"unary"`` or ``"reduction"``, which a backend can treat alike.
        infer: ``(*specs, **params) -> Spec``: the shape and type rule. It raises `ShapeError` or `DTypeError`.
        evaluate: ``(*arrays, **params) -> array``: its definition in NumPy.
        gradient: one rule per input, ``(cotangent, output, *inputs, **params) -> Tensor``, written with primitives;
            None in place of a rule for an input without derivative, None altogether if nothing can be differentiated.
            The last rule serves all further inputs if `variadic`, and gets the input's number as the keyword ``index``.
        saves: the positions of the inputs whose values the rules read; of the others they see shape and type only.
        saves_output: whether the rules read the output's value.
        variadic: whether it takes any number of inputs.
        is_view: whether the result can share the input's memory.
        is_identity: whether the result is the input, with a remark for some backends; for others lowering drops it.
        refuses: the kinds of NumPy types (``dtype.kind``) that `infer` refuses and NumPy would convert to floats.
        element: an element of the result as Python, ``"{} + {}"``, which loop nests are printed with and compiled from;
            empty if a backend has no instruction for it: NumPy then runs it as a separate kernel.
        work: an element's cost: ``"arithmetic"`` (one FLOP), ``"none"``, ``"division"`` (one FLOP, but many cycles)
            or ``"function"`` (a transcendental function, counted apart from FLOPs).
        ulp: the largest error of compiled code in units in the last place; 0.5 is correct rounding.
        reorders: whether compiled code may add up terms in another order.
        commutes: whether two operands may be exchanged.
        batch: the rule of `func.vmap`, ``(*inputs, **params) -> Tensor``, written with primitives: the inputs have one
            dimension more in front, which counts examples, or has the length 1 where they share one value; so has the
            result. None for what follows from the family and the parameters' names (`minitorch.func.batching`).
        together: ``(*arrays, run=..., **params) -> arrays``, of control flow: all results at once, without the
            parameter `result` that says which of them a node is; `run` runs one of the graphs among the parameters.
        doc: its result, in a line.
    """

    name: str
    kind: str
    infer: Callable[..., Spec]
    evaluate: Callable[..., Any]
    gradient: tuple[GradientRule | None, ...] | None = None
    saves: tuple[int, ...] = ()
    saves_output: bool = False
    variadic: bool = False
    is_view: bool = False
    is_identity: bool = False
    refuses: str = ""
    element: str = ""
    work: str = "arithmetic"
    ulp: float = 0.5
    reorders: bool = False
    commutes: bool = False
    batch: Callable[..., Tensor] | None = None
    together: Callable[..., list[Any]] | None = None
    doc: str = ""

    @property
    def broadcasts(self) -> bool:
        """Whether operands of different shapes are expanded to a common one."""
        return self.kind in ("binary", "ternary")

    if TYPE_CHECKING:  # installed by `minitorch.interpreters`

        def __call__(self, *inputs: Tensor, **params: Any) -> Tensor: ...

    def __reduce__(self) -> Any:
        return by_name(self, __name__, self.infer.__module__) or super().__reduce__()

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"


def _infer_input() -> Spec:
    raise TypeError("an input of a graph has the shape and type it was declared with")


# The primitive of a graph's inputs. It is not in the table of primitives: it computes nothing.
INPUT = Primitive("input", "input", _infer_input, lambda: None, doc="a value given from outside")

# All primitives by name; `minitorch.primitives` fills it.
PRIMITIVES: dict[str, Primitive] = {}
# Primitives with graphs among their parameters; `minitorch.graph.control_flow` fills it.
CONTROL_FLOW: dict[str, Primitive] = {}
# Primitives that only lowering passes write (`minitorch.passes.LOWERING`), so only compiled graphs have them.
LOWERED: dict[str, Primitive] = {}
# Operators that only lifting writes (`minitorch_operators.lifting`): compositions as other systems name them.
OPERATORS: dict[str, Primitive] = {}


def primitive_named(name: str) -> Primitive | None:
    """Return the primitive of a name that a graph can have, whichever table it is in."""
    tables = (PRIMITIVES, CONTROL_FLOW, LOWERED, OPERATORS)
    return next((table[name] for table in tables if name in table), None)


# The families of pointwise primitives: an element of the result depends on the operands' elements at its index alone.
POINTWISE = ("unary", "binary", "ternary")


# The file and the line of a `Source`; empty if the user's line is not known.
Place = tuple[str, int] | tuple[()]


class _Pinned(threading.local):
    """The user's line for all operations of this thread; None if each has to look up its own."""

    place: Place | None = None


pinned = _Pinned()


@dataclass(frozen=True, slots=True)
class Source:
    """A line of the user's program."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{_display_name(self.file)}:{self.line}"


def _display_name(file: str) -> str:
    """Return a file's short name; a notebook's cell is named as the notebook shows it, e.g. ``In[5]``."""
    if "ipykernel_" in file and "IPython" in sys.modules:
        shell = sys.modules["IPython"].get_ipython()
        counts = getattr(getattr(shell, "compile", None), "_filename_map", {}) if shell else {}
        if file in counts:
            return f"In[{counts[file]}]"
    return os.path.basename(file)


def as_stored(params: Mapping[str, Any], spec: Spec) -> Mapping[str, Any]:
    """Return the parameters of a node, a number in the result as the result's type stores it.

    So backends and passes see no bool other than True and False, and no float that the type has to round.

    Raises:
        OverflowError, ValueError: for a number that the type cannot hold.
    """
    value: Any = params.get("value")
    if not issubclass(type(value), PYTHON_NUMBERS):  # an array, or a symbolic number
        return params
    return {**params, "value": stored(value, spec.dtype)}


class Node:
    """A primitive applied to nodes; an input of a graph if `primitive` is `INPUT`.

    Attributes:
        primitive: the operation.
        inputs: the nodes it is computed from.
        params: its static parameters, by name; never changed after construction.
        spec: shape and element type of the result.
        source: the user's line that caused it, if known.
        trace: the recording it was made in (an opaque token), or None for nodes made by passes and parsers.
    """

    __slots__ = ("inputs", "params", "primitive", "source", "spec", "trace")

    primitive: Primitive
    inputs: tuple[Node, ...]
    params: Mapping[str, Any]
    spec: Spec
    source: Source | None
    trace: object

    def __init__(
        self,
        primitive: Primitive,
        inputs: tuple[Node, ...],
        params: Mapping[str, Any],
        spec: Spec,
        source: Source | None = None,
        trace: object = None,
    ) -> None:
        self.primitive = primitive
        self.inputs = inputs
        self.params = params
        self.spec = spec
        self.source = source
        self.trace = trace

    @property
    def shape(self) -> Shape:
        """The shape of the result."""
        return self.spec.shape

    @property
    def dtype(self) -> DType:
        """The element type of the result."""
        return self.spec.dtype

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy the node without its recording."""
        return type(self), (self.primitive, self.inputs, dict(self.params), self.spec, self.source)

    def __repr__(self) -> str:
        where = f" at {self.source}" if self.source else ""
        return f"<{self.primitive.name}: {self.spec}{where}>"


# The beginnings of the files of this distribution: the engine, and the packages beside it.
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_BESIDE = os.path.join(_ROOT, "extras") if os.path.isdir(os.path.join(_ROOT, "extras")) else _ROOT


@functools.cache
def _files() -> tuple[str, ...]:
    return tuple(os.path.join(_ROOT if name == ENGINE else _BESIDE, name) + os.sep for name in PACKAGES)


class _Files(dict[str, bool]):
    """A cache by file name: whether each source file belongs to this package."""

    def __missing__(self, file: str) -> bool:
        ours = self[file] = file.startswith(_files())
        return ours


_OURS = _Files()


def warn_user(text: str, category: type[Warning] = TracingWarning) -> None:
    """Give a warning at the line of the nearest caller outside of this package."""
    depth, frame = 1, sys._getframe(0)
    between = (*_files(), functools.__file__)  # Python's own `cached_property`
    while frame.f_back is not None and frame.f_code.co_filename.startswith(between):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, category, stacklevel=depth)


def is_ours(file: str) -> bool:
    """Return whether a source file belongs to this package."""
    return _OURS[file]


def user_frame(skip: int = 0) -> FrameType | None:
    """Return the frame of the nearest caller outside this package; the first `skip` are known to be inside."""
    frame: FrameType | None = sys._getframe(1 + skip)
    while frame is not None and _OURS[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame


def user_source() -> Source | None:
    """Return the line of the nearest caller outside this package: one frame, cheap enough for every node."""
    place = user_place(skip=1)
    return Source(*place) if place else None


def user_place(skip: int = 0) -> Place:
    """Return `user_source` as a plain pair, in a fraction of the time; see `user_frame` for `skip`."""
    if pinned.place is not None:
        return pinned.place
    frame = user_frame(skip + 1)
    return () if frame is None else (frame.f_code.co_filename, frame.f_lineno)
