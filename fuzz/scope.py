"""What a program under construction has: its arguments, its values so far, and the dice.

Values are computed eagerly as the program is written, so every choice can look at the shapes and types that are there.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import minitorch as mt
from minitorch.errors import MinitorchError

from .program import Code, Ref
from .values import DTYPES, FLOATS, INTEGERS, Input, Shape, layouts

MOST_ELEMENTS = 200_000  # of a value
KINDS = ("normal",) * 6 + ("whole", "whole", "special", "wide", "alike", "unit")
LENGTHS = (1, 2, 3, 3, 4, 5, 7, 8)
LONG = (9, 13, 16, 17, 31, 33, 64, 65, 100, 127, 128, 129, 250, 333, 512, 1000)


class UnfitError(Exception):
    """There is nothing that the function could be called with; another one is tried."""


class Scope:
    """The state of a program that is being written.

    Args:
        seed: where the dice start.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.inputs: list[Input] = []
        self.values: dict[str, Any] = {}  # by name: tensors
        self.gradients = self.random.random() < 0.35
        self.large = self.random.random() < 0.12
        self.dtype = self.pick("float32", "float32", "float32", "float64", "float64", *DTYPES)
        self.strange = self.random.random() < 0.2  # zero lengths, special values
        self.shape = self.any_shape()
        self._made = 0

    # --- dice ---

    def pick(self, *choices: Any) -> Any:
        """One of them."""
        return self.random.choice(choices)

    def chance(self, probability: float) -> bool:
        """True so often."""
        return self.random.random() < probability

    def below(self, limit: int) -> int:
        """A number from 0 up to the limit."""
        return self.random.randrange(max(1, limit))

    # --- shapes and types ---

    def length(self) -> int:
        """Of a dimension."""
        if self.strange and self.chance(0.08):
            return 0
        return self.pick(*LONG) if self.large and self.chance(0.7) else self.pick(*LENGTHS)

    def any_shape(self, dims: int | None = None) -> Shape:
        """A shape; of so many dimensions, if that is given."""
        count = self.pick(0, 1, 1, 2, 2, 2, 3, 3, 4) if dims is None else dims
        while True:
            shape = tuple(self.length() for _ in range(count))
            if _size(shape) <= (MOST_ELEMENTS // 4 if self.large else 3000):
                return shape

    def broadcastable(self, shape: Shape) -> Shape:
        """A shape that broadcasts to, or with, another one; often the same."""
        if self.chance(0.55):
            return shape
        kept = shape[self.below(len(shape) + 1) :] if self.chance(0.4) else shape
        made = tuple(1 if self.chance(0.25) else length for length in kept)
        return (self.pick(1, 2, 3), *made) if self.chance(0.05) and len(made) == len(shape) < 4 else made

    def any_dtype(self, category: str = "") -> str:
        """A type, usually that of most values in the program."""
        allowed = {"float": FLOATS, "int": INTEGERS, "": DTYPES}.get(category, (category,))
        return self.dtype if self.dtype in allowed and self.chance(0.75) else self.pick(*allowed)

    # --- values ---

    def name(self, letter: str = "v") -> str:
        """A name that is not used yet."""
        self._made += 1
        return f"{letter}{self._made}"

    def tensor_of(self, ref: Ref) -> Any:
        """The tensor of that name."""
        return self.values[ref.name]

    def input(self, shape: Shape, dtype: str, kind: str | None = None) -> Ref:
        """A new argument of the program."""
        if kind is None:
            kind = self.pick(*KINDS) if self.strange or dtype not in FLOATS else self.pick("normal", "normal", "whole")
        if self.chance(0.1):
            found = self._overlapping(shape, dtype)
            if found is not None:
                return found
        plain = kind.startswith(("permuted", "sorted")) or self.chance(0.7)
        memory, view = (shape, "") if plain else self.pick(*layouts(shape))
        wants = self.gradients and dtype in FLOATS and self.chance(0.7)
        made = Input(self.name("x"), memory, dtype, kind, self.below(1 << 16), view, wants)
        return self._entered(made, eval(made.text("numbers"), {"mt": mt, "numbers": made.memory}))

    def _overlapping(self, shape: Shape, dtype: str) -> Ref | None:
        """A new argument that is a view of another one, if one has that shape and type."""
        views = [
            ".t()",
            ".transpose(0, -1)",
            "[1:]",
            "[..., ::2]",
            ".reshape(-1)",
            ".detach()",
            "[:2]",
            "[0]",
            ".expand(2, -1)",
        ]
        others = [each for each in self.inputs if each.dtype == dtype and not each.requires_grad]
        for other, view in itertools.product(others, self.random.sample(views, len(views))):
            made = Input(f"x{self._made + 1}", (), dtype, view=view, view_of=other.name)
            try:
                tensor = eval(made.text(""), {"mt": mt, **self.values})
            except (MinitorchError, TypeError, ValueError, IndexError, RuntimeError):
                continue
            if tuple(tensor.shape) == shape:
                self._made += 1
                return self._entered(made, tensor)
        return None

    def _entered(self, made: Input, tensor: Any) -> Ref:
        self.inputs.append(made)
        self.values[made.name] = tensor
        return Ref(made.name)

    def existing(self, fits: Callable[[Any], bool] = lambda tensor: True) -> Ref | None:
        """A value that fits, the later ones more often; None if there is none."""
        fitting = [name for name, tensor in self.values.items() if fits(tensor)]
        computed = [name for name in fitting if not name.startswith("x")][-3:]
        if computed and self.chance(0.6):
            return Ref(self.pick(*computed))
        return Ref(self.pick(*fitting)) if fitting else None

    def tensor(self, shape: Shape | None = None, category: str = "", kind: str | None = None) -> Ref:
        """A value of a shape and category of types: one that is there, or a new argument."""

        def fits(tensor: Any) -> bool:
            if shape is not None and tensor.shape != shape:
                return False
            return not category or tensor.dtype.category == category or tensor.dtype.name == category

        found = self.existing(fits) if kind is None and self.chance(0.8) else None
        if found is not None:
            return found
        if shape is None:
            shape = self.broadcastable(self.shape) if self.chance(0.8) else self.any_shape()
        return self.input(shape, self.any_dtype(category), kind)

    def indices(self, shape: Shape, limit: int) -> Ref:
        """Integers from 0 up to a limit."""
        if limit == 0 and 0 not in shape:
            raise UnfitError
        return self.input(shape, self.pick("int64", "int64", "int64", "int32"), f"below {limit}")

    def with_dims(self, least: int, most: int = 9, category: str = "") -> Ref:
        """A value of at least so many dimensions, or a new argument."""
        found = self.existing(
            lambda tensor: least <= tensor.ndim <= most and (not category or tensor.dtype.category == category)
        )
        if found is not None and self.chance(0.85):
            return found
        dims = self.random.randint(least, max(least, min(most, 4)))
        return self.input(self.any_shape(dims), self.any_dtype(category))

    def number(self, dtype: str = "float32") -> Any:
        """A Python number, one that suits the type more often than not."""
        if dtype == "bool" and self.chance(0.5):
            return self.chance(0.5)
        if dtype in INTEGERS or dtype == "bool" or self.chance(0.25):
            return (
                self.pick(0, 1, 2, 3, 5, -1, -2, 7, 100, 255, 300) if self.chance(0.9) else self.pick(2**31, -(2**40))
            )
        return self.pick(0.5, 2.0, -1.5, 0.1, 3.0, 1.0, 0.0, -0.0, 1e-3, 1e4, 1e39, float("inf"), float("nan"))

    def dtype_code(self, category: str = "") -> Code:
        """A type, as an expression."""
        return Code(f"mt.{self.any_dtype(category)}")


def _size(shape: Shape) -> int:
    size = 1
    for length in shape:
        size *= length
    return size
