"""The gradient of a scan, which is a scan in the other direction.

It is recorded with the body: what it reads of the body's values becomes further results of the scan, one slice for each
repetition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..autograd import tape
from ..dtypes import DType
from ..graph import apply
from ..graph.control_flow import scan as SCAN
from ..graph.regions import free_nodes
from ..interpreters import Staging, is_grad_enabled
from ..ir import POINTWISE, Node, Spec
from ..primitives import add, dot, permute, reshape
from ..tensor import Tensor
from .bodies import (
    Body,
    Kept,
    Values,
    applied,
    cotangent_at,
    gradients_of,
    not_again,
    program_of,
    variables,
    zeros_of,
)  # fmt: skip


def is_cheap(node: Node) -> bool:
    """Return whether a backward body computes a value again, which takes no function, sum or product of matrices."""
    is_arithmetic = node.primitive.kind in POINTWISE and node.primitive.work == "arithmetic"
    return is_arithmetic or node.primitive.kind in ("movement", "source")


class Backward:
    """The gradient of a scan as a scan: carried are the cotangents of the carry, and sums over all repetitions.

    The sum of products over all repetitions is one product: its factors become results, and it is computed afterwards.

    Attributes:
        residuals: the nodes of the body whose values it reads: further results of the scan.
    """

    def __init__(self, body: Body, count: int) -> None:
        self.body, self.count = body, count
        self.carried = [place for place, node in enumerate(body.inputs[:count]) if node.dtype.is_floating_point]
        self.slices = [place for place in range(count, len(body.inputs)) if body.keys[place] in body._gradients]
        self.results = [place for place in body.cotangents if place >= count]
        carries = [body.cotangents.get(at) or body.stand_in(body.inputs[at].spec)._value for at in self.carried]
        products = {key: _product(node) for key, node in body._gradients.items() if key in body.outside}
        self.products = {key: found for key, found in products.items() if found is not None}
        sums = {
            key: body.stand_in(tensor.spec)._value for key, tensor in body.outside.items() if key not in self.products
        }
        added = [apply(add, before, body.gradient(key, before.spec)) for key, before in sums.items()]
        outputs = [body.gradient(body.keys[place], body.inputs[place].spec) for place in self.carried] + added
        factors = [factor for product in self.products.values() for factor in product.factors]
        added += [factor for factor in factors if factor.trace is None]
        outputs += [body.gradient(body.keys[place], body.inputs[place].spec) for place in self.slices] + factors
        inputs = [*carries, *sums.values(), *(body.cotangents[place] for place in self.results)]
        self.sums, self.carries = list(sums), len(carries) + len(sums)
        self.residuals: list[Node] = []
        self.rows: list[Node] = []
        own, known, rows = set(body.own), set(inputs), set(body.inputs[count:])
        later = {*body.region.nodes[body.ahead :], *added}
        moving = {*body.inputs[:count], *(write.before for write in body.region.writes)}
        again: set[Node] = set()
        pending = list(outputs)
        for node in pending:  # the list grows during the loop
            if node in known:
                continue
            known.add(node)
            if node in later or (node in own and is_cheap(node)):
                again.add(node)
                pending += node.inputs
            elif node in own or node in moving:
                self.residuals.append(node)
            elif node in rows:
                self.rows.append(node)
        nodes = [node for node in (*body.region.nodes, *added) if node in again]
        # A factor that is kept is no result again; the others follow the gradients of the slices.
        given = [*self.residuals, *self.rows]
        made = [factor for factor in dict.fromkeys(factors) if factor not in given]
        outputs[len(outputs) - len(factors) :] = made
        self.factors = [(given.index(each), True) if each in given else (made.index(each), False) for each in factors]
        inputs += given
        self.outer = free_nodes(outputs, nodes, inputs)
        self.specs = [node.spec for node in inputs]
        self.graph = program_of([*inputs, *self.outer], outputs, nodes)

    def keep(self, staging: Staging, rows: Sequence[Node], residuals: Sequence[Tensor]) -> None:
        """Keep the values that it reads."""
        places = {node: place for place, node in enumerate(self.body.inputs[self.count :])}
        nodes = [*map(staging.node_of, residuals), *(rows[places[node]] for node in self.rows), *self.outer]
        self.kept = [Kept(staging, node) for node in nodes]

    def connect(
        self, outputs: Sequence[Tensor], given: Sequence[Tensor], length: int, reverse: bool, again: Any
    ) -> None:
        """Put the scan on the tape."""
        body = self.body
        outside = list(body.outside.values())
        places = [place for place in (*self.carried, *self.slices) if given[place]._requires_grad]
        params = {
            "body": self.graph,
            "length": length,
            "carried": self.carries,
            "sliced": len(self.results) + len(self.residuals) + len(self.rows),
            "reverse": not reverse,
        }

        def rule(parts: dict[int, Tensor], saved: dict[int, Tensor], asked: list[bool]) -> list[Tensor | None]:
            if is_grad_enabled():
                found = differentiable(again, parts, places, outside)
            else:
                stacked = [Spec((length, *spec.shape), spec.dtype) for spec in self.specs[self.carries :]]
                starts = [cotangent_at(parts, place, body.inputs[place].spec) for place in self.carried]
                starts += map(zeros_of, self.specs[len(self.carried) : self.carries])
                starts += [cotangent_at(parts, place, spec) for place, spec in zip(self.results, stacked, strict=False)]
                kept = [each.again() for each in self.kept]
                results = applied(SCAN, [*starts, *kept], params, len(self.graph.outputs))
                by_place = dict(zip(self.carried, results, strict=False))
                by_place |= dict(zip(self.slices, results[self.carries :], strict=False))
                by_key = dict(zip(self.sums, results[len(self.carried) :], strict=False))
                made = results[self.carries + len(self.slices) :]
                factors = iter([(kept if is_kept else made)[place] for place, is_kept in self.factors])
                by_key |= {key: product.of(next(factors), next(factors)) for key, product in self.products.items()}
                found = [*(by_place[place] for place in places), *(by_key[key] for key in body.outside)]
            return [each if is_asked else None for each, is_asked in zip(found, asked, strict=True)]

        sources = (*(given[place] for place in places), *outside)
        without = [id(each) for place, each in enumerate(outputs) if place not in body.cotangents]
        tape.record_many("scan", sources, outputs, rule, without=without)


@dataclass
class Product:
    """A gradient that is a product of matrices in each repetition.

    Attributes:
        factors: the left one, transposed, and the right one.
        dims: how the product is permuted at the end.
        dtype: its type.
    """

    factors: tuple[Node, Node]
    dims: tuple[int, ...]
    dtype: DType

    def of(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the sum of the products, from the factors of all repetitions."""
        long = [reshape(each, shape=(each.shape[0] * each.shape[1], each.shape[2])) for each in (left, right)]
        return permute(dot(permute(long[0], dims=(1, 0)), long[1], dtype=self.dtype), dims=self.dims)


