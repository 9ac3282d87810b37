"""Programs to be compiled and not run, and a main function that compiles them: what LLVM cannot digest ends it, and
so does code that calls what is not there.

``python -m tests.compiler.codegen.compiling`` compiles some, for the target ``MINITORCH_TARGET``, and writes the
name of each before it begins; with ``--all`` every pair of types in every form, which takes
minutes; with names as arguments, those.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence

import minitorch as mt
from minitorch import dtypes

Program = Callable[..., tuple[mt.Tensor, ...]]

ONE = (
    *("neg", "abs", "sign", "sqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "erf", "floor", "trunc"),
    *("round", "reciprocal", "sigmoid", "square", "logical_not", "bitwise_not", "isnan", "signbit", "asinh", "atan"),
)
TWO = (
    *("add", "sub", "mul", "div", "pow", "fmod", "remainder", "floor_divide", "maximum", "minimum", "atan2", "hypot"),
    *("less", "less_equal", "equal", "not_equal", "greater", "logical_and", "logical_xor", "bitwise_and"),
    *(
        "bitwise_or",
        "bitwise_xor",
        "bitwise_left_shift",
        "bitwise_right_shift",
        "copysign",
        "fmax",
        "xlogy",
    ),
)


def chosen(a: mt.Tensor, b: mt.Tensor) -> tuple[mt.Tensor, ...]:
    """Choices between numbers, and between operands, with conditions that one type may never meet."""
    return tuple(
        found
        for negative in (a < 0, a.to(b.dtype) < 0, a != a, a > b)
        for found in (mt.where(negative, 2, 3) * b, mt.where(negative, 2.5, -3.0) * b, mt.where(negative, a, b))
    )


def each_of(names: tuple[str, ...]) -> Program:
    """All functions of some names that take operands of the given types."""

    def program(*operands: mt.Tensor) -> tuple[mt.Tensor, ...]:
        found = []
        for name in names:
            try:
                found.append(getattr(mt, name)(*operands))
            except TypeError:  # not of these types
                continue
        return tuple(found)

    return program


def casts(others: Sequence[mt.DType]) -> Program:
    """A row and a number, in other types."""
    return lambda x: tuple(found for other in others for found in (x.to(other), x[0].to(other) + x))


FORMS: dict[str, tuple[tuple[int, ...], ...]] = {
    "a number and a row": ((), (31,)),
    "a row and a number": ((31,), ()),
    "rows": ((31,), (31,)),
    "a column and a row": ((3, 1), (31,)),
    "numbers": ((), ()),
}


SECOND = (dtypes.float32,)  # types of the other operand; with --all these are all
SOME = ("a number and a row", "a row and a number")


def programs(everything: bool = True) -> Iterator[tuple[str, Program, tuple[mt.Tensor, ...]]]:
    """Name, function and operands of each."""
    for a in dtypes.ALL:
        for shape in ((), (31,)):
            yield f"one {a.name} {list(shape)}", each_of(ONE), (mt.ones(shape, dtype=a),)
        for others in [(other,) for other in dtypes.ALL] if everything else [dtypes.ALL]:
            names = " ".join(other.name for other in others)
            yield f"cast {a.name} {names}", casts(others), (mt.ones(31, dtype=a),)
        for other in dtypes.ALL:
            if a.is_floating_point and other.is_floating_point:
                x = mt.ones((), dtype=a)
                yield f"one {other.name} of {a.name}", lambda x, other=other: each_of(ONE)(x.to(other)), (x,)
        for b in dtypes.ALL if everything else SECOND:
            for form, shapes in FORMS.items():
                if (dtypes.uint32 in (a, b) and a is not b) or (not everything and form not in SOME):
                    continue
                operands = tuple(mt.ones(shape, dtype=dtype) for shape, dtype in zip(shapes, (a, b), strict=True))
                yield f"two {a.name} {b.name}, {form}", each_of(TWO), operands
                yield f"where {a.name} {b.name}, {form}", chosen, operands


def main(arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory() as os.environ["MINITORCH_CACHE_DIR"]:  # nothing was compiled before
        for name, function, operands in programs(everything=bool(arguments)):
            if arguments in ([], ["--all"]) or name in arguments:
                print(name, flush=True)
                mt.jit(function).ledger(*operands)


if __name__ == "__main__":
    main(sys.argv[1:])
