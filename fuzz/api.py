"""Which calls there are: read off the public API, so that a function added tomorrow is called tomorrow.

Every public function, method of `Tensor` and operator is a row here, or stands in `LEFT_OUT` with the reason.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import minitorch as mt
from minitorch.functional import public_names
from minitorch.functional.creation import generator, random
from minitorch.nn import functional as nn_functional

LEFT_OUT: dict[str, frozenset[str]] = {
    "its result says nothing about values": frozenset(
        ["Generator", "default_generator", "seed", "initial_seed", "manual_seed", "finfo", "iinfo", "can_cast",
         "get_default_dtype", "promote_types", "broadcast_shapes", "is_tensor", "empty", "empty_like", "new_empty",
         "show"]
    ),
    "it takes what is not a tensor, a number or a shape": frozenset(["from_dlpack", "from_numpy"]),
    "gradients have statements of their own": frozenset(
        ["backward", "register_hook", "retain_grad", "requires_grad_", "checkpoint", "detach_"]
    ),
    "it amplifies the rounding of what it is given": frozenset(
        ["cholesky", "det", "inverse", "logdet", "matrix_power", "pinverse", "qr", "slogdet", "svd"]
    ),
    "no recording gives an argument another shape": frozenset(
        ["squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_"]
    ),
    "there is one device": frozenset(["cuda", "cpu"]),
    "it needs CUDA in PyTorch, or is a conversion to Python": frozenset(["numpy", "tolist"]),
}  # fmt: skip

# What gives Python values, or shapes that depend on data: no trace can follow it, so it comes less often.
EAGER_BY_NATURE = frozenset(["allclose", "equal", "bincount", "item", "nonzero", "argwhere", "unique", "masked_select"])

SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
}  # fmt: skip
UNARY = {"__neg__": "-{}", "__pos__": "+{}", "__invert__": "~{}", "__abs__": "abs({})"}


@dataclass(frozen=True)
class Function:
    """A row: something to call.

    Attributes:
        callee: as in a `Statement`.
        base: the plain name of the function, for which `recipes` may know how to call it.
        signature: of the function.
        in_place: whether it writes into its first argument.
    """

    callee: str
    base: str
    signature: inspect.Signature
    in_place: bool = False

    @property
    def random(self) -> bool:
        """Whether it draws random numbers, which are not PyTorch's."""
        return self.base in RANDOM


RANDOM = {"dropout", "dropout1d", "dropout2d", "gumbel_softmax", *public_names(random), *generator.__all__}


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function; that of `abs` for ``abs_``, which takes what `abs` takes."""
    signature = inspect.signature(function)
    name = function.__name__
    if name.endswith("_") and "args" in signature.parameters and hasattr(mt, name[:-1]):
        return inspect.signature(getattr(mt, name[:-1]))
    return signature


def left_out(name: str) -> bool:
    """Whether a name stands in `LEFT_OUT`."""
    return any(name in names for names in LEFT_OUT.values())


@cache
def functions() -> tuple[Function, ...]:
    """All rows.

    Example:
        >>> {"mt.add", ".add_", "F.conv2d", "{} + {}", ".expand"} <= {row.callee for row in functions()}
        True
    """
    rows = []
    for space, names in (("mt", mt.functional.FUNCTIONS), ("F", nn_functional.__all__)):
        for name in names:
            if not left_out(name) and (space == "mt" or name not in mt.functional.FUNCTIONS):
                function = getattr(mt if space == "mt" else nn_functional, name)
                rows.append(Function(f"{space}.{name}", name, signature_of(function)))
    for name in dir(mt.Tensor):
        method = getattr(mt.Tensor, name)
        if name.startswith("_") or left_out(name) or not inspect.isfunction(method):
            continue
        in_place = name.endswith("_")
        base = name[:-1] if in_place and hasattr(mt, name[:-1]) and name not in RANDOM else name
        rows.append(Function(f".{name}", base, signature_of(method), in_place))
    rows += _operators()
    return tuple(rows)


def _operators() -> list[Function]:
    one, two = inspect.signature(mt.neg), inspect.signature(mt.add)
    rows = [Function(form, name, one) for name, form in UNARY.items() if hasattr(mt.Tensor, name)]
    for name, symbol in SYMBOLS.items():
        base = "matmul" if name == "matmul" else {"lshift": "shift", "rshift": "shift"}.get(name, f"__{name}__")
        if hasattr(mt.Tensor, f"__{name}__"):
            rows.append(Function(f"{{}} {symbol} {{}}", base, two))
        if hasattr(mt.Tensor, f"__r{name}__") and name != "matmul":
            rows.append(Function(f"{{}}  {symbol} {{}}", "reflected", two))
        if hasattr(mt.Tensor, f"__i{name}__"):
            rows.append(Function(f"{{}} {symbol}= {{}}", base, two, True))
    rows += [Function(f"{{}}.{name}", "property", one) for name in ("T", "mT", "data")]
    getitem, setitem = inspect.signature(mt.Tensor.__getitem__), inspect.signature(mt.Tensor.__setitem__)
    return [*rows, Function("{}[{}]", "getitem", getitem), Function("{}[{}] = {}", "setitem", setitem, True)]
