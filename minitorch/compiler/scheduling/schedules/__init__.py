"""The engine's own schedules: lists of rewrites for a nest and a target, and which of them a nest gets."""

from __future__ import annotations

from dataclasses import dataclass

from ...loop_ir.loops import Bounds


@dataclass(frozen=True)
class Facts:
    """Facts about the arguments of a nest, which are named by number.

    Attributes:
        past_caches: those that it writes past the caches.
        constants: those that are the same in all calls.
        bounds: the least and the largest number in them, where these are known.
    """

    past_caches: frozenset[int] = frozenset()
    constants: frozenset[int] = frozenset()
    bounds: tuple[tuple[int, Bounds], ...] = ()


NO_FACTS = Facts()
