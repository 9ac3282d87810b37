"""Reads of a piece of code from outside, as its bytecode names them: ``config.scale``, ``self.sub.factor``."""

from __future__ import annotations

import dis
import functools
from collections.abc import Iterator
from types import CodeType
from typing import NamedTuple

GLOBAL, CELL, LOCAL, IMPORT, FREE = "global", "cell", "local", "import", "free"
_ROOTS = {
    **dict.fromkeys(("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"), GLOBAL),
    **dict.fromkeys(("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF", "STORE_DEREF", "DELETE_DEREF"), CELL),
    "IMPORT_NAME": IMPORT,
}
_STEPS = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "STORE_ATTR", "DELETE_ATTR", "IMPORT_FROM")
_WRITES = ("STORE", "DELETE")
# Code with these names reads attributes whose names it does not contain.
_COMPUTED = {"getattr", "vars", "__dict__", "attrgetter", "methodcaller", "asdict", "astuple", "replace", "copy"}
_COMPUTED |= {"deepcopy", "fields", "setattr", "delattr", "__getattribute__", "dir"}


class Chain(NamedTuple):
    """Variable and the attributes that are read from it in turn.

    Attributes:
        is_written: whether the last attribute is assigned and not read.
    """

    kind: str
    variable: str
    attributes: tuple[str, ...]
    is_written: bool = False


class Reads(NamedTuple):
    """Reads of a function's code.

    Attributes:
        chains: those that begin at a variable from outside, or at an argument.
        free: the attributes that are read from anything else.
        asked: attributes named by strings, for `getattr` and `hasattr`; they may not exist.
        is_computed: whether it reads attributes under names that the code does not contain.
    """

    chains: tuple[Chain, ...]
    free: frozenset[str]
    asked: frozenset[str]
    is_computed: bool


def codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a piece of code, and those of the functions defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


@functools.lru_cache(maxsize=4096)
def reads_in(code: CodeType) -> Reads:
    """Return the reads of a piece of code. Functions defined in it add their variables; the rest counts as they run."""
    arguments = _arguments(code)
    found: dict[Chain, None] = {}
    free: set[str] = set()
    for part in codes(code):
        for chain in _chains(part):
            if part is not code and (chain.kind != CELL or chain.variable in part.co_cellvars):
                continue
            if chain.kind == CELL and chain.variable not in code.co_freevars:
                chain = chain._replace(kind=LOCAL)
            if chain.kind == FREE or (chain.kind == LOCAL and chain.variable not in arguments):
                free.update(chain.attributes)
            else:
                found[chain] = None
    texts = [constant for constant in code.co_consts if isinstance(constant, str) and constant.isidentifier()]
    if "globals" in code.co_names:
        found |= dict.fromkeys(Chain(GLOBAL, text, ()) for text in texts)
    read = {chain[:3] for chain in found if not chain.is_written}
    chains = tuple([chain for chain in found if not (chain.is_written and chain[:3] in read)])
    steps = list(dis.get_instructions(code))
    is_computed = not _COMPUTED.isdisjoint(code.co_names) or any(step.opname == "MATCH_CLASS" for step in steps)
    is_computed |= sum(step.argval == "hasattr" for step in steps) > sum(map(_names_last, steps, steps[1:]))
    asked = frozenset(texts if {"getattr", "hasattr"} & {*code.co_names} else ())
    return Reads(chains, frozenset(free) | asked, asked, is_computed)


def _names_last(step: dis.Instruction, after: dis.Instruction) -> bool:
    """Return whether a call of two arguments ends with a string, as `hasattr` does whose name the code contains."""
    return step.opname == "LOAD_CONST" and type(step.argval) is str and "CALL" in after.opname and after.arg == 2


def _chains(code: CodeType) -> Iterator[Chain]:
    at: Chain | None = None
    for step in dis.get_instructions(code):
        if step.opname in ("EXTENDED_ARG", "COPY", "PUSH_NULL"):  # `o.count += 1` copies `o`
            continue
        is_written = step.opname.startswith(_WRITES)
        if step.opname in _STEPS:
            if at is None:
                yield Chain(FREE, "", (str(step.argval),), is_written)
            else:
                at = at._replace(attributes=(*at.attributes, str(step.argval)), is_written=is_written)
                if is_written:
                    yield at
                    at = None
            continue
        if at is not None:
            yield at
        at = None
        kind = LOCAL if "LOAD_FAST" in step.opname else _ROOTS.get(step.opname)
        if kind is not None:  # later Pythons load two variables at once; attributes are read from the last
            *others, last = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            yield from (Chain(kind, str(other), ()) for other in others)
            at = Chain(kind, str(last), (), is_written)
            if is_written:
                yield at
                at = None


def _arguments(code: CodeType) -> frozenset[str]:
    """Return the parameters of a function that it does not assign."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)  # *args, **kwargs
    assigned: set[str] = set()
    for part in codes(code):
        for step in dis.get_instructions(part):
            if step.opname.startswith(("STORE_FAST", "DELETE_FAST", "STORE_DEREF", "DELETE_DEREF")):
                names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
                assigned.update(names[:1] if "LOAD" in step.opname else names)
    return frozenset(code.co_varnames[:count]) - assigned
