"""Layers of recurrences over sequences: the computation of recurrent layers, given their products.

    layer 0   forward  ──► h [T, N, H] ┐
              backward ──► h [T, N, H] ┴ cat ──dropout──► layer 1 ...     each direction is one `recurrence.scan`

The subclasses multiply: `minitorch.nn.recurrent` by parameters, `minitorch.quantization` by integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...functional.creation.creation import zeros
from ...functional.movement.arranging import cat, stack
from ...functional.movement.gathering import index_select
from ...functional.movement.parts import unbind
from ...functional.movement.shaping import squeeze, transpose, unsqueeze
from ...functional.operands import from_array, to_dtype
from ...functional.options import require_tensor
from ...packages import load
from ...tensor import Tensor
from .. import functional as F
from ..module import Module
from .recurrence import KINDS, State, checked_state, scan, stopping

OPTIONS = ("mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional",
           "proj_size")  # fmt: skip


class Recurrent(Module):
    """Layers of recurrences in one or two directions, given the products of inputs and of hidden states.

    Attributes:
        mode: a row of `KINDS`.
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size: as of `LSTM`.
    """

    loops = True  # whether a recording has a loop over time

    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    proj_size: int

    def product(self, x: Tensor, place: str) -> Tensor:
        """Return [..., features] times the weight of a place (``"ih_l0"``, ``"hh_l1_reverse"``), plus its bias."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """The name of the layer in messages."""
        return self.mode.partition("_")[0]

    @property
    def suffixes(self) -> list[list[str]]:
        """The ends of parameters' names: for each layer, of each direction."""
        directions = ("", "_reverse") if self.bidirectional else ("",)
        return [[f"_l{layer}{direction}" for direction in directions] for layer in range(self.num_layers)]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The length of each tensor of the state, of the hidden state first."""
        return (self.proj_size or self.hidden_size, self.hidden_size)[: KINDS[self.mode].states]

    def forward(self, input: Any, hx: Any = None) -> tuple[Tensor, Any]:
        """Run all layers over a sequence.

        Args:
            input: [T, N, input_size]; [N, T, input_size] with `batch_first`; [T, input_size] without a batch; or
                packed sequences (`minitorch.nn.utils.rnn`), and then the hidden states are packed, too.
            hx: the first state, [layers * directions, N, size] (without N, if the input has no batch); of an LSTM a
                pair of them. Zeros by default.

        Returns:
            The hidden states of the last layer at all times, [T, N, directions * size] (or as the input is), and the
            last states, like `hx`.

        Raises:
            ShapeError: if input or state do not fit, or the sequence is empty (``MT201``).
            DTypeError: if the input is of another type than the weights (``MT202``).
        """
        if not isinstance(input, Tensor) and hasattr(input, "batch_sizes"):
            return self._packed(input, hx)
        batched = self._checked(input)
        x = unsqueeze(input, 1) if not batched else transpose(input, 0, 1) if self.batch_first else input
        x, last = self._layers(x, self._first(x, hx, batched))
        if not batched:
            x, last = squeeze(x, 1), tuple([squeeze(each, 1) for each in last])
        elif self.batch_first:
            x = transpose(x, 0, 1)
        return x, last if len(last) > 1 else last[0]

    def _packed(self, packed: Any, hx: Any) -> tuple[Any, Any]:
        """Run all layers over packed sequences, padded meanwhile."""
        x, lengths = packed.padded(), packed.lengths()
        orders = packed.sorted_indices, packed.unsorted_indices

        def ordered(state: Any, order: Tensor | None) -> Any:
            if state is None or order is None:
                return state
            if isinstance(state, Tensor):
                return index_select(state, 1, order)
            return tuple([index_select(each, 1, order) for each in state])

        self._checked(x if not self.batch_first else transpose(x, 0, 1))
        valid = from_array(np.arange(len(packed.known()))[:, None, None] < lengths[:, None])
        x, last = self._layers(x, self._first(x, ordered(hx, orders[0]), True), valid)
        result = ordered(last, orders[1])
        taken = load("minitorch.nn.utils.rnn").taken(x, packed.known())
        return packed.with_data(taken), result if len(result) > 1 else result[0]

    def _layers(
        self, x: Tensor, state: Sequence[tuple[Tensor, ...]], valid: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """Run all layers over [T, N, features]; where an element is not valid, [T, N, 1], states stay as they are."""
        ends: list[State] = []
        for layer, suffixes in enumerate(self.suffixes):
            if layer and self.dropout and self.training:
                x = F.dropout(x, self.dropout)
            found = []
            for direction, suffix in enumerate(suffixes):
                first = tuple([each[len(ends)] for each in state])
                hs, end = self._direction(x, first, suffix, bool(direction), valid)
                found.append(hs)
                ends.append(end)
            x = found[0] if len(found) == 1 else cat(found, -1)
        return x, tuple([stack(each) for each in zip(*ends, strict=True)])

    def _direction(
        self, x: Tensor, state: State, suffix: str, reverse: bool, valid: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """Run one layer in one direction; return the hidden states at all times, and the last state."""

        def hidden(h: Tensor) -> Tensor:
            return self.product(h, f"hh{suffix}")

        def project(h: Tensor) -> Tensor:
            return self.product(h, f"hr{suffix}")

        kind, given, after = KINDS[self.mode], self.product(x, f"ih{suffix}"), project if self.proj_size else None
        if valid is not None:
            kind, given, after = stopping(kind, after), cat([given, to_dtype(valid, given.dtype)], -1), None
        return scan(kind, given, state, hidden, after, reverse, self.loops)

    def _first(self, x: Tensor, hx: Any, batched: bool) -> list[tuple[Tensor, ...]]:
        """Return the first states, taken apart by layer and direction: of each, those of all places."""
        places = self.num_layers * (2 if self.bidirectional else 1)
        if hx is None:
            return [(zeros(x.shape[1], size, dtype=x.dtype),) * places for size in self.sizes]
        names = ("h_0", "c_0") if len(self.sizes) > 1 else ("hx",)
        batch = (x.shape[1],) if batched else ()
        shapes = {name: (places, *batch, size) for name, size in zip(names, self.sizes, strict=True)}
        rest = ", and for each sequence of the batch" if batched else "; the input has no batch"
        given = checked_state(self.title, hx, shapes, f"it has a state for each layer and direction{rest}")
        return [unbind(each if batched else unsqueeze(each, 1)) for each in given]

    def _checked(self, input: Tensor) -> bool:
        """Check the input, and return whether there is a batch.

        Raises:
            ShapeError: if the input does not fit (``MT201``).
        """
        require_tensor(self.title, "input", input)
        if input.ndim not in (2, 3) or input.shape[-1] != self.input_size:
            raise ShapeError(
                "MT201",
                f"{self.title}: the input is {input.spec}, and not a sequence of {self.input_size} features",
                fix="its shape is [time, batch, features], [batch, time, features] with batch_first=True, or "
                "[time, features] for one sequence",
            )
        if not input.shape[1 if self.batch_first and input.ndim == 3 else 0]:
            raise ShapeError("MT201", f"{self.title}: the sequence has no elements: {input.spec}")
        return input.ndim == 3

    def extra_repr(self) -> str:
        """Return the options as text; those with a default only if they differ from it."""
        usual = {"proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0,
                 "bidirectional": False}  # fmt: skip
        shown = [f"{name}={value}" for name in usual if (value := getattr(self, name)) != usual[name]]
        return ", ".join([str(self.input_size), str(self.hidden_size), *shown])
