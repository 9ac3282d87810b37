"""Where minitorch departs from PyTorch on purpose: what README's "Where it differs from PyTorch" says, as rules.

These are the only excuses that a comparison with PyTorch has.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .program import Program

if TYPE_CHECKING:
    from .outcome import Failure

# PyTorch has no kernel for some types, in its words; minitorch has, for every function.
TYPES = re.compile(r"not implemented|support|type|Long|Int|Half|Float|Byte|Bool|integral|boolean", re.IGNORECASE)
VALUES = re.compile(r"overflow|out of range|out of bounds")  # no matter of types, whatever else is said


def permissive(program: Program, error: Failure) -> bool:
    """Whether minitorch may do what PyTorch refuses."""
    if error.kind in ("NotImplementedError", "AttributeError", "TypeError") or "ZeroDivisionError" in error.message:
        return True  # a TypeError is from PyTorch's parser of arguments, which takes numbers in fewer places
    return bool(TYPES.search(error.message)) and not VALUES.search(error.message)


def strict(program: Program, error: Failure) -> bool:
    """Whether minitorch may refuse what PyTorch does."""
    return error.code == "MT401"  # "an in-place write to a tensor that needs a gradient is an error"


def dtype(program: Program, name: str) -> bool:
    """Whether a type may be another one."""
    return any(each.dtype == "uint32" for each in program.inputs)  # "mixes with signed integers, where PyTorch refuses"


def alias(program: Program, pair: tuple[str, str]) -> bool:
    """Whether two values may share memory in one of the two alone."""
    return False
