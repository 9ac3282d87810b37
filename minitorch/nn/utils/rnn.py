"""Sequences of several lengths: padded to one length, or packed, as recurrent layers take them.

Packed, the elements of all sequences lie side by side, time by time, the longest sequence first; `batch_sizes` has the
number of sequences that are as long. Recurrent layers here run on the padded form, in which a state stays as it is
after its sequence has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...functional.movement.arranging import pad, stack
from ...functional.movement.gathering import index_select
from ...functional.movement.selection import where
from ...functional.movement.shaping import transpose
from ...functional.operands import from_array
from ...interpreters import concrete
from ...tensor import Tensor

Array = np.ndarray[Any, Any]


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None


class PackedSequence(_Packed):
    """Packed sequences.

    Attributes:
        data: the elements, [sum of the lengths, ...].
        batch_sizes: for each time, the number of sequences that are so long.
        sorted_indices: the places of the sequences, by falling length.
        unsorted_indices: the inverse of this order.
    """

    sizes: Array | None = None  # `batch_sizes` where these are known

    def known(self) -> Array:
        """Return `batch_sizes` as an array."""
        return concrete(self.batch_sizes, "batch_sizes", "MT103") if self.sizes is None else self.sizes

    def with_data(self, data: Tensor) -> PackedSequence:
        """Return the same with other elements."""
        made = PackedSequence(data, *self[1:])
        made.sizes = self.sizes
        return made

    def lengths(self) -> Array:
        """Return the lengths of the sequences, the longest first."""
        sizes = self.known()
        result: Array = (np.arange(sizes[0]) < sizes[:, None]).sum(0)
        return result

    def padded(self) -> Tensor:
        """Return [time, sequences, ...] in the order of falling length; elements after the end are any."""
        sizes = self.known()
        places = np.cumsum(sizes)[:, None] - sizes[:, None] + np.minimum(np.arange(sizes[0]), sizes[:, None] - 1)
        return index_select(self.data, 0, from_array(places.reshape(-1))).reshape(*places.shape, *self.data.shape[1:])

    def to(self, *target: Any, **options: Any) -> PackedSequence:
        """Return the same with `data` converted, as `Tensor.to`."""
        return self.with_data(self.data.to(*target, **options))


def taken(x: Tensor, sizes: Array) -> Tensor:
    """Return the packed elements of [time, sequences, ...]."""
    times, sequences = np.nonzero(np.arange(sizes[0]) < sizes[:, None])
    flat = x.reshape(-1, *x.shape[2:])
    return index_select(flat, 0, from_array(times * x.shape[1] + sequences))


def _known_lengths(lengths: Any) -> Array:
    return concrete(lengths, "the lengths", "MT103") if isinstance(lengths, Tensor) else np.asarray(lengths)


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences.

    Args:
        input: [time, batch, ...], or [batch, time, ...] with `batch_first`.
        lengths: of the sequences; a list, or a tensor whose values are known.
        batch_first: whether the batch is the first dimension.
        enforce_sorted: whether sequences that are not sorted by falling length are refused.

    Raises:
        ValueError: for lengths that are not above 0, not sorted or of another number.

    Example:
        >>> import minitorch as mt
        >>> from minitorch.nn.utils import rnn
        >>> rnn.pack_padded_sequence(mt.tensor([[1, 4], [2, 0], [3, 0]]), [3, 1]).data
        tensor([1, 4, 2, 3])
    """
    x = transpose(input, 0, 1) if batch_first else input
    given = _known_lengths(lengths).astype(np.int64)
    if given.shape != x.shape[1:2] or not given.size or given.min() < 1 or given.max() > x.shape[0]:
        raise ValueError(f"pack_padded_sequence: of {input.spec}, the lengths are from 1 on, not {given.tolist()}")
    order = np.argsort(-given, kind="stable")
    if enforce_sorted and (given[order] != given).any():
        raise ValueError(
            f"pack_padded_sequence: lengths {given.tolist()} do not fall: sort them, or enforce_sorted=False"
        )
    sizes: Array = (given > np.arange(given.max())[:, None]).sum(1)
    orders: list[Tensor] = [] if enforce_sorted else [from_array(each) for each in (order, np.argsort(order))]
    data = taken(index_select(x, 1, orders[0]) if orders else x, sizes)
    made = PackedSequence(data, from_array(sizes), *orders)
    made.sizes = sizes
    return made


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return packed sequences padded, and their lengths: the inverse of `pack_padded_sequence`.

    Example:
        >>> import minitorch as mt
        >>> from minitorch.nn.utils import rnn
        >>> rnn.pad_packed_sequence(rnn.pack_sequence([mt.tensor([1, 2]), mt.tensor([3])]), padding_value=-1)
        (tensor([[ 1,  3],
                [ 2, -1]]), tensor([2, 1]))
    """
    found, x = sequence.lengths(), sequence.padded()
    inside = from_array(np.arange(x.shape[0])[:, None] < found).reshape(*x.shape[:2], *(1,) * (x.ndim - 2))
    x, lengths = where(inside, x, padding_value).to(x.dtype), from_array(found)
    if total_length is not None:
        if total_length < x.shape[0]:
            raise ValueError(f"pad_packed_sequence: total_length={total_length} is below the length {x.shape[0]}")
        x = pad(x, (0, 0) * (x.ndim - 1) + (0, total_length - x.shape[0]), value=padding_value)
    if sequence.unsorted_indices is not None:
        x, lengths = index_select(x, 1, sequence.unsorted_indices), lengths[sequence.unsorted_indices]
    return transpose(x, 0, 1) if batch_first else x, lengths


def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Return sequences of several lengths as one tensor, padded at the end: [time, batch, ...].

    Example:
        >>> import minitorch as mt
        >>> mt.nn.utils.rnn.pad_sequence([mt.tensor([1, 2]), mt.tensor([3])], batch_first=True)
        tensor([[1, 2],
                [3, 0]])
    """
    if padding_side not in ("left", "right"):
        raise ValueError(f'pad_sequence: padding_side is "left" or "right", not {padding_side!r}')
    longest = max(each.shape[0] for each in sequences)

    def full(x: Tensor) -> Tensor:
        missing = longest - x.shape[0]
        ends = (missing, 0) if padding_side == "left" else (0, missing)
        return pad(x, (0, 0) * (x.ndim - 1) + ends, value=padding_value)

    return stack([full(each) for each in sequences], 0 if batch_first else 1)


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of several lengths.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.utils.rnn.pack_sequence([mt.tensor([1, 2]), mt.tensor([3])]).batch_sizes
        tensor([2, 1])
    """
    lengths = [each.shape[0] for each in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """Return padded sequences as a list without the padding.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.utils.rnn.unpad_sequence(mt.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True)
        [tensor([1, 2]), tensor([3])]
    """
    x = padded_sequences if batch_first else transpose(padded_sequences, 0, 1)
    return [x[at, : int(length)] for at, length in enumerate(_known_lengths(lengths))]


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return packed sequences as a list.

    Example:
        >>> import minitorch as mt
        >>> from minitorch.nn.utils import rnn
        >>> rnn.unpack_sequence(rnn.pack_sequence([mt.tensor([1, 2]), mt.tensor([3])]))
        [tensor([1, 2]), tensor([3])]
    """
    return unpad_sequence(*pad_packed_sequence(packed_sequences, batch_first=True), batch_first=True)
