"""Every case of `tests.support.cases` with arguments of every type, and with two types: what type the result has.

The floats among the arguments of a case are converted, or all arguments if there are none: the first to one type, the
others to another one. The types are those that PyTorch promotes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from minitorch import dtypes
from minitorch.dtypes import DType
from tests.support.cases import Case

TYPES = tuple(dtype for dtype in dtypes.ALL if dtype is not dtypes.uint32)
SHORT = {dtype.name: dtype.short for dtype in TYPES}


def numbered(cases: list[Case]) -> Iterator[tuple[str, Case]]:
    """The cases that have arguments, with names that differ."""
    seen: dict[str, int] = {}
    for case in cases:
        count = seen[case.name] = seen.get(case.name, 0) + 1
        if case.arrays:
            yield f"{case.name} {count}" if count > 1 else case.name, case


def converted(library: Any, array: np.ndarray, dtype: DType) -> Any:
    """An array as a tensor of a type, with numbers that every type of the category holds."""
    if dtype is dtypes.bool_:
        array = array > 0
    elif dtype.category == "int" and array.dtype.kind == "f":
        array = np.abs(np.trunc(np.nan_to_num(array, posinf=2, neginf=-2) * 3)).astype(np.int64)
    return library.tensor(array).to(getattr(library, dtype.name))


def answer(library: Any, case: Case, first: DType, rest: DType) -> str:
    """The types of the tensors that a case returns, as a listing shows them; ``-`` if it refuses the arguments."""
    places = [place for place, array in enumerate(case.arrays) if array.dtype == np.float32]
    places = places or list(range(len(case.arrays)))
    arguments = [
        converted(library, array, first if place == places[0] else rest) if place in places else library.tensor(array)
        for place, array in enumerate(case.arrays)
    ]
    try:
        result = case.function(*arguments)
    except Exception:
        return "-"
    leaves = list(result) if isinstance(result, (tuple, list)) else [result]
    types = {str(leaf.dtype).rpartition(".")[2] for leaf in leaves if isinstance(leaf, library.Tensor)}
    return "/".join(sorted(SHORT[name] for name in types))


def answers(library: Any, case: Case) -> list[str]:
    """A row per type of the first argument, with a word per type of the others; one word if there are no others."""
    alone = sum(array.dtype == np.float32 for array in case.arrays) == 1 or len(case.arrays) == 1
    rows = []
    for first in TYPES:
        others = (first,) if alone else TYPES
        rows.append(" ".join(answer(library, case, first, rest) for rest in others))
    return [" ".join(rows)] if alone else rows


def rows_of(recorded: list[str]) -> Iterator[tuple[DType, DType, str]]:
    """The types of the arguments and the answer, from what `answers` gave."""
    if len(recorded) == 1:
        for dtype, found in zip(TYPES, recorded[0].split(), strict=True):
            yield dtype, dtype, found
        return
    table = itertools.chain.from_iterable(row.split() for row in recorded)
    for (first, rest), found in zip(itertools.product(TYPES, TYPES), table, strict=True):
        yield first, rest, found
