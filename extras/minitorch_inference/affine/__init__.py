"""Affine folding: scales and shifts by constants disappear into the weights of the contractions beside them.

A frozen network is full of affine maps: batch normalization in evaluation is one, a bias is one, and a linear layer is
one itself. Where weights are constants, so are their products with scales. The laws, over the real numbers:

====================================  ===================================================================
``scaled_after``: dot(x, w)*s + t     dot(x, w*s) + t, if `s` varies along no axis of `x`
``scaled_before``: dot(x*s + t, w)    dot(x, s*w) + t@w, if `s` and `t` vary along the summed axis alone
``associated``: dot(dot(x, v), w)     dot(x, v@w), if that costs no more operations; of convolutions, too
``shortened``: ((x - m)/d)*g + b      x*s + t, for three steps or more, of which no product takes up any
====================================  ===================================================================

::

    Graph ──View──► who reads a value; the numbers of constants, per channel
      │   ──rules──► Match: what replaces a node            ┐
      │              Decision: what was folded, or why not  ┘ AffineFolding
      ▼
    Graph, and again, until no rule applies

Nothing goes by the names of modules: Conv + BN, Linear + BN, BN before Linear, a transposed convolution + BN, depthwise
and grouped convolutions, a bias added twice are all a `dot` with movements and steps around it (Markuš, "Fusing batch
normalization and convolution in runtime", 2018; Jacob et al., arXiv:1712.05877, section 3.2). `decisions` has the
reasons why something is refused.

The rounding error
------------------
The numbers change, since they are rounded elsewhere. This is the only pass that may do so, and it is in no pipeline but
that of frozen graphs. Let `u` be the unit roundoff of the type (2**-24 in float32), ``γ(n) = nu / (1 - nu)``, and `k`
the length of the sum. Let a chain of `n` steps be folded.

Both programs evaluate the same polynomial in the elements of `x`, `w` and the constants: a division by a constant `d`
is a multiplication by ``1/d``. Each of its monomials passes through so many roundings:

- before folding, one for each product, at most `k` for the sum in whatever order, one for each step: ``k + n`` at most;
- after it, `n` for the scale and one for its product with `w` in float64, whose unit roundoff is at most `u`, one to
  store that in the type, `k` for the sum, one for the shift: ``k + n + 3`` at most.

A polynomial evaluated with `N` roundings for each monomial is off by at most ``γ(N) * |P|``, where ``|P|`` is the same
expression of absolute values, with differences made sums (Higham, "Accuracy and Stability of Numerical Algorithms",
2nd ed., section 3.1). So ::

    |y_folded - y| <= 2 * γ(k + n + 3) * (|s| * sum |w||x| + |t|')

for every element of `y`, where ``|t|'`` is the shift with all its terms made positive: for batch normalization
``(|b| + |mean|) * |s| + |bias|`` and not ``|t|``, which cancellation may make small. A rule that is applied before
another adds its `n` to that of the other. The bound assumes that nothing overflows. Where a weight times a scale
underflows, η|x| is added for each, with η the smallest subnormal number.

So an adversarial scale costs nothing: the bound is relative to what the program itself computes with. A scale that is
not finite, or overflows in the weights' type, or becomes 0 there, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from minitorch.graph.build import topological_order, with_inputs
from minitorch.graph.graph import Graph
from minitorch.ir import INPUT, Node
from minitorch.passes.dead_code import remove_dead_code
from minitorch.passes.movement import MOVEMENT
from minitorch.passes.pipeline import Pass
from minitorch.passes.rewrite import rewrite

from .after import scaled_after
from .before import scaled_before
from .decisions import Decision, Match
from .maps import View
from .products import associated, shortened

Rule = Callable[[View], Iterator[Match | Decision]]

# In this order: a shift that a rule moves behind a product meets the steps there in the next round.
RULES: tuple[Rule, ...] = (scaled_after, scaled_before, associated, shortened)


@dataclass(frozen=True)
class AffineFolding:
    """A graph after affine folding, and the decisions.

    Attributes:
        graph: the result; the graph that was given if nothing was folded.
        folded: what was folded, in that order.
        refused: what is left as it was, and why.
    """

    graph: Graph
    folded: tuple[Decision, ...]
    refused: tuple[Decision, ...]

    @property
    def saved(self) -> int:
        """The operations that a call is spared."""
        return sum(decision.saved for decision in self.folded)

    def __str__(self) -> str:
        return "\n".join(map(str, (*self.folded, *self.refused))) or "no product with constant weights is scaled"


def fold_affine(graph: Graph) -> AffineFolding:
    """Fold scales and shifts by constants into the weights of contractions.

    Args:
        graph: one whose weights are constants; without constants there is nothing to fold.

    Example:
        >>> graph = Graph.parse('''
        ... graph(x: f32[8,2]):
        ...   %0 = constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]) : f32[2,3]
        ...   %1 = constant([2.0, 1.0, -1.0]) : f32[3]
        ...   %2 = dot(x, %0, dtype=f32)
        ...   %3 = expand(%1, shape=[8,3])
        ...   %4 = sub(%2, 0.5)
        ...   %5 = mul(%4, %3)
        ...   return %5
        ... ''')
        >>> result = fold_affine(graph)
        >>> print(result.graph)
        graph(x: f32[8,2]):
          %0 = constant([[2.0, 2.0, -3.0], [8.0, 5.0, -6.0]]) : f32[2,3]
          %1 = dot(x, %0, dtype=f32)                          : f32[8,3]
          %2 = constant([[-1.0, -0.5, 0.5]])                  : f32[1,3]
          %3 = expand(%2, shape=[8,3])                        : f32[8,3]
          %4 = add(%1, %3)                                    : f32[8,3]
          return %4
        >>> print(result)
        dot(x, w)*s + t -> dot(x, w*s) + t: folded (24 operations fewer)
    """
    folded: list[Decision] = []
    refused: list[Decision] = []
    for _ in range(len(graph.nodes) + 1):
        refused = []
        for rule in RULES:
            found = list(rule(View(graph)))
            matches = {each.end: each for each in found if isinstance(each, Match)}
            refused += [each for each in found if isinstance(each, Decision)]
            if matches:
                folded += [each.decision for each in matches.values()]
                graph = rewrite(_replaced(graph, matches), MOVEMENT.rules) if MOVEMENT.rules else graph
                break
        else:
            break
    return AffineFolding(graph, tuple(folded), tuple(dict.fromkeys(refused)))


def _replaced(graph: Graph, matches: dict[Node, Match]) -> Graph:
    """The graph with the ends of matches replaced, in program order."""
    done: dict[Node, Node] = {node: node for node in graph.inputs}
    emitted: dict[Node, None] = {}
    for node in graph.nodes:
        if node in matches:
            done[node] = matches[node].build(done.__getitem__)
        else:
            done[node] = with_inputs(node, tuple([done[operand] for operand in node.inputs]))
        emitted |= dict.fromkeys(
            each for each in topological_order((done[node],), emitted) if each.primitive is not INPUT
        )
    outputs = [done[node] for node in graph.outputs]
    return remove_dead_code(Graph(graph.inputs, outputs, emitted, graph.name, verify=False))


AFFINE_FOLDING = Pass(
    "affine folding",
    lambda graph: fold_affine(graph).graph,
    "Fold scales and shifts by constants into the weights of the products beside them.",
    rearranges=True,
)