def _product(node: Node) -> Product | None:
    """Return the product that a gradient is, or None."""
    dims: tuple[int, ...] = (0, 1)
    while node.primitive is permute and node.spec.ndim == 2:
        dims = tuple(node.params["dims"][place] for place in dims)
        node = node.inputs[0]
    if node.primitive is not dot or any(operand.spec.ndim != 2 for operand in node.inputs):
        return None
    left, right = node.inputs
    turned = left.inputs[0] if left.primitive is permute else apply(permute, left, dims=(1, 0))
    return Product((turned, right), dims, node.dtype)


def differentiable(
    again: Any, parts: dict[int, Tensor], places: Sequence[int], outside: Sequence[Tensor]
) -> Sequence[Tensor | None]:
    """Return the gradients of a scan as results that have gradients themselves: each body runs again, on the tape.

    Raises:
        AutogradError: if the body changes something outside, such as a generator of random numbers (``MT405``).
    """
    if again is None:
        raise not_again("scan")
    scan, f, first, rows, length, reverse = again
    count = len(first.tensors)
    _, carries = scan(
        lambda carry, x: (f(carry, x)[0], carry), first.of(first.tensors), rows.of(rows.tensors), length, reverse
    )
    carried = [place for place, tensor in enumerate(first.tensors) if tensor.dtype.is_floating_point]
    results = sorted(place for place in parts if place >= count)

    def back(state: Any, now: Any) -> Any:
        (cotangents, sums), (carry, x, given) = state, now
        known, slices = variables(carry), variables(x)
        new, result = f(first.of(known), rows.of(slices))
        outputs = [*Values(new, "scan").tensors, *Values(result, "scan").tensors]
        of_slices = [slices[place - count] for place in places if place >= count]
        wanted = [*(known[place] for place in carried), *of_slices, *outside]
        ends = [outputs[place] for place in (*carried, *results)]
        filled = gradients_of(ends, [*cotangents, *given], wanted)
        added = [before + each for before, each in zip(sums, filled[len(filled) - len(outside) :], strict=True)]
        return (filled[: len(carried)], added), filled[len(carried) : len(carried) + len(of_slices)]

    starts = [cotangent_at(parts, place, first.tensors[place].spec) for place in carried]
    sums = [zeros_of(tensor.spec) for tensor in outside]
    (ends, sums), of_slices = scan(
        back, (starts, sums), (carries, rows.of(rows.tensors), [parts[place] for place in results]), length, not reverse
    )
    return [*(ends[carried.index(place)] for place in places if place < count), *of_slices, *sums]
