"""Group normalization: a layer norm of groups of channels, with a weight and a bias for each channel."""

from __future__ import annotations

import minitorch_operators as O
from minitorch import primitives as P
from minitorch.graph.build import apply
from minitorch.ir import Node

from .matching import Found, channel_vector, either


def group_norm(node: Node, single: set[Node]) -> Found:
    """``normalized * weight + bias``, where the channels were normalized in groups."""
    if len(node.shape) < 3:
        return None
    for scaled, parameter in either(node, P.add):
        bias = channel_vector(parameter, node)
        for normal, factor in either(scaled, P.mul) if bias is not None and scaled in single else []:
            weight, found = channel_vector(factor, node), _normalized(normal)
            if weight is not None and bias is not None and found is not None and normal in single:
                x, groups, eps = found
                return apply(O.group_norm, x, weight, bias, source=node.source, groups=groups, eps=eps)
    return None


def _normalized(node: Node) -> tuple[Node, int, float] | None:
    """What was normalized in groups, into how many, and the number that is added to the variance."""
    normal = node.inputs[0] if node.primitive is P.reshape else node
    if normal.primitive is not O.layer_norm or len(normal.inputs) != 1:
        return None
    (grouped,) = normal.inputs
    x = grouped.inputs[0] if grouped.primitive is P.reshape and grouped.inputs[0].shape == node.shape else grouped
    fits = x.shape == node.shape and normal.params["last"] == len(normal.shape) - 2
    if not fits or normal.shape[0] != x.shape[0] or x.shape[1] % normal.shape[1]:
        return None
    return x, normal.shape[1], normal.params["eps"]
