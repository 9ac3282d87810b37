"""Arguments of programs: numbers of several kinds, lying in memory in several ways.

An `Input` is data. It becomes a tensor of minitorch or of PyTorch by the same text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

DTYPES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint32", "float16", "bfloat16", "float32", "float64",
)  # fmt: skip
FLOATS = DTYPES[-4:]
INTEGERS = DTYPES[1:7]


def numpy_type(dtype: str) -> np.dtype[Any]:
    """NumPy's type of that name."""
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def special_values(dtype: str) -> list[Any]:
    """The values that laws break at: zeros, infinities, NaN, subnormal and huge numbers; the bounds of integers."""
    if dtype == "bool":
        return [False, True]
    if dtype in FLOATS:
        facts = ml_dtypes.finfo(numpy_type(dtype))
        tiny, huge = float(facts.smallest_subnormal), float(facts.max)
        return [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -3.0, np.inf, -np.inf, np.nan, tiny, -tiny * 3, huge, -huge]
    bounds = np.iinfo(dtype)
    return [value for value in (0, 1, 2, 3, 7, -1, -2) if bounds.min <= value] + [bounds.min, bounds.max]


def values(kind: str, shape: Shape, dtype: str, seed: int) -> Array:
    """An array.

    Args:
        kind: ``"normal"``; ``"unit"``, between 0.1 and 0.9; ``"whole"``, small integers, with many ties, whose sums are
            exact; ``"alike"``, one number; ``"special"``, among others those where laws break; ``"wide"``, of many
            magnitudes; ``"sorted"``; ``"below 5"`` and the like, indices.

    Example:
        >>> values("below 3", (4,), "int64", 0).tolist()
        [2, 1, 1, 0]
    """
    random = np.random.default_rng(seed)
    if kind.startswith("below "):
        array: Any = random.integers(0, max(1, int(kind[6:])), shape)
    elif kind.startswith("permuted "):
        array = random.permutation(int(kind[9:]))[: int(np.prod(shape))].reshape(shape)
    elif dtype == "bool":
        array = random.random(shape) < 0.5
    elif kind in ("whole", "sorted") or (dtype in INTEGERS and kind != "special"):
        array = random.integers(0 if dtype.startswith("u") else -5, 6, shape)
    elif kind == "unit":
        array = random.uniform(0.1, 0.9, shape)
    elif kind == "alike":
        array = np.full(shape, random.choice([0.1, 1.0, -3.0, 0.0]))
    elif kind == "wide":
        array = random.normal(size=shape) * 2.0 ** random.integers(-8, 8, shape)
    elif kind == "special":
        known = special_values(dtype)
        ordinary = random.normal(size=shape) if dtype in FLOATS else random.integers(0, 6, shape)
        with np.errstate(all="ignore"):
            chosen = np.array(known).astype(numpy_type(dtype))[random.integers(0, len(known), shape)]
            array = np.where(random.random(shape) < 0.4, chosen, np.asarray(ordinary).astype(numpy_type(dtype)))
    else:
        array = random.normal(size=shape)
    found = np.asarray(array).astype(numpy_type(dtype))
    return np.sort(found) if kind == "sorted" else found


@dataclass(frozen=True)
class Input:
    """An argument.

    Attributes:
        name: in the program.
        shape: of the memory, before the view is taken.
        dtype: by name.
        kind: of its values; see `values`.
        seed: of its values.
        view: what is done with the memory, as text that follows the tensor: ``".t()"``, ``"[::2]"``.
        requires_grad: whether its gradient is compared.
        view_of: the name of the argument that it is a view of; then it has no memory of its own.
    """

    name: str
    shape: Shape
    dtype: str
    kind: str = "normal"
    seed: int = 0
    view: str = ""
    requires_grad: bool = False
    view_of: str = ""

    @property
    def memory(self) -> Array:
        """The numbers."""
        return values(self.kind, self.shape, self.dtype, self.seed)

    def text(self, numbers: str) -> str:
        """The expression that makes the tensor, of `numbers`, an expression for nested lists or an array."""
        if self.view_of:
            return f"{self.view_of}{self.view}"
        made = f"mt.tensor({numbers}, dtype=mt.{self.dtype}){self.view}"
        return f"{made}.detach().requires_grad_()" if self.requires_grad else made

    def literal(self) -> str:
        """The numbers as Python, if they are few."""
        array = self.memory
        if array.size > 64:
            return f"values({self.kind!r}, {self.shape}, {self.dtype!r}, {self.seed}).tolist()"
        plain = array.astype(np.float64).tolist() if self.dtype in FLOATS else array.tolist()
        text = repr(plain).replace("nan", "mt.nan").replace("inf", "mt.inf")
        return text if array.size else f"np.zeros({self.shape})"


def layouts(shape: Shape) -> list[tuple[Shape, str]]:
    """The ways in which a tensor of that shape can lie in memory: the shape of the memory, and the view of it.

    Example:
        >>> layouts((2, 3))[1]
        ((3, 2), '.permute((1, 0))')
    """
    found: list[tuple[Shape, str]] = [(shape, "")]
    dims = len(shape)
    if dims == 0:
        return [*found, ((3,), "[1]"), ((2, 2), "[1, 0]")]
    if dims >= 2:
        order = tuple(range(dims))[::-1]
        found.append((tuple(shape[dim] for dim in order), f".permute({order})"))
        found.append(((*shape[:-2], shape[-1], shape[-2]), ".transpose(-1, -2)"))
    found.append(((*shape[:-1], shape[-1] * 2), "[..., ::2]"))
    found.append(((shape[0] * 2 + 1, *shape[1:]), "[1::2]"))
    found.append(((shape[0] + 2, *shape[1:]), "[1:-1]"))
    for dim, length in enumerate(shape):
        if length > 1:
            found.append(((*shape[:dim], 1, *shape[dim + 1 :]), f".expand({shape})"))
            if dim:
                found.append((shape[dim:], f".expand({shape})"))
    return found
