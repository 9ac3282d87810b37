"""Movement simplification: movements that cancel each other, or change nothing, are removed.

Gradients and broadcasting leave many of these: a reshape of a reshape, a transposition undone by the next one, an
expansion to the same shape. Only places change, so every law holds for every value.
"""

from __future__ import annotations

from ..graph.values import number_text
from ..ir import Node
from ..primitives import concatenate, flip, permute, reshape, slice_
from .patterns import Match, number, op, param, wildcard
from .pipeline import table_pass
from .rewrite import Rule, Rules

x = wildcard("x")
n = number("n")
s, t = param("s"), param("t")


def _keeps_shape(match: Match) -> bool:
    """Return whether the shape stays the same, for movements that are then the identity."""
    return bool(match["x"].shape == match.node.shape)


def _permute_as_reshape(match: Match) -> Node | None:
    """Return the reshape equal to a permutation that moves only dimensions of length 1."""
    shape = match["x"].shape
    moved = [dim for dim in match["s"] if shape[dim] != 1]
    return match.apply(reshape, match["x"], shape=match.node.shape) if moved == sorted(moved) else None


def _expand_as_reshape(match: Match) -> Node | None:
    """Return the reshape equal to an expansion that only adds dimensions of length 1."""
    if match["x"].spec.size != match.node.spec.size or 0 in match.node.shape:
        return None
    return match.apply(reshape, match["x"], shape=match.node.shape)


def _permute_once(match: Match) -> Node:
    inner, outer = match["s"], match["t"]
    return match.apply(permute, match["x"], dims=tuple(inner[dim] for dim in outer))


def _slice_once(match: Match) -> Node:
    """Return the outer slice with its bounds counted in elements of the inner one's input."""
    inner, outer = match.node.inputs[0].params, match.node.params
    step = tuple(by * then for by, then in zip(inner["step"], outer["step"], strict=True))
    start = tuple(
        low + then * by if length else 0
        for low, by, then, length in zip(inner["start"], inner["step"], outer["start"], match.node.shape, strict=True)
    )
    stop = tuple(
        low + (length - 1) * by + 1 if length else 0
        for low, by, length in zip(start, step, match.node.shape, strict=True)
    )
    return match.apply(slice_, match["x"], start=start, stop=stop, step=step)


def _flip_once(match: Match) -> Node:
    dims = tuple(sorted(set(match["s"]) ^ set(match["t"])))
    return match.apply(flip, match["x"], dims=dims)


def _flip_visible(match: Match) -> Node | None:
    """Drop dimensions of length 0 or 1 from a flip: they read the same backwards."""
    dims = tuple(dim for dim in match["s"] if match["x"].shape[dim] > 1)
    if len(dims) == len(match["s"]):
        return None
    return match.apply(flip, match["x"], dims=dims)


def _slice_of_pad(match: Match) -> Node | None:
    """Return the operand of a padding that a slice removes again."""
    padded = match.node.inputs[0]
    before = tuple(amounts[0] for amounts in padded.params["padding"])
    step = tuple(amounts[2] + 1 for amounts in padded.params["padding"])
    shape = match["x"].shape
    cut = match.node.params
    exact = cut["start"] == before and match.node.shape == shape and 0 not in shape
    same_step = all(
        ours == theirs or length == 1 for ours, theirs, length in zip(cut["step"], step, shape, strict=True)
    )
    return match["x"] if exact and same_step else None


def _slice_of_concatenate(match: Match) -> Node | None:
    """Slice the one operand of a concatenation in which the slice lies."""
    joined, cut = match["x"], match.node.params
    if joined.primitive is not concatenate or 0 in match.node.shape:
        return None
    dim, begin = joined.params["dim"], 0
    for operand in joined.inputs:
        end = begin + operand.shape[dim]
        if begin <= cut["start"][dim] and cut["stop"][dim] <= end:
            start, stop = list(cut["start"]), list(cut["stop"])
            start[dim] -= begin
            stop[dim] -= begin
            return match.apply(slice_, operand, start=tuple(start), stop=tuple(stop), step=cut["step"])
        begin = end
    return None


def _splat(match: Match) -> Node:
    return match.literal(match["n"].params["value"])


def _pad_splat(match: Match) -> Node | None:
    dtype = match.node.dtype
    same = number_text(match["n"].params["value"], dtype) == number_text(match["s"], dtype)
    return _splat(match) if same else None


SLICE_OF_CONCATENATE = Rule(
    op.slice(x), _slice_of_concatenate, name="slice(concatenate(x, ...)) -> slice(x) if it lies in x"
)
IDENTITIES = Rules(
    Rule(op.reshape(x), x, where=_keeps_shape, name="reshape(x) -> x of its own shape"),
    Rule(op.expand(x), x, where=_keeps_shape, name="expand(x) -> x of its own shape"),
    Rule(op.slice(x), x, where=_keeps_shape, name="slice(x) -> x of its own shape"),
    Rule(op.pad(x), x, where=_keeps_shape, name="pad(x) -> x of its own shape"),
    Rule(op.flip(x, dims=()), x),
    Rule(op.flip(x, dims=s), _flip_visible, name="flip(x, dims) -> flip(x, dims longer than 1)"),
    Rule(op.permute(x, dims=s), _permute_as_reshape, name="permute(x) -> reshape(x) if only 1s move"),
    Rule(op.expand(x), _expand_as_reshape, name="expand(x) -> reshape(x) if nothing is repeated"),
    Rule(op.concatenate(x), x),
)
PAIRS = Rules(
    Rule(op.reshape(op.reshape(x), shape=s), op.reshape(x, shape=s)),
    Rule(op.expand(op.expand(x), shape=s), op.expand(x, shape=s)),
    Rule(op.permute(op.permute(x, dims=s), dims=t), _permute_once, name="permute(permute(x)) -> permute(x)"),
    Rule(op.slice(op.slice(x)), _slice_once, name="slice(slice(x)) -> slice(x)"),
    Rule(op.flip(op.flip(x, dims=s), dims=t), _flip_once, name="flip(flip(x)) -> flip(x)"),
    SLICE_OF_CONCATENATE,
    Rule(op.slice(op.pad(x)), _slice_of_pad, name="slice(pad(x)) -> x if the padding is cut off"),
)
SPLATS = Rules(
    Rule(op.reshape(n), _splat, name="reshape(n) -> n"),
    Rule(op.permute(n), _splat, name="permute(n) -> n"),
    Rule(op.expand(n), _splat, name="expand(n) -> n"),
    Rule(op.slice(n), _splat, name="slice(n) -> n"),
    Rule(op.flip(n), _splat, name="flip(n) -> n"),
    Rule(op.unfold(n), _splat, name="unfold(n) -> n"),
    Rule(op.diagonal(n), _splat, name="diagonal(n) -> n"),
    Rule(op.pad(n, value=s), _pad_splat, name="pad(n, value=n) -> n"),
)

MOVEMENT = table_pass("movement", IDENTITIES + PAIRS + SPLATS, "Remove movements that cancel out or change nothing.")
